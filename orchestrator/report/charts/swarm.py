"""Agents on one prefix: how fast together, and how many shared tokens were read again, by agents and variant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.report.charts.axes import y_scale
from orchestrator.report.charts.curves import Curve, Load
from orchestrator.report.charts.palette import CROSS
from orchestrator.report.charts.readings import MEASURED, Reading, of_stated, tag, total
from orchestrator.report.charts.stack import (
    INVALID,
    Layers,
    Panel,
    Spec,
    dimmed,
    group,
    looks,
    mark,
    picked,
    row,
    stacked,
)
from orchestrator.report.charts.user_words import broken, joined
from orchestrator.report.kinds.swarm import VARIANTS
from orchestrator.report.notebook.book import Chart
from orchestrator.report.tables import PointRow
from orchestrator.report.text import number, rate

Read = Callable[[PointRow], Reading | None]


def swarm_chart(load: Load) -> Chart | None:
    """None for other loads, and where no total is known."""
    if load.kind != "swarm":
        return None
    groups = _groups(load)
    speeds, again = _rows(load, total), _rows(load, reread)
    if not speeds:
        return None
    x: Spec = {
        "field": "x",
        "type": "nominal",
        "sort": None,
        "title": "Agents",
        "scale": {"domain": groups, "paddingInner": 0.25},
        "axis": {"labelAngle": 0, "labelLimit": 110, "labelOverlap": False, "grid": False},
    }
    parts = [("together", "tok/s, all together", speeds), *([("again", "Read again (tok)", again)] if again else [])]
    panels = [
        Panel(
            title=title,
            layers=_bars(name, x, load, title=title, is_first=name == "together"),
            data={name: rows},
            height=150,
            y={"scale": y_scale([])},
        )
        for name, title, rows in parts
    ]
    return Chart(
        id=f"swarm-{load.slug}",
        title=f"{load.title}: agents together{', and what they read again' if again else ''}",
        text=_words(load),
        spec=stacked(panels),
    )


def reread(point: PointRow) -> Reading | None:
    """Shared tokens that were computed again, all agents of a repeat together, mean over repeats."""
    if (told := of_stated(point.figures.cell, "reread_total_tok", "reread_tok")) is not None:
        return told
    found = point.figures.swarm.reread_total_tok if point.figures.swarm is not None else None
    if found is None:
        return None
    interval = found.interval
    return Reading(
        value=found.mean,
        low=None if interval is None else max(0.0, interval.low),
        high=None if interval is None else interval.high,
        interval="" if interval is None else "95 % interval",
        n=found.n,
        definition=tag("reread"),
        method=MEASURED,
    )


def group_of(point: PointRow) -> str:
    """`32 primed`."""
    cell = point.figures.cell
    return f"{cell.concurrency} {cell.variant}".strip()


def _groups(load: Load) -> list[str]:
    def place(point: PointRow) -> tuple[int, str, int]:
        cell = point.figures.cell
        known = VARIANTS.index(cell.variant) if cell.variant in VARIANTS else len(VARIANTS)
        return known, cell.variant, cell.concurrency

    points = sorted((p for c in load.curves for p in c.points), key=place)
    return list(dict.fromkeys(group_of(p) for p in points))


def _rows(load: Load, read: Read) -> list[dict[str, Any]]:
    return [
        {**row(place, point, 0, found), "x": group_of(point)}
        for place, curve in enumerate(load.curves)
        for point in curve.points
        if (found := read(point)) is not None
    ]


def _bars(name: str, x: Spec, load: Load, *, title: str, is_first: bool) -> Layers:
    """Bars with the configuration's shape at their end; those that broke a guard are outlines."""
    look = looks(load.curves)
    offset = {"field": "c", "type": "nominal", "scale": {"domain": list(range(len(load.curves)))}}
    hover = [
        {"field": key, "title": words}
        for key, words in (
            ("name", "Configuration"),
            ("x", "Agents"),
            ("w", title),
            ("n", "n"),
            ("d", "Definition"),
            ("m", "How"),
        )
    ]

    why = [*hover, INVALID]

    def layers(y: Spec) -> list[Spec]:
        shared: Spec = {"x": x, "xOffset": offset, "y": y, "color": look["color"], "opacity": dimmed()}
        valid, broken, known = (
            {"filter": "!datum.g"},
            {"filter": "datum.g"},
            {"filter": "!datum.g && isValid(datum.lo)"},
        )
        bar = mark("bar", {"tooltip": hover}, valid, fillOpacity=0.55)
        point = {"shape": look["shape"], "tooltip": hover}
        found = [
            {**bar, "params": [picked()]} if is_first else bar,
            mark("bar", {"tooltip": why}, broken, filled=False, strokeDash=[3, 3], strokeWidth=1.5),
            mark("rule", {"y": {**y, "field": "lo"}, "y2": {"field": "hi"}}, known, strokeWidth=1.5),
            mark("point", point, valid, filled=True, size=55),
            mark("point", {**point, "tooltip": why}, broken, filled=False, size=65, strokeWidth=1.5),
            mark("point", {"tooltip": why}, broken, shape=CROSS, filled=False, size=120, strokeWidth=1.5),
        ]
        return [group(name, shared, found, load.curves)]

    return layers


def _words(load: Load) -> str:
    """`32 primed: X is fastest, 180.2 tok/s together; it reads 6400 shared tokens again. …`"""
    return joined(*(_of_group(load, group) for group in reversed(_groups(load)[-4:])), broken(load), load.words)


def _of_group(load: Load, group: str) -> str:
    found = [
        (c, p, r)
        for c in load.curves
        for p in c.points
        if group_of(p) == group and p.figures.is_valid and (r := total(p)) is not None
    ]
    if not found:
        return f"{group}: no valid point."
    curve, point, best = max(found, key=lambda f: f[2].value)
    words = f"{group}: {_name(curve, found)}{rate(best.value)} tok/s together"
    again = reread(point)
    return f"{words}." if again is None else f"{words}, {number(again.value, 0)} shared tokens read again."


def _name(curve: Curve, found: Sequence[object]) -> str:
    return f"{curve.label} is fastest, " if len(found) > 1 else f"{curve.label}, "
