"""Light and dark, phone and paper, with assistive technology and without JavaScript."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.pages import DESKTOP, PHONE, Opener, Pages, board, field_of, settle, unfold
from tests.browser.sight import (
    IS_OTHER_THAN,
    LEAST_CONTRAST,
    background,
    colours,
    contrast,
    hidden,
    label_colours,
    line_breaks,
    luminance,
    serious,
    sticking_out,
)

SCHEMES = ("light", "dark")
TEXTS = "body, a, .soft, .good, .bad, .warn, .best, .kind, s, button, select, input, th, td, code, pre, #popover *"
FIGURES = "main tr, main dt, main dd, main pre, main h3, main h4"
WITHOUT_LONG = ", ".join(f"{one}:not(details.long *)" for one in FIGURES.split(", "))
"""A long text is folded behind its first words; that needs no script to be opened."""
NO_PICTURE = "The picture needs JavaScript; its figures stand in the tables."


@pytest.mark.parametrize(("name", "scheme"), [("measured", "light"), ("measured", "dark"), ("hostile", "light")])
def test_axe_has_no_serious_finding(open_page: Opener, pages: Pages, name: str, scheme: str) -> None:
    page = open_page(getattr(pages, name), color_scheme=scheme)
    settle(page)
    unfold(page)
    board(page).locator("a.figure").first.click()

    assert serious(page) == []


def test_axe_has_no_serious_finding_on_a_phone(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.samples, viewport=PHONE, has_touch=True)

    assert serious(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_stands_out_from_what_is_behind_it(open_page: Opener, pages: Pages, scheme: str) -> None:
    page = open_page(pages.samples, color_scheme=scheme)
    board(page).locator("a.figure").first.click()

    pairs = colours(page.locator(TEXTS))

    assert len(pairs) > 5
    assert {pair: contrast(*pair) for pair in pairs if contrast(*pair) < LEAST_CONTRAST} == {}
    assert (luminance(background(page)) < 0.05) == (scheme == "dark")


def test_pictures_follow_the_scheme_when_it_changes(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured)
    settle(page)
    light = label_colours(page)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(IS_OTHER_THAN, arg=sorted(light))

    assert min(contrast(colour, background(page)) for colour in label_colours(page)) >= LEAST_CONTRAST


@pytest.mark.parametrize("name", ["samples", "hostile"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_itself_never_scrolls_sideways(
    open_page: Opener, pages: Pages, name: str, size: dict[str, int]
) -> None:
    page = open_page(getattr(pages, name), viewport=size)
    settle(page)
    unfold(page)

    assert sticking_out(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_a_phone_keeps_the_name_in_sight_while_figures_scroll(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, viewport=PHONE, has_touch=True)
    board(page).locator(".scroll").evaluate("e => { e.scrollLeft = 300; }")

    name = field_of(page, "alpha", "Configuration").bounding_box()
    assert name is not None
    assert name["x"] >= 0
    assert name["x"] + name["width"] < PHONE["width"] * 0.6


def test_a_setting_is_on_one_line_on_a_desktop_and_whole_words_on_a_phone(open_page: Opener, pages: Pages) -> None:
    for size, may_break_after in ((DESKTOP, set()), (PHONE, {".", "_", "-"})):
        page = open_page(pages.measured, viewport=size)
        unfold(page)
        settings = page.locator(".settings tbody th")

        assert "serve.max_num_batched_tokens" in settings.all_inner_texts()
        assert set(line_breaks(settings)) <= may_break_after


def test_a_phone_has_what_the_engine_says_of_a_setting_in_sight(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, viewport=PHONE, has_touch=True)
    unfold(page)

    words = page.locator(".settings .said div", has_text="exceeds the training context").first.bounding_box()
    assert words is not None
    assert words["x"] >= 0
    assert words["x"] + words["width"] <= PHONE["width"]


def test_a_tap_opens_a_figure(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, viewport=PHONE, has_touch=True)
    field_of(page, "alpha", "1 user").locator("a.figure").tap()

    page.locator("#popover").wait_for()
    assert page.locator("#popover").inner_text().startswith("alpha")


def test_paper_shows_all_that_was_folded_filtered_or_not_chosen(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.samples)
    page.locator('[data-filter="text"]').fill("no such configuration")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")

    assert hidden(page, FIGURES) == []
    assert page.locator("#board-controls, #index, [data-copy]").locator("visible=true").count() == 0

    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")

    assert page.locator("details.config[open]").count() == 0


def test_paper_is_white_even_in_the_dark(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, color_scheme="dark")
    page.emulate_media(media="print")

    pairs = colours(page.locator("body, .soft, th, td"))
    assert {back for _, back in pairs} == {"rgb(255, 255, 255)"}
    assert min(contrast(*pair) for pair in pairs) >= LEAST_CONTRAST


def test_it_becomes_a_pdf_with_its_pictures(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured)
    pdf = page.pdf(format="A4", landscape=True)

    assert pdf.startswith(b"%PDF")
    assert page.locator("[data-chart]:not([data-mounted])").count() == 0


@pytest.mark.parametrize("name", ["samples", "hostile"])
def test_without_javascript_every_table_is_whole(open_page: Opener, pages: Pages, name: str) -> None:
    with_scripts = open_page(getattr(pages, name))
    without = open_page(getattr(pages, name), has_scripts=False)

    assert len(_rows(without)) > 10
    assert _rows(without) == _rows(with_scripts)
    assert hidden(without, WITHOUT_LONG) == []


def _rows(page: Page) -> list[list[str]]:
    """All rows of all tables, in an order of their own: what was chosen sorts them on the page."""
    script = "rows => rows.map(r => [...r.cells].map(c => c.textContent.trim()))"
    found: list[list[str]] = page.locator("main tbody tr").evaluate_all(script)
    return sorted(found)


def test_without_javascript_nothing_is_offered_that_would_not_work(open_page: Opener, pages: Pages) -> None:
    page = open_page(pages.measured, has_scripts=False)

    assert page.locator("button:visible, select:visible, input:visible, #popover:visible").count() == 0
    assert page.locator("[data-chart]").first.inner_text() == NO_PICTURE
    page.locator("a.figure").first.click()
    assert page.locator(":target").count() == 1
