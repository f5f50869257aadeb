"""Ask a host everything at once, over its one connection."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from orchestrator.errors import CommandTimedOut
from orchestrator.fleet.facts.model import HostFacts
from orchestrator.fleet.facts.parse import disk_free
from orchestrator.fleet.facts.table import FACTS, Fact
from orchestrator.fleet.host import Host
from orchestrator.values import Clock, utc_now

_AT_ONCE = 8
_DISK_S = 8.0
DOCKER_ROOT = "/var/lib/docker"


def read_facts(host: Host, *, facts: tuple[Fact, ...] = FACTS, wall_clock: Clock = time.time) -> HostFacts:
    """Read a host's facts. A fact that is not there, or late, is None; the host itself has to answer.

    Args:
        wall_clock: This machine's time in seconds since the epoch.

    Raises:
        HostError: The host cannot be reached or used at all.
    """
    read_at = utc_now()
    clock_ahead_s = _clock_ahead_s(host, wall_clock)  # the first command: says what is wrong with the host, once
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="facts") as pool:
        read = tuple(pool.map(lambda fact: _read(host, fact), facts))
        fields = _merged(found for found in read if found is not None)
        docker = fields.get("docker")
        paths = [p for p in ((docker.root if docker else None) or DOCKER_ROOT, fields.get("home")) if p]
        free = dict(zip(paths, pool.map(lambda path: _disk_free(host, path), paths), strict=True))
    return HostFacts(
        host=host.name,
        read_at=read_at,
        clock_ahead_s=clock_ahead_s,
        disk_free_bytes={path: size for path, size in free.items() if size is not None},
        unread=tuple(fact.name for fact, found in zip(facts, read, strict=True) if found is None),
        **fields,
    )


def _read(host: Host, fact: Fact) -> Mapping[str, Any] | None:
    """The fact's fields; None when it was late."""
    try:
        return fact.parse(host.run(fact.argv, timeout_s=fact.timeout_s))
    except CommandTimedOut:
        return None


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All fields; mappings that two facts add to (firmware) are joined."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            before = merged.get(key)
            merged[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _clock_ahead_s(host: Host, wall_clock: Clock) -> float | None:
    before_s = wall_clock()
    done = host.run(("date", "+%s.%N"))
    middle_s = (before_s + wall_clock()) / 2
    try:
        return round(float(done.stdout) - middle_s, 3)
    except ValueError:
        return None


def _disk_free(host: Host, path: str) -> int | None:
    try:
        return disk_free(host.run(("df", "-P", "-B1", path), timeout_s=_DISK_S).stdout).get("free")
    except CommandTimedOut:
        return None
