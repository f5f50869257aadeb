"""A runtime in memory: servers that do what a test wrote down.

    runtime = FakeRuntime(images={"vllm/vllm-openai:v1": "sha256:aa"})
    runtime.on_start("serve-1", log=("Loading weights",), dies_with=1)
    runtime.refuse_pull("no/such:1", "manifest unknown")

A test may also act on a running server: `write`, `die`, `vanish`. `settle()` waits until all followers have taken
what was written, so that a test that steps a clock by hand sees the same thing every time.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.deploy.runtime import (
    LABEL_PORT,
    LABEL_RUN,
    IsCancelled,
    OnPull,
    PullProgress,
    Question,
    RuntimeFacts,
    Server,
    ServerSpec,
    never,
)
from orchestrator.errors import BoxError, ImageMissing, Interrupted, NameTaken, PortTaken, RuntimeFailure
from orchestrator.fleet.host import Completed
from orchestrator.fleet.outcome import timed_out
from orchestrator.profile.model import PullPolicy

STARTED_AT = "2026-11-30T06:00:00Z"
ENDED_AT = "2026-11-30T06:00:01Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a server does as soon as it is started."""

    log: tuple[str, ...] = ()
    dies_with: int | None = None
    oom_killed: bool = False


@dataclass(slots=True, kw_only=True)
class _Running:
    server: Server
    spec: ServerSpec
    log: list[str] = field(default_factory=list)


class FakeRuntime:
    """A `Runtime` in memory; `calls` lists what was asked of it, in order, as `(verb, subject)`."""

    def __init__(
        self,
        *,
        images: Mapping[str, str] | None = None,
        registry: Mapping[str, str] | None = None,
        has_gpu: bool = False,
        unavailable: BoxError | None = None,
    ) -> None:
        self.images = dict(images or {})
        self.registry = dict(registry or {})
        self.calls: list[tuple[str, str]] = []
        self.taken_ports: set[int] = set()
        self.unavailable = unavailable
        self.is_closed = False
        self._has_gpu = has_gpu
        self._scripts: dict[str, Script] = {}
        self._answers: dict[str, Callable[[Question], Completed | None]] = {}
        self._pull_refusals: dict[str, str] = {}
        self._start_refusals: dict[str, BoxError] = {}
        self._servers: dict[str, _Running] = {}
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._followers: dict[int, tuple[str, int]] = {}
        self._follows_begun = 0

    def on_start(
        self, name: str, *, log: Sequence[str] = (), dies_with: int | None = None, oom_killed: bool = False
    ) -> None:
        """What every server of this name does when it starts."""
        self._scripts[name] = Script(log=tuple(log), dies_with=dies_with, oom_killed=oom_killed)

    def on_ask(self, image: str, answer: Callable[[Question], Completed | None]) -> None:
        """What a question to this image is answered; None: it hangs."""
        self._answers[image] = answer

    def refuse_pull(self, image: str, words: str) -> None:
        """Make the registry answer this."""
        self._pull_refusals[image] = words

    def refuse_start(self, name: str, error: BoxError) -> None:
        """Make the start of servers of this name fail."""
        self._start_refusals[name] = error

    def add_foreign(self, name: str, *, is_running: bool = True, image: str = "somebody/else:1") -> Server:
        """A container that gate0 does not own."""
        return self._add(ServerSpec(name=name, image=image), is_running=is_running)

    def write(self, server_id: str, *lines: str) -> None:
        """Add lines to a server's log."""
        with self._changed:
            self._servers[server_id].log.extend(lines)
            self._changed.notify_all()

    def die(self, server_id: str, exit_code: int, *, oom_killed: bool = False, last_words: Sequence[str] = ()) -> None:
        """End a server."""
        with self._changed:
            running = self._servers[server_id]
            running.log.extend(last_words)
            running.server = replace(
                running.server, is_running=False, exit_code=exit_code, oom_killed=oom_killed, finished_at=ENDED_AT
            )
            self._changed.notify_all()

    def vanish(self, server_id: str) -> None:
        """Have somebody else remove it."""
        with self._changed:
            del self._servers[server_id]
            self._changed.notify_all()

    def spec_of(self, server_id: str) -> ServerSpec:
        """What it was started from."""
        return self._servers[server_id].spec

    @property
    def followers(self) -> int:
        """How many follow a log now."""
        with self._changed:
            return len(self._followers)

    def settle(self, *, followers: int = 0, timeout_s: float = 5.0) -> None:
        """Wait until so many followers have begun, and each that is left has taken every line and asked for more."""

        def is_settled() -> bool:
            is_idle = all(not self._fresh(server_id, taken) for server_id, taken in self._followers.values())
            return is_idle and self._follows_begun >= followers

        with self._changed:
            assert self._changed.wait_for(is_settled, timeout_s), "a follower takes no lines"

    def facts(self) -> RuntimeFacts:
        self._note("facts", "")
        return RuntimeFacts(kind="fake", version="1", has_gpu=self._has_gpu)

    def image_digest(self, image: str) -> str | None:
        self._note("image_digest", image)
        return self.images.get(image)

    def pull(self, image: str, policy: PullPolicy, on_progress: OnPull) -> str:
        self._note("pull", image)
        if image in self.images and policy is not PullPolicy.ALWAYS:
            return self.images[image]
        words = self._pull_refusals.get(image)
        if policy is PullPolicy.NEVER:
            words = "`pull: never` is set"
        if words is not None or image not in self.registry:
            raise ImageMissing(
                f"fake: cannot pull {image}: {words or 'manifest unknown'}", hint="check the image's name"
            )
        for done in (0, 50, 100):
            on_progress(
                PullProgress(done_bytes=done, total_bytes=100, layers_done=done // 100, layers=1, status="Downloading")
            )
        self.images[image] = self.registry[image]
        return self.images[image]

    def find(self, *, label: tuple[str, str] | None = None, name: str | None = None) -> tuple[Server, ...]:
        self._note("find", name or "")
        if label is None and name is None:
            label = (LABEL_RUN, "")
        return tuple(
            one.server
            for one in list(self._servers.values())
            if name in (None, one.server.name)
            and (label is None or (label[0] in one.server.labels and label[1] in ("", one.server.labels[label[0]])))
        )

    def foreign(self) -> tuple[Server, ...]:
        self._note("foreign", "")
        servers = (one.server for one in self._servers.values())
        return tuple(server for server in servers if server.is_running and not server.is_ours)

    def start(self, spec: ServerSpec) -> Server:
        self._note("start", spec.name)
        if LABEL_RUN not in spec.labels:
            raise RuntimeFailure(f"fake: {spec.name} has no {LABEL_RUN} label: it could never be stopped")
        if spec.name in self._start_refusals:
            raise self._start_refusals[spec.name]
        if spec.image not in self.images:
            raise ImageMissing(f"fake: no such image: {spec.image}", hint="pull the image first")
        if any(one.server.name == spec.name for one in self._servers.values()):
            raise NameTaken(f"fake: {spec.name} is there already", hint="`gate0 stop` ends it")
        port = int(spec.labels.get(LABEL_PORT, "0"))
        if port and port in self.taken_ports | self._ports_in_use():
            raise PortTaken(f"fake: port {port} is taken", hint="give the profile another `port:`")
        server = self._add(spec, is_running=True)
        script = self._scripts.get(spec.name, Script())
        self.write(server.id, *script.log)
        if script.dies_with is not None:
            self.die(server.id, script.dies_with, oom_killed=script.oom_killed)
        return self._servers[server.id].server

    def ask(self, question: Question, *, is_cancelled: IsCancelled = never) -> Completed:
        self._note("ask", question.image)
        if question.image not in self.images:
            raise ImageMissing(f"fake: no such image: {question.image}", hint="pull the image first")
        answer = self._answers.get(question.image, lambda _: None)(question)
        if answer is not None:
            return answer
        if is_cancelled():
            raise Interrupted("stopped on request")
        raise timed_out("fake", (question.image,), question.timeout_s, is_killed=True)

    def get(self, server_id: str) -> Server | None:
        with self._changed:
            one = self._servers.get(server_id)
            return one.server if one else None

    def log_tail(self, server_id: str, lines: int) -> tuple[str, ...]:
        with self._changed:
            one = self._servers.get(server_id)
            log = tuple(one.log) if one else ()
        return log[-lines:] if lines > 0 else log

    def log_head(self, server_id: str, lines: int) -> tuple[str, ...]:
        return self.log_tail(server_id, 0)[:lines]

    def follow(self, server_id: str, *, timeout_s: float, is_cancelled: IsCancelled = never) -> Iterator[str]:
        end_s = time.monotonic() + timeout_s
        number, taken = next(self._numbers), 0
        with self._changed:
            self._followers[number] = (server_id, taken)
            self._follows_begun += 1
        try:
            while True:
                with self._changed:
                    self._followers[number] = (server_id, taken)
                    self._changed.notify_all()
                    while not (fresh := self._fresh(server_id, taken)):
                        if self._has_ended(server_id) or is_cancelled() or time.monotonic() >= end_s:
                            return
                        self._changed.wait(min(0.05, max(0.0, end_s - time.monotonic())))
                for line in fresh:
                    if is_cancelled() or time.monotonic() >= end_s:
                        return
                    taken += 1
                    yield line
        finally:
            with self._changed:
                self._followers.pop(number, None)
                self._changed.notify_all()

    def stop(self, server_id: str, *, grace_s: float = 30.0) -> None:
        self._note("stop", server_id)
        if self._is_there_and_ours(server_id) and self._servers[server_id].server.is_running:
            self.die(server_id, 143)

    def remove(self, server_id: str) -> None:
        self._note("remove", server_id)
        if self._is_there_and_ours(server_id):
            self.vanish(server_id)

    def close(self) -> None:
        self.is_closed = True

    def _note(self, verb: str, subject: str) -> None:
        self.calls.append((verb, subject))
        if self.unavailable is not None:
            raise self.unavailable

    def _add(self, spec: ServerSpec, *, is_running: bool) -> Server:
        server = Server(
            id=f"fake-{next(self._numbers)}",
            name=spec.name,
            image=spec.image,
            image_digest=self.images.get(spec.image),
            labels=dict(spec.labels),
            is_running=is_running,
            exit_code=None if is_running else 0,
            started_at=STARTED_AT,
            finished_at=None if is_running else ENDED_AT,
        )
        with self._changed:
            self._servers[server.id] = _Running(server=server, spec=spec)
        return server

    def _ports_in_use(self) -> set[int]:
        running = (one.server for one in self._servers.values() if one.server.is_running)
        return {int(server.labels[LABEL_PORT]) for server in running if LABEL_PORT in server.labels}

    def _is_there_and_ours(self, server_id: str) -> bool:
        one = self._servers.get(server_id)
        if one is not None and not one.server.is_ours:
            raise RuntimeFailure(f"fake: {one.server.name} was not started by gate0", hint="gate0 stops only its own")
        return one is not None

    def _fresh(self, server_id: str, taken: int) -> tuple[str, ...]:
        one = self._servers.get(server_id)
        return tuple(one.log[taken:]) if one else ()

    def _has_ended(self, server_id: str) -> bool:
        one = self._servers.get(server_id)
        return one is None or not one.server.is_running
