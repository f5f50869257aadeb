"""Distributions of first token and whole answer: what share of the requests had it within so many seconds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.figures.request import e2e_ms, e2e_scheduled_ms, ttft_ms, ttft_scheduled_ms
from orchestrator.figures.scope import Value, adjusted_values, of_phase
from orchestrator.figures.stats import SHARES, nearest_rank, values_needed
from orchestrator.records.record import RequestRecord
from orchestrator.report.charts.axes import is_log, y_scale
from orchestrator.report.charts.curves import Curve, Load, listed
from orchestrator.report.charts.stack import (
    Layers,
    Panel,
    Spec,
    dimmed,
    group,
    looks,
    mark,
    picked,
    short,
    stacked,
)
from orchestrator.report.charts.user_words import joined
from orchestrator.report.notebook.book import Chart
from orchestrator.report.raw import RawRecords
from orchestrator.report.tables import PointRow
from orchestrator.report.text import rate, seconds

STEPS = 40
"""Points of one line; the values between are left out, the first and the last never."""
LEAST = 10
"""Requests that a distribution needs."""
KINDS = ("closed", "batch", "open", "replay", "sessions", "swarm", "ingest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One configuration's requests of one cell. values_s: ascending, those that failed as infinite at the end."""

    curve: Curve
    point: PointRow
    values_s: tuple[float, ...]

    @property
    def reached(self) -> int:
        return sum(math.isfinite(v) for v in self.values_s)

    def within_s(self, share: float) -> float | None:
        """None where there are too few values, or too many failed."""
        if len(self.values_s) < values_needed(share):
            return None
        found = nearest_rank(self.values_s, share)
        return found if math.isfinite(found) else None


def latency_charts(load: Load, raw: RawRecords) -> Iterator[Chart]:
    """First token and whole answer at the highest level that at least half of the configurations share."""
    if load.kind not in KINDS:
        return
    chosen = chosen_points(load)
    cells = [(c, p, raw.cell(c.row.run.id, p.figures.cell)) for c, p in chosen]
    main = [(c, p, of_phase(s.requests)) for c, p, s in cells if s is not None]
    is_open = any(p.figures.is_open for _, p in chosen)
    clock = "from the schedule" if is_open else "from the first byte sent"
    for name, of, value in (
        ("ttft", "first token", ttft_scheduled_ms if is_open else ttft_ms),
        ("e2e", "whole answer", e2e_scheduled_ms if is_open else e2e_ms),
    ):
        found = [d for c, p, requests in main if (d := _distribution(c, p, requests, value)) is not None]
        if found:
            yield _chart(load, found, name=name, of=of, clock=clock)


def chosen_points(load: Load) -> list[tuple[Curve, PointRow]]:
    """Valid points of one level, one a configuration; empty when there is none."""
    valid = [(c, p) for c in load.curves for p in c.points if p.figures.is_valid and p.figures.requests]
    counts = Counter(level_of(p) for _, p in valid)
    if not counts:
        return []
    level = max(v for v, n in counts.items() if 2 * n >= max(counts.values()))
    found: dict[str, tuple[Curve, PointRow]] = {}
    for curve, point in valid:
        if level_of(point) == level:
            found[curve.label] = (curve, point)
    return list(found.values())


def level_of(point: PointRow) -> float:
    """Requests/s where arrivals have a rate, else users."""
    cell = point.figures.cell
    return cell.rate_rps if cell.rate_rps is not None else float(cell.concurrency)


def steps(values_s: Sequence[float]) -> list[tuple[float, float]]:
    """`(seconds, share)`, ascending, at most `STEPS`; failures are in the share's divisor alone."""
    n = len(values_s)
    finite = [v for v in values_s if math.isfinite(v)]
    if not finite:
        return []
    most = min(STEPS, len(finite))
    ranks = sorted({round(i * (len(finite) - 1) / max(1, most - 1)) for i in range(most)})
    return [(finite[rank], (rank + 1) / n) for rank in ranks]


def _distribution(
    curve: Curve, point: PointRow, requests: Sequence[RequestRecord], value: Value
) -> Distribution | None:
    values = sorted(v / 1000 for v in adjusted_values(requests, value))
    found = Distribution(curve=curve, point=point, values_s=tuple(values))
    return found if found.reached and len(values) >= LEAST else None


def _chart(load: Load, found: Sequence[Distribution], *, name: str, of: str, clock: str) -> Chart:
    lines = [
        {"c": i, "x": short(at), "v": short(part), "n": len(d.values_s)}
        for i, d in enumerate(found)
        for at, part in steps(d.values_s)
    ]
    points = [
        {"c": i, "x": short(at), "v": share, "n": len(d.values_s)}
        for i, d in enumerate(found)
        for share in SHARES.values()
        if (at := d.within_s(share)) is not None
    ]
    finite = [v for d in found for v in d.values_s if math.isfinite(v)]
    scale = y_scale(finite, from_zero=False)
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": f"{of.capitalize()} (s, {clock}{', logarithmic' if is_log(scale) else ''})",
        "scale": scale,
        "axis": {"labelOverlap": "greedy"},
    }
    curves = [d.curve for d in found]
    panel = Panel(
        title="Share of the requests",
        layers=_layers(name, x, curves),
        data={name: lines, f"{name}_shares": points},
        height=210,
        y={
            "scale": {"domain": [0, 1]},
            "axis": {"values": [0, 0.25, 0.5, 0.75, 0.95], "format": "~%", "labelOverlap": False},
        },
    )
    return Chart(
        id=f"{name}-{load.slug}",
        title=f"{load.title}: {of}, all requests {_at(found[0].point)}",
        text=_words(load, found, of),
        spec=stacked([panel]),
    )


def _layers(name: str, x: Spec, curves: Sequence[Curve]) -> Layers:
    hover = [
        {"field": "name", "title": "Configuration"},
        {"field": "v", "title": "Of the requests", "format": ".1%"},
        {"field": "x", "title": "Within (s)"},
        {"field": "n", "title": "n, failures included"},
    ]

    look = looks(curves)

    def layers(y: Spec) -> list[Spec]:
        shared: Spec = {"x": x, "y": y, "color": look["color"], "opacity": dimmed(), "tooltip": hover}
        line = mark(
            "line",
            {"strokeDash": look["strokeDash"], "order": {"field": "v"}},
            interpolate="step-after",
            strokeWidth=2,
        )
        point = mark("point", {"shape": look["shape"]}, filled=True, size=70)
        return [
            group(name, shared, [{**line, "params": [picked()]}], curves),
            group(f"{name}_shares", shared, [point], curves),
        ]

    return layers


def _at(point: PointRow) -> str:
    cell = point.figures.cell
    if cell.rate_rps is not None:
        return f"at {rate(cell.rate_rps)} requests/s"
    if cell.kind == "replay":
        return "of the recording"
    who = "agent" if cell.kind == "swarm" else "user"
    variant = f", {cell.variant}" if cell.variant else ""
    return f"with {cell.concurrency} {who}{'' if cell.concurrency == 1 else 's'}{variant}"


def _words(load: Load, found: Sequence[Distribution], of: str) -> str:
    """`X: half within 0.51 s, 95 % within 1.20 s (n = 200). …`"""
    missing = [c.label for c in load.curves if c.label not in [d.curve.label for d in found]]
    return joined(
        *(_of_one(d, of) for d in found[:3]),
        *(_failed(d) for d in found if d.reached < len(d.values_s)),
        f"Not measured there, or too few requests: {listed(missing)}." if missing else "",
        load.words,
    )


def _of_one(d: Distribution, of: str) -> str:
    half, most = d.within_s(0.5), d.within_s(0.95)
    words = f"half of {of}s within {seconds(half * 1000)} s" if half is not None else f"less than half have a {of}"
    words += f", 95% within {seconds(most * 1000)} s" if most is not None else ""
    return f"{d.curve.label}: {words} (n = {len(d.values_s)})."


def _failed(d: Distribution) -> str:
    lost = len(d.values_s) - d.reached
    return f"{d.curve.label}: {lost} of {len(d.values_s)} failed and count as never, so its line ends below 100%."
