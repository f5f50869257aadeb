"""The file as a whole: one file that opens from disk, its pictures, its folds, its copy buttons."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.pages import Opener, Pages, board, settle
from tests.browser.records import PROFILE, RUNS

MOST_BYTES = 1_500_000
DATA = re.compile(r'<script type="application/json" id="(charts|popovers)">(.*?)</script>', re.DOTALL)


def test_the_page_without_its_data_is_small(pages: Pages) -> None:
    text = pages.measured.read_text()
    data: dict[str, str] = dict(DATA.findall(text))
    body = re.search(r'<main id="main".*</main>', text, re.DOTALL)

    assert sorted(data) == ["charts", "popovers"]
    assert body is not None
    assert len(text.encode()) - len(body[0].encode()) - sum(len(d.encode()) for d in data.values()) < MOST_BYTES
    assert all(json.loads(d) for d in data.values())


@pytest.mark.parametrize("name", ["samples", "swarm"])
def test_every_picture_is_drawn_when_it_comes_into_sight(open_page: Opener, pages: Pages, name: str) -> None:
    page = open_page(getattr(pages, name))
    asked = sorted(json.loads(page.locator("#charts").text_content() or "{}"))

    settle(page)

    drawn = page.locator("[data-chart]").evaluate_all(
        "plots => plots.filter(p => p.querySelector('svg, canvas')?.getBoundingClientRect().width > 100)"
        ".filter(p => p.querySelectorAll('svg path, svg text').length > 5).map(p => p.dataset.chart)"
    )
    assert asked
    assert sorted(drawn) == asked


def test_pictures_have_a_name_for_those_who_do_not_see_them(page: Page) -> None:
    labels = page.locator("[data-chart]").evaluate_all("p => p.map(e => e.ariaLabel)")

    assert len(set(labels)) == len(labels)
    assert all(len(label) > 20 for label in labels)


def test_every_address_on_the_page_leads_somewhere(still: Callable[[Path], Page], pages: Pages) -> None:
    page = still(pages.samples)

    lost = page.locator('a[href^="#"]').evaluate_all(
        "links => links.map(a => a.getAttribute('href').slice(1)).filter(id => !document.getElementById(id))"
    )
    doubled = page.locator("[id]").evaluate_all("all => all.map(e => e.id).filter((id, i, ids) => ids.indexOf(id) < i)")

    assert lost == []
    assert doubled == []


def test_raw_records_are_where_the_page_says(still: Callable[[Path], Page], pages: Pages) -> None:
    page = still(pages.samples)

    found = page.get_by_role("link", name="raw record", include_hidden=True).evaluate_all("a => a.map(e => e.href)")

    assert len(found) > 40
    assert [a for a in found if not a.startswith("file:") or not Path(a.removeprefix("file://")).exists()] == []


def test_details_are_folded_and_an_address_opens_its_own(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, fragment="#run-alpha")

    assert page.locator("details.config[open] h3").all_inner_texts() == ["alpha"]
    assert page.locator("#run-alpha").is_visible()

    page.get_by_role("button", name="Close all").click()
    assert page.locator("details.config[open]").count() == 0
    page.get_by_role("button", name="Open all").click()
    assert page.locator("details.config:not([open])").count() == 0


def test_a_name_in_the_table_leads_to_its_evidence(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured)
    board(page).get_by_role("link", name="alpha", exact=True).click()

    gate = page.locator("#run-alpha details.gate").first
    gate.locator("summary").first.click()
    words = gate.inner_text()
    assert "cold" in words
    assert "2,032" in words
    assert "token 2: ' grey', first ' blue', margin 0.200 nats" in words


def provenance(page: Page) -> None:
    page.locator("#run-alpha details.provenance > summary").click()


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("Copy: Command", RUNS["alpha"]["command"][0]),
        ("Copy: Measured by", " ".join(RUNS["alpha"]["invocation"])),
        ("Copy: Profile as written", PROFILE),
    ],
    ids=["command", "invocation", "profile"],
)
def test_a_button_copies_its_text(open_page: Opener, pages: Pages, label: str, text: str) -> None:
    page = open_page(pages.measured, fragment="#run-alpha", permissions=["clipboard-read", "clipboard-write"])
    provenance(page)
    button = page.locator("#run-alpha").get_by_role("button", name=label)
    button.click()
    button.get_by_text("Copied").wait_for()

    assert page.evaluate("navigator.clipboard.readText()") == text


def test_a_text_that_cannot_be_copied_is_selected(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, fragment="#run-alpha")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.evaluate("() => { document.execCommand = () => false; }")
    provenance(page)
    button = page.locator("#run-alpha").get_by_role("button", name="Copy: Profile as written")
    button.click()
    button.get_by_text("Selected: copy it now").wait_for()

    assert page.evaluate("getSelection().toString()").strip() == PROFILE.strip()


def test_facts_that_changed_while_it_ran_are_marked(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, fragment="#run-alpha")
    provenance(page)

    changed = page.locator("#run-alpha tr.changed").all_inner_texts()
    assert [line.split("\t") for line in changed] == [["kernel", "6.17.0", "7.0.0"]]


def test_notes_and_runs_stand_in_the_log_newest_first(still: Callable[[Path], Page], pages: Pages) -> None:
    page = still(pages.samples)

    days = page.locator("#log .day h3").all_inner_texts()
    assert days == sorted(days, reverse=True)
    note = page.locator("#log .note")
    assert note.locator("h4").inner_text() == "A note"
    assert note.locator("em").inner_text() == "checkpoint"


def test_the_head_says_how_much_is_here_and_how_new_it_is(page: Page) -> None:
    words = page.locator("header").inner_text()

    assert "6 configurations, 7 runs, 33 points" in words
    assert "Newest record 2026-11-30 06:20 UTC" in words
