"""Loads side by side: each lane alone, together with the others, and what that costs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from orchestrator.figures.lanes import ALONE, TOGETHER, LaneFigures, Slowdown
from orchestrator.figures.ratio import Ratio
from orchestrator.report.columns import Column, Family, Line, never
from orchestrator.report.kinds.common import SLO, output_rate
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH, between, number, plus_minus, seconds, times
from orchestrator.values import Json

Write = Callable[[LaneFigures], str]


def lanes_of(points: Sequence[PointRow]) -> tuple[Line, ...]:
    """All of a `together` cell, then each of its lanes; a lane that has run alone only, by itself."""
    lines: list[Line] = []
    seen: set[str] = set()
    for point in points:
        if point.figures.cell.variant == TOGETHER:
            lines += [Line(point=point), *(Line(point=point, lane=lane) for lane in point.figures.lanes)]
            seen |= set(point.figures.lanes)
    for point in points:
        lane = point.figures.cell.variant.removeprefix(ALONE)
        if point.figures.cell.variant != TOGETHER and lane not in seen:
            lines.append(Line(point=point, lane=lane))
    return tuple(lines)


def _asked(line: Line) -> Mapping[str, Json]:
    lanes = line.cell.load.get("lanes")
    found = [lane for lane in lanes if isinstance(lane, Mapping)] if isinstance(lanes, list | tuple) else []
    return next((lane for lane in found if lane.get("name") == line.lane), {})


def _load(line: Line) -> str:
    """`7`, or of an open lane `0.5/s`."""
    if not line.lane:
        return str(line.cell.concurrency) if line.cell.concurrency else DASH
    asked = _asked(line)
    users, per_s = asked.get("concurrency"), asked.get("rate")
    return str(users) if users is not None else f"{per_s:g}/s" if isinstance(per_s, int | float) else DASH


def _size(key: str) -> Callable[[Line], str]:
    def words(line: Line) -> str:
        size = _asked(line).get(key)
        if isinstance(size, Mapping):
            size = size.get("around", size.get("median"))
            return DASH if size is None else f"about {size}"
        return DASH if size is None else str(size)

    return words


def _together(write: Write) -> Callable[[Line], str]:
    def words(line: Line) -> str:
        lane = line.figures.lanes.get(line.lane) if line.cell.variant == TOGETHER else None
        return DASH if lane is None else write(lane)

    return words


def _alone(write: Write) -> Callable[[Line], str]:
    """Of the cell in which it ran alone."""

    def words(line: Line) -> str:
        cell = line.point.alone.get(line.lane)
        lane = None if cell is None else cell.lanes.get(line.lane)
        return DASH if lane is None else write(lane)

    return words


def _is_alone_invalid(line: Line) -> bool:
    cell = line.point.alone.get(line.lane)
    return cell is not None and not cell.is_valid


def _slower(of: Callable[[Slowdown], Ratio | None]) -> Callable[[Line], str]:
    """`×1.24 (1.18-1.31)`."""

    def words(line: Line) -> str:
        slowdown = line.point.slowdowns.get(line.lane)
        ratio = None if slowdown is None else of(slowdown)
        return DASH if ratio is None else f"{times(ratio.value)} {between(ratio.interval, 2)}".rstrip()

    return words


def _rate(lane: LaneFigures) -> str:
    return plus_minus(lane.output_tok_per_s, 1)


def _rate_together(line: Line) -> str:
    return output_rate(line.point) if not line.lane else _together(_rate)(line)


def _good(line: Line) -> str:
    lane = line.figures.lanes.get(line.lane)
    if lane is None:
        return f"{line.figures.good}/{line.figures.requests}" if not line.lane else DASH
    return f"{lane.good}/{lane.requests}"


def _ttft(lane: LaneFigures) -> str:
    return seconds(lane.ttft_ms.p50)


def _tpot(lane: LaneFigures) -> str:
    return number(lane.tpot_ms.p50)


def _lead(head: str, group: str, words: Callable[[Line], str], *, is_text: bool = False) -> Column:
    return Column(head=head, short=head.lower(), words=words, group=group, is_struck=never, is_text=is_text)


def _three(
    head: str, unit: str, write: Write, of: Callable[[Slowdown], Ratio | None], together: Callable[[Line], str]
) -> tuple[Column, ...]:
    group = head
    return (
        Column(
            head=f"{head} alone ({unit})",
            short=f"{head} {unit}\nalone",
            words=_alone(write),
            group=group,
            is_struck=_is_alone_invalid,
        ),
        Column(head=f"{head} together ({unit})", short=f"{head} {unit}\ntogether", words=together, group=group),
        Column(head=f"{head}: together / alone", short=f"{head}\ntog./alone", words=_slower(of), group=group),
    )


MIXED = Family(
    name="mixed",
    axes=(),
    lead=(_lead("Lane", "lead", lambda line: line.lane or "all", is_text=True),),
    columns=(
        _lead("Users", "lane", _load),
        _lead("In", "lane", _size("prompt_tokens")),
        _lead("Out", "lane", _size("output_tokens")),
        *_three("TTFT p50", "s", _ttft, lambda s: s.ttft, _together(_ttft)),
        *_three("TPOT p50", "ms", _tpot, lambda s: s.tpot, _together(_tpot)),
        Column(
            head="tok/s alone", short="tok/s\nalone", words=_alone(_rate), group="rate", is_struck=_is_alone_invalid
        ),
        Column(head="tok/s together", short="tok/s\ntogether", words=_rate_together, group="rate"),
        Column(
            head="tok/s: together / alone", short="tok/s\ntog./alone", words=_slower(lambda s: s.rate), group="rate"
        ),
        Column(
            head=SLO.head,
            short=SLO.short,
            words=lambda line: DASH if line.lane and line.cell.variant == TOGETHER else SLO.words(line),
            narrow=lambda line: DASH if line.lane and line.cell.variant == TOGETHER else SLO.narrow_words(line),
            group="slo",
            is_text=True,
            is_long=True,
            is_optional=True,
        ),
        Column(head="Good", short="good", words=_good, group="slo"),
    ),
    caption=(
        "Each lane's own figures. Together / alone: ratio of geometric means with its 95 % interval; TTFT and TPOT "
        "above 1, tok/s below 1: slower beside the others."
    ),
    order=lambda line: (line.cell.variant != TOGETHER, line.lane),
    lines=lanes_of,
)
