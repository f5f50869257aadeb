"""Open loops: percentiles of the first token over the rate asked for, from the schedule and from dispatch together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from orchestrator.figures.stats import Percentiles
from orchestrator.report.charts.axes import is_log, level_axis, y_scale
from orchestrator.report.charts.curves import Curve, Load
from orchestrator.report.charts.readings import MEASURED, tag
from orchestrator.report.charts.stack import (
    PICK,
    Layers,
    Panel,
    Spec,
    group,
    guard_words,
    looks,
    mark,
    marks,
    short,
    stacked,
    tooltip,
)
from orchestrator.report.charts.user_words import broken, joined
from orchestrator.report.kinds.arrivals import asked_rps
from orchestrator.report.notebook.book import Chart
from orchestrator.report.notes import falls_behind
from orchestrator.report.tables import PointRow
from orchestrator.report.text import rate, seconds

PERCENTILES = ("p50", "p95", "p99")
RATE = "Requests/s asked for"


def rate_chart(load: Load) -> Chart | None:
    """One panel a percentile that is known; None for other loads than open ones, and without any point."""
    if load.kind not in ("open", "overload"):
        return None
    known = [shown for shown in PERCENTILES if any(_pairs(c, shown) for c in load.curves)]
    if not known:
        return None
    levels = sorted({short(at) for c in load.curves for p in c.points if (at := asked_rps(p.figures)) is not None})
    x = level_axis(levels, RATE)
    panels = [_panel(load, shown, x, is_first=shown == known[0]) for shown in known]
    return Chart(
        id=f"rate-{load.slug}",
        title=f"{load.title}: first token by rate, from the schedule and from dispatch",
        text=_words(load),
        spec=stacked(panels),
    )


def _panel(load: Load, shown: str, x: Spec, *, is_first: bool) -> Panel:
    curves = list(enumerate(load.curves))
    scheduled = [_row(i, p, at, due, shown, is_due=True) for i, c in curves for p, at, due, _ in _pairs(c, shown)]
    sent = [
        {**_row(i, p, at, own, shown, is_due=False), "s": short(getattr(due, shown) / 1000)}
        for i, c in curves
        for p, at, due, own in _pairs(c, shown)
        if own is not None and _is_known(own, shown)
    ]
    scale = y_scale([r["v"] for r in scheduled + sent], from_zero=False)
    return Panel(
        title=f"First token {shown} (s)" + (", log." if is_log(scale) else ""),
        layers=_layers(shown, x, load, is_first=is_first),
        data={shown: scheduled, f"{shown}_sent": sent},
        height=140,
        y={"scale": scale},
    )


def _layers(shown: str, x: Spec, load: Load, *, is_first: bool) -> Layers:
    """From the schedule as the line; from dispatch a small hollow point, joined to it by what was waited."""
    look = looks(load.curves)
    main = marks(shown, x, load.curves, tooltip(RATE, f"From schedule, {shown} (s)"), is_first=is_first)

    def layers(y: Spec) -> list[Spec]:
        faint = {"condition": {"param": PICK, "value": 0.8}, "value": 0.1}
        shared = {"x": x, "y": y, "color": look["color"], "opacity": faint}
        hover = tooltip(RATE, f"From dispatch, {shown} (s)")
        found = [
            mark("rule", {"y2": {"field": "s"}}, strokeWidth=1, strokeDash=[2, 2]),
            mark("point", {"shape": look["shape"], "tooltip": hover}, filled=False, size=36, strokeWidth=1.5),
        ]
        return [*main(y), group(f"{shown}_sent", shared, found, load.curves)]

    return layers


def _pairs(curve: Curve, shown: str) -> list[tuple[PointRow, float, Percentiles, Percentiles | None]]:
    """Points with a rate whose percentile from the schedule is known, with the one from dispatch."""
    return [
        (p, at, p.figures.ttft_scheduled_ms, p.figures.ttft_ms)
        for p in curve.points
        if not p.figures.cell.source
        and (at := asked_rps(p.figures)) is not None
        and _is_known(p.figures.ttft_scheduled_ms, shown)
    ]


def _is_known(found: Percentiles, shown: str) -> bool:
    value = getattr(found, shown)
    return value is not None and math.isfinite(value)


def _row(
    place: int, point: PointRow, at: float, found: Percentiles | None, shown: str, *, is_due: bool
) -> dict[str, Any]:
    assert found is not None
    value, interval = getattr(found, shown) / 1000, found.intervals.get(shown)
    has_ends = interval is not None and math.isfinite(interval.high)
    ends = {"lo": short(interval.low / 1000), "hi": short(interval.high / 1000)} if interval and has_ends else {}
    words = seconds(value * 1000)
    if ends:
        words += f" ({seconds(ends['lo'] * 1000)} to {seconds(ends['hi'] * 1000)}, 95 % interval)"
    guard = guard_words(point)
    return {
        "c": place,
        "x": short(at),
        "v": short(value),
        **ends,
        "w": words,
        "n": found.n,
        "d": tag("ttft_scheduled" if is_due else "ttft"),
        "m": MEASURED,
        **({"g": guard} if guard else {}),
    }


def _words(load: Load) -> str:
    """`X at 2.00 requests/s: p50 0.51 s from the schedule, 0.30 s from dispatch; …`"""
    return joined(
        *(_of_one(c) for c in load.curves[:3]),
        "Small hollow points are from dispatch; the dotted line up to the curve is what requests waited before it.",
        broken(load),
        load.words,
    )


def _of_one(curve: Curve) -> str:
    pairs = [pair for pair in _pairs(curve, "p50") if pair[0].figures.is_valid]
    if not pairs:
        return ""
    point, at, due, own = max(pairs, key=lambda pair: pair[1])
    known: Sequence[str] = [s for s in PERCENTILES if _is_known(due, s)]
    from_due = ", ".join(f"{s} {seconds(getattr(due, s))}" for s in known)
    words = f"{curve.label} at {rate(at)} requests/s: first token {from_due} s from the schedule"
    if own is not None and own.p50 is not None:
        words += f", p50 {seconds(own.p50)} s from dispatch"
    return f"{words}{'; it falls behind' if falls_behind(point.figures) else ''}."
