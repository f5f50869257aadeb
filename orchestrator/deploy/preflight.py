"""Whether a host can take a server, and what would become of those that are there. A judgement over facts, pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from orchestrator.deploy.memory import GIB, MemoryBudget, memory_budget
from orchestrator.deploy.runtime import LABEL_DIGEST, LABEL_PORT, LABEL_PROFILE, Server, ServerSpec
from orchestrator.engines.engine import EngineCommand
from orchestrator.errors import BoxError, NameTaken, PortTaken, PreflightFailed
from orchestrator.profile.model import Profile, RuntimeKind

_DISK_NEEDED_GIB = 1.0
_DISK_ADVISED_GIB = 20.0


class HostState(Protocol):
    """The facts of a host that are judged here; None: the host could not tell."""

    @property
    def memory_total_bytes(self) -> int | None: ...

    @property
    def memory_available_bytes(self) -> int | None: ...

    @property
    def disk_free_bytes(self) -> int | None: ...

    @property
    def listening_ports(self) -> Sequence[int] | frozenset[int] | None: ...

    @property
    def gpu_processes(self) -> Sequence[object] | None: ...


class ProblemKind(StrEnum):
    """What kind of thing is in the way; decides the error's type."""

    PORT = "port"
    NAME = "name"
    MEMORY = "memory"
    DISK = "disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One thing that is in the way, and what to do about it."""

    kind: ProblemKind
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The judgement.

    Attributes:
        problems: What makes the start impossible; empty when it may go on.
        warnings: What is worth knowing.
        replaces: gate0's own servers that must go first (same name or port, another digest or ended).
        reuses: A running server of the same digest: starting is a no-op.
        memory: What the profile's memory setting comes to on this host.
    """

    problems: tuple[Obstacle, ...] = ()
    warnings: tuple[str, ...] = ()
    replaces: tuple[Server, ...] = ()
    reuses: Server | None = None
    memory: MemoryBudget = field(default_factory=MemoryBudget)

    def raise_for_problems(self, host: str) -> None:
        """Raise what is in the way.

        Raises:
            PortTaken, NameTaken: When that is the only obstacle.
            PreflightFailed: Otherwise, with all of them.
        """
        if self.problems:
            raise _error(host, self.problems)


def judge(  # noqa: PLR0917 (six different things, each of its own type)
    profile: Profile,
    command: EngineCommand,
    spec: ServerSpec,
    facts: HostState,
    existing: tuple[Server, ...],
    foreign: tuple[Server, ...] = (),
) -> Preflight:
    """Judge one host before anything is started on it.

    Args:
        existing: gate0's servers there, running or not, and whatever has the spec's name (`Runtime.find`); the same
            server twice is one.
        foreign: Running containers of others.
    """
    ours = tuple({server.id: server for server in existing if server.is_ours}.values())
    reuses = next((server for server in ours if server.is_running and _has_same_digest(server, spec)), None)
    if reuses is not None:
        return Preflight(reuses=reuses)
    # The label has the port on the host, which differs from the command's when the profile publishes it so.
    port = int(spec.labels.get(LABEL_PORT, command.port))
    replaces = tuple(server for server in ours if _is_in_the_way(server, spec, port))
    frees_memory = any(server.is_running for server in replaces)
    memory = memory_budget(
        profile,
        total_bytes=facts.memory_total_bytes,
        # What runs now and will be replaced gives its memory back: what is available then is not known yet.
        available_bytes=None if frees_memory else facts.memory_available_bytes,
    )
    found = (
        _name_problem(spec, existing, foreign),
        _port_problem(port, facts, replaces),
        _memory_problem(memory),
        _disk_problem(facts),
    )
    return Preflight(
        problems=tuple(one for one in found if one is not None),
        warnings=(*memory.warnings, *_neighbours(ours, replaces, foreign, facts), *_disk_warnings(profile, facts)),
        replaces=replaces,
        memory=memory,
    )


def _has_same_digest(server: Server, spec: ServerSpec) -> bool:
    digest = spec.labels.get(LABEL_DIGEST)
    return digest is not None and server.name == spec.name and server.labels.get(LABEL_DIGEST) == digest


def _is_in_the_way(server: Server, spec: ServerSpec, port: int) -> bool:
    return server.name == spec.name or (server.is_running and server.labels.get(LABEL_PORT) == str(port))


def _name_problem(spec: ServerSpec, existing: Sequence[Server], foreign: Sequence[Server]) -> Obstacle | None:
    others = (server for server in (*existing, *foreign) if not server.is_ours and server.name == spec.name)
    holder = next(others, None)
    if holder is None:
        return None
    return Obstacle(
        kind=ProblemKind.NAME,
        message=f"the name {spec.name} is taken by a container that gate0 did not start ({holder.image})",
        hint=f"`docker rm -f {spec.name}` there if it is yours, or rename the profile",
    )


def _port_problem(port: int, facts: HostState, replaces: Sequence[Server]) -> Obstacle | None:
    is_ours = any(server.is_running and server.labels.get(LABEL_PORT) == str(port) for server in replaces)
    if is_ours or port not in (facts.listening_ports or ()):
        return None
    return Obstacle(
        kind=ProblemKind.PORT,
        message=f"port {port} is taken by something that gate0 did not start",
        hint=f"see who has it with `ss -ltnp 'sport = :{port}'` there, or give the profile another `port:`",
    )


def _memory_problem(memory: MemoryBudget) -> Obstacle | None:
    if memory.problem is None:
        return None
    return Obstacle(
        kind=ProblemKind.MEMORY,
        message=memory.problem,
        hint="lower `memory_fraction`, or stop what else runs on the host",
    )


def _disk_problem(facts: HostState) -> Obstacle | None:
    free = facts.disk_free_bytes
    if free is None or free >= _DISK_NEEDED_GIB * GIB:
        return None
    return Obstacle(
        kind=ProblemKind.DISK,
        message=f"only {free / GIB:.1f} GiB of disk are free",
        hint="free space: `docker system df` and `du -sh ~/.cache/huggingface` show the usual holders",
    )


def _disk_warnings(profile: Profile, facts: HostState) -> tuple[str, ...]:
    free = facts.disk_free_bytes
    is_small = free is not None and _DISK_NEEDED_GIB * GIB <= free < _DISK_ADVISED_GIB * GIB
    if free is None or not is_small or profile.runtime is not RuntimeKind.DOCKER:
        return ()
    return (f"{free / GIB:.1f} GiB of disk are free: an engine's image alone takes 10 to 20 GiB",)


def _neighbours(
    ours: Sequence[Server], replaces: Sequence[Server], foreign: Sequence[Server], facts: HostState
) -> tuple[str, ...]:
    staying = [server for server in ours if server.is_running and server not in replaces]
    lines = [
        f"{server.name} (gate0, profile {server.labels.get(LABEL_PROFILE, 'unknown')}) stays up beside it"
        for server in staying
    ]
    if foreign:
        names = ", ".join(server.name for server in foreign)
        lines.append(f"running beside it, not started by gate0: {names}")
    if facts.gpu_processes and not (staying or replaces):
        lines.append(f"on the GPU already: {len(facts.gpu_processes)} of others; the figures are not of a quiet box")
    return tuple(lines)


def _error(host: str, problems: Sequence[Obstacle]) -> BoxError:
    kinds = {problem.kind for problem in problems}
    message = "; ".join(problem.message for problem in problems)
    hint = "; ".join(problem.hint for problem in problems)
    if kinds == {ProblemKind.PORT}:
        return PortTaken(f"{host}: {message}", hint=hint)
    if kinds == {ProblemKind.NAME}:
        return NameTaken(f"{host}: {message}", hint=hint)
    return PreflightFailed(host, message, hint=hint)
