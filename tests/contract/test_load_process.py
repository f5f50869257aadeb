"""How a load process may end, and whose fault that is: a real child against the mock server."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from subprocess import PIPE

import orjson
import pytest

from orchestrator.sweep.process import LoadFailed, LoadProcess
from orchestrator.sweep.spec import CANCEL
from tests.contract.test_load_contract import FAST, WORKLOAD, MockServer, cell_of, spec_of

CANCELLED = {"done": {"is_cancelled": True}}


@pytest.fixture
def process() -> Iterator[LoadProcess]:
    """A child whose requests are never answered."""
    with MockServer(replace(FAST, ttft_s=60.0)) as server:
        spec = spec_of(server, cell_of(replace(WORKLOAD, warmup=0)))
        with LoadProcess(spec, cancel_grace_s=0.3) as started:
            yield started


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_that_is_killed_is_the_boxs_fault_and_names_the_signal(
    process: LoadProcess, number: signal.Signals
) -> None:
    listening = process.messages(lambda: False)
    next(listening)
    os.kill(process.pid, number)

    with pytest.raises(LoadFailed, match=rf"exit code -{number.value} \({number.name}\)") as died:
        list(listening)

    assert died.value.exit_code == 3
    assert died.value.hint


def test_a_child_that_does_not_stop_when_cancelled_is_killed_and_the_cell_counts_as_cancelled(
    process: LoadProcess,
) -> None:
    is_cancelled = threading.Event()
    listening = process.messages(is_cancelled.is_set)
    next(listening)
    os.kill(process.pid, signal.SIGSTOP)
    is_cancelled.set()
    began_s = time.monotonic()

    *_, last = listening

    assert last == CANCELLED
    assert time.monotonic() - began_s < 5.0


def test_a_child_that_dies_while_it_is_cancelled_leaves_a_cancelled_cell(process: LoadProcess) -> None:
    is_cancelled = threading.Event()
    listening = process.messages(is_cancelled.is_set)
    next(listening)
    os.kill(process.pid, signal.SIGSTOP)
    is_cancelled.set()
    threading.Timer(0.15, os.kill, (process.pid, signal.SIGKILL)).start()

    *_, last = listening

    assert last == CANCELLED


class Deaf(LoadProcess):
    """A child that is never told to stop, and shows progress for ever."""

    def _tell(self, line: bytes) -> None:
        if line != CANCEL:
            super()._tell(line)


def test_ticking_on_is_not_stopping() -> None:
    with MockServer(replace(FAST, ttft_s=60.0)) as server:
        spec = spec_of(server, cell_of(replace(WORKLOAD, warmup=0)))
        with Deaf(spec, cancel_grace_s=0.7) as process:
            said = list(process.messages(lambda: True))

    assert said[-1] == CANCELLED
    assert any("progress" in message for message in said)


def test_more_connections_than_files_may_be_open_at_first_are_no_failures() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (40, {most}))"
    with MockServer(replace(FAST, ttft_s=0.5)) as server:
        spec = spec_of(server, cell_of(replace(WORKLOAD, warmup=0, concurrency=(60,))))
        script = f"{limit}; from orchestrator.sweep.child import main; raise SystemExit(main())"
        with subprocess.Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(spec.to_line())
            child.stdin.flush()
            said = [orjson.loads(line) for line in child.stdout]

    assert [m["request"]["failure"] for m in said if "request" in m] == [None] * 60
