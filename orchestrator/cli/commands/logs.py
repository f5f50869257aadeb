"""`gate0 logs`: a server's log, from labels alone."""

from __future__ import annotations

import click

from orchestrator.cli.options import hosts_option, on_option

FOLLOW_S = 24 * 3600.0


@click.command()
@click.argument("name", required=False)
@on_option
@hosts_option
@click.option("-n", "--tail", default=200, show_default=True, metavar="LINES", help="0: all")
@click.option("-f", "--follow", is_flag=True, help="go on until the server ends or Ctrl-C (one server)")
def logs(*, name: str | None, on: str | None, hosts_file: str | None, tail: int, follow: bool) -> int:
    """Show the log of the server NAME (or of a profile's servers) on the hosts."""
    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.servers import choose, find_servers
    from orchestrator.errors import InputError

    printer = Printer()
    entries = compose.resolve_entries(on, hosts_file)
    with compose.open_hosts(entries) as hosts:
        search = find_servers(hosts)
        for error in search.errors:
            printer.error(error.message, error.hint)
        chosen = choose(search, (name,) if name else (), what="show")
        if not chosen and not search.errors:
            raise InputError("gate0 started nothing here", hint="`gate0 ps` lists servers; name hosts with `--on`")
        if follow and len(chosen) != 1:
            names = ", ".join(f"{f.host.name}:{f.server.name}" for f in chosen)
            raise InputError(
                f"--follow takes one server, {len(chosen)} fit: {names}", hint="give a name and `--on HOST`"
            )
        for one in chosen:
            if len(chosen) > 1:
                printer.answer(f"==> {one.host.name}: {one.server.name} <==")
            lines = (
                one.runtime.follow(one.server.id, timeout_s=FOLLOW_S)
                if follow
                else one.runtime.log_tail(one.server.id, tail)
            )
            for line in lines:
                printer.answer(line)
    return max((e.exit_code for e in search.errors), default=0)
