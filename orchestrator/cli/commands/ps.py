"""`gate0 ps`: the servers that gate0 started, from labels alone."""

from __future__ import annotations

from collections.abc import Mapping

import click

from orchestrator.cli.options import hosts_option, json_option, on_option


@click.command()
@on_option
@hosts_option
@json_option
def ps(*, on: str | None, hosts_file: str | None, as_json: bool) -> int:
    """List the servers that gate0 started on the hosts, whoever started them from wherever."""
    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.servers import find_servers
    from orchestrator.deploy.runtime import LABEL_DIGEST, LABEL_PORT, LABEL_RUN

    printer = Printer(is_json=as_json)
    entries = compose.resolve_entries(on, hosts_file)
    with compose.open_hosts(entries) as hosts:
        search = find_servers(hosts)
    rows = [
        {
            "host": f.host.name,
            "name": f.server.name,
            "profile": f.profile,
            "is_running": f.server.is_running,
            "exit_code": f.server.exit_code,
            "port": f.server.labels.get(LABEL_PORT, ""),
            "started_at": f.server.started_at,
            "run": f.server.labels.get(LABEL_RUN, ""),
            "digest": f.server.labels.get(LABEL_DIGEST, ""),
            "image": f.server.image,
        }
        for f in search.found
    ]
    lines = [_line(row) for row in rows]
    printer.table(("host", "server", "state", "port", "since", "run"), lines)
    if not rows and not search.errors:
        printer.answer("gate0 started nothing here")
    for error in search.errors:
        printer.error(error.message, error.hint)
    printer.document({"servers": rows, "errors": [e.message for e in search.errors]})
    return max((e.exit_code for e in search.errors), default=0)


def _state(row: Mapping[str, object]) -> str:
    return "running" if row["is_running"] else f"exited {row['exit_code']}"


def _line(row: Mapping[str, object]) -> list[str]:
    columns = ("port", "started_at", "run")
    return [str(row["host"]), str(row["name"]), _state(row), *(str(row[c] or "") for c in columns)]
