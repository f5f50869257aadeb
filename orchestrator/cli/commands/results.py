"""`gate0 results`: list and show records, delete what was derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, results_option

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.records.store import StoredRun
    from orchestrator.report.tables import RunRow


@click.group()
def results() -> None:
    """List and show records, delete what was derived from them."""


@results.command("list")
@results_option
@json_option
def list_runs(*, results: str | None, as_json: bool) -> int:
    """One line a run, oldest first; a record that cannot be read is a warning."""
    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.reporting import without_collector
    from orchestrator.records.store import Store
    from orchestrator.report.derived.rows import rows_of

    printer = Printer(is_json=as_json)
    root = results_root(results)
    good, bad = Store(root).runs()
    with without_collector():
        rows = rows_of(good, root)
    for broken in bad:
        printer.warning(f"{broken.path}: {broken.reason}")
    if not rows and not bad:
        printer.warning(f"no records in {root}")
    lines = [(r.run.id, r.run.status, r.verdict, str(len(r.points))) for r in rows]
    printer.table(("run", "status", "gate 0", "points"), lines, right=(3,))
    if as_json:  # of many runs it takes longer to make than all the rest
        unreadable = [{"path": str(b.path), "reason": b.reason} for b in bad]
        printer.document({"runs": [r.as_json() for r in rows], "unreadable": unreadable})
    return 0


@results.command("show")
@click.argument("run")
@click.option("--evidence", is_flag=True, help="what each gate sent and what came back")
@click.option("--cell", metavar="ID", help="all figures of one cell, with n, interval, definition and raw record")
@results_option
@json_option
def show_run(*, run: str, evidence: bool, cell: str | None, results: str | None, as_json: bool) -> int:
    """Show RUN: an id, a unique part of one, a directory, or `latest`."""
    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.records.store import Store
    from orchestrator.report.derived.rows import rows_of

    printer = Printer(is_json=as_json)
    root = results_root(results)
    stored = Store(root).find(run)
    (row,) = rows_of([stored], root)
    for warning in row.warnings:
        printer.warning(warning)
    if cell is not None:
        return _show_cell(printer, stored, row, cell)
    _say(printer, row, with_evidence=evidence)
    document = {"run": stored.run.as_json(), **row.as_json()}
    if evidence:
        document["evidence"] = [g.as_json() for g in row.gates]
    printer.document(document)
    return 0


@results.command("clean")
@click.option("--derived", is_flag=True, help="figures kept in .derived; the next report computes them again")
@results_option
def clean(*, derived: bool, results: str | None) -> int:
    """Delete what was computed from the records and kept; the records stay."""
    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import InputError, StoreError
    from orchestrator.report.derived.files import FOLDER
    from orchestrator.report.derived.files import clean as delete

    if not derived:
        raise InputError("nothing named to delete", hint="--derived: the figures kept in .derived")
    folder = results_root(results) / FOLDER
    try:
        freed = delete(folder.parent)
    except OSError as exc:
        raise StoreError(f"cannot delete {folder}: {exc.strerror}", hint=f"`rm -r {folder}` does the same") from exc
    Printer().answer(f"{folder}: {freed / 1e6:.1f} MB deleted" if freed else "nothing derived is kept")
    return 0


def _show_cell(printer: Printer, stored: StoredRun, row: RunRow, name: str) -> int:
    from orchestrator.cli.sheets import show_sheet
    from orchestrator.report.sheet import cell_sheet, find_point

    point = find_point(row.points, name)
    (read,) = (c for c in stored.cells() if c.cell == point.figures.cell)
    sheet = cell_sheet(point, read.requests)
    show_sheet(printer, sheet, stored.directory)
    printer.document({"run": row.run.id, "directory": str(stored.directory), **sheet.as_json()})
    return 0


def _say(printer: Printer, row: RunRow, *, with_evidence: bool) -> None:
    import json

    from orchestrator.cli.tables import show_points
    from orchestrator.report.text import duration

    r = row.run
    hosts = ", ".join(str(h.get("name")) for h in r.hosts)
    where = f"on {hosts}" if hosts else f"at {r.base_url or 'an unknown address'}"
    printer.answer(f"{r.profile_title} ({r.profile_name})")
    if r.source:
        printer.answer(f"{r.source.get('form')} from {r.source.get('file')}; its files lie under foreign/")
        if r.source.get("note"):
            printer.answer(f"note: {r.source['note']}")
    else:
        ran = " ".join(word for word in (r.engine, r.engine_version, where) if word)
        printer.answer(f"{ran}: {r.status}, wall time {duration(r.duration_s)}")
        if r.image or r.runtime:
            printer.answer(f"image {r.image or r.runtime} {r.image_digest or ''}".rstrip())
    for line in r.command:
        printer.answer(f"  {line}")
    for stage in r.stages:
        printer.answer(f"  {stage.get('name', ''):<10} {stage.get('status', ''):<12} {stage.get('detail', '')}")
    printer.answer(f"gates: {row.verdict}")
    if row.gates:
        printer.table(("gate", "verdict", "what was seen"), [(g.name, g.status, g.summary) for g in row.gates])
    if with_evidence:
        for gate in row.gates:
            shown: Sequence[object] = gate.evidence
            printer.answer(f"-- {gate.name}: measured {json.dumps(dict(gate.measured), ensure_ascii=False)}")
            for item in shown:
                printer.answer(json.dumps(item, indent=1, ensure_ascii=False))
    show_points(printer, row.points, row.searches)
    if r.error:
        printer.error(str(r.error.get("message")), str(r.error["hint"]) if r.error.get("hint") else None)
