"""Servers that gate0 started, found by their labels alone on any host: what `ps`, `logs` and `stop` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.errors import Gate0Error, InputError, RuntimeNotInstalled, RuntimeUnavailable

if TYPE_CHECKING:
    from orchestrator.deploy.runtime import Runtime, Server
    from orchestrator.fleet.host import Host
    from orchestrator.profile.model import RuntimeKind

    OpenRuntime = Callable[[RuntimeKind, Host], Runtime]


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


def find_servers(hosts: Sequence[Host], *, open_runtime: OpenRuntime | None = None) -> Search:
    """Ask all hosts at the same time, both runtimes each.

    A host without Docker is not an error; one whose Docker does not answer is: what runs in it cannot be told.
    """
    from orchestrator.deploy import open as opening

    if not hosts:
        return Search(found=(), errors=())
    with ThreadPoolExecutor(len(hosts)) as pool:
        parts = list(pool.map(partial(_on_host, open_runtime=open_runtime or opening.open_runtime), hosts))
    return Search(found=tuple(f for p in parts for f in p.found), errors=tuple(e for p in parts for e in p.errors))


def choose(search: Search, names: Sequence[str], *, what: str) -> tuple[Found, ...]:
    """Those with one of the names (server or profile); all when no name is given.

    Raises:
        InputError: A name fits none, and every host could be asked.
    """
    for name in names:
        if not search.errors and not any(name in _names(f) for f in search.found):
            have = ", ".join(sorted({f.server.name for f in search.found})) or "none"
            raise InputError(f"no server named {name!r} to {what}", hint=f"gate0 started: {have}")
    return tuple(f for f in search.found if not names or _names(f) & set(names))


def _names(found: Found) -> set[str]:
    return {found.server.name, found.profile, found.server.id[:12]}


def _on_host(host: Host, *, open_runtime: OpenRuntime) -> Search:
    from orchestrator.profile.model import RuntimeKind

    found: list[Found] = []
    errors: list[Gate0Error] = []
    for kind in RuntimeKind:
        try:
            runtime = open_runtime(kind, host)
            found.extend(Found(host=host, runtime=runtime, server=s) for s in runtime.find())
        except RuntimeNotInstalled:
            continue
        except RuntimeUnavailable as exc:  # the other runtime may answer
            errors.append(exc)
        except Gate0Error as exc:
            errors.append(exc)
            break
    return Search(found=tuple(found), errors=tuple(errors))
