"""`gate0 run`: the whole road, on one or several hosts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import (
    backend_option,
    budget_option,
    events_option,
    force_option,
    hosts_option,
    json_option,
    on_option,
    progress_option,
    quiet_option,
    results_option,
    seconds_of,
    set_option,
    workload_option,
)

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import Gate0Error
    from orchestrator.pipeline.road import Options, Road
    from orchestrator.records.record import RunRecord
    from orchestrator.records.store import Store

DECLARED_CAUSES = frozenset(
    {
        *("unknown_flag", "bad_flag_value", "bad_chat_template", "over_model_limit", "kv_too_small"),
        *("model_unsupported", "no_mtp_layers", "draft_unusable"),
    }
)
"""Why a server died that does so again as long as the same is declared."""


@click.command()
@click.argument("profile")
@on_option
@hosts_option
@workload_option
@set_option
@click.option("--gates", "suite", metavar="SUITE", help="another gate suite than the profile's")
@click.option("--ungated", is_flag=True, help="sweep also when a required gate failed; every figure says so")
@click.option("--keep", is_flag=True, help="leave the server up at the end")
@click.option("--resume", is_flag=True, help="go on with the newest run of this profile on these hosts")
@force_option
@budget_option
@backend_option
@click.option("--sweep-together", is_flag=True, help="load all hosts at the same time, not one after the other")
@events_option
@progress_option
@results_option
@json_option
@quiet_option
def run(
    *,
    profile: str,
    on: str | None,
    hosts_file: str | None,
    workloads: tuple[str, ...],
    overrides: tuple[str, ...],
    suite: str | None,
    ungated: bool,
    keep: bool,
    resume: bool,
    force: bool,
    sweep_together: bool,
    budget: str | None,
    backend: str,
    events: str | None,
    progress_jsonl: str | None,
    results: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Deploy PROFILE, make it pass its gates, sweep it, and write the record.

    One run a host; with `nodes: 2` in the profile one run over both. The server is stopped at the end unless --keep.
    """
    from orchestrator.pipeline.road import Options

    options = Options(keep=keep, ungated=ungated, force=force, budget_s=seconds_of(budget))
    return take_road(
        profile,
        on=on,
        hosts_file=hosts_file,
        workloads=workloads,
        overrides=overrides,
        suite=suite,
        options=options,
        resume=resume,
        together=sweep_together,
        backend=backend,
        events=events,
        progress=progress_jsonl,
        results=results,
        as_json=as_json,
        quiet=quiet,
    )


def take_road(
    profile: str,
    *,
    on: str | None,
    hosts_file: str | None,
    workloads: Sequence[str] = (),
    overrides: Sequence[str] = (),
    suite: str | None = None,
    options: Options,
    resume: bool = False,
    together: bool = False,
    backend: str = "own",
    events: str | None = None,
    progress: str | None = None,
    results: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Compose and travel; shared with `deploy`."""
    from orchestrator.cli import compose
    from orchestrator.cli.eventlog import answer_file, observed
    from orchestrator.cli.live import LiveView
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.signals import cancel_on_signals
    from orchestrator.pipeline.events import Cancel
    from orchestrator.pipeline.road import Box
    from orchestrator.records.store import Store

    out = answer_file(events=events, progress=progress, is_json=as_json)
    printer = Printer(is_json=as_json, is_quiet=quiet, stdout=out)
    roads: list[Road] = []
    revision = compose.GitRevision()
    loaded = compose.load_profile(profile)
    names = tuple(workloads) or loaded.profile.workloads
    loads = () if options.deploy_only else compose.load_workloads(names, overrides, profile=loaded.profile)
    chosen = compose.no_suite() if options.deploy_only else compose.load_suite(loaded.profile, suite)
    entries = compose.entries_of(loaded.profile, on, hosts_file)
    groups = compose.host_groups(loaded.profile, entries)
    store, cancel = Store(compose.results_root(results)), Cancel()
    earlier = compose.past_runs(store.root, loaded.profile)
    with (
        compose.open_hosts(entries) as hosts,
        cancel_on_signals(cancel, printer),
        LiveView(printer) as live,
        observed(live, events=events, progress=progress, serving=lambda where: serving_of(roads, where)) as view,
    ):
        from orchestrator.pipeline.campaign import Turns, exit_code, travel_all  # while the connections are being made

        tools = compose.make_tools(Turns(together=together), backend=backend)
        opened = dict(zip((e.name for e in entries), hosts, strict=True))
        for group in groups:
            job = compose.make_job(
                loaded.profile,
                resolved=loaded.resolved,
                text=loaded.text,
                boxes=[Box(host=opened[e.name], link_address=e.link.ip if e.link else None) for e in group],
                suite=chosen,
                workloads=loads,
                options=options,
                loaded=loaded,
                revision=revision.read(),
                evidence=Box(host=hosts[0]) if loaded.profile.attach is not None and hosts else None,
                past_runs=earlier,
            )
            road = compose.make_road(job, tools, store=store, observer=view, cancel=cancel, is_resumed=resume)
            roads.append(road)
        travel_all(roads)
    show_roads(printer, store, roads)
    return exit_code([road.error for road in roads])


def serving_of(roads: Sequence[Road], where: str) -> tuple[str, str]:
    """Model and base URL of the road at a host group, as far as they are known by now."""
    found = (road.run for road in roads if road.where == where)
    return next(((run.served_name or "", run.base_url or "") for run in found), ("", ""))


def show_roads(printer: Printer, store: Store, roads: Sequence[Road]) -> None:
    """The answer: verdicts, table, record, next command."""
    from orchestrator.cli.compose import job_secrets
    from orchestrator.cli.tables import show_points
    from orchestrator.report.tables import run_row
    from orchestrator.values import redact, redact_json

    rows = [run_row(store.find(str(road.writer.directory))) for road in roads]
    for road, row in zip(roads, rows, strict=True):
        words = f"{road.where}: {ending(road.run)}"
        if not road.job.options.deploy_only:
            words += f", {row.verdict}"
        printer.answer(words)
        show_points(printer, row.points, row.searches)
        if road.error is not None:
            secrets = job_secrets(road.job)
            hint = road.error.hint
            printer.error(redact(road.error.message, secrets), hint and redact(hint, secrets))
            for line in getattr(road.error, "log_tail", ())[-12:]:
                printer.progress(f"  | {redact(line, secrets)}")
        printer.answer(f"record: {road.writer.directory}")
        if (key_file := _key_file(road)) is not None:
            printer.answer(f"api key: {key_file}")
        printer.answer(f"next: {_next(road)}")
    printer.document(
        {
            "runs": [
                {
                    **row.as_json(),
                    "record": str(road.writer.directory),
                    "error": redact_json(road.run.error, job_secrets(road.job)),
                    "api_key_file": _key_file(road),
                }
                for row, road in zip(rows, roads, strict=True)
            ]
        }
    )


def ending(run: RunRecord) -> str:
    """How it ended, in a word: a sweep that went on although a gate said no has not passed."""
    return "finished ungated" if run.status == "passed" and run.is_ungated and run.gates else run.status


def _key_file(road: Road) -> str | None:
    """Where the generated key of a server that was left up is to be read; its value is never shown."""
    from orchestrator.profile.model import GeneratedKey
    from orchestrator.profile.secrets import generated_key_file

    is_generated = isinstance(road.job.profile.serve.api_key, GeneratedKey)
    is_up = road.job.options.keep and road.error is None
    return str(generated_key_file(road.job.profile.name)) if is_generated and is_up else None


def _next(road: Road) -> str:
    if is_to_be_corrected(road.error):
        return "correct what the error names, then the same line again"
    if road.run.status in ("interrupted", "failed"):
        return shlex.join(_again(road.job.invocation))
    root = road.writer.directory.parent
    where = "" if root == Path("results") else f" --results {shlex.quote(str(root))}"
    if road.run.status == "gate_failed" and road.run.gates.get("effective") == "fail":
        return f"gate0 show {road.run.id}{where} --effective"
    if road.run.status == "gate_failed":
        return f"gate0 results show {road.run.id}{where} --evidence"
    if road.job.options.keep and road.job.boxes:
        return f"gate0 stop {road.job.profile.name} --on {','.join(b.host.name for b in road.job.boxes)}"
    return f"gate0 report{where}"


def is_to_be_corrected(error: Gate0Error | None) -> bool:
    """What was declared cannot work: the same line would end the same way."""
    from orchestrator.errors import InputError, ServerDied

    return isinstance(error, InputError) or (isinstance(error, ServerDied) and error.cause in DECLARED_CAUSES)


def _again(invocation: Sequence[str]) -> list[str]:
    """The same line again; `run` and `sweep` go on with what they have."""
    words = [word for word in invocation if word != "--resume"]
    return [*words, "--resume"] if words[1:2] in (["run"], ["sweep"]) else words
