"""One gate0 at a time on a host: a folder on the host that says who holds it, since when and why.

Theory of operation. `mkdir` is atomic and fails when the folder is there; it lies in /tmp, where all users of the box
see it and where only its maker (or root) can remove it. Inside, owner.json names the holder; its modification time is
the holder's heartbeat, refreshed every 20 s by a thread.

Whether a holder is gone: on the machine (and in the process namespace) that it ran on, its pid tells; when the host
has booted since, it is gone too; seen from elsewhere only the heartbeat tells, after two minutes of silence, and then
taking over needs `force`.

Taking over must be atomic as well, two may find the same dead holder: who makes the folder `taking-TOKEN` inside, with
the dead holder's token, may rewrite owner.json, after seeing that it still carries that token. Release first renames
the folder, so that a new holder's mkdir never meets half of an old lock.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.errors import HostError, LockHeld
from orchestrator.fleet.host import Host
from orchestrator.values import utc_now

LOCK_PATH = "/tmp/gate0.lock"
HEARTBEAT_S = 20.0
SILENT_MINUTES = 2
_OWNER = "owner.json"

Notice = Callable[[str], None]
"""Told in one line what happened that the user should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who holds a lock.

    Attributes:
        who: `user@machine`.
        pid, pid_start, pid_space: The process, where its pid means something: start in clock ticks after boot, boot id
            with pid namespace. None where the system does not tell (macOS).
        run_id, why: What it does, for the message to others.
        since: ISO-8601 UTC, by the holder's clock.
        boot_id: The host's, when the lock was taken.
        token: Random, one for each time that it is taken.
    """

    who: str
    pid: int
    pid_start: str | None
    pid_space: str | None
    run_id: str
    why: str
    since: str
    boot_id: str | None
    token: str

    @property
    def display(self) -> str:
        return f"{self.who} (pid {self.pid}) since {self.since}: {self.why}"


def this_process(run_id: str, why: str, *, boot_id: str | None) -> Owner:
    """The owner that this process would be."""
    return Owner(
        who=f"{getpass.getuser()}@{socket.gethostname()}",
        pid=os.getpid(),
        pid_start=pid_start(os.getpid()),
        pid_space=pid_space(),
        run_id=run_id,
        why=why,
        since=utc_now(),
        boot_id=boot_id,
        token=secrets.token_hex(8),
    )


@contextlib.contextmanager
def hold(
    host: Host,
    run_id: str,
    why: str,
    force: bool = False,
    *,
    on_notice: Notice = lambda _: None,
    path: str = LOCK_PATH,
    heartbeat_s: float = HEARTBEAT_S,
) -> Iterator[Owner]:
    """Hold the host's lock while the block runs; it is released on every way out.

    Args:
        force: Take it from a holder elsewhere that has been silent for two minutes; a living one is never robbed.

    Raises:
        LockHeld: Another gate0 has it: who, since when, why, and what can be done.
        HostError: The lock cannot be made on the host.
    """
    lock = HostLock(host, path=path, on_notice=on_notice)
    owner = lock.acquire(run_id, why, force=force)
    stop = threading.Event()
    heart = threading.Thread(target=_beat, args=(lock, owner, stop, heartbeat_s), name="lock-heartbeat", daemon=True)
    try:
        heart.start()
        yield owner
    finally:
        stop.set()
        heart.join(timeout=35)
        try:
            lock.release(owner)
        except HostError as exc:  # must not hide why the block ended
            on_notice(f"{host.name}: the lock could not be released ({exc.message}); it counts as left over soon")


class HostLock:
    """The lock of one host. `hold` is what a run uses; the parts are here for it and for `gate0 hosts check`."""

    def __init__(self, host: Host, *, path: str = LOCK_PATH, on_notice: Notice = lambda _: None) -> None:
        self._host = host
        self._path = path
        self._owner_file = f"{path}/{_OWNER}"
        self._on_notice = on_notice

    def acquire(self, run_id: str, why: str, *, force: bool = False) -> Owner:
        """Take it, or take it over from a holder that is gone.

        Raises:
            LockHeld, HostError: As `hold`.
        """
        boot_id = self._host.run(("cat", "/proc/sys/kernel/random/boot_id")).stdout.strip() or None
        mine = this_process(run_id, why, boot_id=boot_id)
        made = self._host.run(("mkdir", "-m", "755", self._path))
        if not made.is_ok:
            if not self._is_there():
                reason = made.stderr.strip().splitlines()[-1:] or ["mkdir failed"]
                raise HostError(self._host.name, f"cannot make the lock {self._path}: {reason[0]}")
            self._take_over(self.owner(), mine, force=force)
            return mine
        try:
            self._write(mine)
        except BaseException:  # a lock without a name would keep everyone out for two minutes
            self._host.run(("rm", "-r", "-f", self._path))
            raise
        return mine

    def owner(self) -> Owner | None:
        """Who holds it now; None when nobody does, or when owner.json cannot be read."""
        return _parsed(self._host.run(("cat", self._owner_file)).stdout)

    def refresh(self, owner: Owner) -> bool:
        """Say that the owner lives; False when the lock is no longer theirs."""
        current = self.owner()
        if current is None or current.token != owner.token:
            return False
        return self._host.run(("touch", "-c", self._owner_file)).is_ok

    def release(self, owner: Owner) -> None:
        """Give it back; a lock that is no longer the owner's stays."""
        current = self.owner()
        if current is None or current.token != owner.token:
            return
        aside = f"{self._path}.{owner.token}"
        self._host.run(("mv", self._path, aside), check=True)
        self._host.run(("rm", "-r", "-f", aside), check=True)

    def _take_over(self, held: Owner | None, mine: Owner, *, force: bool) -> None:
        why_gone, needs_force = self._gone(held, mine)
        if why_gone is None:
            raise self._held(held, force=force)
        if needs_force and not force:
            raise LockHeld(
                self._host.name,
                f"another gate0 has it, {_display(held)}; {why_gone}",
                hint="`--force` takes it over",
            )
        claim = f"{self._path}/taking-{held.token if held else 'unknown'}"
        # A claim that is old itself was left by a taker that died in between.
        self._host.run(("find", claim, "-maxdepth", "0", "-mmin", f"+{SILENT_MINUTES}", "-delete"))
        made = self._host.run(("mkdir", claim))
        if not made.is_ok:
            raise self._not_ours(held, made.stderr)
        current = self.owner()
        if (current.token if current else None) != (held.token if held else None):
            self._host.run(("rmdir", claim))
            raise self._held(current, force=force)
        self._write(mine)
        self._host.run(("rmdir", claim))
        self._on_notice(f"{self._host.name}: took over the lock of {_display(held)}; {why_gone}")

    def _gone(self, held: Owner | None, mine: Owner) -> tuple[str | None, bool]:
        """Why the holder is gone (None: it is not, as far as can be seen), and whether taking over needs `force`."""
        is_silent = self._is_silent()
        if held is None:
            return ("it was left half made", False) if is_silent else (None, False)
        if held.boot_id and mine.boot_id and held.boot_id != mine.boot_id:
            return "the host has restarted since", False
        if held.pid_space is not None and held.pid_space == mine.pid_space:
            return (None, False) if is_alive(held) else ("that process is gone", False)
        return (f"no sign of life for {SILENT_MINUTES} minutes", True) if is_silent else (None, False)

    def _is_silent(self) -> bool:
        """The heartbeat (without owner.json: the folder) is older than two minutes, by the host's own clock."""
        expression = ("-maxdepth", "1", "-mmin", f"+{SILENT_MINUTES}")
        found = self._host.run(("find", self._owner_file, *expression))
        if not found.is_ok:
            found = self._host.run(("find", self._path, "-maxdepth", "0", "-mmin", f"+{SILENT_MINUTES}"))
        return bool(found.stdout.strip())

    def _is_there(self) -> bool:
        return self._host.run(("test", "-d", self._path)).is_ok

    def _write(self, owner: Owner) -> None:
        text = json.dumps(asdict(owner), indent=1) + "\n"
        self._host.run(("tee", self._owner_file), stdin=text.encode(), check=True)

    def _held(self, held: Owner | None, *, force: bool) -> LockHeld:
        even = " (its owner lives: `--force` does not take it)" if force else ""
        return LockHeld(
            self._host.name,
            f"another gate0 has it, {_display(held)}{even}",
            hint="wait for it, or stop it where it runs; a holder that is gone is noticed by itself",
        )

    def _not_ours(self, held: Owner | None, stderr: str) -> LockHeld:
        if "exists" in stderr.lower():
            return LockHeld(self._host.name, "another gate0 is taking it over right now", hint="try again")
        return LockHeld(
            self._host.name,
            f"left over by {_display(held)}, and it cannot be removed: {stderr.strip()}",
            hint=f"it belongs to another user of the host: `sudo rm -r {self._path}` there",
        )


def pid_space() -> str | None:
    """Where a pid of this process means something: this boot and this pid namespace."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot_id} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def pid_start(pid: int) -> str | None:
    """When a process started, in clock ticks after boot: tells a process from a later one with the same pid."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def is_alive(owner: Owner) -> bool:
    """Whether the owner's process still runs; only meaningful in its own `pid_space`."""
    start = pid_start(owner.pid)
    return start is not None and owner.pid_start in (None, start)


def _beat(lock: HostLock, owner: Owner, stop: threading.Event, every_s: float) -> None:
    while not stop.wait(every_s):
        with contextlib.suppress(HostError):  # a host that does not answer is noticed by who works with it
            if not lock.refresh(owner):
                return


def _display(held: Owner | None) -> str:
    return held.display if held else "someone who has not said who yet"


def _parsed(text: str) -> Owner | None:
    try:
        found = json.loads(text)
        owner = Owner(**found)
        datetime.fromisoformat(owner.since).astimezone(UTC)
    except (ValueError, TypeError):
        return None
    return owner if isinstance(owner.token, str) and isinstance(owner.pid, int) else None
