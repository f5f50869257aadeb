"""What another's report states, figure by figure as it prints it, with its place in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.report import foreign
from orchestrator.report.tables import RunRow
from orchestrator.report.text import DASH, rate
from orchestrator.values import Json

HEAD = ("Load", "Figure", "As stated", "", "Definition", "Where", "Remark")
MIDDLES = ("value", "mean", "p50")
CALLED = {
    "output_tok_per_s": "all together",
    "per_user_tok_per_s": "per user",
    "ttft_ms": "first token",
    "cached_share": "cached",
}
TAILS = ("p90", "p95", "p99")


def popover_lines(stated: Mapping[str, Json]) -> list[list[Json]]:
    """Figure, value, nothing, nothing, definition, how it came about: of one cell."""
    return [[_called(name), words, "", None, definition, kind] for name, words, kind, definition, *_ in _lines(stated)]


def places(stated: Mapping[str, Json]) -> list[str]:
    """Where in the report a cell's figures stand."""
    return list(dict.fromkeys(place for *_, place, _ in _lines(stated) if place))


def stated_lines(row: RunRow) -> list[list[str]]:
    """Lines of `HEAD`: of each cell, then of the configuration, its hosts, and the report as a whole."""
    parts: list[tuple[str, Json]] = [(f"{(c := p.figures.cell).workload}/{c.id}", c.stated) for p in row.points]
    parts.append(("configuration", row.run.source.get("stated")))
    hosts = {str(h.get("name")): h.get("stated") for h in row.run.hosts}
    parts += list(hosts.items())
    report = row.run.source.get("report")
    parts.append(("the whole report", report.get("stated") if isinstance(report, Mapping) else None))
    return [[load, *line] for load, stated in parts if isinstance(stated, Mapping) for line in _lines(stated)]


def report_words(row: RunRow) -> list[tuple[str, str]]:
    """What the report is, and what it told of the configuration: name and text."""
    source = row.run.source
    report = source.get("report")
    found: dict[str, Json] = {
        "tool": foreign.tool_words(row.run),
        "file": source.get("file"),
        "form": source.get("form"),
    }
    if isinstance(report, Mapping):
        found |= {k: v for k, v in report.items() if k not in ("stated", "title", "name", "date")}
    found |= {k: source.get(k) for k in ("measured", "precision", "remark", "note", "place", "told")}
    gate = source.get("gate")
    if isinstance(gate, Mapping):
        found["own check"] = f"{gate.get('name') or 'check'}: {gate.get('word')} ({gate.get('place')})"
    return [(k, plain_words(v)) for k, v in found.items() if v]


def plain_words(value: Json) -> str:
    """Nested JSON on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {plain_words(v)}" for k, v in value.items())
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return "; ".join(plain_words(v).removesuffix(".") for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return DASH if value is None else f"{value:,.6g}" if isinstance(value, float) else str(value)


def figure_words(figure: Mapping[str, Json]) -> str:
    """`1.37 ± 0.52 s`, `25-28 tok/s`, `~22 tok/s`, `3 of 8`, `not measured`; as printed where that is told."""
    if figure.get("not_measured"):
        return foreign.NOT_MEASURED
    printed = figure.get("printed")
    told: Mapping[str, Any] = {**figure, **(printed if isinstance(printed, Mapping) else {})}
    middle = next((_written(told[k]) for k in MIDDLES if k in told), "")
    if "sd" in told:
        middle += f" ± {_written(told['sd'])}"
    if "of" in told:
        middle += f" of {_written(told['of'])}"
    if not middle and "low" in told and "high" in told:
        middle = f"{_written(told['low'])}-{_written(told['high'])}"
    elif "low" in told or "high" in told:
        ends = " ".join(f"{word} {_written(told[k])}" for k, word in (("low", "from"), ("high", "up to")) if k in told)
        middle = f"{middle} ({ends})" if middle else ends
    tails = [f"{k} {_written(told[k])}" for k in TAILS if k in told]
    text = ", ".join(w for w in (middle, *tails) if w) or DASH
    unit = str(told.get("unit") or "")
    return f"{'~' if told.get('about') else ''}{text}{'' if unit == '%' else ' '}{unit}".strip()


def _lines(stated: Mapping[str, Json]) -> Iterator[list[str]]:
    for name, figure in stated.items():
        if not isinstance(figure, Mapping):
            continue
        others = figure.get("also")
        for place, one in enumerate([figure, *(others if isinstance(others, Sequence) else ())]):
            if isinstance(one, Mapping):
                yield _line(name if place == 0 else f"{name} (also)", one)


def _line(name: str, figure: Mapping[str, Json]) -> list[str]:
    remarks = [f"against {figure['against']}"] if figure.get("against") else []
    remarks += ["the same, rounded"] if figure.get("rounded") else []
    remarks += [str(figure["note"])] if figure.get("note") else []
    kind = "" if figure.get("not_measured") else str(figure.get("basis") or "stated")
    return [
        name,
        figure_words(figure),
        kind,
        str(figure.get("definition") or ""),
        str(figure.get("place") or ""),
        "; ".join(remarks),
    ]


def _called(name: str) -> str:
    """By the word that our own figure has; others by their names."""
    plain, _, more = name.partition(" ")
    return f"{CALLED.get(plain, plain)} {more}".strip()


def _written(value: Json) -> str:
    return rate(value) if isinstance(value, float) else str(value)
