"""Pages written from the sample records, opened from disk in a headless Chromium.

A machine without one skips these tests and says why; in CI they run or fail. Whatever a test does with a page, it must
not print to the console, throw, or ask for anything but itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.pages import Opener, Pages, write_pages
from tools.chromium import ChromiumUnavailable, require_chromium, running

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 900  # the first test of a session may install Chromium


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all tests here. It ends with them: its event loop would be in the way of tests that run their own."""
    try:
        chromium = require_chromium()
    except ChromiumUnavailable as reason:
        if os.environ.get("CI"):
            pytest.fail(f"CI is set, and the page cannot be tested here: {reason}")
        pytest.skip(f"the page cannot be tested here: {reason}")
    with running(chromium) as found:
        yield found


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return write_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Opens a page in a context of its own; at the end of the test each must have kept quiet."""
    with ExitStack() as stack:
        opener = Opener(browser=browser, stack=stack)
        yield opener
    assert opener.heard == []


@pytest.fixture(scope="module")
def still(browser: Browser) -> Iterator[Callable[[Path], Page]]:
    """Opens each page once a module, for tests that leave it as it was: loading is what takes the time."""
    with ExitStack() as stack:
        opener = Opener(browser=browser, stack=stack)
        yield cache(opener)
    assert opener.heard == []


@pytest.fixture
def page(still: Callable[[Path], Page], pages: Pages) -> Page:
    """What was measured, at rest: nothing is open, focused, hovered or filtered; it stays sorted as it was left."""
    shared = still(pages.measured)
    shared.keyboard.press("Escape")
    shared.mouse.move(2, 2)
    shared.evaluate("document.activeElement.blur()")
    shared.locator("#choose-load").select_option(index=0)
    for control in shared.locator("select[data-filter]").all():
        control.select_option("")
    shared.locator("input[data-filter]").fill("")
    shared.evaluate("scrollTo(0, 0)")
    return shared
