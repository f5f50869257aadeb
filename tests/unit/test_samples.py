"""The record that ships: measured in the lab, readable, whole, and of nobody's machine."""

from __future__ import annotations

from pathlib import Path

from orchestrator.records.store import Store
from orchestrator.report.tables import run_row

LAB = Path(__file__).resolve().parents[2] / "samples" / "lab"


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

    assert not any(place in text for place in ("/home/", "/root", "/tmp/", "/work/"))
