"""Servers that gate0 started, found by their labels alone on any host: what `ps`, `logs` and `stop` share."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.errors import Gate0Error, InputError, RuntimeUnavailable

if TYPE_CHECKING:
    from orchestrator.deploy.runtime import Runtime, Server
    from orchestrator.fleet.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A server on its host, with the runtime that runs it."""

    host: Host
    runtime: Runtime
    server: Server

    @property
    def profile(self) -> str:
        from orchestrator.deploy.runtime import LABEL_PROFILE

        return self.server.labels.get(LABEL_PROFILE, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What was found, and the hosts that could not be asked."""

    found: tuple[Found, ...]
    errors: tuple[Gate0Error, ...]


def find_servers(hosts: Sequence[Host]) -> Search:
    """Ask all hosts at the same time, both runtimes each. A host without Docker is not an error."""
    if not hosts:
        return Search(found=(), errors=())
    with ThreadPoolExecutor(len(hosts)) as pool:
        parts = list(pool.map(_on_host, hosts))
    return Search(found=tuple(f for p in parts for f in p.found), errors=tuple(e for p in parts for e in p.errors))


def choose(found: Sequence[Found], names: Sequence[str], *, what: str) -> tuple[Found, ...]:
    """Those with one of the names (server or profile); all when no name is given.

    Raises:
        InputError: A name fits none.
    """
    for name in names:
        if not any(name in (f.server.name, f.profile, f.server.id[:12]) for f in found):
            have = ", ".join(sorted({f.server.name for f in found})) or "none"
            raise InputError(f"no server named {name!r} to {what}", hint=f"gate0 started: {have}")
    return tuple(f for f in found if not names or {f.server.name, f.profile, f.server.id[:12]} & set(names))


def _on_host(host: Host) -> Search:
    from orchestrator.deploy.open import open_runtime
    from orchestrator.profile.model import RuntimeKind

    found: list[Found] = []
    errors: list[Gate0Error] = []
    for kind in RuntimeKind:
        try:
            runtime = open_runtime(kind, host)
            found.extend(Found(host=host, runtime=runtime, server=s) for s in runtime.find())
        except RuntimeUnavailable:
            continue
        except Gate0Error as exc:
            errors.append(exc)
            break
    return Search(found=tuple(found), errors=tuple(errors))
