"""A finished cell in one line, by its kind: what the terminal says while the sweep goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from orchestrator.figures.cell import CellFigures, cell_figures
from orchestrator.figures.stats import Percentiles
from orchestrator.records.store import StoredCell
from orchestrator.report.kinds.arrivals import asked_rps, is_conversations
from orchestrator.report.notes import falls_behind, is_partial, slo_words
from orchestrator.report.text import DASH, duration, listed, number, plus_minus, rate, seconds, share, times

Words = Iterator[str]


def cell_words(stored: StoredCell) -> str:
    """With what makes it invalid or different."""
    cell, figures = stored.cell, cell_figures(stored.cell, stored.requests)
    parts = [
        *_OF_KIND.get(cell.kind, _grid)(figures),
        *([slo_words(figures.goodput)] if figures.goodput is not None else []),
        f"{figures.good}/{figures.requests} good",
        *(f"{count} failed: {name}" for name, count in figures.failures.items()),
        *(f"invalid: {g.get('name')}: {g.get('message')}" for g in cell.guards),
    ]
    if cell.is_queueing:
        parts.append(f"queueing for {cell.slots} slots")
    if falls_behind(figures):
        parts.append("falls behind")
    if figures.drift is not None and figures.drift.is_drift:
        parts.append(f"drift {times(figures.drift.ratio.value)}")
    if is_partial(cell):
        parts.append(f"{cell.repeats_done} of {cell.repeats} repeats ({cell.stop_reason})")
    return ", ".join(parts)


def _rate(figures: CellFigures) -> str:
    return f"{plus_minus(figures.output_tok_per_s, 1)} tok/s" if figures.output_tok_per_s else "no rate"


def _first(found: Percentiles, what: str = "first token") -> str:
    """The median; of many the p95 too."""
    if found.p50 is None:
        return f"no {what}"
    tail = f" (p95 {seconds(found.p95)})" if found.p95 is not None else ""
    return f"{what} {seconds(found.p50)} s{tail}"


def _grid(figures: CellFigures) -> Words:
    yield _rate(figures)
    yield _first(figures.ttft_ms)


def _ingest(figures: CellFigures) -> Words:
    yield f"{plus_minus(figures.prompt_tok_per_s)} prompt tok/s" if figures.prompt_tok_per_s else "no prompt rate"
    found = figures.ingest
    if found is not None and found.documents_per_h is not None:
        yield f"{plus_minus(found.documents_per_h)} documents/h"
    if found is not None and found.prefill_share is not None:
        yield f"{share(found.prefill_share)} of the time in prefill"


def _swarm(figures: CellFigures) -> Words:
    yield _rate(figures)
    found = figures.swarm
    if found is None:
        return
    yield f"first token {seconds(figures.ttft_ms.p50)} s, slowest {seconds(found.ttft_slowest_ms)} s"
    if found.reread_tok is not None and found.reread_total_tok is not None:
        total = number(found.reread_total_tok.mean, 0)
        yield f"read again {number(found.reread_tok.p50, 0)} tokens an agent, {total} in all"
    if found.cached_share is not None:
        yield f"cached {share(found.cached_share, 1)} of {share(found.expected_cached_share, 1)} expected"


def _open(figures: CellFigures) -> Words:
    found = figures.open
    asked = asked_rps(figures)
    of = f" of {asked:g}" if asked is not None and not is_conversations(figures) else ""
    yield f"{rate(found.sent_rps)}{of} req/s" if found is not None and found.sent_rps is not None else "no rate"
    yield _first(figures.ttft_scheduled_ms, "first token from schedule")
    waits = figures.queue_wait_ms
    if waits.max:
        shown = "p95" if waits.p95 is not None else "most"
        yield f"queue {shown} {seconds(waits.p95 if waits.p95 is not None else waits.max)} s"
    if figures.concurrency is not None:
        yield f"at most {figures.concurrency.peak} at once"


def _overload(figures: CellFigures) -> Words:
    found = figures.overload
    if found is None:
        yield "no overload"
        return
    yield str(found.verdict.value)
    if found.tail_growth is not None:
        yield f"tail {times(found.tail_growth)}"
    if found.has_recovered is not None:
        yield f"recovered after {duration(found.recovery_s)}" if found.has_recovered else "never recovered"
    for count, what in ((found.refused_share, "refused"), (found.broken_share, "broken")):
        if count:
            yield f"{share(count, 1)} {what}"


def _sessions(figures: CellFigures) -> Words:
    yield _rate(figures)
    found = figures.sessions
    if found is None or not found.turns:
        return
    yield f"first token by turn {listed([seconds(t.ttft_ms.p50) for t in found.turns])} s"
    shares = [share(t.cached_share) for t in found.turns]
    if any(s != DASH for s in shares):
        yield f"cached by turn {listed(shares)}"
    yield f"{found.whole}/{found.sessions} sessions whole"


def _mixed(figures: CellFigures) -> Words:
    if not figures.lanes:
        yield from _grid(figures)
    for name, lane in figures.lanes.items():
        yield f"{name}: {plus_minus(lane.output_tok_per_s, 1)} tok/s, first token {seconds(lane.ttft_ms.p50)} s"


_OF_KIND: Mapping[str, Callable[[CellFigures], Words]] = {
    "ingest": _ingest,
    "swarm": _swarm,
    "open": _open,
    "replay": _open,
    "overload": _overload,
    "sessions": _sessions,
    "mixed": _mixed,
}
