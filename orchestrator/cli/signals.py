"""Ctrl-C and SIGTERM: stop sending, save, clean up. The second time says that this is under way; nothing is dropped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from orchestrator.cli.printer import Printer
from orchestrator.pipeline.events import Cancel

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def cancel_on_signals(cancel: Cancel, printer: Printer) -> Iterator[None]:
    """Set the flag at a signal instead of raising in the middle of something."""

    def handle(number: int, frame: FrameType | None) -> None:
        word = b"already stopping" if cancel.is_set() else b"stopping"
        cancel.set()
        if not printer.is_quiet:
            # A handler must not raise: the terminal may be gone (SIGHUP), and printing is not re-entrant.
            with suppress(OSError):
                os.write(2, word + b": saving the record, then removing what this run started\n")

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
