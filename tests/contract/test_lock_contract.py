"""The lock of a host, on this machine and over a real sshd: who gets it, who is refused, who may take it over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from orchestrator.errors import HostError, LockHeld
from orchestrator.fleet.host import Host
from orchestrator.fleet.local import LocalHost
from orchestrator.fleet.lock import HostLock, Owner, hold, is_alive, pid_space, this_process

ELSEWHERE = {"who": "ann@desk", "pid": 4711, "pid_start": "1", "pid_space": "another boot pid:[1]"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "gate0.lock")


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def leave(path: str, *, silent_for_s: float = 0, **changes: object) -> Owner:
    """A lock as some other gate0 left it."""
    owner = replace(this_process("run-0", "profile-0", boot_id=boot_id()), **changes)  # type: ignore[arg-type]
    folder = Path(path)
    folder.mkdir()
    file = folder / "owner.json"
    file.write_text(json.dumps(asdict(owner)))
    then = file.stat().st_mtime - silent_for_s
    os.utime(file, (then, then))
    return owner


def test_the_lock_says_who_holds_it_and_why(real_host: Host, path: str) -> None:
    with hold(real_host, "run-1", "qwen3.8, run 1", path=path) as mine:
        seen = HostLock(real_host, path=path).owner()

    assert seen == mine
    assert (mine.pid, mine.run_id, mine.why) == (os.getpid(), "run-1", "qwen3.8, run 1")


def test_it_is_gone_after_the_block(real_host: Host, path: str) -> None:
    with hold(real_host, "run-1", "why", path=path):
        assert Path(path).is_dir()

    assert list(Path(path).parent.glob("gate0.lock*")) == []


@pytest.mark.parametrize("way_out", [ValueError, KeyboardInterrupt, SystemExit])
def test_it_is_released_on_every_way_out(real_host: Host, path: str, way_out: type[BaseException]) -> None:
    with pytest.raises(way_out), hold(real_host, "run-1", "why", path=path):
        raise way_out

    assert not Path(path).exists()


def test_a_held_lock_tells_who_since_when_and_why(real_host: Host, path: str) -> None:
    with hold(real_host, "run-1", "qwen3.8, run 1", path=path) as mine:
        with pytest.raises(LockHeld) as caught, hold(real_host, "run-2", "why", path=path):
            pass

        assert f"{mine.who} (pid {mine.pid}) since {mine.since}: qwen3.8, run 1" in caught.value.message
        assert HostLock(real_host, path=path).owner() == mine


def test_force_does_not_rob_the_living(real_host: Host, path: str) -> None:
    with hold(real_host, "run-1", "why", path=path) as mine:
        with pytest.raises(LockHeld, match="its owner lives"), hold(real_host, "run-2", "why", force=True, path=path):
            pass

        assert HostLock(real_host, path=path).owner() == mine


def test_one_of_many_gets_it(path: str) -> None:
    host, inside, refused = LocalHost(), [], []
    start, done = threading.Barrier(12), threading.Event()

    def contend(number: int) -> None:
        start.wait()
        try:
            with hold(host, str(number), "why", path=path):
                inside.append(number)
                done.wait(30)
        except LockHeld:
            refused.append(number)
            if len(refused) == 11:
                done.set()

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(contend, range(12)))

    assert (len(inside), len(refused)) == (1, 11)


def test_one_of_many_takes_over_from_the_dead(path: str) -> None:
    leave(path, pid=dead_pid())
    host, inside, refused, notices = LocalHost(), [], [], []
    start, done = threading.Barrier(12), threading.Event()

    def contend(number: int) -> None:
        start.wait()
        try:
            with hold(host, str(number), "why", path=path, on_notice=notices.append):
                inside.append(number)
                done.wait(30)
        except LockHeld:
            refused.append(number)
            if len(refused) == 11:
                done.set()

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(contend, range(12)))

    assert (len(inside), len(refused), len(notices)) == (1, 11, 1)


def test_a_dead_process_of_this_machine_is_taken_over_with_a_notice(real_host: Host, path: str) -> None:
    left = leave(path, pid=dead_pid())
    notices: list[str] = []

    with hold(real_host, "run-2", "why", path=path, on_notice=notices.append) as mine:
        assert HostLock(real_host, path=path).owner() == mine

    assert notices == [f"{real_host.name}: took over the lock of {left.display}; that process is gone"]


def test_a_pid_that_belongs_to_a_later_process_is_a_dead_holder(path: str) -> None:
    leave(path, pid=os.getpid(), pid_start="1")

    with hold(LocalHost(), "run-2", "why", path=path) as mine:
        assert mine.run_id == "run-2"


def test_a_gate0_that_was_killed_leaves_a_lock_that_the_next_takes_over(path: str) -> None:
    script = (
        "import sys, time\n"
        "from orchestrator.fleet.local import LocalHost\n"
        "from orchestrator.fleet.lock import hold\n"
        f"with hold(LocalHost(), 'run-1', 'why', path={path!r}):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"held\n"
        with pytest.raises(LockHeld), hold(LocalHost(), "run-2", "why", path=path):
            pass
        victim.send_signal(signal.SIGKILL)
    notices: list[str] = []

    with hold(LocalHost(), "run-2", "why", path=path, on_notice=notices.append):
        pass

    assert len(notices) == 1


def test_a_holder_before_the_hosts_restart_is_gone(path: str) -> None:
    leave(path, **ELSEWHERE, boot_id="an earlier boot")
    notices: list[str] = []

    with hold(LocalHost("spark01"), "run-2", "why", path=path, on_notice=notices.append):
        pass

    assert "the host has restarted since" in notices[0]


def test_a_holder_elsewhere_that_shows_life_is_not_robbed(path: str) -> None:
    leave(path, **ELSEWHERE)

    with pytest.raises(LockHeld, match=r"ann@desk \(pid 4711\)"), hold(LocalHost(), "r", "why", force=True, path=path):
        pass


def test_a_silent_holder_elsewhere_needs_force(path: str) -> None:
    leave(path, **ELSEWHERE, silent_for_s=400)

    with pytest.raises(LockHeld, match="no sign of life for 2 minutes") as caught:
        HostLock(LocalHost(), path=path).acquire("r", "why")

    assert caught.value.hint == "`--force` takes it over"


def test_force_takes_over_from_the_silent(path: str) -> None:
    leave(path, **ELSEWHERE, silent_for_s=400)

    with hold(LocalHost(), "run-2", "why", force=True, path=path) as mine:
        assert HostLock(LocalHost(), path=path).owner() == mine


def test_a_lock_that_is_just_being_made_is_held(path: str) -> None:
    Path(path).mkdir()

    with pytest.raises(LockHeld, match="someone who has not said who yet"):
        HostLock(LocalHost(), path=path).acquire("r", "why")


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"who": "ann"}'])
def test_an_old_lock_without_a_readable_owner_is_left_over(path: str, text: str | None) -> None:
    Path(path).mkdir()
    if text is not None:
        (Path(path) / "owner.json").write_text(text)
        os.utime(Path(path) / "owner.json", (1, 1))
    os.utime(path, (1, 1))

    with hold(LocalHost(), "run-2", "why", path=path) as mine:
        assert mine.run_id == "run-2"


def test_a_taker_that_died_in_between_keeps_nobody_out(path: str) -> None:
    left = leave(path, pid=dead_pid())
    claim = Path(path) / f"taking-{left.token}"
    claim.mkdir()
    os.utime(claim, (1, 1))

    with hold(LocalHost(), "run-2", "why", path=path) as mine:
        assert mine.run_id == "run-2"


def test_the_heartbeat_shows_life(path: str) -> None:
    file = Path(path) / "owner.json"
    with hold(LocalHost(), "run-1", "why", path=path, heartbeat_s=0.05):
        os.utime(file, (1, 1))
        beat = threading.Event()
        for _ in range(100):
            if file.stat().st_mtime > 1:
                break
            beat.wait(0.05)

        assert file.stat().st_mtime > 1


def test_a_lock_that_another_took_over_is_neither_refreshed_nor_released(path: str) -> None:
    lock = HostLock(LocalHost(), path=path)
    old = lock.acquire("run-1", "why")
    (Path(path) / "owner.json").write_text(json.dumps(asdict(replace(old, token="another"))))

    assert not lock.refresh(old)
    lock.release(old)
    assert Path(path).exists()


def test_a_place_that_cannot_be_written_is_no_held_lock(real_host: Host) -> None:
    with pytest.raises(HostError, match=r"cannot make the lock /proc/gate0\.lock") as caught:
        HostLock(real_host, path="/proc/gate0.lock").acquire("r", "why")

    assert not isinstance(caught.value, LockHeld)


def test_a_release_that_fails_does_not_hide_why_the_block_ended(path: str) -> None:
    notices: list[str] = []
    host = Unplugged()

    with pytest.raises(TimeoutError), hold(host, "run-1", "why", path=path, on_notice=notices.append):
        raise host.unplug()

    assert "could not be released" in notices[0]


def test_a_process_is_alive_only_with_its_own_start() -> None:
    mine = this_process("r", "why", boot_id=None)

    assert is_alive(mine)
    assert not is_alive(replace(mine, pid_start="1"))
    assert mine.pid_space == pid_space()


class Unplugged(LocalHost):
    """A host whose cable is pulled during the test."""

    is_out = False

    def unplug(self) -> Exception:
        """Pull it; returns the error that the block ends with."""
        self.is_out = True
        return TimeoutError("the real reason")

    def run(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
        if self.is_out:
            raise HostError(self.name, "the cable is out")
        return super().run(*args, **kwargs)  # type: ignore[arg-type]


def dead_pid() -> int:
    """The pid of a process that has ended."""
    done = subprocess.Popen(["true"])
    done.wait(timeout=10)
    return done.pid
