"""The runtime's contract held by real Docker Engines over real SSH, and what only a real engine can show."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from orchestrator.deploy.docker import DockerRuntime
from orchestrator.deploy.process import ProcessRuntime
from orchestrator.deploy.runtime import LABEL_RUN, PullProgress, Question, ServerSpec
from orchestrator.errors import ImageMissing, NameTaken, PortTaken, RuntimeFailure, RuntimeUnavailable
from orchestrator.fleet.host import Host
from orchestrator.fleet.hosts_file import LazySshConfig, open_host, read_inventory
from orchestrator.fleet.inventory import resolve_host
from orchestrator.profile.model import Mount, Port, PullPolicy
from orchestrator.values import Secret
from tests.contract.runtime_claims import (
    LABELS,
    PRINT_AND_EXIT,
    PRINT_AND_STAY,
    RuntimeClaims,
    ended,
    ignore,
    question_words,
    state,
    wait_for,
)
from tests.lab.running import RunningLab

FOREIGN = "lab-docker-theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerBench:
    runtime: DockerRuntime
    image: str

    def spec(self, name: str, *, log: tuple[str, ...] = (), exit_code: int | None = None) -> ServerSpec:
        script = PRINT_AND_STAY if exit_code is None else PRINT_AND_EXIT
        code = () if exit_code is None else (str(exit_code),)
        command = ("-c", script, "sh", *code, *log)
        return ServerSpec(name=name, image=self.image, entrypoint=("/bin/sh",), command=command, labels=LABELS)

    def question(self, *, out: str = "", err: str = "", exit_code: int | None = 0) -> Question:
        return Question(image=self.image, entrypoint=("/bin/sh",), words=question_words(out, err, exit_code))


@pytest.fixture(scope="module")
def host(lab: RunningLab) -> Iterator[Host]:
    entry = resolve_host(lab.host_names[0], read_inventory(lab.hosts_yaml), LazySshConfig())
    opened = open_host(entry)
    yield opened
    opened.close()
    lab.assert_clean(lab.host_names[0])


@pytest.fixture(scope="module")
def engine(lab: RunningLab, host: Host) -> Iterator[DockerRuntime]:
    runtime = DockerRuntime(host)
    runtime.pull(lab.faulty_image, PullPolicy.MISSING, ignore)
    yield runtime
    runtime.close()


@pytest.fixture
def bench(lab: RunningLab, engine: DockerRuntime) -> Iterator[DockerBench]:
    yield DockerBench(runtime=engine, image=lab.faulty_image)
    for server in engine.find():
        engine.remove(server.id)


@pytest.fixture
def theirs(lab: RunningLab) -> Iterator[str]:
    """A container that somebody else started, with port 8097 published."""
    where = lab.host_names[0]
    lab.docker(where, "run", "-d", "--name", FOREIGN, "-p", "8097:8097", lab.faulty_image, "-c", "sleep 300")
    yield FOREIGN
    lab.docker(where, "rm", "-f", FOREIGN)


class TestDockerRuntime(RuntimeClaims):
    """Docker over SSH keeps the contract."""


class TestProcessRuntimeOverSsh(RuntimeClaims):
    """So do processes on a host over SSH."""

    @pytest.fixture
    def bench(self, host: Host) -> Iterator[ProcessBenchOverSsh]:
        runtime = ProcessRuntime(host)
        yield ProcessBenchOverSsh(runtime=runtime)
        for server in runtime.find():
            runtime.remove(server.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBenchOverSsh:
    runtime: ProcessRuntime
    image: str = "sh"

    def spec(self, name: str, *, log: tuple[str, ...] = (), exit_code: int | None = None) -> ServerSpec:
        script = PRINT_AND_STAY if exit_code is None else PRINT_AND_EXIT
        code = () if exit_code is None else (str(exit_code),)
        return ServerSpec(name=name, image="sh", command=("-c", script, "sh", *code, *log), labels=LABELS)

    def question(self, *, out: str = "", err: str = "", exit_code: int | None = 0) -> Question:
        return Question(image="sh", words=question_words(out, err, exit_code))


def test_a_call_takes_a_round_trip_and_no_new_connection(bench: DockerBench) -> None:
    server = bench.runtime.start(bench.spec("one"))
    spans_s = []
    for _ in range(20):
        begun_s = time.monotonic()
        bench.runtime.get(server.id)
        spans_s.append(time.monotonic() - begun_s)

    assert statistics.median(spans_s) < 0.1


def test_words_and_secrets_reach_the_server_as_they_are(bench: DockerBench) -> None:
    words = ('{"a": "b c"}', "$HOME", "it's; rm -rf", "*")
    spec = bench.spec("one", log=words, exit_code=0)

    server = bench.runtime.start(
        replace(spec, command=("-c", 'echo "$TOKEN"; for w; do echo "$w"; done', "sh", *words), env=secret("t'k n$"))
    )

    ended(bench, server)
    assert bench.runtime.log_tail(server.id, 0) == ("t'k n$", *words)


def test_a_pull_shows_its_layers_and_gives_the_registry_digest(lab: RunningLab, bench: DockerBench) -> None:
    lab.docker(lab.host_names[0], "rmi", "-f", lab.llama_image)
    seen: list[PullProgress] = []

    digest = bench.runtime.pull(lab.llama_image, PullPolicy.MISSING, seen.append)

    assert digest.startswith("sha256:")
    assert digest == bench.runtime.image_digest(lab.llama_image)
    assert (seen[-1].layers_done, seen[-1].layers) == (3, 3)
    assert 0 < seen[-1].done_bytes == seen[-1].total_bytes


def test_an_image_is_had_by_its_digest(lab: RunningLab, bench: DockerBench) -> None:
    digest = bench.runtime.image_digest(lab.faulty_image)
    pinned = f"{lab.faulty_image.rsplit(':', 1)[0]}@{digest}"

    assert bench.runtime.pull(pinned, PullPolicy.ALWAYS, ignore) == digest


def test_an_image_that_is_there_is_asked_for_again_when_the_policy_says_always(bench: DockerBench) -> None:
    seen: list[PullProgress] = []

    bench.runtime.pull(bench.image, PullPolicy.ALWAYS, seen.append)

    assert "up to date" in seen[-1].status


@pytest.mark.parametrize(
    ("image", "words"),
    [("10.66.0.1:5000/no-such:1", "manifest"), ("10.66.0.1:5000/faulty:no-such-tag", "manifest")],
)
def test_a_refused_pull_has_the_registry_words_and_a_remedy(bench: DockerBench, image: str, words: str) -> None:
    with pytest.raises(ImageMissing, match=words) as refusal:
        bench.runtime.pull(image, PullPolicy.MISSING, ignore)

    assert "name and tag" in (refusal.value.hint or "")


def test_a_registry_that_does_not_answer_is_asked_again_and_then_named(host: Host) -> None:
    waits: list[float] = []
    runtime = DockerRuntime(host, sleep=waits.append)

    with pytest.raises(ImageMissing, match="connection refused"):
        runtime.pull("10.66.0.1:5999/faulty:1", PullPolicy.MISSING, ignore)

    runtime.close()
    assert len(waits) == 3


def test_what_gate0_does_not_own_is_seen_and_never_stopped(bench: DockerBench, theirs: str) -> None:
    (found,) = bench.runtime.find(name=theirs)

    for act in (bench.runtime.stop, bench.runtime.remove):
        with pytest.raises(RuntimeFailure, match="not started by gate0"):
            act(found.id)

    assert [server.name for server in bench.runtime.foreign()] == [theirs]
    assert state(bench, found).is_running


def test_a_name_that_others_have_is_taken(bench: DockerBench, theirs: str) -> None:
    with pytest.raises(NameTaken, match=theirs):
        bench.runtime.start(bench.spec(theirs))


def test_a_published_port_that_is_taken_leaves_no_container(bench: DockerBench, theirs: str) -> None:
    spec = replace(bench.spec("one"), network="bridge", ports=(Port(host=8097, container=80),))

    with pytest.raises(PortTaken, match="8097"):
        bench.runtime.start(spec)

    assert bench.runtime.find() == ()


def test_a_program_that_is_not_in_the_image_leaves_no_container(bench: DockerBench) -> None:
    with pytest.raises(RuntimeFailure, match="no-such-program") as refusal:
        bench.runtime.start(replace(bench.spec("one"), entrypoint=("no-such-program",)))

    assert "entrypoint" in (refusal.value.hint or "")
    assert bench.runtime.find() == ()


def test_a_gpu_that_docker_cannot_give_is_refused_before_anything_is_made(bench: DockerBench) -> None:
    assert not bench.runtime.facts().has_gpu
    with pytest.raises(RuntimeFailure, match="gpu") as refusal:
        bench.runtime.start(replace(bench.spec("one"), gpus=True))

    assert "nvidia-container-toolkit" in (refusal.value.hint or "")
    assert bench.runtime.find() == ()


def test_a_secret_in_a_refusal_is_hidden(bench: DockerBench) -> None:
    spec = replace(bench.spec("one"), entrypoint=("s3cr3t-program",), env=secret("s3cr3t"))

    with pytest.raises(RuntimeFailure) as refusal:
        bench.runtime.start(spec)

    assert "s3cr3t" not in refusal.value.message


def test_settings_reach_the_container(lab: RunningLab, bench: DockerBench) -> None:
    spec = replace(
        bench.spec("one"),
        ipc="private",
        shm_bytes=96 << 20,
        ulimits={"nofile": 512},
        mounts=(Mount(source="~/.cache/gate0-lab-mount", target="/models", read_only=True),),
        network="bridge",
        ports=(Port(host=8096, container=80, address="127.0.0.1"),),
    )

    server = bench.runtime.start(spec)

    shown = lab.docker(lab.host_names[0], "inspect", server.id, "--format", INSPECTED)
    assert shown.strip() == "100663296 private no [/root/.cache/gate0-lab-mount:/models:ro] 127.0.0.1:8096 512"
    lab.exec(lab.host_names[0], "rmdir", "/root/.cache/gate0-lab-mount")


INSPECTED = (
    "{{.HostConfig.ShmSize}} {{.HostConfig.IpcMode}} {{.HostConfig.RestartPolicy.Name}} {{.HostConfig.Binds}} "
    '{{range index .HostConfig.PortBindings "80/tcp"}}{{.HostIp}}:{{.HostPort}}{{end}} '
    "{{range .HostConfig.Ulimits}}{{.Hard}}{{end}}"
)


def test_a_server_that_ignores_sigterm_is_killed_after_the_grace(bench: DockerBench) -> None:
    server = bench.runtime.start(replace(bench.spec("one"), command=("-c", 'trap "" TERM; while :; do sleep 1; done')))
    begun_s = time.monotonic()

    bench.runtime.stop(server.id, grace_s=1)

    assert (state(bench, server).exit_code, time.monotonic() - begun_s < 10) == (137, True)


def test_a_pull_a_log_and_questions_go_side_by_side(bench: DockerBench) -> None:
    server = bench.runtime.start(bench.spec("one", log=("a",)))
    lines = bench.runtime.follow(server.id, timeout_s=30)

    seen = (next(lines), bench.runtime.pull(bench.image, PullPolicy.ALWAYS, ignore), state(bench, server).is_running)

    assert seen == ("a", bench.runtime.image_digest(bench.image), True)


def test_other_gate0s_see_the_same_servers(bench: DockerBench, host: Host) -> None:
    server = bench.runtime.start(bench.spec("one"))
    another = DockerRuntime(host)

    assert [found.id for found in another.find(label=(LABEL_RUN, "claims"))] == [server.id]
    another.close()


def test_a_dead_daemon_is_named_with_its_remedy(lab: RunningLab, host: Host) -> None:
    runtime = DockerRuntime(HostWithEnv(host, ("env", "DOCKER_HOST=unix:///run/no-daemon.sock")))

    with pytest.raises(RuntimeUnavailable, match="daemon does not answer") as refusal:
        runtime.facts()

    assert "systemctl start docker" in (refusal.value.hint or "")


def test_absent_docker_is_named_with_its_remedy(host: Host) -> None:
    runtime = DockerRuntime(HostWithEnv(host, ("env", "PATH=/nowhere")))

    with pytest.raises(RuntimeUnavailable, match="docker is not installed") as refusal:
        runtime.facts()

    assert "install" in (refusal.value.hint or "")


def test_missing_permission_is_named_with_its_remedy(host: Host) -> None:
    runtime = DockerRuntime(HostWithEnv(host, ("setpriv", "--reuid=65534", "--clear-groups", "--regid=65534")))

    with pytest.raises(RuntimeUnavailable, match="no permission") as refusal:
        runtime.facts()

    assert "usermod -aG docker" in (refusal.value.hint or "")


def test_following_ends_with_a_container_that_somebody_removes(lab: RunningLab, bench: DockerBench) -> None:
    server = bench.runtime.start(bench.spec("one", log=("a",)))
    lines = bench.runtime.follow(server.id, timeout_s=60)
    first = next(lines)

    lab.docker(lab.host_names[0], "rm", "-f", server.id)

    assert (first, tuple(lines)) == ("a", ())
    wait_for(lambda: bench.runtime.get(server.id) is None)


def secret(value: str) -> dict[str, str | Secret]:
    return {"TOKEN": Secret("TOKEN", value)}


class HostWithEnv:
    """A host on which every command runs behind some words (`env NAME=value`, another user)."""

    is_local = False

    def __init__(self, host: Host, before: tuple[str, ...]) -> None:
        self._host = host
        self._before = before
        self.name = host.name
        self.address = host.address

    def run(self, argv: tuple[str, ...], **options: object) -> object:
        return self._host.run((*self._before, *argv), **options)  # type: ignore[arg-type]

    def open_stream(self, argv: tuple[str, ...]) -> object:
        return self._host.open_stream((*self._before, *argv))

    def open_port(self, port: int) -> int:
        return self._host.open_port(port)

    def close(self) -> None:
        self._host.close()
