"""`gate0 compare`: one run against another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, results_option

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.report.compare import Comparison
    from orchestrator.report.tables import RunRow

FORMATS = ("text", "md")


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--fail-if-worse", "threshold", metavar="SHARE", help="exit 1 when a figure is surely worse by more: 5%")
@click.option("--workload", "workloads", multiple=True, metavar="NAME", help="this workload alone; repeatable")
@click.option("--figure", "figures", multiple=True, metavar="NAME", help="this figure alone, as ttft; repeatable")
@click.option("--force", is_flag=True, help="compare other definitions and other places of the load too")
@click.option("--format", "style", type=click.Choice(FORMATS), default="text", help="md: for an issue's comment")
@results_option
@json_option
def compare(
    *,
    a: str,
    b: str,
    threshold: str | None,
    workloads: tuple[str, ...],
    figures: tuple[str, ...],
    force: bool,
    style: str,
    results: str | None,
    as_json: bool,
) -> int:
    """Set run B against run A: what differs, and what that did to each headline figure.

    A and B: an id or a unique part of one, a directory, `latest`, or a profile's name or title, which is its newest run
    (PROFILE@HOST[,HOST]: its newest there). Cells are paired by their load. An interval needs two repeats of a cell on
    both sides. Exit 1 only with `--fail-if-worse`.
    """
    import sys

    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import InputError
    from orchestrator.records.naming import find_run
    from orchestrator.records.store import Store
    from orchestrator.report import compare as comparing
    from orchestrator.report.compare_markdown import comparison as markdown
    from orchestrator.report.headlines import find_headlines
    from orchestrator.report.tables import run_row

    printer = Printer(is_json=as_json)
    limit = share_of(threshold)
    headlines = find_headlines(figures)
    store = Store(results_root(results))
    stored = [find_run(store, name) for name in (a, b)]
    if stored[0].directory.resolve() == stored[1].directory.resolve():
        raise InputError(f"{a!r} and {b!r} are the same run, {stored[0].run.id}", hint="name two runs by their ids")
    row_a, row_b = (run_row(s) for s in stored)
    _check(row_a, row_b, workloads)
    found = comparing.compare(row_a, row_b, figures=headlines, workloads=workloads, force=force)
    for row in (row_a, row_b):
        for warning in row.warnings:
            printer.warning(warning)
    worse = [] if limit is None else found.worse_by(limit)
    judged = {"share": limit, "failed": [{"cell": c.name, "figure": f.headline.key, "lane": f.lane} for c, f in worse]}
    if style == "md" and not as_json:
        sys.stdout.write(markdown(found))
    else:
        _say(printer, found)
    printer.document({**found.as_json(), "fail_if_worse": None if limit is None else judged})
    return 0 if limit is None else _judge(printer, found, limit)


def share_of(text: str | None) -> float | None:
    """`5%` as 0.05.

    Raises:
        InputError: It is no percentage from 0 to 100.
    """
    from orchestrator.errors import InputError

    if text is None:
        return None
    try:
        percent = float(text.removesuffix("%")) if text.endswith("%") else -1.0
    except ValueError:
        percent = -1.0
    if not 0 <= percent < 100:
        raise InputError(f"--fail-if-worse {text}: expected a percentage from 0% to below 100%", hint="as 5%")
    return percent / 100


def _check(a: RunRow, b: RunRow, workloads: Sequence[str]) -> None:
    """
    Raises:
        InputError: A run without a cell, or a workload that neither run has.
    """
    from difflib import get_close_matches

    from orchestrator.errors import InputError

    for row in (a, b):
        if not row.points:
            why = str((row.run.error or {}).get("message") or f"it is {row.run.status}")
            raise InputError(f"{row.run.id} has no cells: nothing was measured", hint=why)
    known = list(dict.fromkeys(p.figures.cell.workload for row in (a, b) for p in row.points))
    for name in workloads:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"they have {', '.join(known)}"
            raise InputError(f"neither run has a workload {name!r}", hint=hint)


def _say(printer: Printer, found: Comparison) -> None:
    import textwrap

    from orchestrator.cli.tables import WIDTH
    from orchestrator.report import compare_words as words

    printer.answer(f"A: {words.run_words(found.a)}")
    printer.answer(f"B: {words.run_words(found.b)}")
    printer.answer("")
    if found.differences:
        printer.table(words.DIFFERENCES_HEAD, words.difference_rows(found.differences))
    else:
        printer.answer("the records tell no difference between the two configurations")
    for block in words.workload_tables(found):
        printer.answer("")
        printer.answer(block.workload)
        printer.table(words.HEAD, [row.fields for row in block.rows], right=words.NUMBERS)
        for mark in block.marks:
            printer.answer(mark)
    printer.answer("")
    for line in (*words.unpaired_words(found), words.summary(found)):
        printer.answer(line)
    width = printer.out.width if printer.out.is_terminal else WIDTH
    for line in textwrap.wrap(words.caption(found), width):
        printer.answer(line)


def _judge(printer: Printer, found: Comparison, limit: float) -> int:
    """1 when a figure is surely worse by more than the limit.

    Raises:
        InputError: No figure has an interval: whether it is worse was not looked at.
    """
    from orchestrator.errors import InputError
    from orchestrator.report.compare_words import unpaired_words, worse_words
    from orchestrator.report.figure_change import Verdict

    percent = f"{limit * 100:g}%"
    if not found.has_verdict:
        raise InputError(
            f"nothing could be judged for `--fail-if-worse {percent}`: no figure of a common cell has an interval",
            hint="the tables say why of each; measure with two repeats or more on both sides",
        )
    left = found.counts[Verdict.NOT_COMPARABLE] + found.counts[Verdict.UNDECIDED]
    if left:
        printer.warning(f"{left} figures are not comparable or undecided: `--fail-if-worse` did not look at them")
    for words in unpaired_words(found):
        printer.warning(words)
    failed = worse_words(found, limit)
    if failed:
        printer.error("\n".join((f"worse by more than {percent}:", *failed)))
    return 1 if failed else 0
