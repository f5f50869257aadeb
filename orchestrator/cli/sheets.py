"""One cell's sheet in the terminal."""

from __future__ import annotations

from pathlib import Path

from orchestrator.cli.printer import Printer
from orchestrator.figures.server import ServerBeside
from orchestrator.report.kinds.families import find_family, load_title
from orchestrator.report.notes import clock_words
from orchestrator.report.sheet import CellSheet
from orchestrator.report.text import DASH, number, rate

BOUND = {True: "yes", False: "no", None: "cannot be told: the gap may be the server's own queue"}


def show_sheet(printer: Printer, sheet: CellSheet, directory: Path) -> None:
    """Title, what speaks against it, figures, repeats, server beside client, raw record."""
    point, cell = sheet.point, sheet.point.figures.cell
    printer.answer(f"{cell.workload}/{cell.id}: {load_title(cell, find_family(cell.kind).axes)}")
    for words in (*(f"note: {n}" for n in point.notes), *point.remarks, clock_words(cell)):
        if words:
            printer.answer(words)
    printer.answer("")
    rows = [
        [f.name, f.words, DASH if f.n is None else str(f.n), f.interval_words, f.definition, f.method]
        for f in sheet.figures
    ]
    printer.table(("figure", "value", "n", "95 % interval", "definition", "method"), rows, right=(1, 2, 3))
    _show_laps(printer, sheet)
    if point.figures.server is not None:
        _show_server(printer, sheet, point.figures.server)
    printer.answer("")
    for name in sheet.files:
        printer.answer(f"raw record: {directory / name}")


def _show_laps(printer: Printer, sheet: CellSheet) -> None:
    if not sheet.laps:
        return
    printer.answer("")
    rows = [
        [
            str(lap.repeat + 1),
            DASH if lap.order is None else str(lap.order + 1),
            lap.started_at or DASH,
            number(lap.duration_s),
            f"{lap.good}/{lap.requests}",
            rate(lap.output_tok_per_s),
            number(lap.lag_ms_p99, 2),
            number(lap.stamp_lag_ms_p99, 2),
        ]
        for lap in sheet.laps
    ]
    head = (
        "repeat",
        "place in\nsweep",
        "started",
        "took s",
        "good",
        "tok/s",
        "client lag\np99 ms",
        "stamp lag\np99 ms",
    )
    printer.table(head, rows, right=(0, 1, 3, 4, 5, 6, 7))


def _show_server(printer: Printer, sheet: CellSheet, server: ServerBeside) -> None:
    client = sheet.point.figures.ttft_ms
    queue = server.queue_ms
    printer.answer("")
    rows = [
        ["client TTFT", str(client.n), number(client.p50), number(client.p95)],
        ["server TTFT", str(server.n), number(server.ttft_ms.p50), number(server.ttft_ms.p95)],
        [
            "server queue",
            DASH if queue is None else str(queue.n),
            *_two(None if queue is None else (queue.p50, queue.p95)),
        ],
        ["gap", str(server.gap_ms.n), number(server.gap_ms.p50), number(server.gap_ms.p95)],
    ]
    printer.table(("server beside client", "n", "p50 ms", "p95 ms"), rows, right=(1, 2, 3))
    printer.answer(f"client or network bound: {BOUND[server.is_client_or_network_bound]}")


def _two(values: tuple[float | None, float | None] | None) -> tuple[str, str]:
    return (DASH, DASH) if values is None else (number(values[0]), number(values[1]))
