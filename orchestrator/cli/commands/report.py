"""`gate0 report`: the page, from records alone."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.charts import STYLES, write_charts
from orchestrator.cli.options import results_option

FORMATS = ("html", "md", "json")


@click.command()
@click.argument("runs", nargs=-1)
@click.option("-o", "--output", metavar="FILE", help="default notebook.html in the results folder; - for stdout")
@click.option("--format", "style", type=click.Choice(FORMATS), help="default by the output's name, else html")
@click.option("--charts", metavar="DIR", help="write the pictures as files for slides; the page only with -o")
@click.option(
    "--charts-format", "charts_style", type=click.Choice(STYLES), default="svg", show_default=True, help="of pictures"
)
@results_option
def report(
    *,
    runs: tuple[str, ...],
    output: str | None,
    style: str | None,
    charts: str | None,
    charts_style: str,
    results: str | None,
) -> int:
    """Write the page for RUNS (default: all) as HTML, Markdown or JSON."""
    import json
    import sys

    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import StoreError
    from orchestrator.records.store import Store, write_atomically
    from orchestrator.report.html import page
    from orchestrator.report.markdown import report as markdown
    from orchestrator.report.tables import run_row

    printer = Printer()
    root = results_root(results)
    store = Store(root)
    good, bad = (tuple(store.find(name) for name in runs), ()) if runs else store.runs()
    warnings = [f"{b.path}: {b.reason}" for b in bad]
    for warning in warnings:
        printer.warning(warning)
    rows = [run_row(stored) for stored in good]
    for warning in (w for row in rows for w in row.warnings):
        printer.warning(warning)
    if charts is not None:
        write_charts(printer, good, rows, folder=Path(charts), style=charts_style)
        if output is None:
            return 0
    style = style or {".md": "md", ".json": "json"}.get(Path(output or "").suffix, "html")
    if style == "html":
        text = page(rows, warnings)
    elif style == "md":
        text = markdown(rows, warnings)
    else:
        text = json.dumps({"runs": [r.as_json() for r in rows], "warnings": warnings}, indent=1, ensure_ascii=False)
    if output == "-":
        sys.stdout.write(text)
        return 0
    path = Path(output) if output else root / f"notebook.{style}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as exc:
        raise StoreError(f"cannot write {path}: {exc.strerror}", hint="choose another place with `-o FILE`") from exc
    count = "1 run" if len(rows) == 1 else f"{len(rows)} runs"
    printer.answer(f"{path}: {count}, {sum(len(r.points) for r in rows)} points")
    return 0
