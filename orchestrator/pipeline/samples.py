"""The last hour or so of what the hosts told, in memory: a repeat is judged by what happened in its time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

from orchestrator.values import Json

KEPT = 8192


class Samples:
    """Samples by host and time; written by the telemetry's threads, read by the sweep."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, str, Mapping[str, Json]]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def add(self, at_s: float, where: str, sample: Mapping[str, Json]) -> None:
        with self._lock:
            self._kept.append((at_s, where, sample))

    def between(self, start_s: float, end_s: float) -> dict[str, list[Mapping[str, Json]]]:
        """By host, in order."""
        found: dict[str, list[Mapping[str, Json]]] = {}
        with self._lock:
            for at_s, where, sample in self._kept:
                if start_s <= at_s <= end_s:
                    found.setdefault(where, []).append(sample)
        return found
