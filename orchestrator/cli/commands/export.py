"""`gate0 export`: a record as other tools would have written it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import results_option

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.records.record import CellRecord, RequestRecord, RunRecord
    from orchestrator.records.store import StoredCell
    from orchestrator.values import Json

FORMATS = ("vllm", "llama-benchy", "llama-benchy-csv", "llama-benchy-md", "inferencex", "csv")


@click.command()
@click.argument("run")
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="whose form it is to have")
@click.option("-o", "--output", metavar="FILE|DIR", default="-", help="default stdout; DIR/ for a file a cell")
@click.option("--cell", "cell_ids", multiple=True, metavar="ID", help="this cell alone; repeatable")
@click.option("--requests", "is_by_request", is_flag=True, help="csv: one line a request, with its stamps")
@results_option
def export(
    *, run: str, form: str, output: str, cell_ids: tuple[str, ...], is_by_request: bool, results: str | None
) -> int:
    """Write RUN (an id, a unique part of one, a directory, or `latest`) in another tool's form.

    Every figure is computed from the raw stamps by that tool's own definition, so it can be laid beside that tool's.

    \b
    vllm              `vllm bench serve` JSON with the details of each request; one object a cell, newline-separated
                      in a FILE, or a file a cell in a DIR/. InferenceX's scripts read it too
    llama-benchy      its JSON, of the grid cells (closed, batch)
    llama-benchy-csv  its CSV, as Spark Arena takes it
    llama-benchy-md   its table
    inferencex        its aggregate: a list in a FILE, or a file a cell in a DIR/
    csv               one line a cell with all of our figures, or with `--requests` one line a request

    There is no parquet: its library weighs more than gate0, and everything that reads parquet reads csv.
    """
    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import InputError
    from orchestrator.records.store import Store

    printer = Printer()
    if is_by_request and form != "csv":
        raise InputError(f"`--requests` belongs to `--format csv`, not to {form}")
    stored = Store(results_root(results)).find(run)
    for broken in stored.unreadable_cells():
        printer.warning(f"{broken.path}: {broken.reason}")
    cells = _chosen(stored.run, stored.cells(), cell_ids)
    _warn(printer, cells, form)
    if form in ("vllm", "inferencex"):
        _by_cell(printer, stored.run, cells, form, output)
    else:
        _put(printer, output, _whole(stored.run, cells, form, is_by_request=is_by_request))
    return 0


def _chosen(run: RunRecord, cells: Sequence[StoredCell], wanted: Sequence[str]) -> Sequence[StoredCell]:
    from orchestrator.errors import InputError

    if not cells:
        raise InputError(f"{run.id} has no cells: nothing was measured")
    names = {c.cell.id for c in cells} | {f"{c.cell.workload}/{c.cell.id}" for c in cells}
    for name in wanted:
        if name not in names:
            shown = ", ".join(f"{c.cell.workload}/{c.cell.id}" for c in cells[:6])
            raise InputError(f"{run.id} has no cell {name!r}", hint=f"it has {shown}{', …' if len(cells) > 6 else ''}")
    return [c for c in cells if not wanted or {c.cell.id, f"{c.cell.workload}/{c.cell.id}"} & set(wanted)]


def _warn(printer: Printer, cells: Sequence[StoredCell], form: str) -> None:
    """What the other form cannot say."""
    from orchestrator.records.exchange.to_llama_benchy import doubles

    left_out = doubles(cells) if form.startswith("llama-benchy") else ()
    for cell in left_out:
        printer.warning(f"{cell.workload}/{cell.id} left out: the batch cell of the same sizes has its line")
    for cell in (c.cell for c in cells if c.cell.guards and c.cell not in left_out and form != "csv"):
        names = ", ".join(str(guard.get("name")) for guard in cell.guards)
        printer.warning(f"{cell.workload}/{cell.id} broke a guard ({names}), for which this form has no mark")


def _whole(run: RunRecord, cells: Sequence[StoredCell], form: str, *, is_by_request: bool) -> str:
    import json

    from orchestrator.records.exchange.benchy_tables import csv_text, markdown_text
    from orchestrator.records.exchange.to_csv import cells_csv, requests_csv
    from orchestrator.records.exchange.to_llama_benchy import llama_benchy_report

    if form == "csv":
        return requests_csv(run, cells) if is_by_request else cells_csv(run, cells)
    report = llama_benchy_report(run, cells)
    if form == "llama-benchy":
        return json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    return csv_text(report) if form == "llama-benchy-csv" else markdown_text(report)


def _by_cell(printer: Printer, run: RunRecord, cells: Sequence[StoredCell], form: str, output: str) -> None:
    import json

    from orchestrator.errors import InputError
    from orchestrator.records.exchange.to_inferencex import inferencex_aggregate
    from orchestrator.records.exchange.to_vllm import vllm_result

    make: Callable[[RunRecord, CellRecord, Sequence[RequestRecord]], dict[str, Json]]
    make = vllm_result if form == "vllm" else inferencex_aggregate
    found = [(c, make(run, c.cell, c.requests)) for c in cells if c.requests]
    for cell in (c.cell for c in cells if not c.requests):
        printer.warning(f"{cell.workload}/{cell.id} has no requests to compute from: left out")
    if not found:
        hint = "another tool's own file lies in the run's folder under foreign/" if run.source else None
        raise InputError(f"no cell of {run.id} that was asked for has requests to compute from", hint=hint)
    if output != "-" and (output.endswith("/") or Path(output).is_dir()):
        for stored, value in found:
            name = f"{'agg_' if form == 'inferencex' else ''}{stored.cell.workload}-{stored.cell.id}.json"
            _put(printer, str(Path(output) / name), json.dumps(value, ensure_ascii=False) + "\n")
        return
    values = [value for _, value in found]
    if form == "vllm":
        text = "\n".join(json.dumps(v, ensure_ascii=False) for v in values) + "\n"
    else:
        text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    _put(printer, output, text)


def _put(printer: Printer, output: str, text: str) -> None:
    import sys

    from orchestrator.cli.files import write_file

    if output == "-":
        sys.stdout.write(text)
        return
    write_file(Path(output), text)
    printer.progress(f"wrote {Path(output)}")
