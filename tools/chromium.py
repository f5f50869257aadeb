"""The Chromium of this machine, for the tests of the page and its pictures. No browser is ever downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tools.labkit import debian
from tools.labkit.base import LabBroken, say

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HINT = "hint: `apt-get install --no-install-recommends chromium`, or tell where it is: GATE0_CHROMIUM=/path/to/chromium"


class ChromiumUnavailable(Exception):
    """There is none, with what to do."""


def require_chromium() -> Path:
    """Where it is: `GATE0_CHROMIUM`, else on the path. In CI as root Debian's is installed when there is none.

    Raises:
        ChromiumUnavailable: None found, or it cannot be installed.
    """
    told = os.environ.get("GATE0_CHROMIUM")
    if told:
        if not os.access(told, os.X_OK):
            raise ChromiumUnavailable(f"GATE0_CHROMIUM={told} cannot be run")
        return Path(told)
    found = _find()
    if found is None and os.environ.get("CI") and os.geteuid() == 0 and shutil.which("apt-get"):
        say("installing chromium")
        try:
            debian.install(("chromium",))
        except LabBroken as problem:
            raise ChromiumUnavailable(f"{problem}\n{HINT}") from problem
        found = _find()
    if found is None:
        raise ChromiumUnavailable(f"no {' or '.join(NAMES)} on the path\n{HINT}")
    return found


@contextmanager
def running(chromium: Path) -> Iterator[Browser]:
    """A headless browser with a profile of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGS))
        try:
            yield browser
        finally:
            browser.close()


def _find() -> Path | None:
    return next((Path(found) for name in NAMES if (found := shutil.which(name))), None)
