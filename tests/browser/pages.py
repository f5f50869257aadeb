"""The pages under test, a way to open them that hears what they say, and what a reader sees of a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, Locator, Page, Request

from orchestrator.cli.main import main
from tests.browser.records import SWARM_REPORT, import_reports, write_hostile, write_measured, write_samples

DESKTOP = {"width": 1400, "height": 900}
PHONE = {"width": 390, "height": 844}

OWN_TEXT = """cells => cells.map((cell) => [...(cell.querySelector('button') || cell).childNodes]
  .filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join(''))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """measured: what was measured here; samples: that and four reports; swarm: one report."""

    measured: Path
    samples: Path
    swarm: Path
    hostile: Path


def write_pages(folder: Path) -> Pages:
    """From the records of `records.py`, each set in a folder of its own beside its page."""
    writers = {
        "measured": write_measured,
        "samples": write_samples,
        "swarm": lambda root: import_reports(root, [SWARM_REPORT]),
        "hostile": write_hostile,
    }
    for name, write in writers.items():
        (folder / name).mkdir()
        write(folder / name)
    return Pages(**{name: report(folder / name, folder / f"{name}.html") for name in writers})


def report(results: Path, page: Path) -> Path:
    """Write the page of all records of a results folder, as `gate0 report` does."""
    assert main(["report", "--results", str(results), "-o", str(page)]) == 0
    return page


@dataclass(slots=True, kw_only=True)
class Opener:
    """Opens pages; `heard` is what they printed, threw or asked for beside themselves."""

    browser: Browser
    stack: ExitStack
    heard: list[str] = field(default_factory=list)

    def __call__(self, path: Path, *, fragment: str = "", has_scripts: bool = True, **options: Any) -> Page:
        """Loaded, in a window as wide as a desktop's unless told otherwise."""
        made = {"viewport": DESKTOP, "color_scheme": "light", "java_script_enabled": has_scripts, **options}
        context = self.browser.new_context(**made)
        self.stack.callback(context.close)
        context.set_default_timeout(10_000)
        page = context.new_page()
        self._hear(page, path.as_uri())
        page.goto(f"{path.as_uri()}{fragment}")
        return page

    def _hear(self, page: Page, address: str) -> None:
        def asked(request: Request) -> None:
            if request.url.split("#")[0] != address:
                self.heard.append(f"request: {request.url}")

        def dialog(shown: Dialog) -> None:
            self.heard.append(f"dialog: {shown.message}")
            shown.dismiss()

        page.on("request", asked)
        page.on("dialog", dialog)
        page.on("console", lambda said: self.heard.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))


def board(page: Page) -> Locator:
    """The table of configurations that is shown."""
    return page.locator(".board:visible")


def heads(page: Page) -> list[str]:
    """What the columns are called, without what is for screen readers only."""
    found: list[str] = board(page).locator("thead tr:last-child th").evaluate_all(OWN_TEXT)
    return [text.strip() for text in found]


def column(page: Page, head: str) -> list[str]:
    """Of the shown rows, top down, the first line of each field."""
    place = heads(page).index(head)
    script = "(rows, place) => rows.filter(r => !r.hidden).map(r => r.cells[place].innerText.trim().split('\\n')[0])"
    found: list[str] = board(page).locator("tbody tr").evaluate_all(script, place)
    return found


def names(page: Page) -> list[str]:
    """The configurations of the shown rows, top down."""
    script = "links => links.filter(a => !a.closest('tr').hidden).map(a => a.textContent)"
    found: list[str] = board(page).locator("tbody th > a:first-child").evaluate_all(script)
    return found


def sort_button(page: Page, head: str) -> Locator:
    return board(page).locator("thead tr:last-child th").nth(heads(page).index(head)).locator("button")


def sorted_by(page: Page) -> list[tuple[str, str]]:
    """Columns that say that they are sorted, and how."""
    said: Sequence[str | None] = (
        board(page)
        .locator("thead tr:last-child th")
        .evaluate_all("cells => cells.map(c => c.getAttribute('aria-sort'))")
    )
    return [(head, how) for head, how in zip(heads(page), said, strict=True) if how]


def field_of(page: Page, name: str, head: str) -> Locator:
    """One configuration's field of one column."""
    row = board(page).locator("tbody tr", has=page.locator("th > a:first-child", has_text=name))
    return row.locator("th, td").nth(heads(page).index(head))


def unfold(page: Page) -> None:
    page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true; })")


def settle(page: Page) -> None:
    """Draw all pictures: each is mounted when it comes into sight."""
    for plot in page.locator("[data-chart]").all():
        plot.scroll_into_view_if_needed()
        page.wait_for_function("p => p.dataset.mounted !== undefined", arg=plot.element_handle())
    page.evaluate("scrollTo(0, 0)")
