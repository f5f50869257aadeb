"""`gate0 sweep`: measure a server that is already there."""

from __future__ import annotations

import click

from orchestrator.cli.options import (
    backend_option,
    budget_option,
    container_option,
    events_option,
    evidence_option,
    hosts_option,
    json_option,
    progress_option,
    quiet_option,
    results_option,
    seconds_of,
    set_option,
    workload_option,
)


@click.command()
@click.option("--url", required=True, help="base URL, http://host:port/v1")
@workload_option
@set_option
@click.option("--model", help="served name; default the first that the server lists")
@click.option("--engine", help="vllm, sglang or llamacpp; default recognised from its answers")
@click.option(
    "--slots", type=click.IntRange(min=1), metavar="N", help="requests at once, as you state it; recorded as unverified"
)
@click.option("--gates", "suite", metavar="SUITE", help="gate it first; without, every figure says ungated")
@click.option("--resume", is_flag=True, help="go on with the newest sweep of this server")
@click.option("--api-key", "key_name", metavar="NAME", help="environment variable that holds the API key")
@evidence_option
@container_option
@hosts_option
@budget_option
@backend_option
@events_option
@progress_option
@results_option
@json_option
@quiet_option
def sweep(
    *,
    url: str,
    workloads: tuple[str, ...],
    overrides: tuple[str, ...],
    model: str | None,
    engine: str | None,
    slots: int | None,
    suite: str | None,
    resume: bool,
    key_name: str | None,
    on: str | None,
    container: str | None,
    hosts_file: str | None,
    budget: str | None,
    backend: str,
    events: str | None,
    progress_jsonl: str | None,
    results: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Sweep the server at URL with the workloads named. Without --gates the figures are marked ungated."""
    from orchestrator.cli.attached import Attached, gate_and_sweep
    from orchestrator.errors import InputError

    if not workloads:
        raise InputError("no workload named", hint="give `--workload concurrency`; `gate0 profiles` lists them")
    attached = Attached(
        url=url,
        model=model,
        engine=engine,
        suite=suite,
        slots=slots,
        key_name=key_name,
        on=on,
        container=container,
        hosts_file=hosts_file,
        workloads=workloads,
        overrides=overrides,
        resume=resume,
        budget_s=seconds_of(budget),
        backend=backend,
        events=events,
        progress=progress_jsonl,
    )
    return gate_and_sweep(attached, results=results, as_json=as_json, quiet=quiet)
