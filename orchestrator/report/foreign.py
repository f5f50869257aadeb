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
MIDDLES = ("value", "mean", "p50")
ENDS = ("low", "high")
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


def latency_words(
    figures: CellFigures, name: str, share: str, write: Callable[[float | None], str], unit: str = "s"
) -> str:
    """The same as it stands in a table: `12.9†`, `3.0-3.5†`, `not measured`; of our own point unmarked.

    Args:
        write: Of ms. unit: What it writes.
    """
    stated = find(figures.cell, name)
    own: float | None = getattr(getattr(figures, name), share)
    if stated is not None and own is None:
        told = stated if share == "p50" else {k: v for k, v in stated.items() if k not in (*MIDDLES, *ENDS)}
        return words({**told, "p50": stated[share]} if share in stated else told, write, unit)
    return marked(write(latency_ms(figures, name, share)), figures.cell)


def find(cell: CellRecord, *names: str) -> Figure | None:
    """The first of these that is stated as measured: what was worked out or expected stands in no measured column."""
    found = (cell.stated[n] for n in names if n in cell.stated)
    return next((f for f in found if f.get("basis", MEASURED) == MEASURED), None)


def words(stated: Figure | None, write: Callable[[float | None], str], unit: str = "") -> str:
    """`28.0†`, `~22†`, `25-28†`, `up to 7†`, `not measured`; a dash for what is not stated.

    Args:
        write: For a number that a tool gave; one that was printed stands with the digits that it was printed with.
        unit: Of the column, as it is printed.
    """
    if stated is None:
        return DASH
    if stated.get("not_measured"):
        return NOT_MEASURED
    about = "~" if stated.get("about") else ""
    if (key := _first_key(stated, MIDDLES)) is not None:
        return f"{about}{_written(stated, key, write, unit)}{MARK}"
    low, high = (_written(stated, key, write, unit) if _first_key(stated, (key,)) else "" for key in ("low", "high"))
    if low and high:
        return f"{about}{low}-{high}{MARK}"
    one = f"from {low}" if low else f"up to {high}" if high else ""
    return f"{one}{MARK}" if one else DASH


def stated_words(cell: CellRecord, names: Sequence[str], write: Callable[[float | None], str], unit: str = "") -> str:
    return words(find(cell, *names), write, unit)


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
        is_mean = name is not None and name.endswith("_ms") and {"mean", "p50"} & set(cell.stated[name]) == {"mean"}
        parts += [f"{word} {tag}{', a mean' if is_mean else ''}"] if tag else []
    return (f"{MARK} by the tool's own definitions: {'; '.join(parts)}",) if parts else ()


def _at(stated: Figure, share: str, *, has_own: bool) -> float | None:
    """A percentile; a single number or a mean stands for the median where there is nothing else."""
    value = stated.get(share)
    if value is None and not has_own and share == "p50":
        return _number(stated)
    return value if isinstance(value, int | float) else None


def _number(stated: Figure | None) -> float | None:
    key = _first_key(stated or {}, MIDDLES)
    value = stated[key] if stated is not None and key is not None else None
    return value if isinstance(value, int | float) else None


def _first_key(stated: Figure, keys: Sequence[str]) -> str | None:
    """The first that has a number."""
    numbers = (k for k in keys if isinstance(stated.get(k), int | float) and not isinstance(stated[k], bool))
    return next(numbers, None)


def _written(stated: Figure, key: str, write: Callable[[float | None], str], unit: str) -> str:
    """A transcript's number as it was printed where the column has the unit that it was printed in."""
    value, printed = stated[key], stated.get("printed")
    if isinstance(printed, Mapping) and key in printed and printed.get("unit") == unit:
        return str(printed[key])
    is_as_printed = "place" in stated and not isinstance(printed, Mapping) and stated.get("unit") == unit
    return str(value) if is_as_printed else write(value if isinstance(value, int | float) else None)
