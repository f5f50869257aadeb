"""Tables that several verbs print."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.cli.printer import Printer
from orchestrator.report.markdown import point_words
from orchestrator.report.tables import PointRow


def show_points(printer: Printer, points: Sequence[PointRow]) -> None:
    """A sweep's table; nothing for no points."""
    if not points:
        return
    head = (
        *("load", "users", "tok/s", "sd", "per user", "eff.", "TTFT p50 s", "p95", "TPOT p50 ms", "E2E p50 s"),
        *(f"{points[0].batch_answers} answers (derived)", "good", "notes"),
    )
    printer.table(head, [point_words(p) for p in points], right=range(1, 11))
