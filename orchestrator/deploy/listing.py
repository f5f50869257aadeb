"""The process runtime's servers, read from what its scripts print on the host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.deploy.runtime import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProcess:
    """A server as the host's folder and /proc show it."""

    server: Server
    supervisor_pid: int | None


def read_listing(text: str) -> tuple[ListedProcess, ...]:
    """The servers in what `scripts.LIST` printed.

    One runs as long as no exit was written and its process or its supervisor lives: between the two, the supervisor is
    about to write. Neither alive and no exit written: it vanished (reboot, supervisor killed), exit code None.
    """
    boot, blocks = "", list[dict[str, str]]()
    for line in text.splitlines():
        key, _, words = line.partition(" ")
        if key == "boot":
            boot = words
        elif key == "server":
            blocks.append({"server": words})
        elif blocks:
            blocks[-1][key] = words
    return tuple(_listed_process(block, boot) for block in blocks)


def listening_ports(proc_net_tcp: str) -> frozenset[int]:
    """TCP ports in state LISTEN in the text of /proc/net/tcp or tcp6."""
    rows = (line.split() for line in proc_net_tcp.splitlines())
    return frozenset(int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == "0A")


def _listed_process(block: Mapping[str, str], boot: str) -> ListedProcess:
    state = json.loads(block["state"])
    pid, start, supervisor, supervisor_start, its_boot, started_at = block.get("pid", "- - - - - -").split()
    code, _, finished_at = block.get("exit", "").partition(" ")
    is_running = (
        not code
        and its_boot == boot
        and (_is_same(block.get("server_stat"), start) or _is_same(block.get("supervisor_stat"), supervisor_start))
    )
    server = Server(
        id=f"{block['server']}@{state['token']}",
        name=block["server"],
        image=state["image"],
        image_digest=state["digest"],
        labels=state["labels"],
        is_running=is_running,
        exit_code=int(code) if code else None,
        started_at=None if pid == "-" else started_at,
        finished_at=finished_at or None,
    )
    return ListedProcess(server=server, supervisor_pid=None if supervisor == "-" else int(supervisor))


def _is_same(stat: str | None, start: str) -> bool:
    """Whether /proc/PID/stat (from the state letter on) is of the process that started then, and not a zombie."""
    fields = stat.split() if stat else []
    return len(fields) > 19 and fields[0] not in ("Z", "X") and fields[19] == start
