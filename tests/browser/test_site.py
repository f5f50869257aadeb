"""The report as a folder: opened from disk and from a static host, it asks for nothing but itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from orchestrator.cli.main import main
from tests.browser.records import write_hostile, write_measured


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder under a path of a host, as GitHub Pages has it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder.parent)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{folder.name}"
        server.shutdown()
        thread.join()


def write_site(root: Path, write: Any) -> Path:
    write(root)
    assert main(["report", "--results", str(root), "--format", "site"]) == 0
    return root / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("records"), write_measured)


@contextmanager
def opened(browser: Browser, home: str, path: str = "index.html") -> Iterator[tuple[Page, list[str]]]:
    """A page of the site at `home`, and what it printed, threw, or asked for elsewhere."""
    heard: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.on("console", lambda said: heard.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda shown: heard.append(f"dialog: {shown.message}"))
    page.on("request", lambda asked: heard.extend(_elsewhere(asked.url, home)))
    page.goto(f"{home}/{path}")
    yield page, heard
    context.close()


def _elsewhere(url: str, home: str) -> list[str]:
    return [] if url.startswith((home, "data:")) else [f"request: {url}"]


@pytest.fixture(params=["disk", "host"])
def address(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    if request.param == "disk":
        yield site.as_uri()
        return
    with served(site) as found:
        yield found


def test_styles_scripts_and_charts_of_the_index_work(browser: Browser, address: str) -> None:
    with opened(browser, address) as (page, heard):
        page.locator("[data-chart]").first.scroll_into_view_if_needed()
        page.locator("[data-chart][data-mounted] svg").first.wait_for()

        assert page.locator(".board:visible thead button.sort").count() > 0
        assert page.evaluate("document.styleSheets.length") >= 1
        assert heard == []


def test_a_name_leads_to_its_page_and_back(browser: Browser, address: str) -> None:
    with opened(browser, address) as (page, heard):
        link = page.locator(".board:visible tbody th a").first
        name = link.inner_text()

        link.click()
        page.wait_for_url("**/configurations/*.html#run-*")

        assert page.locator("h1").inner_text() == name
        assert page.locator("details.config").first.get_attribute("open") is not None
        page.get_by_role("link", name="All configurations").click()
        page.wait_for_url("**/index.html")
        assert heard == []


def test_the_detail_of_a_figure_lies_on_its_page(browser: Browser, address: str) -> None:
    with opened(browser, address) as (page, heard):
        page.locator(".board:visible a.figure").first.click()
        page.get_by_role("dialog").get_by_role("link", name="detail").click()
        page.wait_for_url("**/configurations/*.html#run-*--*")

        anchor = page.url.partition("#")[2]
        assert page.locator(f'[id="{anchor}"]').is_visible()
        assert heard == []


def test_hostile_records_do_nothing_on_any_page(browser: Browser, tmp_path: Path) -> None:
    site = write_site(tmp_path, write_hostile)

    for path in ("index.html", *(f"configurations/{p.name}" for p in sorted((site / "configurations").iterdir()))):
        with opened(browser, site.as_uri(), path) as (page, heard):
            page.wait_for_load_state()
            assert heard == []
