"""Servers as containers of a host's Docker Engine, local or over our own SSH connection."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

import tenacity
from docker.errors import APIError, NotFound

from orchestrator.deploy import refusals
from orchestrator.deploy.container import (
    GpuRoad,
    container_body,
    digest_of,
    gpu_road,
    listed_server,
    mount_source,
    question_body,
    question_spec,
    server_of,
)
from orchestrator.deploy.dial import read_until
from orchestrator.deploy.docker_engine import CALL_S, DockerEngine, gone_is_fine, words_of
from orchestrator.deploy.layers import LayerTally
from orchestrator.deploy.lines import LineSplitter, split_log
from orchestrator.deploy.runtime import (
    LABEL_RUN,
    IsCancelled,
    OnPull,
    Question,
    RuntimeFacts,
    Server,
    ServerSpec,
    never,
)
from orchestrator.errors import ImageMissing, Interrupted, RuntimeFailure
from orchestrator.fleet.host import Completed, Host
from orchestrator.fleet.outcome import timed_out
from orchestrator.profile.model import PullPolicy
from orchestrator.values import Clock, Secret, Sleep

_PULL_ATTEMPTS = 4


class _PassingPullError(ImageMissing):
    """A pull that failed for a reason that may be over in a moment."""


class DockerRuntime:
    """A `Runtime` over one Docker Engine.

    Nothing is asked of the host before the first call (see `DockerEngine`).

    Args:
        host: Where the engine is; a local host is reached by its socket, another one by `docker system dial-stdio`.
        docker_host: `DOCKER_HOST` for a local host; None takes the environment's.
    """

    def __init__(
        self, host: Host, *, docker_host: str | None = None, clock: Clock = time.monotonic, sleep: Sleep = time.sleep
    ) -> None:
        self._host = host
        self._engine = DockerEngine(host, docker_host=docker_host)
        self._clock = clock
        self._sleep = sleep
        self._kept_road: GpuRoad | None = None
        self._digests: dict[str, str | None] = {}

    def facts(self) -> RuntimeFacts:
        """What the engine says of itself; see `Runtime.facts`."""
        engine = self._engine.info()
        return RuntimeFacts(
            kind="docker",
            version=engine["ServerVersion"],
            has_gpu=self._gpus(engine) is not GpuRoad.NONE,
            storage_driver=engine.get("Driver"),
            data_root=engine.get("DockerRootDir"),
        )

    def image_digest(self, image: str) -> str | None:
        """See `Runtime.image_digest`."""
        with self._engine.asking(f"look for {image}"):
            try:
                inspected = self._engine.client().inspect_image(image)  # type: ignore[no-untyped-call]
                return digest_of(inspected, image)
            except NotFound:
                return None

    def pull(self, image: str, policy: PullPolicy, on_progress: OnPull) -> str:
        """See `Runtime.pull`. A registry that stumbles (time-out, reset, 5xx) is asked four times in all."""
        present = self.image_digest(image)
        is_pinned = "@sha256:" in image
        if present is not None and (policy is not PullPolicy.ALWAYS or is_pinned):
            return present
        if policy is PullPolicy.NEVER:
            raise ImageMissing(
                f"{self._host.name}: {image} is not on the host and `pull: never` is set",
                hint=f"`docker pull {image}` there, or set `pull: missing`",
            )
        self._pull_patiently(image, on_progress)
        pulled = self.image_digest(image)
        if pulled is None:
            raise ImageMissing(f"{self._host.name}: {image} was pulled and is not there")
        return pulled

    def find(self, *, label: tuple[str, str] | None = None, name: str | None = None) -> tuple[Server, ...]:
        """See `Runtime.find`."""
        if name is not None:
            named = self._named(name)
            return (named,) if named is not None and _bears(named, label) else ()
        key, value = label or (LABEL_RUN, "")
        wanted = f"{key}={value}" if value else key
        with self._engine.asking("list its containers"):
            listed = self._engine.client().containers(all=True, filters={"label": [wanted]})
        servers = (self.get(one["Id"]) for one in listed)
        return tuple(server for server in servers if server is not None)

    def foreign(self) -> tuple[Server, ...]:
        """See `Runtime.foreign`; image digests and times are not asked for."""
        with self._engine.asking("list its containers"):
            listed = self._engine.client().containers()
        servers = (listed_server(one) for one in listed)
        return tuple(server for server in servers if not server.is_ours)

    def start(self, spec: ServerSpec) -> Server:
        """See `Runtime.start`."""
        if LABEL_RUN not in spec.labels:
            raise RuntimeFailure(f"{self._host.name}: {spec.name} has no {LABEL_RUN} label: it could never be stopped")
        body = container_body(spec, home=self._prepare_mounts(spec), gpus=self._gpus_for(spec))
        client = self._engine.client()
        with self._engine.asking(f"start {spec.name}"):
            try:
                created = self._create(spec.name, body)
            except APIError as error:
                raise self._start_refused(spec, error) from error
            try:
                client.start(created)
            except BaseException as error:
                self._discard(created)
                if isinstance(error, APIError):
                    raise self._start_refused(spec, error) from error
                raise
        server = self.get(created)
        if server is None:
            raise RuntimeFailure(f"{self._host.name}: {spec.name} vanished as soon as it was started")
        return server

    def ask(self, question: Question, *, is_cancelled: IsCancelled = never) -> Completed:
        """See `Runtime.ask`: a container of its own, which is removed."""
        spec = question_spec(question, token=uuid.uuid4().hex[:12])
        client = self._engine.client()
        with self._engine.asking(f"look into {question.image}"):
            created: str | None = None
            try:
                created = self._create(spec.name, question_body(spec))
                client.start(created)
                self._wait_for_end(created, question, is_cancelled)
                code = client.wait(created, timeout=int(CALL_S))["StatusCode"]
                out, err = (client.logs(created, stdout=not is_err, stderr=is_err) for is_err in (False, True))
            except APIError as error:
                raise self._start_refused(spec, error) from error
            finally:
                if created is not None:
                    self._discard(created)
        return Completed(
            argv=(*(question.entrypoint or ()), *question.words),
            exit_code=code,
            stdout=out.decode(errors="replace"),
            stderr=err.decode(errors="replace"),
        )

    def _wait_for_end(self, container_id: str, question: Question, is_cancelled: IsCancelled) -> None:
        end_s = self._clock() + question.timeout_s
        path = f"/v{self._engine.client().api_version}/containers/{container_id}/logs?follow=1&stderr=1&tail=0"
        for _ in read_until(self._engine.dial(), path, lambda: is_cancelled() or self._clock() >= end_s):
            pass
        if is_cancelled():
            raise Interrupted("stopped on request")
        if self._clock() >= end_s:
            raise timed_out(self._host.name, (question.image,), question.timeout_s, is_killed=True)

    def get(self, server_id: str) -> Server | None:
        """See `Runtime.get`."""
        with self._engine.asking(f"look at {server_id[:12]}"):
            try:
                inspected = self._engine.client().inspect_container(server_id)
            except NotFound:
                return None
            return server_of(inspected, self._digest_by_id(inspected["Image"], inspected["Config"]["Image"]))

    def log_tail(self, server_id: str, lines: int) -> tuple[str, ...]:
        """See `Runtime.log_tail`."""
        with self._engine.asking(f"read the log of {server_id[:12]}"):
            try:
                log: bytes = self._engine.client().logs(server_id, tail=lines if lines > 0 else "all")
            except NotFound:
                return ()
        kept = split_log(log)
        return kept[-lines:] if lines > 0 else kept

    def log_head(self, server_id: str, lines: int) -> tuple[str, ...]:
        """See `Runtime.log_head`."""
        end_s = self._clock() + CALL_S
        return tuple(islice(self._log_lines(server_id, "follow=0", lambda: self._clock() >= end_s), lines))

    def follow(self, server_id: str, *, timeout_s: float, is_cancelled: IsCancelled = never) -> Iterator[str]:
        """See `Runtime.follow`. Each follower has a connection of its own."""
        end_s = self._clock() + timeout_s
        return self._log_lines(server_id, "follow=1", lambda: is_cancelled() or self._clock() >= end_s)

    def _log_lines(self, server_id: str, how: str, is_over: IsCancelled) -> Iterator[str]:
        version = self._engine.client().api_version
        path = f"/v{version}/containers/{quote(server_id, safe='')}/logs?{how}&stdout=1&stderr=1&tail=all"
        splitter = LineSplitter()
        with self._engine.asking(f"read the log of {server_id[:12]}"):
            try:
                for frame in read_until(self._engine.dial(), path, is_over):
                    yield from splitter.feed(frame)
            except FileNotFoundError:
                return
        yield from splitter.flush()

    def stop(self, server_id: str, *, grace_s: float = 30.0) -> None:
        """See `Runtime.stop`.

        Raises:
            RuntimeFailure: The container does not bear gate0's label.
        """
        if self._is_there_and_ours(server_id):
            with self._engine.asking(f"stop {server_id[:12]}"), gone_is_fine():
                self._engine.client().stop(server_id, timeout=max(0, round(grace_s)))

    def remove(self, server_id: str) -> None:
        """See `Runtime.remove`; what still runs is killed.

        Raises:
            RuntimeFailure: The container does not bear gate0's label.
        """
        if self._is_there_and_ours(server_id):
            with self._engine.asking(f"remove {server_id[:12]}"), gone_is_fine():
                self._engine.client().remove_container(server_id, v=True, force=True)

    def close(self) -> None:
        """Close the connections; the host stays open."""
        self._engine.close()

    def _pull_patiently(self, image: str, on_progress: OnPull) -> None:
        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_PULL_ATTEMPTS),
            wait=tenacity.wait_exponential(multiplier=1, max=15),
            retry=tenacity.retry_if_exception_type(_PassingPullError),
            sleep=self._sleep,
            reraise=True,
        )
        for attempt in attempts:
            with attempt:
                self._pull_once(image, on_progress)

    def _pull_once(self, image: str, on_progress: OnPull) -> None:
        tally = LayerTally()
        with self._engine.asking(f"pull {image}"):
            try:
                for event in self._engine.client().pull(image, stream=True, decode=True):
                    if "error" in event:
                        raise self._pull_refused(image, str(event["error"]))
                    on_progress(tally.add(event))
            except APIError as error:
                raise self._pull_refused(image, words_of(error)) from error

    def _pull_refused(self, image: str, words: str) -> RuntimeFailure:
        refused = refusals.pull_refused(self._host.name, image, words)
        return _PassingPullError(refused.message, hint=refused.hint) if refusals.is_passing(words) else refused

    def _start_refused(self, spec: ServerSpec, error: APIError) -> RuntimeFailure:
        words = words_of(error)
        for value in spec.env.values():
            if isinstance(value, Secret) and value.value:
                words = words.replace(value.value, "***")
        return refusals.start_refused(self._host.name, spec.name, error.status_code or 0, words)

    def _create(self, name: str, body: Mapping[str, Any]) -> str:
        created = self._engine.client().create_container_from_config(body, name=name)  # type: ignore[no-untyped-call]
        return str(created["Id"])

    def _discard(self, container_id: str) -> None:
        with gone_is_fine():
            self._engine.client().remove_container(container_id, v=True, force=True)

    def _prepare_mounts(self, spec: ServerSpec) -> str:
        """Make missing folders as the user where it may: Docker would make them as root. Returns the user's home."""
        home = ""
        if any(mount.source.startswith("~") for mount in spec.mounts):
            home = self._host.run(("sh", "-c", 'printf %s "$HOME"'), check=True).stdout
        sources = (mount_source(mount, home) for mount in spec.mounts)
        folders = tuple(source for source in sources if source.startswith("/"))
        if folders:
            script = 'for path; do [ -e "$path" ] || mkdir -p -- "$path"; done'
            self._host.run(("sh", "-c", script, "sh", *folders))
        return home

    def _gpus_for(self, spec: ServerSpec) -> GpuRoad:
        if not spec.gpus:
            return GpuRoad.NONE
        road = self._gpus(self._engine.info())
        if road is GpuRoad.NONE:
            raise refusals.start_refused(
                self._host.name, spec.name, 500, 'could not select device driver "" with capabilities: [[gpu]]'
            )
        return road

    def _gpus(self, engine: Mapping[str, Any]) -> GpuRoad:
        if self._kept_road is None:
            hook = self._host.run(("sh", "-c", "command -v nvidia-container-runtime-hook"))
            self._kept_road = gpu_road(engine, has_hook=hook.is_ok)
        return self._kept_road

    def _named(self, name: str) -> Server | None:
        server = self.get(name)
        # The API takes an id, or the beginning of one, wherever it takes a name.
        return server if server is not None and server.name == name else None

    def _digest_by_id(self, image_id: str, image: str) -> str | None:
        if image_id not in self._digests:
            try:
                inspected = self._engine.client().inspect_image(image_id)  # type: ignore[no-untyped-call]
                self._digests[image_id] = digest_of(inspected, image)
            except NotFound:
                return None
        return self._digests[image_id]

    def _is_there_and_ours(self, server_id: str) -> bool:
        server = self.get(server_id)
        if server is not None and not server.is_ours:
            raise RuntimeFailure(
                f"{self._host.name}: {server.name} was not started by gate0 (no {LABEL_RUN} label)",
                hint="gate0 stops and removes only what it started",
            )
        return server is not None


def _bears(server: Server, label: tuple[str, str] | None) -> bool:
    return label is None or (label[0] in server.labels and label[1] in ("", server.labels[label[0]]))
