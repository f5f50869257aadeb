"""What a table shows of another tool's record: what it states, else our formulas over its stamps; marked either way."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.figures.cell import CellFigures
from orchestrator.records.record import CellRecord, RunRecord
from orchestrator.report.text import DASH
from orchestrator.values import Json

MARK = "†"
RATES = ("output_tok_per_s", "total_decode_tok_per_s", "decode_tok_per_s")
"""What may stand under tok/s, the first that is told: several tools have a rate of decoding only."""

SHOWN = {"tok/s": RATES, "TTFT": ("ttft_ms",), "TPOT": ("tpot_ms",), "E2E": ("e2e_ms",)}


def tool_words(run: RunRecord) -> str:
    """`vllm bench`, `llama-benchy 0.4.0`; empty for a record of ours."""
    words = (str(run.source.get(k) or "") for k in ("title", "version")) if run.source else ()
    return " ".join(w for w in words if w)


def output_tok_per_s(figures: CellFigures) -> float | None:
    stated = _number(_first(figures.cell, RATES))
    own = figures.output_tok_per_s
    return stated if stated is not None else own.mean if own is not None else None


def latency_ms(figures: CellFigures, name: str, share: str) -> float | None:
    """A percentile of a latency; a tool that states means only shows its mean as p50, and the note says so."""
    own: float | None = getattr(getattr(figures, name), share)
    stated = figures.cell.stated.get(name, {})
    value = stated.get(share)
    if value is None and own is None and share == "p50":
        value = stated.get("mean")
    return value if isinstance(value, int | float) else own


def good_words(figures: CellFigures) -> str:
    """`64/64`, as counted or as stated."""
    if figures.requests or not figures.cell.source:
        return f"{figures.good}/{figures.requests}"
    good = _number(figures.cell.stated.get("requests_good"))
    return DASH if good is None else f"{good:.0f}/{figures.cell.requests_per_repeat}"


def marked(text: str, cell: CellRecord) -> str:
    return f"{text}{MARK}" if cell.source and text != DASH else text


def notes(cell: CellRecord) -> tuple[str, ...]:
    """By which definitions a foreign point's figures are; nothing for a point of ours."""
    if not cell.source:
        return ()
    parts = []
    for word, names in SHOWN.items():
        name = next((n for n in names if n in cell.stated), None)
        tag = cell.stated[name].get("definition") if name else cell.definitions.get(names[0].removesuffix("_ms"))
        is_mean = name is not None and name.endswith("_ms") and "p50" not in cell.stated[name]
        parts += [f"{word} {tag}{', a mean' if is_mean else ''}"] if tag else []
    return (f"{MARK} by the tool's own definitions: {'; '.join(parts)}",) if parts else ()


def _first(cell: CellRecord, names: tuple[str, ...]) -> Mapping[str, Json] | None:
    return next((cell.stated[n] for n in names if n in cell.stated), None)


def _number(stated: Mapping[str, Json] | None) -> float | None:
    value = stated.get("value", stated.get("mean")) if stated else None
    return value if isinstance(value, int | float) else None
