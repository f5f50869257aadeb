"""One repeat of one cell, request by request: queue, prefill, decode, end; telemetry below on the same time axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.figures.request import NS_PER_S
from orchestrator.records.record import CellRecord
from orchestrator.report.charts import telemetry
from orchestrator.report.charts.bars import Bar, Timeline, timeline
from orchestrator.report.charts.clock import Zero, lap_zero
from orchestrator.report.charts.curves import labels_of, slug
from orchestrator.report.charts.palette import COLOURS, CROSS
from orchestrator.report.charts.stack import Panel, Spec, group, mark, short, stacked
from orchestrator.report.charts.user_words import joined
from orchestrator.report.notebook.book import Book, Chart
from orchestrator.report.notebook.identity import configurations_of
from orchestrator.report.raw import RawRecords
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.text import DASH, number, seconds

CELLS = 6
PARTS = (
    ("queue", "q", "s", 0.42, 0.58),
    ("queue", "s", "u", 0.42, 0.58),
    ("prefill", "u", "f", 0.25, 0.75),
    ("decode", "f", "l", 0.08, 0.92),
    ("failed", "z", "e", 0.33, 0.67),
)
"""Part, fields of a row that it lies between, where in a line: each has its own height, so that it is told without its
colour."""
PART_COLOURS = {"queue": COLOURS[3], "prefill": COLOURS[1], "decode": COLOURS[0], "failed": COLOURS[4]}
GREY = "#808080"
HOVER = (
    ("w", "Request"),
    ("q", "Due (s)"),
    ("s_", "Sent (s)"),
    ("ttft", "First token after (ms)"),
    ("e2e", "Whole answer after (ms)"),
    ("p_", "Tokens in"),
    ("h_", "Cached"),
    ("o_", "Tokens out"),
    ("k_", "Failed"),
)
LINE_PX = (2, 18)
MOST_PX = 420


def timeline_charts(book: Book) -> Iterator[Chart]:
    """Of the newest run whose requests can be read: of each load its busiest valid cell, at most `CELLS`."""
    labels = labels_of(configurations_of(book.rows))
    for row in sorted(book.rows, key=lambda r: r.run.created_at, reverse=True):
        charts = [
            found
            for point in chosen_points(row)[:CELLS]
            if (found := timeline_chart(row, point, book.raw, label=labels[row.run.id])) is not None
        ]
        if charts:
            yield from charts
            return


def chosen_points(row: RunRow) -> list[PointRow]:
    """Of each load the one with most users (or the highest rate); one that broke a guard only where all did."""
    loads: dict[tuple[str, str, str], list[PointRow]] = {}
    for p in row.points:
        cell = p.figures.cell
        if p.figures.requests:
            loads.setdefault((cell.workload, cell.kind, cell.variant.partition("-")[0]), []).append(p)
    return [max(points, key=_rank) for points in loads.values()]


def timeline_id(row: RunRow, cell: CellRecord) -> str:
    """For links: the figure's anchor on the page is `figure-` and this."""
    return f"timeline-{slug(f'{cell.workload} {cell.id}')}"


def timeline_chart(row: RunRow, point: PointRow, raw: RawRecords, *, label: str) -> Chart | None:
    """None where its requests cannot be read."""
    cell = point.figures.cell
    stored = raw.cell(row.run.id, cell)
    found = timeline(stored.requests, is_open=point.figures.is_open) if stored is not None else None
    if found is None or found.until_s <= 0:
        return None
    zero = lap_zero(cell, found.repeat, [p.figures.cell for p in row.points])
    x = _x(found)
    below = _telemetry(found, zero, raw.telemetry(row.run.id), x)
    return Chart(
        id=timeline_id(row, cell),
        title=f"{label}: {cell.workload}, {cell.id}, request by request",
        text=_words(found, point, zero if below else None),
        spec=stacked([_requests_panel(found, x), *below]),
    )


def _telemetry(found: Timeline, zero: Zero | None, samples: Sequence[Mapping[str, Any]], x: Spec) -> list[Panel]:
    if zero is None or not samples:
        return []
    at = zero.utc_s + (found.start_ns - zero.offset_ns) / NS_PER_S
    return telemetry.panels(samples, x, zero_utc_s=at, until_s=found.until_s)


def _rank(point: PointRow) -> tuple[bool, int, float, int]:
    cell = point.figures.cell
    return point.figures.is_valid, cell.concurrency, cell.rate_rps or 0.0, cell.prompt_tok + cell.prefix_tok


def _x(found: Timeline) -> Spec:
    return {
        "field": "x",
        "type": "quantitative",
        "title": "Seconds since the first request was due",
        "scale": {"domain": [0, short(found.until_s)], "nice": False, "clamp": True},
        "axis": {"grid": False},
    }


def _requests_panel(found: Timeline, x: Spec) -> Panel:
    line_px = max(LINE_PX[0], min(LINE_PX[1], MOST_PX // found.lines))
    return Panel(
        title=found.by.capitalize(),
        layers=lambda y: list(_layers(x, y)),
        data={"requests": [_row(b) for b in found.bars]},
        height=max(48, line_px * found.lines),
        y={
            "scale": {"domain": [0, found.lines], "reverse": True, "nice": False, "zero": False},
            "axis": {"grid": False, "format": "d", "tickMinStep": 1},
        },
    )


def _row(bar: Bar) -> dict[str, Any]:
    """`q`, `s`, `u`, `f`, `l`, `e`: due, sent, taken, first token, last token, end; `z`: since when nothing came."""
    told: dict[str, Any] = {
        "i": bar.line,
        "q": short(bar.due),
        "s": bar.sent,
        "u": bar.taken,
        "f": bar.first,
        "l": bar.last if bar.last is not None else bar.first,
        "e": bar.end,
        "z": None
        if bar.failure is None
        else next(t for t in (bar.last, bar.first, bar.sent, bar.due) if t is not None),
        "k": bar.failure,
        "w": bar.words,
        "p": bar.prompt_tok,
        "h": bar.cached_tok,
        "o": bar.output_tok,
    }
    return {k: short(v) if isinstance(v, float) else v for k, v in told.items() if v is not None}


def _layers(x: Spec, y: Spec) -> Iterator[Spec]:
    colour: Spec = {
        "type": "nominal",
        "scale": {"domain": list(PART_COLOURS), "range": list(PART_COLOURS.values())},
        "legend": {"title": None, "orient": "bottom", "direction": "horizontal", "symbolOpacity": 1},
    }
    marks = []
    for part, start, end, top, bottom in PARTS:
        rect = {
            "x": {**x, "field": start},
            "x2": {"field": end},
            "y2": {"field": "b"},
            "color": {**colour, "datum": part},
        }
        is_told = {"filter": f"datum.{end} > datum.{start}"}
        marks.append(mark("rect", rect, is_told, *_between(top, bottom), opacity=0.85))
    end_line = {"x": {**x, "field": "e"}, "y2": {"field": "b"}, "color": {"value": GREY}}
    marks.append(mark("rule", end_line, {"filter": "isValid(datum.e)"}, *_between(0.04, 0.96), strokeWidth=1.5))
    at = {"calculate": "isValid(datum.e) ? datum.e : datum.z", "as": "t"}
    cross = {"x": {**x, "field": "t"}, "color": {**colour, "datum": "failed"}}
    is_failed = {"filter": "isValid(datum.k)"}
    marks.append(mark("point", cross, is_failed, at, *_between(0.5, 0.5), shape=CROSS, size=90, strokeWidth=2))
    hover = [{"field": name, "title": title} for name, title in HOVER]
    waits = [("ttft", "round((datum.f - datum.s) * 1000)", "fs"), ("e2e", "round((datum.e - datum.s) * 1000)", "es")]
    told = [(f"{name}_", f"datum.{name}", name) for name in "sphok"]
    known = [
        {"calculate": f"{' && '.join(f'isValid(datum.{c})' for c in needs)} ? {value} : '{DASH}'", "as": name}
        for name, value, needs in (*waits, *told)
    ]
    yield {**group("requests", {"y": {**y, "field": "a"}, "tooltip": hover}, marks), "transform": known}


def _between(top: float, bottom: float) -> list[Spec]:
    """Of a line's height."""
    return [{"calculate": f"datum.i + {top}", "as": "a"}, {"calculate": f"datum.i + {bottom}", "as": "b"}]


def _words(found: Timeline, point: PointRow, zero: Zero | None) -> str:
    """`24 requests of repeat 1 in 12.3 s: …`"""
    queue = max((b.taken - b.due for b in found.bars if b.taken is not None), default=0.0)
    first = max((b.first - b.taken for b in found.bars if b.taken is not None and b.first is not None), default=None)
    failed = sum(b.failure is not None for b in found.bars)
    count = f"The first {len(found.bars)} of {found.of}" if found.of > len(found.bars) else f"All {found.of}"
    head = f"{count} requests of repeat {found.repeat + 1}, {number(found.until_s)} s, a line a {found.by}"
    longest = f"the longest queue {seconds(queue * 1000)} s"
    longest += f", the longest prefill {seconds(first * 1000)} s" if first is not None else ""
    clock = ""
    if zero is not None:
        clock = (
            "Below: what hosts and engine told once a second, by UTC; against the requests' clock it is right within "
            f"{seconds(zero.error_s * 1000)} s."
        )
    guards = "" if point.figures.is_valid else "The cell broke a guard."
    is_told = any(b.taken != b.sent for b in found.bars)
    inside = "" if is_told else "The server's own queue is in its prefill."
    return joined(f"{head}: {longest}; {failed or 'none'} failed.", inside, clock, guards)
