"""Texts of a record that try to be markup or script stay text: on the page, in its pictures, in its figures in full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.pages import Opener, Pages, board, names, settle, unfold
from tests.browser.records import HOSTILE

ATTRIBUTES = "all => [...new Set(all.flatMap((e) => e.getAttributeNames()))]"


@pytest.fixture
def page(still: Callable[[Path], Page], pages: Pages) -> Page:
    return still(pages.hostile)


def test_the_texts_would_act_if_they_became_markup(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    for name, text in HOSTILE.items():
        place = tmp_path / f"{name}.html"
        body = f"<script>let a = '{text}'</script><p title='{text}'>{text}<input value=\"{text}\">"
        place.write_text(f"<!doctype html><body>{body}")
        page.goto(place.as_uri())
        for link in page.locator("a[href]").all():
            link.click()
        page.wait_for_function("() => window.pwned === 1", timeout=10_000)
    page.close()


def test_nothing_executes_wherever_one_looks(page: Page) -> None:
    unfold(page)
    settle(page)
    for figure in board(page).locator("a.figure").all():
        figure.focus()
    for link in page.locator("#log a").all():
        link.hover()
    for mark in page.locator("[data-chart] svg .mark-symbol path").all()[:20]:
        mark.hover(force=True)
    page.mouse.wheel(0, 2000)

    assert page.evaluate("window.pwned") is None
    assert page.evaluate("Object.getPrototypeOf({}).pwned") is None


def test_no_element_or_handler_comes_from_a_record(page: Page) -> None:
    settle(page)

    assert page.locator("img, iframe, object, embed, base, link").count() == 0
    assert page.locator("script").count() == 4
    assert page.locator("main svg:not([data-chart] svg)").count() == 0
    attributes = page.locator("body *").evaluate_all(ATTRIBUTES)
    assert [name for name in attributes if name.startswith("on") or name == "autofocus"] == []


def test_no_link_leads_to_a_script(page: Page) -> None:
    schemes = page.locator("a[href]").evaluate_all("all => [...new Set(all.map(a => a.protocol))].sort()")

    assert schemes == ["file:", "https:"]


@pytest.mark.parametrize("key", ["title", "model", "engine", "host"])
def test_the_table_shows_the_text_as_it_is(page: Page, key: str) -> None:
    assert HOSTILE[key] in (board(page).text_content() or "")


def test_the_details_show_the_text_as_it_is(page: Page) -> None:
    words = page.locator("#details").text_content() or ""

    assert "{{7*7}}" in words
    assert HOSTILE["guard"] in words
    assert HOSTILE["profile"].strip() in words


def test_a_figure_in_full_shows_the_text_as_it_is(page: Page) -> None:
    row = board(page).locator("tbody tr", has_text="onmouseover")
    row.locator("a.figure").nth(1).focus()

    words = page.locator("#popover").text_content() or ""
    assert HOSTILE["title"] in words
    assert f"invalid: {HOSTILE['guard']}: {HOSTILE['guard']}" in words


def test_filters_work_by_a_hostile_value(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.hostile)
    page.locator('[data-filter="engine"]').select_option(HOSTILE["engine"])

    assert names(page) == [HOSTILE["title"]]

    page.locator('[data-filter="host"]').select_option(HOSTILE["host"])
    assert names(page) == [HOSTILE["title"]]


def test_copying_gives_the_profile_as_written(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.hostile, permissions=["clipboard-read", "clipboard-write"])
    unfold(page)
    button = page.locator("#run-hostile").get_by_role("button", name="Copy: Profile as written")
    button.click()
    button.get_by_text("Copied").wait_for()

    assert page.evaluate("navigator.clipboard.readText()") == HOSTILE["profile"]


def test_a_note_keeps_web_links_alone(page: Page) -> None:
    note = page.locator("#log .note")

    links = note.locator("a").evaluate_all("all => all.map(a => [a.href, a.rel])")
    assert links == [["https://x.invalid/i", "noopener noreferrer"]]
    assert "<a href='javascript:window.pwned=1'>" in (note.text_content() or "")
