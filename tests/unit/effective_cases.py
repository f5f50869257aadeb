"""What servers were seen to tell, as the cases under tests/cases/effective keep it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.engines.effective.model import Told

ROOT = Path(__file__).resolve().parents[1] / "cases" / "effective"


def load(name: str) -> Any:
    return json.loads((ROOT / name).read_text())


def told_names() -> list[str]:
    return sorted(path.stem for path in (ROOT / "told").glob("*.json"))


def engine_of(name: str) -> str:
    engine = load(f"told/{name}.json")["engine"]
    assert isinstance(engine, str)
    return engine


def told(name: str, *, without: tuple[str, ...] = (), more_log: tuple[str, ...] = (), **metrics: float) -> Told:
    """One server's words; `without` leaves parts out (`log`, `labels`, a document's path), `more_log` adds lines."""
    found = load(f"told/{name}.json")
    documents = {path: value for path, value in found["documents"].items() if path.partition("?")[0] not in without}
    return Told(
        log=(*(() if "log" in without else found["log"]), *more_log),
        documents=documents,
        labels={} if "labels" in without else {k: tuple(v) for k, v in found.get("labels", {}).items()},
        metrics={} if "metrics" in without else {**found["metrics"], **metrics},
    )
