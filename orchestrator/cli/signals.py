"""Ctrl-C and SIGTERM: stop sending, save, clean up. The second time says that this is under way; nothing is dropped."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from orchestrator.cli.printer import Printer
from orchestrator.pipeline.events import Cancel

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def cancel_on_signals(cancel: Cancel, printer: Printer) -> Iterator[None]:
    """Set the flag at a signal instead of raising in the middle of something."""

    def handle(number: int, frame: FrameType | None) -> None:
        word = "already stopping" if cancel.is_set() else "stopping"
        cancel.set()
        printer.warning(
            f"{signal.Signals(number).name}: {word}: saving the record, then removing what this run started"
        )

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
