"""Curves over users at once: speed together and each, first token and cached share, efficiency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.figures.saturation import Knee
from orchestrator.report.charts import readings, user_words
from orchestrator.report.charts.axes import is_log, level_axis, y_scale
from orchestrator.report.charts.curves import Load, knee_of
from orchestrator.report.charts.readings import Reading
from orchestrator.report.charts.stack import (
    PICK,
    Layers,
    Panel,
    Spec,
    dimmed,
    group,
    looks,
    mark,
    marks,
    row,
    short,
    stacked,
    tooltip,
)
from orchestrator.report.notebook.book import Chart
from orchestrator.report.tables import PointRow

USERS = "Users at once"
GREY = "#808080"
FAR = 3.0
"""A service level this many times above all values is named in the text: its line would press the curves flat."""

Read = Callable[[PointRow], Reading | None]
Row = dict[str, Any]


def user_charts(load: Load) -> Iterator[Chart]:
    """Those of the load that have anything to show; a load of one level has no curve."""
    if len(load.levels) < 2:
        return
    for maker in (speed_chart, first_token_chart, efficiency_chart):
        if (found := maker(load)) is not None:
            yield found


def speed_chart(load: Load) -> Chart | None:
    """All users together above, one of them below: the two directions of a shared machine."""
    whole = readings.prompt_total if load.kind == "ingest" else readings.total
    what = "Prompt tok/s, all together" if load.kind == "ingest" else "tok/s, all together"
    totals, each = _rows(load, whole), _rows(load, readings.per_user)
    if not totals:
        return None
    known = {} if load.kind == "ingest" else {i: knee_of(c) for i, c in enumerate(load.curves)}
    knees = {i: found for i, found in known.items() if found is not None}
    panels = [_panel("total", what, totals, load, is_first=True, more=_knees(load) if knees else None)]
    if each:
        panels.append(_panel("each", "tok/s, each user", each, load, height=130))
    return Chart(
        id=f"speed-{load.slug}",
        title=f"{load.title}: speed, all users together{' and each' if each else ''}",
        text=user_words.speed(load, whole, {load.curves[i].label: found for i, found in knees.items()}),
        spec=_with_knees(stacked(panels), knees),
    )


def first_token_chart(load: Load) -> Chart | None:
    """The median with its interval, p95 thin where it is known, the service level's line; the cached share below."""
    half = _rows(load, readings.first_token)
    if not half:
        return None
    tail = _rows(load, lambda p: readings.first_token(p, "p95"))
    cached = _rows(load, readings.cached_share, is_share=True)
    x = level_axis(load.levels, USERS)
    most = max(r["v"] for r in half + tail)
    limits = slo_lines(load)
    drawn = {words: limit for words, limit in limits.items() if limit <= FAR * most}
    scale = y_scale([r["v"] for r in half + tail] + list(drawn.values()), from_zero=False)
    more = _slo_layers(drawn)
    panels = [
        Panel(
            title="First token (s)" + (", logarithmic" if is_log(scale) else ""),
            layers=_both(
                marks("ttft", x, load.curves, tooltip(USERS, "First token p50 (s)"), is_first=True),
                _tail("ttft_p95", load) if tail else None,
                more,
            ),
            data={"ttft": half, **({"ttft_p95": tail} if tail else {}), **({"slo": _slo_rows(drawn)} if drawn else {})},
            y={"scale": scale},
        )
    ]
    if any(r["v"] for r in cached):
        panels.append(
            _panel("cached", "Cached", cached, load, height=90, y={"axis": {"format": "~%"}, "scale": _whole(cached)})
        )
    return Chart(
        id=f"first-token-{load.slug}",
        title=f"{load.title}: first token{' and cached share' if len(panels) > 1 else ''}",
        text=user_words.first_token(load, limits, drawn, has_tail=bool(tail)),
        spec=stacked(panels),
    )


def efficiency_chart(load: Load) -> Chart | None:
    """Share of perfect scaling from one user."""
    rows = []
    for place, curve in enumerate(load.curves):
        for point, found in user_words.efficiencies(curve):
            rows.append(row(place, point, point.figures.cell.concurrency, found, is_share=True))
    if len({r["x"] for r in rows}) < 2:
        return None
    y: Spec = {"axis": {"format": "~%"}, "scale": _whole(rows)}
    panel = _panel("efficiency", "Share of perfect scaling", rows, load, is_first=True, y=y)
    return Chart(
        id=f"efficiency-{load.slug}",
        title=f"{load.title}: efficiency",
        text=user_words.efficiency(load),
        spec=stacked([panel]),
    )


def slo_lines(load: Load) -> dict[str, float]:
    """First-token limits of the cells shown, seconds, by their words."""
    found: dict[str, float] = {}
    for point in (p for c in load.curves for p in c.points):
        judged = point.figures.goodput
        limit = judged.slo.get("ttft_s") if judged is not None else None
        if judged is not None and isinstance(limit, int | float):
            name = str(judged.slo.get("name") or "limit")
            share = judged.slo.get("share")
            of = f"{share * 100:g} % " if isinstance(share, int | float) else ""
            found[f"{name}: {of}within {limit:g} s"] = float(limit)
    return found


def _rows(load: Load, read: Read, *, is_share: bool = False) -> list[Row]:
    return [
        row(place, point, point.figures.cell.concurrency, found, is_share=is_share)
        for place, curve in enumerate(load.curves)
        for point in curve.points
        if (found := read(point)) is not None
    ]


def _panel(
    name: str,
    title: str,
    rows: Sequence[Row],
    load: Load,
    *,
    is_first: bool = False,
    height: int = 190,
    y: Mapping[str, Any] | None = None,
    more: Layers | None = None,
) -> Panel:
    x = level_axis(load.levels, USERS)
    layers = _both(marks(name, x, load.curves, tooltip(USERS, title), is_first=is_first), more)
    return Panel(title=title, layers=layers, data={name: rows}, height=height, y={"scale": y_scale([]), **(y or {})})


def _both(*parts: Layers | None) -> Layers:
    return lambda y: [layer for part in parts if part is not None for layer in part(y)]


def _tail(name: str, load: Load) -> Layers:
    """p95: a thin line with small hollow points."""
    x, look = level_axis(load.levels, USERS), looks(load.curves)

    def layers(y: Spec) -> list[Spec]:
        faint = {"condition": {"param": PICK, "value": 0.65}, "value": 0.08}
        point = {"shape": look["shape"], "opacity": faint, "tooltip": tooltip(USERS, "First token p95 (s)")}
        found = [
            mark("line", {"opacity": faint}, {"filter": "!datum.g"}, strokeWidth=1, strokeDash=[1, 3]),
            mark("point", point, filled=False, size=28, strokeWidth=1),
        ]
        return [group(name, {"x": x, "y": y, "color": look["color"]}, found, load.curves)]

    return layers


def _slo_rows(limits: Mapping[str, float]) -> list[Row]:
    return [{"v": limit, "t": words} for words, limit in limits.items()]


def _slo_layers(limits: Mapping[str, float]) -> Layers | None:
    if not limits:
        return None

    def layers(y: Spec) -> list[Spec]:
        name = {"x": {"value": "width"}, "text": {"field": "t"}}
        found = [
            mark("rule", {}, strokeDash=[6, 4], strokeWidth=1.5),
            mark("text", name, align="right", baseline="bottom", dx=-4, dy=-2, limit=320),
        ]
        hover = [{"field": "t", "title": "Service level"}]
        return [group("slo", {"y": y, "color": {"value": GREY}, "tooltip": hover}, found)]

    return layers


def _knees(load: Load) -> Layers:
    x, colour = level_axis(load.levels, USERS), looks(load.curves)["color"]

    def layers(y: Spec) -> list[Spec]:
        hover = [{"field": "name", "title": "Configuration"}, {"field": "w", "title": "Knee (derived)"}]
        rule = {"color": colour, "y2": {"datum": 0}, "opacity": dimmed(), "tooltip": hover}
        name = {"color": {"value": GREY}, "text": {"field": "t"}}
        at = {"x": x, "y": y}
        return [
            group("knee", at, [mark("rule", rule, strokeDash=[2, 3], strokeWidth=1.5)], load.curves),
            group("knee_names", at, [mark("text", name, align="left", baseline="bottom", dx=4, dy=-4)]),
        ]

    return layers


def _with_knees(spec: Spec, knees: Mapping[int, Knee]) -> Spec:
    if not knees:
        return spec
    rules = [
        {
            "c": place,
            "x": short(found.concurrency),
            "v": short(found.tok_per_s),
            "w": user_words.knee(found),
        }
        for place, found in knees.items()
    ]
    counts = Counter(found.concurrency for found in knees.values())
    names = [
        {"x": short(x), "v": 0, "t": f"knee {x:g}" + (f" ({count})" if count > 1 else "")}
        for x, count in counts.items()
    ]
    return {**spec, "datasets": {**spec["datasets"], "knee": rules, "knee_names": names}}


def _whole(rows: Sequence[Row]) -> Spec:
    """From nothing to all, or to the highest value above that."""
    most = max([1.0, *(r["hi"] if "hi" in r else r["v"] for r in rows)])
    return {"type": "linear", "domain": [0, short(most)]}
