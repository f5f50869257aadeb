"""The transcribed swarm report gives its table: its rows in its order, its best figures marked."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page

from tests.browser.pages import Pages, board, column, field_of, heads, names, sort_button, sorted_by
from tests.browser.records import SWARM_REPORT

AT_32 = [203.4, 188.7, 180.0, 118.8, 116.5, 115.5, 108.8, 108.1, 103.7, 101.2, 84.0, 83.9, 83.5, 83.2]
"""As the report prints them, top down; its last row has a dash there."""
BEST = {"1 agent": "49.9", "8 agents": "90.1", "16": "19", "32": "203.4", "64": "267.2"}
BEST_BESIDE = {"First token (s)": "5.1", "Cached": "99.6%"}
TWO_HOSTS = "Flash-Next NVFP4, split over both Sparks + MTP3"


@pytest.fixture
def page(still: Callable[[Path], Page], pages: Pages) -> Page:
    return still(pages.swarm)


def printed_rows() -> list[str]:
    """Titles in the order of the report's table."""
    of_table = {}
    for run in yaml.safe_load(SWARM_REPORT.read_text())["runs"]:
        place = re.fullmatch(r"configuration table, row (\d+)", run["place"])
        if place:
            of_table[int(place[1])] = run["title"]
    return [of_table[row] for row in sorted(of_table)]


def test_its_table_comes_first_in_its_order(page: Page) -> None:
    assert board(page).locator("h3").inner_text().startswith("swarm-54k")
    assert sorted_by(page) == [("32", "descending")]
    assert column(page, "32") == [*(f"{rate:.1f}†" for rate in AT_32), "–"]
    assert names(page) == printed_rows()


def test_the_best_single_host_figure_of_each_column_is_marked_as_stated(page: Page) -> None:
    best = board(page).locator("tbody .best")
    marked: dict[str, set[str]] = {}
    for place, text in best.evaluate_all("all => all.map(e => [e.closest('td').cellIndex, e.innerText])"):
        marked.setdefault(heads(page)[place], set()).add(text.removesuffix("†"))

    assert marked == {head: {text} for head, text in (BEST | BEST_BESIDE).items()}
    assert board(page).locator("tbody .best:not(.stated)").count() == 0


def test_two_hosts_are_said_and_not_marked_though_faster(page: Page) -> None:
    fastest = field_of(page, TWO_HOSTS, "8 agents")

    assert fastest.inner_text().startswith("121.1")
    assert fastest.locator(".best").count() == 0
    assert "over 2 hosts" in field_of(page, TWO_HOSTS, "Configuration").inner_text()


def test_its_first_token_column_sorts_the_other_way(page: Page) -> None:
    sort_button(page, "First token (s)").click()

    assert sorted_by(page) == [("First token (s)", "ascending")]
    assert [text.removesuffix("†") for text in column(page, "First token (s)")[:3]] == ["5.1", "5.7", "6.3"]
    assert column(page, "First token (s)")[-1] == "–"


def test_a_figure_says_where_it_stands_in_the_report(page: Page) -> None:
    field_of(page, "27B NVFP4 + MTP2 + shared-prefix checkpoint + FP8 KV, 64 seqs", "64").locator("a.figure").focus()

    words = page.locator("#popover").inner_text()
    assert "not measured here" in words
    assert "267.2 tok/s" in words
    assert "report/combined_output" in words
    assert "configuration table, row 2" in words
    assert "measured\n" not in words


def test_figures_that_contradict_each_other_are_both_kept(page: Page) -> None:
    words = page.locator("#details").text_content() or ""

    assert "29.4 tok/s" in words
    assert "39 tok/s" in words
