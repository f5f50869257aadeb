"""`gate0 report`: the page, from records alone."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.charts import STYLES, write_charts
from orchestrator.cli.options import results_option
from orchestrator.cli.reporting import DEFAULT_NAMES, FORMATS, STDOUT


@click.command()
@click.argument("runs", nargs=-1)
@click.option(
    "-o", "--output", metavar="PATH", help="file, of a site its folder; default notebook.html in the results; - stdout"
)
@click.option("--format", "style", type=click.Choice(FORMATS), help="default by the output's name, else html")
@click.option("--watch", "is_watching", is_flag=True, help="write it again whenever a record changes; Ctrl-C ends it")
@click.option(
    "--every", "every_s", type=click.FloatRange(min=0.1), default=5.0, show_default=True, help="seconds between looks"
)
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
    is_watching: bool,
    every_s: float,
    charts: str | None,
    charts_style: str,
    results: str | None,
) -> int:
    """Write the page for RUNS (default: all) as HTML, Markdown, JSON, or a folder of pages.

    RUNS: an id or a unique part of one, a directory, `latest`, or a profile's name or title, which is its newest run
    (PROFILE@HOST[,HOST]: its newest there).

    With `--watch` the page reloads itself; Ctrl-C writes it once more as one that does not, and exits 0. Figures of
    raw records are kept in `.derived` of the results folder; `gate0 results clean --derived` deletes them.
    """
    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.reporting import Reporter
    from orchestrator.cli.watching import watch
    from orchestrator.errors import InputError
    from orchestrator.records.changes import store_stamp
    from orchestrator.values import utc_now

    printer = Printer()
    root = results_root(results)
    style = style or {".md": "md", ".json": "json"}.get(Path(output or "").suffix, "html")
    place = output or str(root / DEFAULT_NAMES[style])
    reporter = Reporter(printer=printer, root=root, names=runs, style=style, output=place)
    if is_watching and (place == STDOUT or charts is not None):
        raise InputError("`--watch` writes a report again and again", hint="leave out `-o -` and `--charts`")
    if charts is not None:
        stored, rows, _ = reporter.read()
        write_charts(printer, stored, rows, folder=Path(charts), style=charts_style)
        if output is None:
            return 0
    if not is_watching:
        told = reporter.draw(is_live=False)
        if place != STDOUT:
            printer.answer(told)
        return 0
    printer.progress(f"watching {root}: Ctrl-C ends it")
    watch(
        lambda is_live: printer.progress(f"{utc_now()[11:19]} {reporter.draw(is_live=is_live)}"),
        lambda: store_stamp(root),
        every_s=every_s,
    )
    return 0
