"""How far a pull is: Docker's per-layer events folded into one figure."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.deploy.runtime import PullProgress
from orchestrator.values import Json

_DONE = frozenset({"Pull complete", "Already exists"})
_DOWNLOADED = frozenset({"Download complete", "Extracting", "Verifying Checksum"})


class LayerTally:
    """Fold pull events (one JSON object each) into the progress so far.

    Bytes are those of downloads; a layer that Docker has already counts as done and adds no bytes, because its size is
    never told.
    """

    def __init__(self) -> None:
        self._done_bytes: dict[str, int] = {}
        self._total_bytes: dict[str, int] = {}
        self._is_done: dict[str, bool] = {}
        self._status = ""

    def add(self, event: Mapping[str, Json]) -> PullProgress:
        """Take one event in; returns the whole so far."""
        status, layer = event.get("status"), event.get("id")
        if isinstance(status, str):
            self._status = status
            if isinstance(layer, str) and not status.startswith("Pulling from"):
                self._add_layer(layer, status, event.get("progressDetail"))
        return self.progress

    @property
    def progress(self) -> PullProgress:
        """Where the pull is now."""
        return PullProgress(
            done_bytes=sum(self._done_bytes.values()),
            total_bytes=sum(self._total_bytes.values()),
            layers_done=sum(self._is_done.values()),
            layers=len(self._is_done),
            status=self._status,
        )

    def _add_layer(self, layer: str, status: str, detail: Json) -> None:
        self._is_done[layer] = status in _DONE
        if status == "Downloading" and isinstance(detail, Mapping):
            current, total = detail.get("current"), detail.get("total")
            if isinstance(current, int) and isinstance(total, int):
                self._done_bytes[layer], self._total_bytes[layer] = current, max(current, total)
        elif status in _DOWNLOADED or status in _DONE:
            self._done_bytes[layer] = self._total_bytes.get(layer, 0)
