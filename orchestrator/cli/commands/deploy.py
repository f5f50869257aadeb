"""`gate0 deploy`: the road up to the first token, and the server left up."""

from __future__ import annotations

import click

from orchestrator.cli.options import force_option, hosts_option, json_option, on_option, quiet_option, results_option


@click.command()
@click.argument("profile")
@on_option
@hosts_option
@force_option
@results_option
@json_option
@quiet_option
def deploy(
    *,
    profile: str,
    on: str | None,
    hosts_file: str | None,
    force: bool,
    results: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Start PROFILE's server, wait for its first token, leave it up.

    The same digest already running is left as it is; another one replaces only what gate0 started.
    """
    from orchestrator.cli.commands.run import take_road
    from orchestrator.pipeline.road import Options

    return take_road(
        profile,
        on=on,
        hosts_file=hosts_file,
        options=Options(keep=True, deploy_only=True, force=force),
        results=results,
        as_json=as_json,
        quiet=quiet,
    )
