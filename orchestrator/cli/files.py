"""Files that a command writes because it was asked to."""

from __future__ import annotations

from pathlib import Path

from orchestrator.errors import StoreError


def write_file(path: Path, text: str) -> None:
    """Write it whole or not at all, its folders too.

    Raises:
        StoreError: It cannot be written.
    """
    from orchestrator.records.store import write_atomically

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as exc:
        raise StoreError(f"cannot write {path}: {exc.strerror or exc}", hint="choose another place with `-o`") from exc
