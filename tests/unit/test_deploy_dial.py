"""The docker SDK over our own streams: a real client, and a small daemon on a socket of this machine."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from orchestrator.deploy.docker import DockerRuntime
from orchestrator.errors import RuntimeFailure, RuntimeUnavailable
from orchestrator.fleet.local import LocalHost

SERVER = {
    "Id": "abc",
    "Name": "/serve",
    "Image": "sha256:1",
    "Config": {"Image": "x:1", "Labels": {"dev.gate0.run": "r"}},
    "State": {"Status": "running", "Running": True, "ExitCode": 0},
}
ANSWERS: dict[str, object] = {
    "/version": {"ApiVersion": "1.41", "Version": "20.10.24"},
    "/v1.41/info": {"ServerVersion": "20.10.24", "Driver": "overlay2", "Runtimes": {"nvidia": {}}},
    "/v1.41/containers/abc/json": SERVER,
    "/v1.41/images/sha256:1/json": {"Id": "sha256:1", "RepoDigests": ["x@sha256:2"]},
}


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers from ANSWERS, and streams the log of `abc` for as long as `is_logging`."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Handler)
        self.address = f"unix://{path}"
        self.connections = 0
        self.paths: list[str] = []
        self.hangs_up = False
        self.drops_second_request = False
        self.posts: list[str] = []
        self.may_end_log = threading.Event()

    def process_request(self, request: object, client_address: object) -> None:
        self.connections += 1
        super().process_request(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Daemon

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        """Silence."""

    def setup(self) -> None:
        super().setup()
        self.answered = 0

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if self.server.drops_second_request and self.answered:
            self.close_connection = True
            return
        self.answered += 1
        self.server.paths.append(path)
        if path.endswith("/logs"):
            self._stream_log()
        elif path in ANSWERS:
            self._answer(200, ANSWERS[path])
        else:
            self._answer(404, {"message": f"no such thing: {path}"})
        if self.server.hangs_up:
            self.close_connection = True

    def do_POST(self) -> None:
        self.server.posts.append(self.path.split("?")[0])
        self.close_connection = True

    def _answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stream_log(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in (b"one\n", b"half", b" two\n"):
            frame = b"\x01\0\0\0" + len(line).to_bytes(4, "big") + line
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        self.wfile.flush()
        self.server.may_end_log.wait(10)
        self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path / "docker.sock") as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.may_end_log.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def runtime(daemon: Daemon) -> Iterator[DockerRuntime]:
    runtime = DockerRuntime(LocalHost(), docker_host=daemon.address)
    yield runtime
    runtime.close()


def test_the_version_is_asked_once_and_the_connection_kept(daemon: Daemon, runtime: DockerRuntime) -> None:
    for _ in range(3):
        runtime.get("abc")

    assert daemon.paths.count("/version") == 1
    assert daemon.connections == 1


def test_a_server_is_read_with_the_digest_of_its_image(runtime: DockerRuntime) -> None:
    server = runtime.get("abc")

    assert server is not None
    assert (server.name, server.is_running, server.image_digest) == ("serve", True, "sha256:2")


def test_the_engine_is_described_and_asked_once(daemon: Daemon, runtime: DockerRuntime) -> None:
    facts = runtime.facts()

    assert (facts.version, facts.has_gpu, facts.storage_driver) == ("20.10.24", True, "overlay2")
    assert runtime.facts() == facts
    assert sum(path.endswith("/info") for path in daemon.paths) == 1


def test_a_daemon_that_hung_up_is_dialled_again(daemon: Daemon, runtime: DockerRuntime) -> None:
    daemon.hangs_up = True

    found = [runtime.get("abc") for _ in range(3)]

    assert None not in found
    assert daemon.connections > 1


def test_a_daemon_that_hangs_up_on_a_question_is_asked_again(daemon: Daemon, runtime: DockerRuntime) -> None:
    daemon.drops_second_request = True

    found = [runtime.get("abc") for _ in range(3)]

    assert None not in found


def test_a_daemon_that_hangs_up_on_an_act_is_not_asked_twice(daemon: Daemon, runtime: DockerRuntime) -> None:
    with pytest.raises(RuntimeUnavailable):
        runtime.stop("abc", grace_s=1)

    assert daemon.posts == ["/v1.41/containers/abc/stop"]


def test_a_log_is_followed_beside_other_questions(daemon: Daemon, runtime: DockerRuntime) -> None:
    lines = runtime.follow("abc", timeout_s=30)

    first = next(lines)
    asked = runtime.get("abc")
    daemon.may_end_log.set()

    assert (first, asked is not None, tuple(lines)) == ("one", True, ("half two",))


def test_a_silent_log_ends_at_its_deadline(runtime: DockerRuntime) -> None:
    assert tuple(runtime.follow("abc", timeout_s=0.6)) == ("one", "half two")


def test_a_proxy_of_the_environment_has_no_part_in_it(runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert runtime.get("abc") is not None


def test_an_answer_that_is_a_refusal_names_host_act_and_words(daemon: Daemon, runtime: DockerRuntime) -> None:
    with pytest.raises(RuntimeFailure, match=r"local: docker could not list its containers: no such thing"):
        runtime.find()


def test_a_socket_that_is_not_there_is_an_engine_that_cannot_be_had(tmp_path: Path) -> None:
    runtime = DockerRuntime(LocalHost(), docker_host=f"unix://{tmp_path}/none.sock")

    with pytest.raises(RuntimeUnavailable) as refusal:
        runtime.facts()

    assert refusal.value.hint is not None


@pytest.mark.parametrize("address", ["ssh://user@box", "npipe:////./pipe/docker", "nonsense"])
def test_a_docker_host_that_cannot_be_used_is_named(address: str) -> None:
    with pytest.raises(RuntimeUnavailable, match=f"DOCKER_HOST={address}"):
        DockerRuntime(LocalHost(), docker_host=address).facts()
