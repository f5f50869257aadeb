"""Server-sent events out of bytes, cut anywhere.

Theory of operation: bytes go in as they arrived (`feed`), complete events come out. The parser does no I/O and holds
no clock; instead each event says at which byte of the stream it became complete (`end`), so a caller that stored its
chunks with stamps can find the stamp of any event afterwards (`ChunkIndex`). Follows the WHATWG event-stream grammar:
LF, CRLF and CR end a line, a leading byte order mark is dropped, lines that start with a colon are comments, one
space after the colon of a field is dropped, `data` lines join with LF. Event ids and `retry` are not kept: nothing
here reconnects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event.

    Attributes:
        data: The payload, undecoded; several `data` lines joined with LF.
        end: Bytes of the stream up to and including the one that completed the event (its blank line's first end).
        event: The `event` field, empty when the server named none.
        is_complete: False: the stream ended without the blank line, and the standard would drop the event.
    """

    data: bytes
    end: int
    event: str = ""
    is_complete: bool = True


class SseParser:
    """An incremental parser for one stream.

    Attributes:
        comments: Comment lines so far (keep-alive pings): a sign of life, never a token.
        position: Bytes taken so far.
    """

    __slots__ = ("_at_start", "_data", "_event", "_skip_lf", "_tail", "comments", "position")

    def __init__(self) -> None:
        self.comments = 0
        self.position = 0
        self._at_start = True
        self._skip_lf = False
        self._tail = b""
        self._data: list[bytes] = []
        self._event = ""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes; the events that they complete, in order."""
        self.position += len(chunk)
        if self._at_start:
            chunk = self._without_bom(chunk)
        if not chunk:
            return []
        if self._skip_lf:
            # The CR before ended its line already, so that an event is not held back until the next chunk.
            self._skip_lf = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        lines = (self._tail + chunk).splitlines(keepends=True)
        at = self.position - sum(map(len, lines))
        self._tail = b""
        if lines and not lines[-1].endswith((b"\n", b"\r")):
            self._tail = lines.pop()
        elif lines and lines[-1].endswith(b"\r"):
            self._skip_lf = True
        return self._take_lines(lines, at)

    def close(self) -> list[SseEvent]:
        """The end of the stream: what was left without its blank line, marked as not complete."""
        if self._at_start:
            self._at_start = False
        if self._tail:
            self._take_field(self._tail)
            self._tail = b""
        return self._dispatch(self.position, is_complete=False)

    def _without_bom(self, chunk: bytes) -> bytes:
        head = self._tail + chunk
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._tail = head
            return b""
        self._tail = b""
        self._at_start = False
        return head.removeprefix(_BOM)

    def _take_lines(self, lines: Sequence[bytes], at: int) -> list[SseEvent]:
        events: list[SseEvent] = []
        for raw in lines:
            line = raw.rstrip(b"\r\n")
            if line:
                self._take_field(line)
            elif self._data or self._event:
                events += self._dispatch(at + 1, is_complete=True)
            at += len(raw)
        return events

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if not name:
            self.comments += 1
        elif name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._event = value.removeprefix(b" ").decode(errors="replace")

    def _dispatch(self, end: int, *, is_complete: bool) -> list[SseEvent]:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        if not data:
            return []
        return [SseEvent(b"\n".join(data), end, event, is_complete)]


class ChunkIndex:
    """Finds the chunk in which a byte of the stream arrived.

    Args:
        sizes: Length of each chunk, in order of arrival.
    """

    __slots__ = ("_ends",)

    def __init__(self, sizes: Iterable[int]) -> None:
        self._ends = tuple(accumulate(sizes))

    def chunk_of(self, event: SseEvent) -> int:
        """Index of the chunk that completed the event.

        Raises:
            IndexError: The event ends after the last chunk: it belongs to another stream.
        """
        index = bisect_left(self._ends, event.end)
        if index == len(self._ends):
            raise IndexError(f"event ends at byte {event.end}, the stream has {self._ends[-1] if self._ends else 0}")
        return index


def parse_all(chunks: Iterable[bytes]) -> list[SseEvent]:
    """All events of a finished stream, the unfinished last one included (marked)."""
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()
