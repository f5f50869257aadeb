"""`gate0 check`: gate a server that is already there."""

from __future__ import annotations

import click

from orchestrator.cli.options import (
    container_option,
    evidence_option,
    hosts_option,
    json_option,
    quiet_option,
    results_option,
)


@click.command()
@click.option("--url", required=True, help="base URL, http://host:port/v1")
@click.option("--model", help="served name; default the first that the server lists")
@click.option("--engine", help="vllm, sglang or llamacpp; default recognised from its answers")
@click.option("--gates", "suite", default="gate0", show_default=True, metavar="SUITE")
@click.option("--set", "overrides", multiple=True, metavar="GATE.PARAM=VALUE", help="change a gate's parameter")
@click.option(
    "--max-model-len", type=click.IntRange(min=1), metavar="N", help="what the server promises, when it does not tell"
)
@click.option(
    "--slots", type=click.IntRange(min=1), metavar="N", help="requests at once, as you state it; recorded as unverified"
)
@click.option("--tools/--no-tools", default=None, help="the server promises tool calls")
@click.option("--api-key", "key_name", metavar="NAME", help="environment variable that holds the API key")
@evidence_option
@container_option
@hosts_option
@results_option
@json_option
@quiet_option
def check(
    *,
    url: str,
    model: str | None,
    engine: str | None,
    suite: str,
    overrides: tuple[str, ...],
    max_model_len: int | None,
    slots: int | None,
    tools: bool | None,
    key_name: str | None,
    on: str | None,
    container: str | None,
    hosts_file: str | None,
    results: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Gate the server at URL. Exit code 1 when a required gate fails."""
    from orchestrator.cli.attached import Attached, gate_and_sweep

    attached = Attached(
        url=url,
        model=model,
        engine=engine,
        suite=suite,
        gate_overrides=overrides,
        max_model_len=max_model_len,
        slots=slots,
        tools=tools,
        key_name=key_name,
        on=on,
        container=container,
        hosts_file=hosts_file,
    )
    return gate_and_sweep(attached, results=results, as_json=as_json, quiet=quiet)
