"""Set aside what an earlier attempt wrote and this one no longer stands on. Nothing is deleted, readers skip it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from orchestrator.errors import StoreError

FOLDER = "superseded"


def set_aside(directory: Path, paths: Iterable[Path], *, attempt: int) -> int:
    """Move files of a run directory below `superseded/attempt-N/`, under their own paths; returns how many.

    Raises:
        StoreError: A file cannot be moved.
    """
    moved = 0
    for path in paths:
        place = directory / FOLDER / f"attempt-{attempt}" / path.relative_to(directory)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
        except OSError as exc:
            raise StoreError(
                f"cannot set aside {path}: {exc.strerror}", hint="is the results folder writable?"
            ) from exc
        moved += 1
    return moved


def gate_files(directory: Path) -> tuple[Path, ...]:
    """All verdicts of a run."""
    return tuple(sorted((directory / "gates").glob("*.json")))


def log_files(directory: Path) -> tuple[Path, ...]:
    """All servers' logs of a run."""
    return tuple(sorted(directory.glob("container-*.log")))


def foreign_cell_files(directory: Path, serving_digest: str) -> tuple[Path, ...]:
    """The files of all cells that were measured on another serving than this one, or that cannot be read."""
    found: list[Path] = []
    for path in sorted((directory / "sweeps").glob("*/*.json")):
        if _serving_of(path) != serving_digest:
            found += [p for p in (path, path.with_suffix(".requests.jsonl")) if p.exists()]
    return tuple(found)


def _serving_of(path: Path) -> str | None:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    found = raw.get("serving_digest") if isinstance(raw, dict) else None
    return found if isinstance(found, str) else None
