"""`gate0 hosts`: which boxes there are, whether they can be used, and whose keys are trusted."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import hosts_option, json_option

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import Gate0Error
    from orchestrator.fleet.facts import Concern, HostFacts
    from orchestrator.fleet.inventory import HostEntry
    from orchestrator.fleet.known_hosts import HostKey

GIB = 2**30
CONNECT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One host's check: its facts with what they give rise to, or why there are none."""

    entry: HostEntry
    facts: HostFacts | None = None
    concerns: tuple[Concern, ...] = ()
    lock: str | None = None
    error: Gate0Error | None = None

    @property
    def is_usable(self) -> bool:
        return self.error is None and not self.blockers

    @property
    def blockers(self) -> frozenset[str]:
        """Codes of what stands in the way."""
        return frozenset(c.code for c in self.concerns if c.level == "blocker")

    @property
    def runtimes(self) -> tuple[str, ...]:
        """What a profile's `runtime` may be there."""
        if self.error is not None or self.blockers - {"docker"}:
            return ()
        return ("process",) if self.blockers else ("docker", "process")

    @property
    def verdict(self) -> str:
        if self.is_usable:
            return "usable"
        return "cannot be used with Docker; `runtime: process` works" if self.runtimes else "cannot be used"

    def as_json(self) -> dict[str, Any]:
        from dataclasses import asdict

        error = None if self.error is None else {"message": self.error.message, "hint": self.error.hint}
        return {
            "name": self.entry.name,
            "address": self.entry.address,
            "is_usable": self.is_usable,
            "runtimes": list(self.runtimes),
            "error": error,
            "lock": self.lock,
            "concerns": [asdict(c) for c in self.concerns],
            "facts": None if self.facts is None else self.facts.as_json(),
        }


@click.group()
def hosts() -> None:
    """List, check and trust hosts."""


@hosts.command("list")
@hosts_option
@json_option
def list_hosts(*, hosts_file: str | None, as_json: bool) -> int:
    """List the hosts that can be named: hosts.yaml's, ssh_config's, and this machine as `local`."""
    from orchestrator.cli.printer import Printer
    from orchestrator.fleet.hosts_file import LazySshConfig, find_inventory
    from orchestrator.fleet.inventory import LOCAL, named_hosts, resolve_host

    printer = Printer(is_json=as_json)
    inventory, ssh_config = find_inventory(hosts_file, os.environ, cwd=Path.cwd(), home=Path.home()), LazySshConfig()
    entries = (*named_hosts(inventory, ssh_config), resolve_host(LOCAL, inventory, ssh_config))
    printer.table(("host", "address", "user", "port", "from"), [_row(entry) for entry in entries])
    if not inventory.declared:
        printer.progress("no hosts.yaml: `--on` also takes user@host; README shows the file's form")
    printer.document({"hosts": [_entry_json(entry) for entry in entries], "file": inventory.file})
    return 0


@hosts.command()
@click.argument("names", nargs=-1)
@hosts_option
@json_option
def check(*, names: Sequence[str], hosts_file: str | None, as_json: bool) -> int:
    """Read the hosts' facts, say what stands in the way, and what differs between them.

    Without NAMES: every host of hosts.yaml, else this machine. Exit code 3 when a host cannot be used,
    or not with Docker.
    """
    from concurrent.futures import ThreadPoolExecutor

    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer

    printer = Printer(is_json=as_json)
    entries = compose.resolve_entries(",".join(names) or None, hosts_file)
    with ThreadPoolExecutor(len(entries)) as pool:
        seen = tuple(pool.map(_check, entries))
    differing = _differences(seen)
    for checked in seen:
        _print_checked(printer, checked)
    for line in differing:
        printer.answer(f"differs: {line}")
    printer.document({"hosts": [c.as_json() for c in seen], "differences": list(differing)})
    return 0 if all(c.is_usable for c in seen) else 3


@hosts.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="do not ask; needs --fingerprint")
@click.option("--fingerprint", metavar="SHA256:…", help="what the key must be, as the host's console shows it")
@hosts_option
def trust(*, name: str, yes: bool, fingerprint: str | None, hosts_file: str | None) -> int:
    """Show a host's key, ask, and write it to known_hosts."""
    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import HostKeyChanged, HostKeyUnknown, InputError
    from orchestrator.fleet.known_hosts import append_key
    from orchestrator.fleet.ssh import DEFAULT_KNOWN_HOSTS, check_host_key, fetch_host_key, key_label, known_keys

    printer = Printer()
    if yes and fingerprint is None:
        raise InputError("`--yes` needs `--fingerprint`", hint="read it on the host: `ssh-keygen -lf FILE.pub`")
    (entry,) = compose.resolve_entries(name, hosts_file)
    if entry.is_local:
        raise InputError(f"{name} is this machine: it has no SSH key to trust")
    shown = fetch_host_key(entry, deadline_s=CONNECT_S)
    if fingerprint is not None and fingerprint != shown.fingerprint:
        raise HostKeyChanged(
            entry.name,
            f"shows {shown.display}, you expect {fingerprint}",
            hint="compare with `ssh-keygen -lf /etc/ssh/ssh_host_*.pub` on the host's own console",
        )
    try:
        check_host_key(entry, shown, known_keys(entry))
    except HostKeyUnknown:
        pass
    else:
        printer.answer(f"{entry.name} is trusted already: {shown.display}")
        return 0
    file = Path((entry.known_hosts or DEFAULT_KNOWN_HOSTS)[0]).expanduser()
    if not yes and not _agrees(printer, entry, shown, file):
        printer.answer("nothing was written")
        return 1
    try:
        append_key(file, key_label(entry), shown)
    except OSError as exc:
        raise InputError(f"cannot write {file}: {exc.strerror}", hint="name another file in hosts.yaml") from exc
    printer.answer(f"{entry.name} is trusted: {shown.display} in {file}")
    return 0


def _agrees(printer: Printer, entry: HostEntry, shown: HostKey, file: Path) -> bool:
    from orchestrator.errors import InputError

    printer.progress(f"{entry.name} ({entry.destination}) shows {shown.display}")
    printer.progress("compare with `ssh-keygen -lf /etc/ssh/ssh_host_*.pub` on the host's own console")
    if not sys.stdin.isatty():
        raise InputError(
            f"nobody to ask whether {shown.fingerprint} is right",
            hint=f"`gate0 hosts trust {entry.name} --yes --fingerprint …` with the fingerprint from the host",
        )
    return click.confirm(f"write it to {file}?", default=False, err=True)


def _check(entry: HostEntry) -> Checked:
    """One host, its failure included."""
    from orchestrator.errors import Gate0Error
    from orchestrator.fleet.facts import concerns, read_facts
    from orchestrator.fleet.hosts_file import open_host
    from orchestrator.fleet.lock import HostLock

    host = open_host(entry, connect_s=CONNECT_S)
    try:
        facts = read_facts(host)
        holder = HostLock(host).owner()
    except Gate0Error as exc:
        return Checked(entry=entry, error=exc)
    finally:
        host.close()
    return Checked(entry=entry, facts=facts, concerns=concerns(facts), lock=holder.display if holder else None)


def _differences(seen: Sequence[Checked]) -> tuple[str, ...]:
    """Each host beside the first that answered."""
    from orchestrator.fleet.facts import differences, same_machine

    read = [c.facts for c in seen if c.facts is not None]
    lines: list[str] = []
    for other in read[1:]:
        if same_machine(read[0], other):
            lines.append(f"nothing: {read[0].host} and {other.host} are one machine ({other.hostname})")
        lines += differences(read[0], other)
    return tuple(lines)


def _print_checked(printer: Printer, checked: Checked) -> None:
    printer.answer(f"{checked.entry.name}  {checked.entry.destination}")
    if checked.facts is not None:
        for name, text in _summary(checked.facts):
            printer.answer(f"  {name:<9}{text}")
    if checked.lock is not None:
        printer.answer(f"  {'lock':<9}held by {checked.lock}")
    for concern in checked.concerns:
        printer.answer(f"  {concern.level.value}: {concern.message}\n    hint: {concern.hint}")
    if checked.error is not None:
        printer.error(checked.error.message, checked.error.hint)
    printer.answer(f"  {checked.verdict}")


def _summary(facts: HostFacts) -> list[tuple[str, str]]:
    """The facts that a person looks for first; what the host does not tell is left out."""
    system = " · ".join(
        word
        for word in (
            facts.machine,
            f"DGX OS {facts.dgx_release}" if facts.dgx_release else facts.os,
            facts.kernel and f"kernel {facts.kernel}",
            facts.arch,
            facts.cpu_count and f"{facts.cpu_count} CPUs",
        )
        if word
    )
    lines = [("system", system)]
    for gpu in facts.gpus:
        parts = [gpu.name or "GPU", f"driver {gpu.driver}" if gpu.driver else None]
        parts.append(f"CUDA {facts.cuda_driver}" if facts.cuda_driver else None)
        parts.append(f"{gpu.temperature_c:.0f} °C" if gpu.temperature_c is not None else None)
        lines.append(("gpu", " · ".join(p for p in parts if p)))
    total, available = facts.memory.total_bytes, facts.memory.available_bytes
    if total is not None and available is not None:
        swap = facts.memory.swap_total_bytes
        tail = "" if swap is None else f", swap {swap / GIB:.0f} GiB" if swap else ", no swap"
        lines.append(("memory", f"{available / GIB:.1f} of {total / GIB:.1f} GiB available{tail}"))
    disks = ", ".join(f"{free / GIB:.0f} GiB free at {path}" for path, free in facts.disk_free_bytes.items())
    lines.append(("disk", disks))
    if facts.docker.is_reachable:
        running = facts.docker.containers_running
        count = "" if running is None else f", {running} containers running"
        lines.append(("docker", f"{facts.docker.version}{count}"))
    lines.append(("unread", ", ".join(facts.unread)))
    return [(name, text) for name, text in lines if text]


def _row(entry: HostEntry) -> list[str]:
    return [entry.name, entry.address, entry.user or "", "" if entry.is_local else str(entry.port), entry.source]


def _entry_json(entry: HostEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "address": entry.address,
        "user": entry.user,
        "port": None if entry.is_local else entry.port,
        "is_local": entry.is_local,
        "source": entry.source,
    }
