"""Log lines out of bytes as they come."""

from __future__ import annotations

import re

_END = re.compile(rb"(\r\n|\n|\r)")


class LineSplitter:
    """Cut a byte stream into lines, whatever the chunks.

    A bare carriage return ends a line too: a progress bar (`\\rLoading weights: 40%`) would otherwise be one line that
    arrives when the loading is over. Nothing between two carriage returns is no line. Bytes that are not UTF-8 are
    replaced.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> tuple[str, ...]:
        """The lines that this chunk completes."""
        held = self._rest + chunk
        # A chunk that ends in \r may hold the first half of \r\n: that \r waits for the next chunk.
        waiting = b"\r" if held.endswith(b"\r") else b""
        pieces = _END.split(held.removesuffix(b"\r"))
        self._rest = pieces[-1] + waiting
        pairs = zip(pieces[:-1:2], pieces[1::2], strict=True)
        return tuple(_text(line) for line, end in pairs if line or end != b"\r")

    def flush(self) -> tuple[str, ...]:
        """What is left when the stream ends without a line end."""
        rest, self._rest = self._rest.removesuffix(b"\r"), b""
        return (_text(rest),) if rest else ()


def split_log(text: bytes) -> tuple[str, ...]:
    """All lines of a whole log."""
    splitter = LineSplitter()
    return splitter.feed(text) + splitter.flush()


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")
