"""The record that ships: measured in the lab, readable, whole, and of nobody's machine."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.records.store import Store
from orchestrator.report.tables import run_row

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "samples" / "lab"
ROUTES = ("/v1/", "/models/", "/health", "/props", "/slots", "/metrics", "/tokenize")
"""What a server is asked for, and where the model lies in its image."""
PATH = re.compile(r"(?<![\w.:/<\\\]-])/[A-Za-z][\w.-]*/[\w./-]+")


def test_the_labs_record_is_whole_and_valid() -> None:
    good, bad = Store(LAB).runs()

    (stored,) = good
    assert bad == ()
    row = run_row(stored)
    assert row.warnings == ()
    assert len(row.points) == 8
    assert all(p.figures.is_valid and p.figures.good == p.figures.requests > 0 for p in row.points)
    assert {p.figures.cell.kind for p in row.points} == {"closed", "swarm"}


def test_no_path_of_a_machine_is_in_it() -> None:
    text = "".join(p.read_text() for p in LAB.rglob("*") if p.is_file())

    found = {path for path in PATH.findall(text) if not path.startswith(ROUTES)}

    assert found == set()
    assert str(ROOT) not in text
    assert str(Path.home()) not in text
