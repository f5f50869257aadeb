"""How near a single stream comes to the memory's limit, and what batching adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.report.charts.curves import labels_of
from orchestrator.report.charts.stack import SCHEMA, Spec, short
from orchestrator.report.notebook.book import Book, Chart, Section, cell_anchor, run_anchor
from orchestrator.report.notebook.identity import configurations_of, is_foreign
from orchestrator.report.roofline import GIGA, Gain, Roof, gains, roofs
from orchestrator.report.tables import RunRow
from orchestrator.report.text import DASH, number, rate, share, times
from orchestrator.report.use_rules import context_tok
from orchestrator.report.use_words import cell_words, source_words_of

MOST_BARS = 16


def section(book: Book) -> Section | None:
    found, grown = roofs(book.rows), gains(book.rows)
    if not found and not grown:
        return None
    chart = _chart(found, labels_of(configurations_of(book.rows)))
    return Section(
        id="roofline",
        title="Roofline",
        template="roofline.html.j2",
        data={
            "roofs": [_roof(r) for r in found],
            "gains": [_gain(g) for g in grown],
            "sources": _sources(found),
        },
        charts=() if chart is None else (chart,),
    )


def _roof(r: Roof) -> dict[str, Any]:
    steps = None if r.steps is None else r.steps.told
    reading = r.reading
    return {
        "name": r.configuration.name,
        "anchor": run_anchor(r.row),
        "foreign": source_words_of(r.row),
        "over": f"over {r.hosts} hosts" if r.hosts > 1 else "",
        "ungated": _is_ungated(r.row),
        "cell": cell_words(r.point),
        "detail": cell_anchor(r.row, r.point.figures.cell),
        "alone": f"{rate(r.alone.value)}",
        "method": r.alone.method,
        "weights": DASH if reading is None else number(reading.weight_bytes / GIGA, 2),
        "kv": "not known" if reading is None or reading.kv_bytes is None else number(reading.kv_bytes / GIGA, 2),
        "limit": rate(r.limit_tok_per_s),
        "share": share(r.share),
        "unknown": ", ".join(r.unknown),
        "steps": "none" if r.steps is None else "not told" if steps is None else number(steps.value, 2),
        "steps_method": "" if steps is None else steps.method,
        "step_share": share(r.step_share),
    }


def _gain(g: Gain) -> dict[str, Any]:
    return {
        "name": g.configuration.name,
        "anchor": run_anchor(g.row),
        "foreign": source_words_of(g.row),
        "over": f"over {len(g.row.run.hosts)} hosts" if len(g.row.run.hosts) > 1 else "",
        "ungated": _is_ungated(g.row),
        "workload": g.point.figures.cell.workload,
        "detail": cell_anchor(g.row, g.point.figures.cell),
        "single": rate(g.single.value),
        "peak": rate(g.peak.value),
        "at": g.point.figures.cell.concurrency,
        "method": g.peak.method,
        "gain": times(g.value),
    }


def _is_ungated(row: RunRow) -> bool:
    return not is_foreign(row) and (row.run.is_ungated or not row.run.gates)


def _sources(found: Sequence[Roof]) -> list[tuple[str, str]]:
    """What was assumed, once each, with where it comes from."""
    lines: dict[str, str] = {}
    for r in found:
        if r.bandwidth is not None:
            lines[f"{r.bandwidth.gb_per_s:g} GB/s, {r.bandwidth.method}"] = r.bandwidth.source
        if r.model is not None:
            lines[f"{r.model.name}: {r.model.active_params / GIGA:g} B active"] = r.model.source
        if r.precision is not None:
            lines[f"{r.precision.name}: {r.precision.bits:g} bits a weight"] = r.precision.source
    return sorted(lines.items())


def _chart(found: Sequence[Roof], labels: Mapping[str, str]) -> Chart | None:
    known = [r for r in found if r.limit_tok_per_s is not None][:MOST_BARS]
    if not known:
        return None
    names = [labels[r.row.run.id] for r in known]
    names = [
        f"{n}, {context_tok(r.point.figures.cell)} in" if names.count(n) > 1 else n
        for n, r in zip(names, known, strict=True)
    ]
    rows = [
        {
            "c": name,
            "v": short(r.alone.value),
            "l": short(r.limit_tok_per_s or 0.0),
            "s": share(r.share),
            "m": r.alone.method,
        }
        for name, r in zip(names, known, strict=True)
    ]
    y = {"field": "c", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 260}}
    tooltip = [
        {"field": field, "title": title}
        for field, title in (
            ("c", "Single stream"),
            ("v", "tok/s"),
            ("m", "How"),
            ("l", "Limit, projected"),
            ("s", "Share"),
        )
    ]
    best = max(known, key=lambda r: r.step_share or 0.0)
    words = f"Bars are single streams, strokes the limit of the memory (projected). {known[0].configuration.name} is "
    words += f"fastest with {rate(known[0].alone.value)} tok/s."
    if best.step_share is not None:
        words += f" Nearest to its limit by steps: {best.configuration.name}, {share(best.step_share)}."
    spec: Spec = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 24 * len(rows),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
        "encoding": {"y": y, "tooltip": tooltip},
        "layer": [
            {
                "mark": {"type": "bar", "color": "#0072b2", "height": 12},
                "encoding": {
                    "x": {
                        "field": "v",
                        "type": "quantitative",
                        "title": "tok/s of one stream",
                        "axis": {"tickCount": 8},
                    }
                },
            },
            {
                "mark": {"type": "tick", "color": "#d55e00", "thickness": 3, "size": 18},
                "encoding": {"x": {"field": "l", "type": "quantitative"}},
            },
        ],
    }
    return Chart(id="roofline", title="Single stream against the memory's limit", text=words, spec=spec)
