"""Options that several verbs share, declared once."""

from __future__ import annotations

import click

on_option = click.option("--on", metavar="HOST[,HOST]", help="names of hosts.yaml or ssh_config, user@host, or local")
hosts_option = click.option("--hosts", "hosts_file", metavar="FILE", help="inventory; default ./hosts.yaml, then yours")
evidence_option = click.option(
    "--on", metavar="HOST", help="the server's host: its facts, telemetry and log as evidence; nothing is touched there"
)
container_option = click.option("--container", metavar="NAME", help="with --on: the server's container, by name")
results_option = click.option("--results", metavar="DIR", help="where records are; $GATE0_RESULTS, else ./results")
json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="no progress")
force_option = click.option("--force", is_flag=True, help="take a host's lock from an owner that is gone")
workload_option = click.option("--workload", "workloads", multiple=True, metavar="NAME", help="load to run; repeatable")
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="change the workload, as concurrency=1,4"
)

budget_option = click.option(
    "--budget",
    metavar="TIME",
    help="begin no repeat of a sweep later than this, as 20m, 90s or 1h; every cell keeps what it has",
)
backend_option = click.option(
    "--client",
    "backend",
    type=click.Choice(("own", "aiohttp")),
    default="own",
    show_default=True,
    help="what sends the load; aiohttp is slower and a check of the other",
)
events_option = click.option("--events", metavar="FILE", help="every event as a JSON line; - is stdout")
progress_option = click.option(
    "--progress-jsonl", "progress_jsonl", metavar="FILE", help="progress lines as llama-benchy's viewers read them"
)


def seconds_of(text: str | None) -> float | None:
    """`20m` in seconds.

    Raises:
        InputError: It is no time.
    """
    from orchestrator.errors import InputError

    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"--budget {text}: expected a time above 0", hint="as 20m, 90s or 1h")
    return seconds
