"""The table of configurations: sorted, filtered, its best figures marked, each load in its turn."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.pages import Opener, Pages, board, column, field_of, heads, names, sort_button, sorted_by
from tests.browser.records import GUARD, RATES

BY_32 = ["gamma", "beta", "alpha", "delta", "epsilon"]
BY_64_VALID = ["gamma", "delta", "alpha", "epsilon"]


def test_a_column_stands_for_each_level_and_the_rest_beside(page: Page) -> None:
    assert heads(page)[:6] == ["Configuration", "1 user", "8", "32", "64", "First token (s)"]
    assert [h for h in heads(page) if h in ("Cached", "Gate 0", "Engine", "Model", "Hosts")] == [
        *("Cached", "Gate 0", "Engine", "Model", "Hosts")
    ]


def test_the_page_opens_sorted_by_its_headline_column(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured)

    assert names(page) == [*BY_64_VALID, "beta"]
    assert sorted_by(page) == [("64", "descending")]


@pytest.mark.parametrize(
    ("head", "first", "top_down"),
    [
        ("32", "descending", BY_32),
        ("1 user", "descending", ["delta", "gamma", "beta", "alpha", "epsilon"]),
        ("Configuration", "ascending", sorted(RATES)),
        ("Engine", "ascending", ["delta", "beta", "alpha", "epsilon", "gamma"]),
        ("Hosts", "ascending", ["alpha", "delta", "epsilon", "gamma", "beta"]),
        ("Gate 0", "ascending", ["epsilon", "alpha", "beta", "gamma", "delta"]),
        ("Model", "ascending", sorted(RATES)),
    ],
    ids=["level", "first-level", "name", "engine", "hosts", "verdict", "model"],
)
def test_a_click_sorts_best_first_and_the_next_one_turns_it(
    page: Page, head: str, first: str, top_down: list[str]
) -> None:
    sort_button(page, "8").click()
    shown = dict(zip(names(page), column(page, head), strict=True))
    expected = [shown[name] for name in top_down]

    sort_button(page, head).click()

    assert sorted_by(page) == [(head, first)]
    assert column(page, head) == expected

    sort_button(page, head).click()

    assert sorted_by(page) == [(head, "descending" if first == "ascending" else "ascending")]
    assert column(page, head) == expected[::-1]


def test_what_has_no_valid_figure_is_sorted_last_whichever_way(page: Page) -> None:
    sort_button(page, "8").click()
    orders = []
    for _ in range(2):
        sort_button(page, "64").click()
        orders.append(names(page))

    assert orders == [[*BY_64_VALID, "beta"], [*BY_64_VALID[::-1], "beta"]]


@pytest.mark.parametrize("key", ["Enter", " "], ids=["enter", "space"])
def test_the_keyboard_sorts(page: Page, key: str) -> None:
    sort_button(page, "8").click()
    sort_button(page, "32").focus()
    page.keyboard.press(key)

    assert names(page) == BY_32
    assert page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "descending"


def test_the_order_outlives_a_reload(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured)
    sort_button(page, "32").click()
    page.reload()

    assert names(page) == BY_32
    assert sorted_by(page) == [("32", "descending")]


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        ({"engine": "sglang"}, ["beta"]),
        ({"engine": "vllm"}, ["alpha", "epsilon", "gamma"]),
        ({"host": "spark02"}, ["beta", "gamma"]),
        ({"verdict": "passed"}, ["alpha", "beta", "gamma"]),
        ({"verdict": "failed"}, ["epsilon"]),
        ({"verdict": "none"}, ["delta"]),
        ({"model": "acme/delta-27b"}, ["delta"]),
        ({"engine": "vllm", "host": "spark02"}, ["gamma"]),
        ({"engine": "llamacpp", "verdict": "passed"}, []),
        ({"text": "ALPHA"}, ["alpha"]),
        ({"text": "spark01 passed"}, ["alpha", "gamma"]),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_filters_leave_what_fits_all_of_them(page: Page, chosen: dict[str, str], left: list[str]) -> None:
    for name, value in chosen.items():
        control = page.locator(f'[data-filter="{name}"]')
        control.fill(value) if name == "text" else control.select_option(value)

    assert sorted(names(page)) == left
    assert page.locator("#board-count").inner_text() == f"{len(left)} of 5 shown"


def test_clearing_brings_all_rows_back(page: Page) -> None:
    page.locator('[data-filter="engine"]').select_option("sglang")
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function("() => document.getElementById('board-count').textContent.startsWith('5 of 5')")

    assert sorted(names(page)) == sorted(RATES)


def test_the_best_of_each_column_is_valid_gated_and_of_one_host(page: Page) -> None:
    marked = {
        head: [name for name in names(page) if field_of(page, name, head).locator(".best").count()]
        for head in ("1 user", "8", "32", "64", "First token (s)")
    }

    assert marked == {"1 user": ["beta"], "8": ["alpha"], "32": ["beta"], "64": ["alpha"], "First token (s)": ["alpha"]}


def test_a_mark_is_more_than_a_colour(page: Page) -> None:
    best = field_of(page, "beta", "1 user").locator(".best")

    assert best.evaluate("e => getComputedStyle(e).textDecorationLine") == "underline"
    assert int(best.evaluate("e => getComputedStyle(e).fontWeight")) >= 700
    assert field_of(page, "beta", "1 user").inner_text().split("\n")[-1].strip() == "best"


def test_an_invalid_figure_is_struck_with_the_guards_name(page: Page) -> None:
    found = field_of(page, "beta", "64")

    assert found.locator("s").inner_text().startswith("900.0")
    assert GUARD in found.inner_text()


def test_rows_say_that_they_are_ungated_or_of_two_hosts(page: Page) -> None:
    said = {name: field_of(page, name, "Gate 0").inner_text() for name in names(page)}

    assert {name for name, words in said.items() if "ungated" in words} == {"delta", "epsilon"}
    assert "Gate 0 failed: determinism" in said["epsilon"]
    assert [name for name in names(page) if "over 2 hosts" in field_of(page, name, "Configuration").inner_text()] == [
        "gamma"
    ]


def test_the_newest_run_stands_for_its_configuration(page: Page) -> None:
    assert field_of(page, "alpha", "32").inner_text().startswith("400.0")
    assert "1 earlier run" in field_of(page, "alpha", "Configuration").inner_text()


def test_a_run_without_a_figure_is_said_to_have_none(page: Page) -> None:
    row = page.locator("#not-measured tbody tr", has_text="zeta")

    assert "failed" in row.inner_text()


def test_choosing_a_load_shows_its_table(page: Page) -> None:
    choice = page.locator("#choose-load")
    labels = choice.locator("option").all_inner_texts()
    swarm = next(label for label in labels if "swarm" in label)

    choice.select_option(label=swarm)

    assert board(page).locator("h3").all_inner_texts() == [swarm]
    assert names(page) == ["alpha"]
