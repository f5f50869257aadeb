"""`gate0 stop`: stop what gate0 started, from labels alone, and nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import force_option, hosts_option, json_option, on_option


@click.command()
@click.argument("names", nargs=-1)
@on_option
@hosts_option
@force_option
@click.option("--all", "is_all", is_flag=True, help="all servers that gate0 started on these hosts")
@click.option("--log-dir", metavar="DIR", default="results/stopped", show_default=True, help="where the logs are kept")
@json_option
def stop(
    *,
    names: tuple[str, ...],
    on: str | None,
    hosts_file: str | None,
    force: bool,
    is_all: bool,
    log_dir: str,
    as_json: bool,
) -> int:
    """Stop the servers NAMES (server or profile names) on the hosts; their logs are saved first."""
    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.servers import choose, find_servers
    from orchestrator.errors import InputError
    from orchestrator.fleet.lock import hold
    from orchestrator.records.store import RunWriter

    if not names and not is_all:
        raise InputError(
            "nothing named to stop", hint="name servers or profiles (`gate0 ps` lists them), or give `--all`"
        )
    printer = Printer(is_json=as_json)
    entries = compose.resolve_entries(on, hosts_file)
    stopped: list[dict[str, str]] = []
    with compose.open_hosts(entries) as hosts:
        search = find_servers(hosts)
        chosen = choose(search.found, names, what="stop")
        for one in chosen:
            with hold(one.host, "stop", f"stopping {one.server.name}", force=force):
                file = f"{one.host.name}-{one.server.name}-{one.server.id[:12]}.log"
                RunWriter(Path(log_dir)).write_text(file, "\n".join(one.runtime.log_tail(one.server.id, 0)) + "\n")
                one.runtime.stop(one.server.id)
                one.runtime.remove(one.server.id)
            stopped.append({"host": one.host.name, "name": one.server.name, "log": str(Path(log_dir) / file)})
            printer.answer(f"{one.host.name}: stopped {one.server.name}, log in {Path(log_dir) / file}")
    if not chosen:
        printer.answer("gate0 started nothing here")
    for error in search.errors:
        printer.error(error.message, error.hint)
    printer.document({"stopped": stopped, "errors": [e.message for e in search.errors]})
    return max((e.exit_code for e in search.errors), default=0)
