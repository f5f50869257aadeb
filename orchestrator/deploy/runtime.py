"""What runs a server on a host, whichever way: Docker and plain processes behind one protocol.

The labels are the state: whatever bears `dev.gate0.run` was started by gate0, and only that is ever stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.fleet.host import Completed
from orchestrator.profile.model import Mount, Port, PullPolicy
from orchestrator.values import Secret

LABEL_RUN = "dev.gate0.run"
LABEL_PROFILE = "dev.gate0.profile"
LABEL_DIGEST = "dev.gate0.digest"
LABEL_RANK = "dev.gate0.rank"
LABEL_PORT = "dev.gate0.port"
LABEL_ENGINE = "dev.gate0.engine"
LABEL_SERVED = "dev.gate0.served"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One server to start: the same value for Docker and for a process.

    Attributes:
        name: Container name, or the process's state-folder name.
        image: Docker image; for a process the binary.
        entrypoint: None keeps the image's own.
        command: Words after the image (or binary).
        env: Values; `Secret` never reaches argv, labels or logs.
        labels: Ownership, see LABEL_*.
        gpus: Ask the runtime for all GPUs.
        shm_bytes: Size of /dev/shm, None: Docker's default (or the host's with ipc=host).
    """

    name: str
    image: str
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] = ()
    env: Mapping[str, str | Secret] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    network: str = "host"
    ipc: str | None = None
    shm_bytes: int | None = None
    mounts: tuple[Mount, ...] = ()
    ports: tuple[Port, ...] = ()
    ulimits: Mapping[str, int] = field(default_factory=dict)
    gpus: bool = False
    restart: str = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server as its runtime sees it now. Times are ISO-8601 UTC as the runtime gives them.

    Attributes:
        ports: Published on the host. has_host_network: whatever it listens on is the host's.
        command: Entrypoint and words, as it was started with; (): not asked for.
    """

    id: str
    name: str
    image: str
    image_digest: str | None
    labels: Mapping[str, str]
    is_running: bool
    exit_code: int | None = None
    oom_killed: bool = False
    started_at: str | None = None
    finished_at: str | None = None
    ports: tuple[int, ...] = ()
    has_host_network: bool = False
    command: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        return LABEL_RUN in self.labels


@dataclass(frozen=True, slots=True, kw_only=True)
class PullProgress:
    """Where a pull is. Bytes over all layers known so far; totals grow while layers are announced."""

    done_bytes: int
    total_bytes: int
    layers_done: int
    layers: int
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFacts:
    """What the runtime says of itself. `has_gpu`: GPUs can be requested."""

    kind: str
    version: str
    has_gpu: bool
    storage_driver: str | None = None
    data_root: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A command to run once in an image: without GPU, network, mounts or the profile's environment.

    Attributes:
        image: Docker image; for a process the program.
        entrypoint: None keeps the image's own. Of a program (a process's image) PYTHON is the interpreter that it is
            written for, or the program itself when that is one.
        owner: Value of the ownership label while it runs.
    """

    image: str
    words: tuple[str, ...]
    entrypoint: tuple[str, ...] | None = None
    owner: str = "question"
    timeout_s: float = 60.0


PYTHON = ("python3",)
"""The entrypoint that means the image's Python."""

OnPull = Callable[[PullProgress], None]
IsCancelled = Callable[[], bool]


def never() -> bool:
    """The answer of who cannot be cancelled."""
    return False


class Runtime(Protocol):
    """Docker on a host, or plain processes on it. Implementations: docker, process, and the tests' fake."""

    def facts(self) -> RuntimeFacts:
        """
        Raises:
            RuntimeUnavailable: Docker absent, its daemon down, or no permission; each with its remedy.
        """
        ...

    def image_digest(self, image: str) -> str | None:
        """Registry digest (`sha256:…`) of a local image, its id if it never saw a registry, None when absent."""
        ...

    def pull(self, image: str, policy: PullPolicy, on_progress: OnPull) -> str:
        """Have the image here; returns its digest. Skips the network when the policy and the digest allow.

        Raises:
            ImageMissing: It is not to be had (names the registry's answer).
        """
        ...

    def find(self, *, label: tuple[str, str] | None = None, name: str | None = None) -> tuple[Server, ...]:
        """Servers with that label (value `""`: any) or exact name, running or not; by default all that gate0 owns."""
        ...

    def foreign(self) -> tuple[Server, ...]:
        """Running containers that gate0 does not own (for the preflight's picture of the box)."""
        ...

    def start(self, spec: ServerSpec) -> Server:
        """Create and start.

        Raises:
            NameTaken: A server of that name exists.
            PortTaken: The runtime says so at once.
            RuntimeFailure: Anything else, with the runtime's words; nothing is left behind.
        """
        ...

    def get(self, server_id: str) -> Server | None:
        """Its state now, None when it is gone."""
        ...

    def log_tail(self, server_id: str, lines: int) -> tuple[str, ...]:
        """The last lines of its log, stdout and stderr as they came, oldest first; `lines` <= 0: all."""
        ...

    def log_head(self, server_id: str, lines: int) -> tuple[str, ...]:
        """The first lines of its log, at most so many: of one that ran for weeks the rest stays unread."""
        ...

    def follow(self, server_id: str, *, timeout_s: float, is_cancelled: IsCancelled = never) -> Iterator[str]:
        """Log lines as they come, from the beginning, until the server ends, the deadline passes or it is cancelled.

        `is_cancelled` is asked at least once a second, lines or not: a follower in a thread can always be ended.
        A server that is gone has no lines.
        """
        ...

    def ask(self, question: Question, *, is_cancelled: IsCancelled = never) -> Completed:
        """Run it to its end; nothing of it is left behind, however it ends.

        Raises:
            ImageMissing: The image is not on the host; it is not pulled.
            RuntimeFailure: It could not be started.
            CommandTimedOut: It was still running at the deadline.
            Interrupted: `is_cancelled` said so; it is asked at least once a second.
        """
        ...

    def stop(self, server_id: str, *, grace_s: float = 30.0) -> None:
        """SIGTERM, then SIGKILL after the grace. A server that is gone is no error."""
        ...

    def remove(self, server_id: str) -> None:
        """Delete it, its log included. A server that is gone is no error."""
        ...

    def close(self) -> None: ...
