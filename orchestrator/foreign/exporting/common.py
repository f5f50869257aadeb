"""What every exporter starts from: one profile's servers, free of gate0's own labels, and the comments above them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.deploy.launch import server_name, server_spec
from orchestrator.deploy.runtime import ServerSpec
from orchestrator.engines.engine import ADDED, Added, Engine, EngineCommand, Placement
from orchestrator.errors import InputError
from orchestrator.foreign.carrying import MARK, carry
from orchestrator.profile.digest import profile_digest
from orchestrator.profile.model import GeneratedKey, Port, Profile, RuntimeKind, SecretRef
from orchestrator.values import Secret

MEASURING = frozenset(
    {
        *("--enable-prompt-tokens-details", "--enable-per-request-metrics", "--enable-cache-report"),
        *("--enable-metrics", "--metrics", "--slots", "--verbosity"),
    }
)
"""Words that gate0 adds so that Gate 0 and the sweeps can see more; the server serves the same without them."""

STAND_INS = ("node0", "node1", "node2", "node3")
"""What stands for the hosts' addresses on the link when nobody names the hosts."""


_PYTHON = r"(?:.*/)?python[0-9.]*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One server of the profile: rank 0, and on several hosts the others."""

    number: int
    spec: ServerSpec
    command: EngineCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """Something in the profile that the form cannot say, or says only with somebody's help."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is exported.

    Attributes:
        health: Path that answers 200 once the server is up, None: not known of this engine.
        is_bare: What gate0 adds for measuring is left out.
    """

    profile: Profile
    ranks: tuple[Rank, ...]
    health: str | None = None
    is_bare: bool = False

    @property
    def is_in_docker(self) -> bool:
        return self.profile.runtime is RuntimeKind.DOCKER

    @property
    def added(self) -> tuple[Added, ...]:
        return self.ranks[0].command.added


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file: the name that suits it, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export: a file, or one for each host."""

    files: tuple[ExportedFile, ...]
    unsaid: tuple[Unsaid, ...] = ()


def subject_of(
    profile: Profile, engine: Engine, *, addresses: Sequence[str] = STAND_INS, is_bare: bool = False
) -> Subject:
    """The profile's servers, as the plan makes them.

    Args:
        addresses: Of each rank's host on the link, rank 0 first.
        is_bare: Leave out what gate0 adds for measuring.

    Raises:
        InputError: The engine cannot express the profile, or starts nothing.
    """
    if profile.attach is not None:
        raise InputError(
            f"{profile.name}: engine: {profile.engine} attaches to {profile.attach}, which someone else started: "
            "there is no command to export"
        )
    rendered = profile
    if is_bare:
        rendered = dataclasses.replace(profile, refuse_added=(*profile.refuse_added, *sorted(MEASURING)))
    ranks = tuple(_rank(rendered, engine, number, addresses) for number in range(profile.nodes))
    health = "/health" if engine.name in {"vllm", "sglang", "llamacpp"} else None
    return Subject(profile=profile, ranks=ranks, health=health, is_bare=is_bare)


def refuse_process(subject: Subject, form: str) -> None:
    """
    Raises:
        InputError: The profile runs the engine's own binary, and the form knows containers only.
    """
    if not subject.is_in_docker:
        raise InputError(
            f"{subject.profile.name}: runtime: process has no image, and {form} starts images only",
            hint="`--to systemd` runs the binary itself",
        )


def header(subject: Subject, rank: Rank, unsaid: Sequence[object] = ()) -> tuple[str, ...]:
    """The lines above an export, without their comment sign: what it is, the carried profile, what to know of it."""
    profile = subject.profile
    title = f": {one_line(profile.title)}" if profile.title else ""
    where = f", rank {rank.number} of {profile.nodes}" if profile.nodes > 1 else ""
    return (
        f"{profile.name}{title}",
        f"exported by gate0, profile digest {profile_digest(profile)}{where}",
        *_added_lines(rank.command.added),
        *(f"note: {one_line(str(item))}" for item in unsaid),
        f"{MARK} {carry(profile)}",
    )


def common_unsaid(subject: Subject) -> Iterator[Unsaid]:
    """What no form can say."""
    profile = subject.profile
    if profile.serve.memory_gib is not None:
        note = next((n for n in subject.ranks[0].command.notes if n.startswith("serve.memory_gib")), "")
        yield Unsaid(path="serve.memory_gib", message=f"depends on the host: {note.partition(': ')[2]}")
    if isinstance(profile.serve.api_key, GeneratedKey):
        yield Unsaid(path="serve.api_key", message="gate0 generates the key; here it is one of your own")
    if profile.nodes > 1 and any(name in word for rank in subject.ranks for word in _words(rank) for name in STAND_INS):
        names = " and ".join(STAND_INS[: profile.nodes])
        yield Unsaid(path="nodes", message=f"put the hosts' addresses on the link in the place of {names}")


def secrets_of(spec: ServerSpec) -> Mapping[str, str]:
    """Variable to the secret's name, for each variable whose value is no part of an export."""
    return {name: value.name for name, value in spec.env.items() if isinstance(value, Secret)}


def option_rows(words: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Words in rows, each option with its values in one: `((model,), (--max-model-len, 8192), …)`."""
    rows: list[list[str]] = []
    for word in words:
        is_option = re.match(r"--?[A-Za-z]", word) and not (
            word == "-m" and rows and re.fullmatch(_PYTHON, rows[-1][0])
        )
        if rows and not is_option:
            rows[-1].append(word)
        else:
            rows.append([word])
    return tuple(tuple(row) for row in rows)


def mount_word(source: str, target: str, *, read_only: bool) -> str:
    """A mount as Docker's `-v` takes it."""
    return f"{source}:{target}:ro" if read_only else f"{source}:{target}"


def port_word(port: Port) -> str:
    """A published port as Docker's `-p` takes it."""
    return f"{port.address}:{port.host}:{port.container}" if port.address else f"{port.host}:{port.container}"


def plain_name(profile: Profile, rank: int = 0) -> str:
    """The container's name without gate0's own prefix: nothing here is gate0's to stop."""
    return server_name(profile, rank).removeprefix("gate0-")


def one_line(text: str) -> str:
    """The text without line ends, for a comment."""
    return " ".join(text.split())


def _rank(profile: Profile, engine: Engine, number: int, addresses: Sequence[str]) -> Rank:
    place = (
        Placement(rank=number, nodes=profile.nodes, address=addresses[number], master_address=addresses[0])
        if profile.nodes > 1
        else Placement()
    )
    command = engine.command(profile, place)
    declared = {**command.env, **profile.env}
    env: dict[str, str | Secret] = {
        name: Secret(value.name, "") if isinstance(value, SecretRef) else value
        for name, value in declared.items()
        if value is not None
    }
    if profile.serve.api_key is not None and command.api_key_env:
        key = profile.serve.api_key
        env[command.api_key_env] = Secret(key.name if isinstance(key, SecretRef) else command.api_key_env, "")
    gpus = profile.container.gpus != "none"
    spec = server_spec(profile, command, rank=number, run_id="", digest="", env=env, gpus=gpus, home="~")
    spec = dataclasses.replace(spec, name=plain_name(profile, number), labels={})
    return Rank(number=number, spec=spec, command=command)


def _added_lines(added: Sequence[Added]) -> Iterator[str]:
    if added:
        yield f"{ADDED} by gate0 (--bare leaves out what only measuring needs):"
    for item in added:
        yield f"  {' '.join(item.words)}: {one_line(item.reason)}"


def _words(rank: Rank) -> tuple[str, ...]:
    return (*rank.spec.command, *(value for value in rank.spec.env.values() if isinstance(value, str)))
