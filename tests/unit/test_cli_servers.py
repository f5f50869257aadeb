"""`ps`, `logs` and `stop`: what is there is found, what cannot be told is said, and stopping does not stop half way."""

from __future__ import annotations

import contextlib
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cli.commands.stop import Ending, stop_servers
from orchestrator.cli.main import main
from orchestrator.cli.printer import Printer
from orchestrator.cli.servers import Found, Search, choose, find_servers
from orchestrator.cli.signals import cancel_on_signals
from orchestrator.deploy.runtime import LABEL_PROFILE, LABEL_RUN, ServerSpec
from orchestrator.errors import (
    BoxError,
    HostUnreachable,
    InputError,
    LockHeld,
    RuntimeNotInstalled,
    RuntimeUnavailable,
)
from orchestrator.fleet.host import Host
from orchestrator.pipeline.events import Cancel
from orchestrator.profile.model import RuntimeKind
from tests.contract.fakes import FakeHost
from tests.contract.runtime_fakes import FakeRuntime

DOWN = RuntimeUnavailable("spark01: the docker daemon does not answer", hint="start it")
ABSENT = RuntimeNotInstalled("spark01: docker is not installed")


class BrokenRuntime(FakeRuntime):
    """A runtime that answers every search with one error."""

    def __init__(self, error: BoxError) -> None:
        super().__init__()
        self.error = error

    def find(self, **_: object) -> tuple[()]:  # type: ignore[override]
        raise self.error


def serving(*names: str) -> FakeRuntime:
    runtime = FakeRuntime(images={"i": "sha256:a"})
    for name in names:
        labels = {LABEL_RUN: "r", LABEL_PROFILE: name.removeprefix("gate0-")}
        runtime.start(ServerSpec(name=name, image="i", labels=labels))
    return runtime


def search(docker: FakeRuntime, processes: FakeRuntime) -> Search:
    runtimes = {RuntimeKind.DOCKER: docker, RuntimeKind.PROCESS: processes}
    return find_servers([FakeHost("spark01")], open_runtime=lambda kind, _: runtimes[kind])


def found(*names: str) -> tuple[Found, ...]:
    return search(serving(*names), FakeRuntime()).found


def test_a_docker_that_does_not_answer_is_an_error_and_the_processes_are_still_found() -> None:
    got = search(BrokenRuntime(DOWN), serving("gate0-p"))

    assert got.errors == (DOWN,)
    assert [f.server.name for f in got.found] == ["gate0-p"]


def test_a_host_without_docker_is_no_error() -> None:
    got = search(BrokenRuntime(ABSENT), serving("gate0-p"))

    assert got.errors == ()
    assert [f.server.name for f in got.found] == ["gate0-p"]


def test_a_host_out_of_reach_is_asked_once() -> None:
    unreachable = HostUnreachable("spark01", "no route")

    assert search(BrokenRuntime(unreachable), BrokenRuntime(unreachable)).errors == (unreachable,)


def test_a_name_is_wrong_only_when_every_host_could_be_asked() -> None:
    with pytest.raises(InputError, match="no server named 'q'"):
        choose(Search(found=found("gate0-p"), errors=()), ["q"], what="stop")

    assert choose(Search(found=found("gate0-p"), errors=(DOWN,)), ["q"], what="stop") == ()


@pytest.mark.parametrize("verb", [["ps"], ["stop", "--all"], ["stop", "p"], ["logs"], ["logs", "p"]])
def test_no_verb_says_nothing_is_there_when_docker_could_not_be_asked(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon.' >&2\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    code = main([*verb, "--on", "local"])

    shown = capsys.readouterr()
    assert code == 3
    assert "nothing here" not in shown.out
    assert "the docker daemon does not answer" in shown.err


def stop(chosen: tuple[Found, ...], folder: Path, err: io.StringIO, *, cancel: Cancel | None = None) -> Ending:
    return stop_servers(
        chosen,
        folder,
        lock=lambda _: contextlib.nullcontext(),
        printer=Printer(stdout=io.StringIO(), stderr=err),
        cancel=cancel or Cancel(),
    )


def test_the_log_is_saved_before_the_server_is_removed(tmp_path: Path) -> None:
    (one,) = found("gate0-p")
    assert isinstance(one.runtime, FakeRuntime)
    one.runtime.write(one.server.id, "last words")

    ending = stop((one,), tmp_path, io.StringIO())

    assert ending.errors == []
    assert Path(str(ending.stopped[0]["log"])).read_text() == "last words\n"
    assert one.runtime.find() == ()


def test_a_log_that_cannot_be_written_keeps_no_server_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    err = io.StringIO()
    (one,) = found("gate0-p")

    ending = stop((one,), tmp_path / "file", err)

    assert one.runtime.find() == ()
    assert ending.stopped == [{"host": "spark01", "name": "gate0-p", "log": None}]
    assert "is not saved" in err.getvalue()
    assert "--log-dir" in err.getvalue()


def test_a_server_that_cannot_be_stopped_keeps_none_of_the_others_up(tmp_path: Path) -> None:
    first, second = found("gate0-p", "gate0-q")
    held = LockHeld("spark01", "another gate0 has it")

    @contextlib.contextmanager
    def lock(one: Found) -> Iterator[None]:
        if one is first:
            raise held
        yield

    printer = Printer(stdout=io.StringIO(), stderr=io.StringIO())
    ending = stop_servers((first, second), tmp_path, lock=lock, printer=printer, cancel=Cancel())

    assert ending.errors == [held]
    assert [s["name"] for s in ending.stopped] == ["gate0-q"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_server_at_hand_end_releases_its_lock_and_names_what_is_left(
    number: signal.Signals, tmp_path: Path
) -> None:
    chosen, cancel, steps = found("gate0-p", "gate0-q"), Cancel(), list[str]()
    printer = Printer(stdout=io.StringIO(), stderr=io.StringIO())

    @contextlib.contextmanager
    def lock(one: Found) -> Iterator[None]:
        steps.append("locked")
        signal.raise_signal(number)
        yield
        steps.append("released")

    with cancel_on_signals(cancel, printer):
        ending = stop_servers(chosen, tmp_path, lock=lock, printer=printer, cancel=cancel)

    assert steps == ["locked", "released"]
    assert [s["name"] for s in ending.stopped] == ["gate0-p"]
    assert [e.exit_code for e in ending.errors] == [130]
    assert "spark01:gate0-q" in ending.errors[0].message


def test_stop_says_in_json_what_could_not_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(hosts: list[Host], **_: object) -> Search:
        return Search(found=(), errors=(DOWN,))

    monkeypatch.setattr("orchestrator.cli.servers.find_servers", broken)
    monkeypatch.chdir(tmp_path)

    assert main(["stop", "--all", "--on", "local", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {"stopped": [], "errors": [DOWN.message]}
