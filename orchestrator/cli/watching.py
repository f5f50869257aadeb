"""Doing something again whenever what it depends on has changed, until Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchestrator.values import Sleep


def watch(
    draw: Callable[[bool], None], stamp: Callable[[], object], *, every_s: float, sleep: Sleep = time.sleep
) -> None:
    """`draw(True)` at once and after each change of the stamp; at Ctrl-C or SIGTERM `draw(False)` once more.

    Args:
        stamp: Taken before each drawing: what changes meanwhile is drawn the next time.
    """
    seen: object = None
    with _ended_by_sigterm():
        try:
            while True:
                now = stamp()
                if seen is None or now != seen:
                    draw(True)
                seen = now
                sleep(every_s)
        except KeyboardInterrupt:
            pass
    draw(False)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """As by Ctrl-C: a page that reloads itself for ever is not what anyone wants to find."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
