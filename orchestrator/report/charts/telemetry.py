"""What hosts and engine told while a repeat ran, on the time axis of its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.report.charts.clock import utc_s
from orchestrator.report.charts.palette import DASHES
from orchestrator.report.charts.stack import Panel, Spec, short

MOST = 240
"""Samples of one line; of more only every second, third, … is kept."""
GIB = 2**30

Told = Callable[[Mapping[str, Any]], Iterator[tuple[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One panel.

    Attributes:
        told: Of a sample, `(what it is of beside the place, value)`.
        scale: What the value is divided by. most: where the axis ends.
    """

    name: str
    title: str
    told: Told
    scale: float = 1.0
    from_zero: bool = True
    most: float | None = None


def panels(samples: Sequence[Mapping[str, Any]], x: Spec, *, zero_utc_s: float, until_s: float) -> list[Panel]:
    """One for each thing that was told at least twice.

    Args:
        samples: Lines of telemetry.jsonl.
        zero_utc_s: When the x axis has its zero.
    """
    near = [
        (at - zero_utc_s, sample)
        for sample in samples
        if (at := utc_s(sample.get("at"))) is not None and 0 <= at - zero_utc_s <= until_s
    ]
    found = []
    for gauge in GAUGES:
        lines = _lines(gauge, near)
        if lines:
            found.append(_panel(gauge, lines, x))
    return found


def _lines(gauge: Gauge, near: Sequence[tuple[float, Mapping[str, Any]]]) -> dict[str, list[tuple[float, float]]]:
    """By what the line is of, with two values or more."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for at, sample in near:
        for of, value in gauge.told(sample):
            if isinstance(value, int | float) and not isinstance(value, bool):
                name = f"{sample.get('where', '')} {of}".strip()
                lines.setdefault(name, []).append((at, value / gauge.scale))
    return {name: _thinned(sorted(values)) for name, values in lines.items() if len(values) > 1}


def _thinned(values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return values[:: -(-len(values) // MOST)]


def _panel(gauge: Gauge, lines: Mapping[str, Sequence[tuple[float, float]]], x: Spec) -> Panel:
    names = sorted(lines)
    rows = [
        {"x": short(at), "v": short(v), "h": name, "k": place % len(DASHES)}
        for place, name in enumerate(names)
        for at, v in lines[name]
    ]
    last = [{"x": short(line[-1][0]), "v": short(line[-1][1]), "h": name} for name, line in lines.items()]

    def layers(y: Spec) -> list[Spec]:
        dash: Spec = {
            "field": "k",
            "type": "nominal",
            "scale": {"domain": list(range(len(DASHES))), "range": [list(d) for d in DASHES]},
            "legend": None,
        }
        hover = [
            {"field": "h", "title": "Of"},
            {"field": "v", "title": gauge.title},
            {"field": "x", "title": "Seconds"},
        ]
        line: Spec = {
            "data": {"name": gauge.name},
            "mark": {"type": "line", "interpolate": "linear", "strokeWidth": 1.5, "point": {"size": 14}},
            "encoding": {"x": x, "y": y, "strokeDash": dash, "color": {"value": "#808080"}, "tooltip": hover},
        }
        name: Spec = {
            "data": {"name": f"{gauge.name}_names"},
            "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -4, "limit": 160},
            "encoding": {"x": x, "y": y, "text": {"field": "h"}, "color": {"value": "#808080"}},
        }
        return [line, name] if len(names) > 1 else [line]

    return Panel(
        title=gauge.title,
        layers=layers,
        data={gauge.name: rows, **({f"{gauge.name}_names": last} if len(names) > 1 else {})},
        height=56,
        y={"scale": {"domain": [0, gauge.most]} if gauge.most else {"zero": gauge.from_zero, "nice": True}},
    )


def _engine(*names: str) -> Told:
    def told(sample: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        engine = sample.get("engine")
        if isinstance(engine, Mapping):
            yield from ((name, engine.get(name)) for name in names)

    return told


def _gpu(name: str) -> Told:
    def told(sample: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        gpus = sample.get("gpus")
        found = [g for g in gpus if isinstance(g, Mapping)] if isinstance(gpus, list) else []
        for index, gpu in enumerate(found):
            yield (f"GPU {index}" if len(found) > 1 else ""), gpu.get(name)

    return told


def _memory(sample: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    memory = sample.get("memory")
    if isinstance(memory, Mapping):
        yield "", memory.get("available_bytes")


GAUGES = (
    Gauge(name="engine", title="In engine", told=_engine("running", "waiting")),
    Gauge(name="gpu", title="GPU use %", told=_gpu("utilization_percent"), most=100),
    Gauge(name="mhz", title="GPU MHz", told=_gpu("sm_clock_mhz"), from_zero=False),
    Gauge(name="watt", title="GPU W", told=_gpu("power_w")),
    Gauge(name="memory", title="Free GiB", told=_memory, scale=GIB, from_zero=False),
)
