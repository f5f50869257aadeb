"""The requests of one repeat as bars: which line each stands on, and when it was due, sent, answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.figures.request import NS_PER_MS, NS_PER_S
from orchestrator.figures.server import server_times
from orchestrator.records.record import RequestRecord

MOST = 200
"""Requests a picture: the first that were due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One request in seconds since the first that is shown was due. None: it never came to that.

    Attributes:
        line: Of the picture, from the top. words: which request it is.
        due, sent, first, last, end: When it was due, its first byte was sent, its first and last token came, its
            response ended. taken: when the server says that its own queue was over; as `sent` where it does not.
    """

    line: int
    due: float
    sent: float | None
    taken: float | None
    first: float | None
    last: float | None
    end: float | None
    failure: str | None
    words: str
    prompt_tok: int | None
    cached_tok: int | None
    output_tok: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One repeat.

    Attributes:
        of: Requests that it has; `bars` are at most `MOST` of them.
        start_ns: On the cell's clock, where the picture has its zero.
        by: What a line is: a `request`, or a `place`, where those that follow each other stand.
    """

    bars: tuple[Bar, ...]
    of: int
    repeat: int
    start_ns: int
    lines: int
    by: str

    @property
    def until_s(self) -> float:
        return max((t for b in self.bars for t in (b.due, b.sent, b.end) if t is not None), default=0.0)


def timeline(requests: Sequence[RequestRecord], *, is_open: bool = False) -> Timeline | None:
    """Of the first repeat that has requests, all phases; None without any.

    Args:
        is_open: Arrivals do not wait for answers: each request has a line of its own.
    """
    repeat = min((r.repeat for r in requests), default=None)
    own = sorted((r for r in requests if r.repeat == repeat), key=lambda r: (r.scheduled_ns, r.index))
    if repeat is None or not own:
        return None
    shown = own[:MOST]
    start = min(r.scheduled_ns for r in shown)
    lines = list(range(len(shown))) if is_open else _packed(shown)
    bars = tuple(_bar(r, line, start) for r, line in zip(shown, lines, strict=True))
    return Timeline(
        bars=bars,
        of=len(own),
        repeat=repeat,
        start_ns=start,
        lines=max(lines) + 1,
        by="request" if is_open else "place",
    )


def _packed(requests: Sequence[RequestRecord]) -> list[int]:
    """Lines: each request on the first one that is free when it is due, lane by lane. That is how many run at once."""
    found: dict[int, int] = {}
    first_line = 0
    for lane in dict.fromkeys(r.lane for r in requests):
        free: list[int] = []
        for i, r in enumerate(requests):
            if r.lane != lane:
                continue
            line = next((at for at, until in enumerate(free) if until <= r.scheduled_ns), len(free))
            free[line : line + 1] = [r.end_ns if r.end_ns is not None else r.scheduled_ns + 1]
            found[i] = first_line + line
        first_line += len(free)
    return [found[i] for i in range(len(requests))]


def _bar(r: RequestRecord, line: int, start_ns: int) -> Bar:
    def at(t_ns: int | None) -> float | None:
        return None if t_ns is None else (t_ns - start_ns) / NS_PER_S

    return Bar(
        line=line,
        due=(r.scheduled_ns - start_ns) / NS_PER_S,
        sent=at(r.sent_ns),
        taken=at(_taken_ns(r)),
        first=at(r.first_token_ns),
        last=at(r.last_token_ns),
        end=at(r.end_ns),
        failure=r.failure,
        words=_request_words(r),
        prompt_tok=r.prompt_tok,
        cached_tok=r.cached_tok,
        output_tok=r.output_tok,
    )


def _taken_ns(r: RequestRecord) -> int | None:
    """Never after the first token: the two clocks may disagree by a little."""
    queue_ms = server_times(r).queue_ms
    if r.sent_ns is None or queue_ms is None or r.first_token_ns is None:
        return r.sent_ns
    return min(r.first_token_ns, r.sent_ns + round(queue_ms * NS_PER_MS))


def _request_words(r: RequestRecord) -> str:
    """`12, prime, turn 2`."""
    who = [str(r.index), *([r.phase] if r.phase != "main" else []), *([r.lane] if r.lane else [])]
    return ", ".join([*who, *([f"turn {r.turn + 1}"] if r.turn else [])])
