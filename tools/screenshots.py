"""Pictures of the page as the sample records give it, section by section: `make screenshots` writes `screenshots/`.

Desktop and phone width, light and dark. They are to be looked at, and are kept out of git.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import FloatRect, Page

CHECKOUT = Path(__file__).resolve().parent.parent
if str(CHECKOUT) not in sys.path:  # run as a script: its own folder is there, the checkout is not
    sys.path.insert(0, str(CHECKOUT))

from tests.browser.pages import DESKTOP, PHONE, Opener, report, settle  # noqa: E402
from tests.browser.records import write_samples  # noqa: E402
from tools.chromium import ChromiumUnavailable, require_chromium, running  # noqa: E402

FOLDER = CHECKOUT / "screenshots"
SIZES = {"desktop": DESKTOP, "phone": PHONE}
SCHEMES = ("light", "dark")
MOST_PX = 4000
"""Of one picture's height: of a longer section its first part."""


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    try:
        chromium = require_chromium()
    except ChromiumUnavailable as reason:
        print(f"screenshots: {reason}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as name, running(chromium) as browser, ExitStack() as stack:
        results = Path(name)
        write_samples(results)
        page_file = report(results, results / "notebook.html")
        opener = Opener(browser=browser, stack=stack)
        for size, viewport in SIZES.items():
            for scheme in SCHEMES:
                page = opener(page_file, viewport=viewport, color_scheme=scheme)
                for path in _pictures(page, f"{size}-{scheme}"):
                    print(path.relative_to(CHECKOUT))
                page.context.close()
    for words in opener.heard:
        print(f"screenshots: the page said: {words}", file=sys.stderr)
    return 1 if opener.heard else 0


def _pictures(page: Page, name: str) -> Iterator[Path]:
    """The first screen, each section from its heading on, and a figure in full."""
    settle(page)
    yield _picture(page, f"{name}-0-top")
    width = page.evaluate("innerWidth")
    for place, section in enumerate(page.locator("main > section").all(), 1):
        box = section.bounding_box()
        assert box is not None
        clip: FloatRect = {"x": 0, "y": box["y"], "width": width, "height": min(box["height"], MOST_PX)}
        yield _picture(page, f"{name}-{place}-{section.get_attribute('id')}", clip=clip)
    page.locator(".board:visible a.figure").first.click()
    yield _picture(page, f"{name}-9-figure")


def _picture(page: Page, name: str, *, clip: FloatRect | None = None) -> Path:
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path, animations="disabled", full_page=clip is not None, clip=clip)
    return path


if __name__ == "__main__":
    sys.exit(main())
