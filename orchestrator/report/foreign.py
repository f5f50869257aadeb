"""What a table shows of another tool's record: what it states, else our formulas over its stamps; marked either way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from orchestrator.figures.cell import CellFigures
from orchestrator.records.record import CellRecord, RunRecord
from orchestrator.report.text import DASH
from orchestrator.values import Json

MARK = "†"
NOT_MEASURED = "not measured"
MEASURED = "measured"
Figure = Mapping[str, Json]
RATES = ("output_tok_per_s", "total_decode_tok_per_s", "decode_tok_per_s")
"""What may stand under tok/s, the first that is told: several tools have a rate of decoding only."""

SHOWN = {"tok/s": RATES, "TTFT": ("ttft_ms",), "TPOT": ("tpot_ms",), "E2E": ("e2e_ms",)}


def tool_words(run: RunRecord) -> str:
    """`vllm bench`, `llama-benchy 0.4.0`; empty for a record of ours."""
    words = (str(run.source.get(k) or "") for k in ("title", "version")) if run.source else ()
    return " ".join(w for w in words if w)


def output_tok_per_s(figures: CellFigures) -> float | None:
    """One number; a range has none."""
    stated = _number(find(figures.cell, *RATES))
    own = figures.output_tok_per_s
    return stated if stated is not None else own.mean if own is not None else None


def latency_ms(figures: CellFigures, name: str, share: str) -> float | None:
    """A percentile of a latency; a tool that states means only shows its mean as p50, and the note says so."""
    own: float | None = getattr(getattr(figures, name), share)
    value = _at(find(figures.cell, name) or {}, share, has_own=own is not None)
    return own if value is None else value


def latency_words(figures: CellFigures, name: str, share: str, write: Callable[[float | None], str]) -> str:
    """The same as it stands in a table: `12.9†`, `3.0-3.5†`, `not measured`; of our own point unmarked."""
    stated = find(figures.cell, name) if share == "p50" else None
    if stated is not None and latency_ms(figures, name, share) is None:
        return words(stated, write)
    return marked(write(latency_ms(figures, name, share)), figures.cell)


def find(cell: CellRecord, *names: str) -> Figure | None:
    """The first of these that is stated as measured: what was worked out or expected stands in no measured column."""
    found = (cell.stated[n] for n in names if n in cell.stated)
    return next((f for f in found if f.get("basis", MEASURED) == MEASURED), None)


def words(stated: Figure | None, write: Callable[[float | None], str]) -> str:
    """`28.0†`, `~22†`, `25-28†`, `not measured`; a dash for what is not stated."""
    if stated is None:
        return DASH
    if stated.get("not_measured"):
        return NOT_MEASURED
    value, low, high = _number(stated), stated.get("low"), stated.get("high")
    if value is not None:
        return f"{'~' if stated.get('about') else ''}{write(value)}{MARK}"
    ends = [write(end) for end in (low, high) if isinstance(end, int | float)]
    return f"{'-'.join(ends)}{MARK}" if ends else DASH


def stated_words(cell: CellRecord, names: Sequence[str], write: Callable[[float | None], str]) -> str:
    return words(find(cell, *names), write)


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


def _at(stated: Figure, share: str, *, has_own: bool) -> float | None:
    """A percentile; a single number or a mean stands for the median where there is nothing else."""
    value = stated.get(share)
    if value is None and not has_own and share == "p50":
        return _number(stated)
    return value if isinstance(value, int | float) else None


def _number(stated: Figure | None) -> float | None:
    values = [stated.get(key) for key in ("value", "mean", "p50")] if stated else []
    return next((v for v in values if isinstance(v, int | float) and not isinstance(v, bool)), None)
