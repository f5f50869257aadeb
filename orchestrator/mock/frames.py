"""Events as the wire has them: SSE lines, and the HTTP framing around them."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.mock.settings import Framing, MockSettings

STAMP_DIGITS = 19
STAMP_MARK = b"9" * STAMP_DIGITS
PADDED_BYTES = 2048
"""With a Content-Length an event whose figures are not known yet has room for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a stream: framed bytes, and where in them the server's stamp goes (-1: nowhere)."""

    frame: bytes
    stamp_at: int = -1


def line_end(settings: MockSettings) -> bytes:
    return b"\r" if settings.is_cr else b"\r\n" if settings.is_crlf else b"\n"


def frame(payload: bytes, settings: MockSettings, *, name: str = "", is_last: bool = False) -> Event:
    """An SSE event, with chunked framing in its own HTTP chunk. `name`: its `event` field."""
    end, field = line_end(settings), b"data:" if settings.is_tight else b"data: "
    name = name or ("message" if settings.has_event_names else "")
    lines = [b"event: " + name.encode()] if name else []
    lines += [field + line for line in payload.split(b"\n")]
    blank = b"" if is_last and settings.lacks_last_blank else end
    return _framed(end.join(lines) + end + blank, settings)


def comment(settings: MockSettings) -> Event:
    """A keep-alive."""
    return _framed(b":" + settings.keepalive_text.encode() + line_end(settings) * 2, settings)


def padded(payload: bytes, settings: MockSettings) -> bytes:
    """A payload whose length must be known before what it says: blanks behind JSON mean nothing."""
    return payload.ljust(PADDED_BYTES) if settings.framing is Framing.LENGTH else payload


def _framed(text: bytes, settings: MockSettings) -> Event:
    framed = b"%x\r\n%s\r\n" % (len(text), text) if settings.framing is Framing.CHUNKED else text
    return Event(frame=framed, stamp_at=framed.find(STAMP_MARK) if settings.has_stamps else -1)


def stream_ending(settings: MockSettings) -> bytes:
    """What follows the last event."""
    return b"0\r\n\r\n" if settings.framing is Framing.CHUNKED else b""


def stamped(event: Event, now_ns: int) -> bytes:
    """The event's bytes, with the time where it has room for it."""
    if event.stamp_at < 0:
        return event.frame
    at = event.stamp_at
    return b"%s%0*d%s" % (event.frame[:at], STAMP_DIGITS, now_ns, event.frame[at + STAMP_DIGITS :])
