"""The `lab` fixture: two hosts that answer, or a skip that says why not.

GATE0_REQUIRE_LAB=1 makes a lab that cannot start a failure. The lab stays up for the next run, except in CI
or with GATE0_LAB_DOWN=1.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.running import RunningLab
from tools.lab import Lab, LabUnavailable

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 900  # the first test of a session may install packages, fetch the parts and wait for another session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here as lab tests, and leave the first of them the time to build the lab."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.lab)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def lab() -> Iterator[RunningLab]:
    """Give the running lab to one test session at a time: two would find each other's containers and locks."""
    running = Lab.of()
    try:
        running.up()
    except LabUnavailable as reason:
        if os.environ.get("GATE0_REQUIRE_LAB") == "1":
            pytest.fail(f"GATE0_REQUIRE_LAB=1, and the lab cannot run here: {reason}")
        pytest.skip(f"the lab cannot run here: {reason}")
    with _held_alone(running.paths.state):
        yield RunningLab(lab=running)
    if os.environ.get("CI") or os.environ.get("GATE0_LAB_DOWN") == "1":
        running.down()


@contextmanager
def _held_alone(folder: Path) -> Iterator[None]:
    """Hold the folder itself, so that the lock needs no file and goes with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        end_s = time.monotonic() + TIMEOUT_S - 60
        while not _try_lock(descriptor):
            assert time.monotonic() < end_s, "another test session holds the lab"
            time.sleep(0.2)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
