"""What is to be said of a point beside its figures: what speaks against them, and what explains them.

`marks` are the same in a word or two, for a table's field; every layout shows one or the other of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.figures.cell import CellFigures
from orchestrator.figures.goodput import Goodput
from orchestrator.figures.server import number_of
from orchestrator.records.record import CellRecord
from orchestrator.report import foreign
from orchestrator.report.text import between, number, rate, seconds, share, times

STOPS = {
    "tight": "the interval is tight enough",
    "budget": "the budget ended",
    "interrupted": "interrupted",
    "decided": "the search had its answer",
}


def marks(figures: CellFigures) -> tuple[str, ...]:
    """`prompt_length`, `queueing`, `2/5 repeats: budget`, …: the guards first, by their names."""
    cell = figures.cell
    found = [str(g.get("name", "invalid")) for g in cell.guards]
    if cell.is_queueing:
        found.append("queueing")
    if cell.is_ungated:
        found.append("ungated")
    if is_partial(cell):
        found.append(f"{cell.repeats_done}/{cell.repeats} repeats: {cell.stop_reason}")
    if falls_behind(figures):
        found.append("falls behind")
    if figures.server is not None and figures.server.is_client_or_network_bound:
        found.append("client or network bound")
    if figures.drift is not None and figures.drift.is_drift:
        found.append(f"drift {times(figures.drift.ratio.value)}")
    if cell.client_error.get("is_beyond"):
        found.append("beyond calibration")
    if cell.vantage == "tunnel":
        found.append("tunnel")
    return tuple(found)


def notes(figures: CellFigures) -> tuple[str, ...]:
    """What speaks against the figures, in sentences."""
    cell = figures.cell
    found = [f"invalid: {g.get('name')}: {g.get('message')}" for g in cell.guards]
    if cell.is_queueing:
        found.append(f"queueing: {cell.concurrency} requests for {cell.slots} slots ({cell.slots_source})")
    if cell.vantage == "tunnel":
        found.append("measured through an SSH tunnel: its delay is in every latency")
    if cell.is_ungated:
        found.append("ungated")
    if is_partial(cell):
        why = STOPS.get(cell.stop_reason, cell.stop_reason)
        found.append(f"{cell.repeats_done} of {cell.repeats} repeats: {why}")
    found += foreign.notes(cell)
    found += [f"{count} failed: {name}" for name, count in figures.failures.items()]
    found += _more(figures)
    return tuple(found)


def remarks(figures: CellFigures) -> tuple[str, ...]:
    """What explains the figures: the service level with its verdict, where hits ended, what was accepted."""
    found = []
    if figures.goodput is not None:
        found.append(slo_words(figures.goodput))
    if figures.swarm is not None and figures.swarm.hit_ends:
        found.append(f"cache hits ended at {_ends(figures.swarm.hit_ends)}")
    if figures.speculation is not None and figures.speculation.acceptance_length is not None:
        length, accepted = figures.speculation.acceptance_length, share(figures.speculation.acceptance_rate)
        found.append(f"speculative: {length:.2f} tokens a step, {accepted} of the drafted accepted")
    return tuple(found)


def slo_words(found: Goodput) -> str:
    """`chat: 95 % first token within 1 s: 97.5 % (94.1-99.0), undecided`."""
    name = str(found.slo.get("name") or "")
    head = f"{name}: {found.words}" if name else found.words
    return f"{head}: {attained(found)}, {found.verdict.value}"


def attained(found: Goodput) -> str:
    """`97.5 % (94.1-99.0)`, with what could not be judged."""
    if found.attainment is None:
        return "nothing to judge" if not found.unknown else f"{found.unknown} cannot be judged"
    words = f"{found.attainment * 100:.1f} %"
    if found.interval is not None:
        words += f" ({found.interval.low * 100:.1f}-{found.interval.high * 100:.1f})"
    return words + (f", {found.unknown} cannot be judged" if found.unknown else "")


def error_bar(cell: CellRecord) -> str:
    """`client error 0.3 ms (p95 0.8) at 32 streams, calibrated 2026-11-30`; empty for another tool's point."""
    if cell.source:
        return ""
    told = cell.client_error
    error = told.get("ttft_error_ms")
    if not isinstance(error, Mapping):
        return "client error unknown: not calibrated"
    p95 = number_of(error, "p95")
    streams = told.get("concurrency")
    at = f" at {streams} stream{'' if streams == 1 else 's'}, calibrated {str(told.get('at'))[:10]}"
    tail = "" if p95 is None else f" (p95 {number(p95)})"
    return f"client error {number(number_of(error, 'mean'))} ms{tail}{at}"


def stamp_lag_ms(cell: CellRecord) -> float | None:
    """Our stamp minus the kernel's, p99 of the worst repeat; None without kernel stamps."""
    return number_of(cell.client, "stamp_lag_ms_p99")


def stamp_words(lag_ms: float | None) -> str:
    return "" if lag_ms is None else f"stamps {number(lag_ms, 2)} ms after the kernel's (p99)"


def clock_words(cell: CellRecord) -> str:
    """The error bar and the kernel's audit of it, in one sentence; empty when neither is told."""
    return "; ".join(w for w in (error_bar(cell), stamp_words(stamp_lag_ms(cell))) if w)


def is_partial(cell: CellRecord) -> bool:
    """Fewer repeats than planned; an older record that does not tell how many is not."""
    return cell.repeats_done < cell.repeats and (cell.repeats_done > 0 or cell.stop_reason != "all")


def falls_behind(figures: CellFigures) -> bool:
    """Requests pile up under this open load: its latencies would be longer had it run longer. An overload means to."""
    if figures.open is None or figures.open.outstanding is None or figures.overload is not None:
        return False
    return figures.open.outstanding.is_growing


def _more(figures: CellFigures) -> Iterator[str]:
    adjusted = figures.ttft_scheduled_adjusted_ms if figures.is_open else figures.ttft_adjusted_ms
    if adjusted.p95 is not None and figures.headline_ttft_ms.n < adjusted.n:
        yield f"first token with failures as infinite: p50 {seconds(adjusted.p50)} s, p95 {seconds(adjusted.p95)} s"
    if falls_behind(figures) and figures.open is not None and figures.open.outstanding is not None:
        slope = figures.open.outstanding
        yield (
            f"falls behind: {rate(slope.per_s)} {between(slope.interval)} requests/s pile up, "
            f"{share(slope.share)} of those that come"
        )
    if figures.server is not None and figures.server.is_client_or_network_bound:
        gap = number(figures.server.gap_ms.p50)
        yield f"client or network bound: first tokens come {gap} ms (median) later here than the server says"
    if figures.drift is not None and figures.drift.is_drift:
        found = figures.drift
        what = "time per output token" if found.of == "normalised" else "time per answer"
        change = f"{times(found.ratio.value)} {between(found.ratio.interval, 2)}"
        yield f"drift: {what} in repeat {found.last + 1} is {change} of that in repeat {found.first + 1}"
    if figures.cell.client_error.get("is_beyond"):
        most = figures.cell.client_error.get("concurrency")
        yield f"more streams than were calibrated ({most}): the client's error may be larger than its bar"


def _ends(ends: Mapping[int, int]) -> str:
    """The commonest four: `54272 tokens (30), 0 (2)`."""
    common = sorted(ends.items(), key=lambda end: (-end[1], -end[0]))
    words = ", ".join(f"{tok} tokens ({count})" for tok, count in common[:4])
    rest = sum(count for _, count in common[4:])
    return words + (f", elsewhere ({rest})" if rest else "")
