"""What a cell's record should come to, worked out from the mock's truth alone, and what a case expects of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from orchestrator.mock.counters import Truth
from orchestrator.records.record import RequestRecord
from orchestrator.wire.paths import dig
from tests.contract.truth_client import MS, CellRun, Pair


def main_pairs(run: CellRun) -> list[Pair]:
    """Those that a cell's figures are of: of an overload its middle alone."""
    pairs = [p for p in run.pairs_of() if p.record.failure is None]
    return [p for p in pairs if p.record.lane == "main"] if run.cell.kind == "overload" else pairs


def true_ttft_ms(truth: Truth) -> float:
    return (truth.first_ns - truth.received_ns) / MS


def true_tpot_ms(truth: Truth) -> float:
    return (truth.last_ns - truth.first_ns) / MS / (truth.output_tok - truth.first_tok)


def our_ttft_ms(pair: Pair) -> float:
    r = pair.record
    assert r.sent_ns is not None
    assert r.first_token_ns is not None
    return (r.first_token_ns - r.sent_ns) / MS


def scheduled_ttft_ms(pair: Pair) -> float:
    assert pair.record.first_token_ns is not None
    return (pair.record.first_token_ns - pair.record.scheduled_ns) / MS


def our_tpot_ms(pair: Pair) -> float | None:
    """By our stamps and the server's true count; None where all tokens came with one read."""
    r = pair.record
    assert r.first_token_ns is not None
    assert r.last_token_ns is not None
    at_first = sum(n or 0 for t, n in r.events if t == r.first_token_ns)
    rest = pair.truth.output_tok - at_first
    return (r.last_token_ns - r.first_token_ns) / MS / rest if rest else None


def rates(run: CellRun, count: Callable[[Truth], int]) -> list[float]:
    """True tokens of each repeat over its time, per second: first byte sent to last response ended."""
    parts: dict[int, list[Pair]] = {}
    for pair in main_pairs(run):
        parts.setdefault(pair.record.repeat, []).append(pair)
    return [sum(count(p.truth) for p in part) / _span_s([p.record for p in part]) for _, part in sorted(parts.items())]


def _span_s(records: Sequence[RequestRecord]) -> float:
    return (max(r.end_ns or 0 for r in records) - min(r.sent_ns or r.scheduled_ns for r in records)) / 1e9


def as_expected(run: CellRun, want: Mapping[str, Any]) -> dict[str, Any]:
    """What was found under each name that the case has an opinion about, in the case's own words where it fits.

    Names: `guards`, `failures`, `most_running`, `is_queueing`, `figures` (dotted names of `CellFigures`, a fraction
    where it is a share), and any other: a phase or a lane, with what its requests are (`_part`).
    """
    return {name: FOUND[name](run, value) if name in FOUND else _part(run, name, value) for name, value in want.items()}


def _part(run: CellRun, name: str, want: Mapping[str, Any]) -> dict[str, Any]:
    """Of the requests of a phase or lane: `n`, and fields: one value for all, or how many have which."""
    records = [r for r in run.outcome.requests if (r.lane or r.phase) == name]
    found: dict[str, Any] = {"n": len(records)}
    for key, value in want.items():
        if key == "n":
            continue
        values = Counter(VALUES.get(key, lambda r, key=key: getattr(r, key))(r) for r in records)
        if isinstance(value, Mapping):
            found[key] = dict(values)
        else:
            found[key] = next(iter(values)) if len(values) == 1 else dict(values)
            if isinstance(found[key], tuple):
                found[key] = list(found[key])
    return {key: found[key] for key in want}


VALUES: Mapping[str, Callable[[RequestRecord], Any]] = {
    "tokens": lambda r: tuple(n for _, n in r.events),
    "events": lambda r: len(r.events),
    "has_keepalives": lambda r: r.keepalives > 0,
    "is_event_first": lambda r: r.first_event_ns is not None and r.first_event_ns < (r.first_token_ns or 0),
    "has_first_token": lambda r: r.first_token_ns is not None,
    "is_answer_later": lambda r: r.first_answer_ns is not None and r.first_answer_ns > (r.first_token_ns or 0),
    "has_answer": lambda r: r.first_answer_ns is not None,
    "has_metrics": lambda r: "time_to_first_token_ms" in r.server,
    "has_timings": lambda r: "prompt_ms" in r.server,
}


def _figures(run: CellRun, want: Mapping[str, Any]) -> dict[str, Any]:
    told = run.figures.as_json()
    found = {}
    for name, value in want.items():
        is_there = dig(told, name)
        if isinstance(value, str) and "/" in value:
            found[name] = value if is_there == float(Fraction(value)) else is_there
        elif isinstance(value, Mapping) and isinstance(is_there, Mapping):
            found[name] = {k: is_there.get(str(k)) for k in value} if len(is_there) == len(value) else is_there
        else:
            found[name] = is_there
    return found


FOUND: Mapping[str, Callable[[CellRun, Any], Any]] = {
    "guards": lambda run, _: run.guards,
    "failures": lambda run, _: dict(run.figures.failures),
    "most_running": lambda run, _: run.counters.most_running,
    "is_queueing": lambda run, _: run.outcome.record.is_queueing,
    "figures": _figures,
}
