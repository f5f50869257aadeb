"""A picture of stacked panels in one view: one x axis, one legend, and the page's width for all of them.

Vega-Lite cannot give pictures that are put together the width of their container; a single view it can. So each panel
is a layer whose y scale has a range of its own: `[bottom, top]` in px of the view.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.report.charts.curves import Curve
from orchestrator.report.charts.palette import CROSS
from orchestrator.report.charts.readings import Reading
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH, rate, share

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
GAP = 34
PICK = "pick"

COMMON = ("d", "m", "n")
"""Fields of a row that are mostly the same in all of them: definition, method, n."""

SHARED = ("color", "shape", "strokeDash")
"""Channels by configuration, of which all panels have one scale."""

Spec = dict[str, Any]
Layers = Callable[[Spec], list[Spec]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel.

    Attributes:
        title: Of its y axis. y: what its y channel has beside that: `field`, `scale`, `axis`.
        layers: The marks, given the finished y channel (field `v`).
        data: Rows by the name that the marks use.
    """

    title: str
    layers: Layers
    data: Mapping[str, Sequence[Mapping[str, Any]]]
    height: int = 170
    y: Mapping[str, Any] = field(default_factory=dict)


def stacked(panels: Sequence[Panel], **top: Any) -> Spec:
    """One view with all panels, the first on top; `top`: more of the spec."""
    layers: list[Spec] = []
    at = 0
    for panel in panels:
        own = dict(panel.y)
        scale = {"range": [at + panel.height, at], **own.pop("scale", {})}
        axis = {
            "orient": "left",
            "tickCount": max(2, panel.height // 36),
            "minExtent": 36,
            "grid": True,
            **own.pop("axis", {}),
        }
        y = {"field": "v", "type": "quantitative", "title": panel.title, "scale": scale, "axis": axis, **own}
        layers.append({"layer": [_told_once(layer, panel.data) for layer in panel.layers(y)]})
        at += panel.height + GAP
    return {
        "$schema": SCHEMA,
        "datasets": {name: _without_common(rows) for panel in panels for name, rows in panel.data.items()},
        "width": "container",
        "height": at - GAP,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "view": {"stroke": None},
        "layer": _said_once(layers, set()),
        "resolve": {"scale": {"y": "independent"}},
        **top,
    }


def _said_once(layers: Sequence[Spec], said: set[str]) -> list[Spec]:
    """Scale and legend by configuration at their first mark alone: Vega-Lite gives all marks one of each.

    Args:
        said: Channels whose scale was told; grows.
    """
    found = []
    for layer in layers:
        encoding = {
            name: _once(name, channel, said) if name in SHARED else channel
            for name, channel in layer.get("encoding", {}).items()
        }
        inner = {"layer": _said_once(layer["layer"], said)} if "layer" in layer else {}
        found.append({**layer, **({"encoding": encoding} if encoding else {}), **inner})
    return found


def _once(name: str, channel: Spec, said: set[str]) -> Spec:
    if channel.get("field") != "c" or "scale" not in channel:
        return channel
    if name in said:
        return {key: value for key, value in channel.items() if key not in ("scale", "legend")}
    said.add(name)
    return channel


def _common(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all rows say alike of `COMMON`."""
    if len(rows) < 2:
        return {}
    first = rows[0]
    return {k: first[k] for k in COMMON if k in first and all(r.get(k) == first[k] for r in rows)}


def _without_common(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    common = _common(rows)
    return [{k: v for k, v in r.items() if k not in common} for r in rows]


def _told_once(layer: Spec, data: Mapping[str, Sequence[Mapping[str, Any]]]) -> Spec:
    """With what all of its rows say alike as a constant; a JSON text is one in Vega's expressions too."""
    common = _common(data.get(layer.get("data", {}).get("name", ""), ()))
    constants = [{"calculate": json.dumps(value), "as": key} for key, value in common.items()]
    return {**layer, "transform": [*constants, *layer.get("transform", [])]} if constants else layer


def looks(curves: Sequence[Curve]) -> Mapping[str, Spec]:
    """The channels `color`, `shape` and `strokeDash` by the field `c`, with one legend that can be clicked."""
    places = list(range(len(curves)))

    legend = {
        "title": None,
        "labelExpr": f"{names(curves)}[datum.value]",
        "orient": "bottom",
        "direction": "vertical",
        "columns": {"expr": "width > 640 ? 2 : 1"},
        "labelLimit": {"expr": "width > 640 ? width / 2 - 40 : width - 30"},
        "symbolOpacity": 1,
        "symbolStrokeWidth": 0,
        "symbolSize": 90,
    }

    def channel(values: Sequence[Any]) -> Spec:
        return {"field": "c", "type": "nominal", "scale": {"domain": places, "range": list(values)}, "legend": legend}

    return {
        "color": channel([c.style.colour for c in curves]),
        "shape": channel([c.style.shape for c in curves]),
        "strokeDash": channel([list(c.style.dash) for c in curves]),
    }


def names(curves: Sequence[Curve]) -> str:
    """The labels as an array in Vega's expressions: rows have a place in it (`c`), not the name. A JSON text is one."""
    return json.dumps([c.label for c in curves])


def picked() -> Spec:
    """What a click in the legend picks; to stand in one mark of the picture."""
    return {"name": PICK, "select": {"type": "point", "fields": ["c"]}, "bind": "legend"}


def dimmed(shown: float = 1.0) -> Spec:
    """Opacity: what is not picked steps back."""
    return {"condition": {"param": PICK, "value": shown}, "value": 0.12 * shown}


def marks(name: str, x: Spec, curves: Sequence[Curve], tooltip: Sequence[Spec], *, is_first: bool = False) -> Layers:
    """Band, line, points, and those that broke a guard: hollow, crossed, off the line.

    Args:
        name: Of the rows: `c`, `x`, `v`, `lo`, `hi`, and `g` where a guard was broken.
        is_first: The mark that the legend's selection belongs to.
    """

    look = looks(curves)

    def layers(y: Spec) -> list[Spec]:
        valid, broken, known = (
            {"filter": "!datum.g"},
            {"filter": "datum.g"},
            {"filter": "!datum.g && isValid(datum.lo)"},
        )
        ends = {"y": {**y, "field": "lo"}, "y2": {"field": "hi"}}
        point = {"opacity": dimmed(), "shape": look["shape"], "tooltip": list(tooltip)}
        crossed = {"opacity": dimmed(), "tooltip": [*tooltip, INVALID]}
        line = mark("line", {"opacity": dimmed(), "strokeDash": look["strokeDash"]}, valid, strokeWidth=2)
        found = [
            mark("area", {**ends, "opacity": dimmed(0.14)}, known),
            mark("rule", {**ends, "opacity": dimmed(0.6)}, known, strokeWidth=1),
            {**line, "params": [picked()]} if is_first else line,
            mark("point", point, valid, filled=True, size=60),
            mark("point", {**point, "tooltip": [*tooltip, INVALID]}, broken, filled=False, size=70, strokeWidth=1.5),
            mark("point", crossed, broken, shape=CROSS, filled=False, size=130, strokeWidth=1.5),
        ]
        return [group(name, {"x": x, "y": y, "color": look["color"]}, found, curves)]

    return layers


def group(name: str, encoding: Mapping[str, Any], found: Sequence[Spec], curves: Sequence[Curve] = ()) -> Spec:
    """Marks that share rows and channels: said once, for a spec is mostly its channels.

    Args:
        curves: Of the rows; then `name` is the label of each.
    """
    named = [{"calculate": f"{names(curves)}[datum.c]", "as": "name"}] if curves else []
    return {
        "data": {"name": name},
        **({"transform": named} if named else {}),
        "encoding": dict(encoding),
        "layer": list(found),
    }


def mark(kind: str, encoding: Mapping[str, Any], *transforms: Spec, **more: Any) -> Spec:
    """One mark; `encoding`: beside what its group has."""
    transform = {"transform": list(transforms)} if transforms else {}
    return {**transform, "mark": {"type": kind, **more}, "encoding": dict(encoding)}


def row(place: int, point: PointRow, x: float, found: Reading, *, is_share: bool = False) -> dict[str, Any]:
    """A row for `marks` and its tooltip: what is not known is left out.

    Args:
        place: Of the configuration among the picture's.
    """
    told: dict[str, Any] = {
        "c": place,
        "x": short(x),
        "v": short(found.value),
        "lo": None if found.low is None else short(found.low),
        "hi": None if found.high is None else short(found.high),
        "w": reading_words(found, is_share=is_share),
        "n": DASH if found.n is None else found.n,
        "d": found.definition or DASH,
        "m": found.method,
        "g": guard_words(point) or None,
    }
    return {key: value for key, value in told.items() if value is not None}


INVALID: Spec = {"field": "g", "title": "Invalid"}
"""For the tooltip of points that broke a guard; those of others have no such field."""


def tooltip(x_title: str, v_title: str) -> list[Spec]:
    fields = (
        ("name", "Configuration"),
        ("x", x_title),
        ("w", v_title),
        ("n", "n"),
        ("d", "Definition"),
        ("m", "How"),
    )
    return [{"field": name, "title": title} for name, title in fields]


def reading_words(found: Reading, *, is_share: bool = False) -> str:
    """`180.2 (178.1 to 182.3, 95 % interval)`."""

    def words(value: float) -> str:
        return share(value, 1) if is_share else rate(value)

    if found.low is None or found.high is None:
        return words(found.value)
    return f"{words(found.value)} ({words(found.low)} to {words(found.high)}, {found.interval})"


def guard_words(point: PointRow) -> str:
    return ", ".join(guard_names(point))


def guard_names(point: PointRow) -> list[str]:
    return [str(g.get("name", "invalid")) for g in point.figures.cell.guards]


def short(value: float) -> float:
    """Five digits."""
    return float(f"{value:.5g}")
