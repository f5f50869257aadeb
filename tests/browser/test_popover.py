"""A figure in full: opened by pointer, focus or click, closed again, and never a trap for the keyboard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.pages import PHONE, Opener, Pages, board, field_of

CLOSED = "document.getElementById('popover').hidden"


def popover(page: Page) -> Locator:
    return page.get_by_role("dialog", name="The figure in full")


def figure(page: Page, name: str = "alpha", head: str = "32") -> Locator:
    return field_of(page, name, head).locator("a.figure")


def lines(page: Page) -> dict[str, list[str]]:
    """Of the open popover: the fields after the first of each line, by the first."""
    rows = popover(page).locator("tbody tr").evaluate_all("rows => rows.map(r => [...r.cells].map(c => c.innerText))")
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("way", ["hover", "focus", "click"])
def test_it_shows_figure_interval_n_and_definition(page: Page, way: str) -> None:
    getattr(figure(page), way)()
    popover(page).wait_for()

    words = popover(page).inner_text()
    found = lines(page)
    assert words.startswith("alpha")
    assert "concurrency/closed-p128-o100-c32" in words
    assert found["all together"][:4] == ["400.0 tok/s", "390.1 to 409.9", "3", "output_tok_over_run/v1"]
    assert found["per user"][0] == "12.5 tok/s"
    assert found["first token p50"][:3] == ["1200 ms", "1200 to 1200", "192"]
    assert found["all together"][-1] == "measured"
    assert found["efficiency"][-1] == "derived"


def test_it_closes_when_the_pointer_leaves(page: Page) -> None:
    figure(page).hover()
    popover(page).wait_for()
    page.mouse.move(2, 2)
    popover(page).wait_for(state="hidden")

    assert page.evaluate(CLOSED)


def test_it_stays_while_the_pointer_is_in_it(page: Page) -> None:
    figure(page).hover()
    popover(page).wait_for()
    popover(page).hover()
    page.wait_for_timeout(400)

    assert popover(page).is_visible()


@pytest.mark.parametrize("way", ["hover", "focus", "click"])
def test_escape_closes_it_and_keeps_the_focus(page: Page, way: str) -> None:
    target = figure(page)
    getattr(target, way)()
    popover(page).wait_for()
    page.keyboard.press("Escape")

    assert page.evaluate(CLOSED)
    assert target.get_attribute("aria-expanded") == "false"
    if way != "hover":
        assert target.evaluate("e => e === document.activeElement")


def test_escape_inside_gives_the_focus_back_to_the_figure(page: Page) -> None:
    figure(page).focus()
    page.keyboard.press("Tab")
    assert popover(page).locator(":focus").inner_text() == "detail"
    page.keyboard.press("Escape")

    assert page.evaluate(CLOSED)
    assert figure(page).evaluate("e => e === document.activeElement")


@pytest.mark.parametrize("key", ["Enter", " "], ids=["enter", "space"])
def test_a_key_pins_it_and_the_next_one_closes_it(page: Page, key: str) -> None:
    figure(page).focus()
    page.keyboard.press(key)
    page.mouse.move(2, 2)
    page.wait_for_timeout(400)
    assert popover(page).is_visible()

    page.keyboard.press(key)

    assert page.evaluate(CLOSED)


def test_only_one_is_open(page: Page) -> None:
    figure(page).click()
    figure(page, "gamma").click()

    assert popover(page).count() == 1
    assert popover(page).inner_text().startswith("gamma")
    assert board(page).locator('[aria-expanded="true"]').count() == 1


def test_an_invalid_figure_says_which_guard_it_broke(page: Page) -> None:
    figure(page, "beta", "64").focus()

    assert "invalid: client_saturated: the client could not keep up" in popover(page).inner_text()


def test_its_link_leads_to_the_cell_in_the_details(page: Page) -> None:
    figure(page).click()
    popover(page).get_by_role("link", name="detail").click()

    assert page.evaluate(CLOSED)
    target = page.locator(":target")
    target.wait_for()
    assert target.evaluate("e => e.tagName") == "TR"
    assert "400.0" in target.inner_text()
    assert page.evaluate("document.querySelector(':target').getBoundingClientRect().top < innerHeight")


def test_it_leads_to_the_raw_record(page: Page) -> None:
    figure(page).click()
    address = popover(page).get_by_role("link", name="raw record").get_attribute("href")

    assert address is not None
    assert address.endswith("alpha/sweeps/concurrency/closed-p128-o100-c32.json")
    resolved = page.evaluate("address => new URL(address, location.href).pathname", address)
    assert json.loads(Path(resolved).read_text())["concurrency"] == 32


@pytest.mark.parametrize("size", [{"width": 1400, "height": 500}, PHONE], ids=["low", "phone"])
def test_it_lies_within_the_window_and_never_over_its_figure(
    open_page: Opener, pages: Pages, size: dict[str, int]
) -> None:
    page = open_page(pages.measured, viewport=size)
    for name, head in (("gamma", "1 user"), ("beta", "64"), ("alpha", "First token (s)")):
        figure(page, name, head).focus()
        own, shown = figure(page, name, head).bounding_box(), popover(page).bounding_box()
        assert own is not None
        assert shown is not None
        assert 0 <= shown["x"] <= size["width"] - shown["width"]
        assert popover(page).evaluate("e => e.scrollWidth <= e.clientWidth")
        assert 0 <= shown["y"] <= size["height"] - shown["height"]
        assert shown["y"] >= own["y"] + own["height"] or shown["y"] + shown["height"] <= own["y"]


def test_tab_goes_through_the_whole_table_and_out_of_it(page: Page) -> None:
    stops = board(page).locator("thead button, tbody a.figure, tbody th > a")
    expected = stops.count()
    stops.evaluate_all("all => all.forEach((e, i) => { e.dataset.stop = i; })")
    is_inside = False
    visited: list[str] = []
    page.locator("#board-controls button[type=reset]").focus()

    for _ in range(3 * expected):
        page.keyboard.press("Tab")
        is_inside, stop = page.evaluate("(e => [e.closest('.board') !== null, e.dataset.stop])(document.activeElement)")
        if visited and not is_inside:
            break
        visited += [stop] if stop else []

    assert visited == [str(i) for i in range(expected)]
    assert not is_inside
    assert page.evaluate(CLOSED)


def test_shift_tab_goes_back_through_it(page: Page) -> None:
    stops = board(page).locator("thead button, tbody a.figure, tbody th > a")
    stops.last.focus()
    for _ in range(3 * stops.count()):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.closest('.board') === null"):
            break

    assert page.evaluate("document.activeElement.closest('#board-controls') !== null")


def test_the_skip_link_comes_first_and_jumps_over_the_index(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the figures"
    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "main"
