"""What is declared: a serving profile as frozen values.

Nothing here reads a file or knows an engine. `None` means "not declared": the engine's default holds.
Descriptions for users live in schema/profile.schema.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from orchestrator.values import Json

FlagValue = Json
"""A scalar, a list, a mapping (JSON), True/False, or None (leave the flag out)."""


class Task(StrEnum):
    """What the server is asked to do; readiness and gates follow it."""

    GENERATE = "generate"
    EMBED = "embed"
    RERANK = "rerank"
    OTHER = "other"


class RuntimeKind(StrEnum):
    """How the server is run on its host."""

    DOCKER = "docker"
    PROCESS = "process"


class PullPolicy(StrEnum):
    """When the image is pulled."""

    MISSING = "missing"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """`{secret: NAME}`: the value comes from the environment or the secrets file."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedKey:
    """`api_key: generate`: a key that gate0 makes, and keeps in a file while the server is left up."""


EnvValue = str | SecretRef | None
"""None unsets a variable that a parent profile set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """Which weights: a hub repository (with revision and file), or a path on the host."""

    repo: str | None = None
    revision: str | None = None
    file: str | None = None
    path: str | None = None

    @property
    def display(self) -> str:
        """The one string that names it in tables."""
        return self.repo or self.path or "(in the image)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculative:
    """Speculative decoding. `method`: mtp, eagle3, dflash, dspark, ngram, draft_model."""

    method: str
    num_tokens: int
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixCheckpoint:
    """Shared-prefix checkpoints of a hybrid model's state; `match_unit` in tokens."""

    match_unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """The portable settings: one word for all engines."""

    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    memory_fraction: float | None = None
    memory_gib: float | None = None
    prefix_caching: bool | None = None
    prefix_checkpoint: PrefixCheckpoint | None = None
    speculative: Speculative | None = None
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    kv_cache_dtype: str | None = None
    quantization: str | None = None
    tensor_parallel: int | None = None
    chat_template: str | None = None
    thinking: bool | None = None
    thinking_budget: int | None = None
    max_output: int | None = None
    limit_mm: Mapping[str, int] | None = None
    seed: int | None = None
    api_key: SecretRef | GeneratedKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A bind mount or named volume. `source` may start with `~` (the SSH user's home on the host)."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A published port: `host` on the host reaches `container` inside. `address`: the host's own, None: all of them."""

    host: int
    container: int
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """How Docker runs the server. `entrypoint`: `keep`, or the words that replace it."""

    network: str = "host"
    ipc: str | None = "host"
    shm_gib: float | None = None
    mounts: tuple[Mount, ...] = ()
    ports: tuple[Port, ...] = ()
    ulimits: Mapping[str, int] = field(default_factory=dict)
    entrypoint: tuple[str, ...] | None = None
    restart: str = "no"
    gpus: Literal["auto", "all", "none"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """How long to wait for the first token, and for a log line before "stalled" is said. Seconds."""

    timeout_s: float = 2400.0
    stall_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateChoice:
    """Which suite gates this profile. `params`: per gate name, overrides; `optional`: gates that may fail."""

    suite: str = "gate0"
    params: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()

    @property
    def is_unmodified(self) -> bool:
        """True when the suite runs as shipped: only then may a table say 'Gate 0 passed'."""
        return not self.params and not self.optional


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One serving configuration, `extends` already resolved.

    Attributes:
        lineage: Names of the parents, nearest first.
        source: File it was read from; not part of the digest.
        command: `generic` only: the words after the image, verbatim.
        binary: `runtime: process` only: the engine's executable (a name on the PATH or a path).
        attach: `endpoint` only: the base URL. attach_container: the container that serves there, by name.
        engine_version: The engine's version where the image's tag does not tell it; chooses the flag list alone.
        slots: Stated number of parallel slots, recorded as unverified until the server tells.
        keep_defaults: Names of flags that gate0 must not add (`refuse_added` in YAML).
        silence: Codes of advisories that are not to be said.
    """

    name: str
    engine: str
    title: str | None = None
    note: str | None = None
    task: Task = Task.GENERATE
    runtime: RuntimeKind = RuntimeKind.DOCKER
    image: str | None = None
    engine_version: str | None = None
    pull: PullPolicy = PullPolicy.MISSING
    model: ModelRef = field(default_factory=ModelRef)
    served_name: str | None = None
    port: int | None = None
    expose: Literal["network", "loopback"] = "network"
    serve: Serve = field(default_factory=Serve)
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    binary: str | None = None
    attach: str | None = None
    attach_container: str | None = None
    slots: int | None = None
    nodes: int = 1
    container: ContainerSettings = field(default_factory=ContainerSettings)
    ready: Ready = field(default_factory=Ready)
    gates: GateChoice = field(default_factory=GateChoice)
    workloads: tuple[str, ...] = ()
    allow_unknown_flags: tuple[str, ...] = ()
    refuse_added: tuple[str, ...] = ()
    silence: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    source: str | None = None

    @property
    def label(self) -> str:
        """The row's name in tables."""
        return self.title or self.name
