"""The runtime's contract, held by the fake and by processes on this machine; Docker's is in tests/lab."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator.deploy.process import ProcessRuntime
from orchestrator.deploy.runtime import LABEL_PORT, LABEL_RUN, PYTHON, Question, ServerSpec
from orchestrator.errors import Interrupted, PortTaken, RuntimeFailure
from orchestrator.fleet.host import Completed
from orchestrator.fleet.local import LocalHost
from orchestrator.values import Secret
from tests.contract.runtime_claims import (
    LABELS,
    PRINT_AND_EXIT,
    PRINT_AND_STAY,
    Bench,
    RuntimeClaims,
    ended,
    question_words,
    state,
    wait_for,
)
from tests.contract.runtime_fakes import FakeRuntime


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeBench:
    runtime: FakeRuntime
    image: str = "fake/image:1"

    def spec(self, name: str, *, log: tuple[str, ...] = (), exit_code: int | None = None) -> ServerSpec:
        self.runtime.on_start(name, log=log, dies_with=exit_code)
        return ServerSpec(name=name, image=self.image, labels=LABELS)

    def question(self, *, out: str = "", err: str = "", exit_code: int | None = 0) -> Question:
        code = exit_code or 0
        told = Completed(argv=("sh",), exit_code=code, stdout=out, stderr=err)
        self.runtime.on_ask(self.image, lambda _: None if exit_code is None else told)
        return Question(image=self.image, words=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBench:
    runtime: ProcessRuntime
    folder: Path
    image: str = "sh"

    def spec(self, name: str, *, log: tuple[str, ...] = (), exit_code: int | None = None) -> ServerSpec:
        script = (PRINT_AND_STAY,) if exit_code is None else (PRINT_AND_EXIT,)
        code = () if exit_code is None else (str(exit_code),)
        return ServerSpec(name=name, image=self.image, command=("-c", *script, "sh", *code, *log), labels=LABELS)

    def question(self, *, out: str = "", err: str = "", exit_code: int | None = 0) -> Question:
        return Question(image=self.image, words=question_words(out, err, exit_code))


class TestFakeRuntime(RuntimeClaims):
    @pytest.fixture
    def bench(self) -> FakeBench:
        return FakeBench(runtime=FakeRuntime(images={"fake/image:1": "sha256:aa"}))

    def test_what_gate0_does_not_own_is_never_stopped(self, bench: FakeBench) -> None:
        theirs = bench.runtime.add_foreign("theirs")

        for act in (bench.runtime.stop, bench.runtime.remove):
            with pytest.raises(RuntimeFailure):
                act(theirs.id)

        assert [server.id for server in bench.runtime.foreign()] == [theirs.id]


class TestProcessRuntime(RuntimeClaims):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[ProcessBench]:
        folder = tmp_path / "it's a folder"
        runtime = ProcessRuntime(LocalHost(), folder=str(folder))
        yield ProcessBench(runtime=runtime, folder=folder)
        for server in runtime.find():
            runtime.remove(server.id)

    def test_words_reach_the_server_as_they_are(self, bench: ProcessBench) -> None:
        words = ('{"a": "b c"}', "$HOME", "it's; rm -rf", "*", "")

        server = bench.runtime.start(bench.spec("one", log=words, exit_code=0))

        ended(bench, server)
        assert bench.runtime.log_tail(server.id, 0) == words

    def test_secrets_reach_the_server_and_no_file_or_command_line(self, bench: ProcessBench) -> None:
        token = "tök'en $x\nsecond"
        show = 'printf "%s" "$TOKEN" | sha256sum'
        spec = replace(bench.spec("one"), command=("-c", f"{show}; sleep 97"))

        server = bench.runtime.start(replace(spec, env={"TOKEN": Secret("TOKEN", token), "PLAIN": "1"}))

        expected = hashlib.sha256(token.encode()).hexdigest()
        wait_for(lambda: bench.runtime.log_tail(server.id, 0) == (f"{expected}  -",))
        files = b"".join(path.read_bytes() for path in (bench.folder / "one").iterdir())
        assert "tök".encode() not in files
        assert not any("tök".encode() in line for line in command_lines())

    def test_a_server_that_ignores_sigterm_is_killed_with_its_workers(self, bench: ProcessBench) -> None:
        stubborn = 'trap "" TERM; sleep 97 & echo "worker $!"; wait; sleep 97'
        server = bench.runtime.start(replace(bench.spec("one"), command=("-c", stubborn)))
        wait_for(lambda: bench.runtime.log_tail(server.id, 0) != ())
        worker = int(bench.runtime.log_tail(server.id, 1)[0].split()[1])

        bench.runtime.stop(server.id, grace_s=0.3)

        assert state(bench, server).exit_code == 128 + signal.SIGKILL
        wait_for(lambda: not is_alive(worker))

    def test_workers_that_outlive_their_leader_go_with_stop(self, bench: ProcessBench) -> None:
        leaves = 'sleep 97 & echo "worker $!"'
        server = bench.runtime.start(replace(bench.spec("one"), command=("-c", leaves)))
        ended(bench, server)
        worker = int(bench.runtime.log_tail(server.id, 1)[0].split()[1])

        bench.runtime.stop(server.id)

        wait_for(lambda: not is_alive(worker))

    def test_a_pid_that_was_given_away_again_is_not_killed(self, bench: ProcessBench) -> None:
        server = bench.runtime.start(bench.spec("one"))
        pid_file = bench.folder / "one" / "pid"
        pid, start, *rest = pid_file.read_text().split()
        pid_file.write_text(" ".join((pid, str(int(start) - 1), *rest)))

        bench.runtime.stop(server.id, grace_s=0.1)

        assert is_alive(int(pid))
        os.killpg(int(pid), signal.SIGKILL)

    def test_a_server_of_an_earlier_boot_is_dead_and_its_exit_unknown(self, bench: ProcessBench) -> None:
        server = bench.runtime.start(bench.spec("one"))
        pid_file = bench.folder / "one" / "pid"
        pid, start, supervisor, supervisor_start, _, started_at = pid_file.read_text().split()
        os.killpg(int(pid), signal.SIGKILL)
        wait_for(lambda: not is_alive(int(supervisor)))
        (bench.folder / "one" / "exit").unlink()
        pid_file.write_text(f"{pid} {start} {supervisor} {supervisor_start} another-boot {started_at}")

        assert (state(bench, server).is_running, state(bench, server).exit_code) == (False, None)

    @pytest.mark.parametrize(
        "head",
        [
            "#!{python}\n",
            "#!{python} -s\n",
            "#!/usr/bin/env {python}\n",
            "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n",
        ],
    )
    def test_a_programs_python_is_the_one_that_it_is_written_for(
        self, bench: ProcessBench, tmp_path: Path, head: str
    ) -> None:
        python = tmp_path / "its own python"
        python = python if "exec" in head else tmp_path / "own-python"
        python.write_text('#!/bin/sh\necho "own: $*"\n')
        program = tmp_path / "serve"
        program.write_text(head.format(python=python) + "print('never run')\n")
        python.chmod(0o755)
        program.chmod(0o755)

        answer = bench.runtime.ask(Question(image=str(program), entrypoint=PYTHON, words=("-c", "a b")))

        assert (answer.stdout.strip(), answer.exit_code) == ("own: -c a b", 0)

    def test_a_program_that_is_a_python_is_asked_itself(self, bench: ProcessBench) -> None:
        answer = bench.runtime.ask(Question(image=sys.executable, entrypoint=PYTHON, words=("-c", "print(6 * 7)")))

        assert answer.stdout.strip() == "42"

    def test_a_question_that_is_left_leaves_no_process(self, bench: ProcessBench, tmp_path: Path) -> None:
        began = tmp_path / "began"
        words = ("-c", 'echo $$ >"$1.new"; mv "$1.new" "$1"; sleep 97', "sh", str(began))

        with pytest.raises(Interrupted):
            bench.runtime.ask(Question(image="sh", words=words), is_cancelled=began.exists)

        wait_for(lambda: not is_alive(int(began.read_text())))

    def test_a_taken_port_is_seen_before_the_start(self, bench: ProcessBench) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]

            with pytest.raises(PortTaken, match=str(port)):
                bench.runtime.start(replace(bench.spec("one"), labels={**LABELS, LABEL_PORT: str(port)}))

        assert bench.runtime.find() == ()

    def test_progress_bars_without_line_ends_are_followed_line_by_line(self, bench: ProcessBench) -> None:
        bar = "printf '\\rLoading: 10%%'; printf '\\rLoading: 20%%\\n'"
        server = bench.runtime.start(replace(bench.spec("one"), command=("-c", bar)))

        assert tuple(bench.runtime.follow(server.id, timeout_s=30)) == ("Loading: 10%", "Loading: 20%")

    @pytest.mark.parametrize("name", ["../one", "", "a b", "-rf"])
    def test_a_name_that_is_no_name_is_refused(self, bench: ProcessBench, name: str) -> None:
        with pytest.raises(RuntimeFailure, match="no name"):
            bench.runtime.start(replace(bench.spec("one"), name=name))

    def test_an_unlabelled_folder_is_never_stopped(self, bench: ProcessBench) -> None:
        server = bench.runtime.start(bench.spec("one"))
        state_file = bench.folder / "one" / "state.json"
        original = state_file.read_text()
        state_file.write_text(original.replace(LABEL_RUN, "other"))

        with pytest.raises(RuntimeFailure, match="not started by gate0"):
            bench.runtime.stop(server.id)

        assert state(bench, server).is_running
        state_file.write_text(original)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue


def keeps_the_contract(bench: FakeBench | ProcessBench) -> Bench:
    """For the type checker: both benches are benches."""
    return bench
