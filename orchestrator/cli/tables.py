"""Tables that several verbs print."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.cli.printer import Printer
from orchestrator.report import foreign
from orchestrator.report.tables import PointRow
from orchestrator.report.text import duration, number, seconds, share


def show_points(printer: Printer, points: Sequence[PointRow]) -> None:
    """A sweep's table with what is to be said of each point below it; nothing for no points."""
    if not points:
        return
    head = (
        "load",
        "users",
        "tok/s",
        "sd",
        "per user",
        "eff.",
        "TTFT s",
        "p95",
        "TPOT ms",
        "E2E s",
        "batch*",
    )
    printer.table((*head, "good"), [_line(point) for point in points], right=range(1, 12))
    printer.answer(
        "TTFT, TPOT and E2E are medians; *time for so many answers, derived from tok/s unless they really ran"
    )
    for point in points:
        for note in point.notes:
            printer.answer(f"note: {_name(point)} at {point.figures.cell.concurrency}: {note}")


def _name(point: PointRow) -> str:
    cell = point.figures.cell
    return f"{cell.workload} {cell.kind} {cell.prompt_tok}/{cell.output_tok}"


def _line(point: PointRow) -> list[str]:
    f = point.figures
    rate = f.output_tok_per_s
    return [
        _name(point),
        str(f.cell.concurrency),
        foreign.marked(number(foreign.output_tok_per_s(f)), f.cell) + ("" if f.is_valid else " (invalid)"),
        number(rate.sd if rate else None, 2),
        number(f.per_user_tok_per_s),
        share(point.efficiency),
        seconds(foreign.latency_ms(f, "ttft_ms", "p50")),
        seconds(foreign.latency_ms(f, "ttft_ms", "p95")),
        number(foreign.latency_ms(f, "tpot_ms", "p50")),
        seconds(foreign.latency_ms(f, "e2e_ms", "p50")),
        f"{duration(point.batch_s)} for {point.batch_answers}",
        foreign.good_words(f),
    ]
