"""`gate0 plan`: all that `run` would do, without touching a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import (
    hosts_option,
    json_option,
    on_option,
    results_option,
    set_option,
    workload_option,
)

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.pipeline.planning import Plan


@click.command()
@click.argument("profile")
@on_option
@hosts_option
@workload_option
@set_option
@click.option("--gates", "suite", metavar="SUITE", help="another gate suite than the profile's")
@results_option
@json_option
def plan(
    *,
    profile: str,
    on: str | None,
    hosts_file: str | None,
    workloads: tuple[str, ...],
    overrides: tuple[str, ...],
    suite: str | None,
    results: str | None,
    as_json: bool,
) -> int:
    """Show what `run PROFILE` would do: the exact command a host, the gates, the cells, the minutes.

    Advice that an earlier run's gates answer, on the same image, is said to be answered.
    """
    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer
    from orchestrator.deploy.own_flags import kept_list
    from orchestrator.engines.registry import load_engines
    from orchestrator.pipeline.planning import make_plan

    printer = Printer(is_json=as_json)
    loaded = compose.load_profile(profile)
    found = make_plan(
        loaded.profile,
        load_engines()[loaded.profile.engine],
        compose.host_groups(loaded.profile, compose.entries_of(loaded.profile, on, hosts_file)),
        suite=compose.load_suite(loaded.profile, suite),
        workloads=compose.load_workloads(workloads or loaded.profile.workloads, overrides, profile=loaded.profile),
        past_runs=compose.past_runs(compose.results_root(results), loaded.profile),
        chosen=kept_list(loaded.profile),
    )
    _say(printer, found)
    printer.document(found.as_json())
    return 0


def _say(printer: Printer, plan: Plan) -> None:
    from orchestrator.engines.remarks import afterwards, silenced_line

    printer.answer(f"{plan.profile}, digest {plan.digest}")
    for host in plan.hosts:
        printer.answer(f"\n{host.host}:")
        printer.answer(f"  {host.command}")
    if plan.added:
        printer.answer("\nadded by gate0:")
        for added in plan.added:
            printer.answer(f"  {' '.join(added.words)}: {added.reason}")
    for note in plan.notes:
        printer.answer(f"note: {note}")
    for advisory in plan.advisories:
        kind = "answered" if advisory.answer else advisory.severity
        printer.answer(f"{kind} {advisory.code}: {advisory.message}")
        for line in afterwards(advisory):
            printer.answer(f"  {'hint: ' if line == advisory.hint else ''}{line}")
    if plan.silenced:
        printer.answer(silenced_line(plan.silenced))
    printer.answer(f"\nreplaces: {plan.replaces}")
    gates = ", ".join(name if required else f"{name} (optional)" for name, required in plan.gates)
    printer.answer(f"gates ({plan.suite}): {gates}")
    if plan.cells:
        printer.answer(f"cells ({len(plan.cells)}): {', '.join(plan.cells)}")
        printer.answer(f"estimated: {plan.minutes:g} minutes of sweep ({plan.minutes_assume})")
