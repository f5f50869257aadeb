"""`gate0 stop`: stop what gate0 started, from labels alone, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import force_option, hosts_option, json_option, on_option
from orchestrator.errors import Gate0Error, InputError, Interrupted

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.cli.servers import Found
    from orchestrator.pipeline.events import Cancel


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
    from orchestrator.cli.signals import cancel_on_signals
    from orchestrator.fleet.lock import hold
    from orchestrator.pipeline.events import Cancel

    if not names and not is_all:
        raise InputError(
            "nothing named to stop", hint="name servers or profiles (`gate0 ps` lists them), or give `--all`"
        )
    printer, cancel = Printer(is_json=as_json), Cancel()
    entries = compose.resolve_entries(on, hosts_file)
    with cancel_on_signals(cancel, printer), compose.open_hosts(entries) as hosts:
        search = find_servers(hosts)
        chosen = choose(search, names, what="stop")
        ending = stop_servers(
            chosen,
            Path(log_dir),
            lock=lambda one: hold(one.host, "stop", f"stopping {one.server.name}", force=force),
            printer=printer,
            cancel=cancel,
        )
    if not chosen and not search.errors:
        printer.answer("gate0 started nothing here")
    errors = (*search.errors, *ending.errors)
    for error in errors:
        printer.error(error.message, error.hint)
    printer.document({"stopped": ending.stopped, "errors": [e.message for e in errors]})
    return max((e.exit_code for e in errors), default=0)


@dataclass(slots=True, kw_only=True)
class Ending:
    """What was stopped (host, name, and the log's file or None), and what stood in the way."""

    stopped: list[dict[str, str | None]] = field(default_factory=list)
    errors: list[Gate0Error] = field(default_factory=list)


def stop_servers(
    chosen: Sequence[Found],
    log_dir: Path,
    *,
    lock: Callable[[Found], AbstractContextManager[object]],
    printer: Printer,
    cancel: Cancel,
) -> Ending:
    """Stop one after the other; one that cannot be stopped keeps none of the others up.

    A request to stop (`cancel`) is heard between two servers: the one at hand is finished and its lock released.
    """
    ending = Ending()
    for index, one in enumerate(chosen):
        if cancel.is_set():
            left = ", ".join(f"{f.host.name}:{f.server.name}" for f in chosen[index:])
            ending.errors.append(Interrupted(f"interrupted: still up: {left}", hint="run the same line again"))
            break
        try:
            with lock(one):
                log = _save_log(one, log_dir, printer)
                one.runtime.stop(one.server.id)
                one.runtime.remove(one.server.id)
        except Gate0Error as exc:
            ending.errors.append(exc)
            continue
        ending.stopped.append({"host": one.host.name, "name": one.server.name, "log": log})
        printer.answer(
            f"{one.host.name}: stopped {one.server.name}, " + (f"log in {log}" if log else "its log is lost")
        )
    return ending


def _save_log(one: Found, log_dir: Path, printer: Printer) -> str | None:
    """The file with the server's log; None, with a warning, when it cannot be had: no reason to leave it running."""
    from orchestrator.records.store import RunWriter

    file = f"{one.host.name}-{one.server.name}-{one.server.id[:12]}.log"
    try:
        RunWriter(log_dir).write_text(file, "\n".join(one.runtime.log_tail(one.server.id, 0)) + "\n")
    except Gate0Error as exc:
        printer.warning(
            f"{one.host.name}: the log of {one.server.name} is not saved: {exc.message} (`--log-dir DIR`: elsewhere)"
        )
        return None
    return str(log_dir / file)
