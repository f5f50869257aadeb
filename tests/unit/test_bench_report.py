"""What `make bench` makes to be reported, and what it calls met."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.records.store import Store
from orchestrator.report.tables import run_row
from tools.bench_report import FIRST, FULL, KEPT, LISTED, QUICK, Measured, Step, Usable, lines, notes, targets
from tools.bench_store import Size, write_store


def test_the_sizes_are_those_that_are_promised() -> None:
    assert (FULL.runs, FULL.all_cells, FULL.all_requests) == (200, 10_000, 1_000_000)
    assert (QUICK.all_cells, QUICK.all_requests) == (1_000, 100_000)


def test_the_records_are_whole_and_valid(tmp_path: Path) -> None:
    size = Size(runs=3, cells=12, requests=20, tokens=8)

    written = write_store(tmp_path, size)

    stored, bad = Store(tmp_path).runs()
    rows = [run_row(s) for s in stored]
    assert bad == ()
    assert written == sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())
    assert [len(row.points) for row in rows] == [12, 12, 12]
    assert all(row.warnings == () for row in rows)
    for point in (p for row in rows for p in row.points):
        f = point.figures
        assert (f.requests, f.good, f.output_tok, f.is_valid) == (20, 20, 160, True)
        assert f.output_tok_per_s is not None
        assert f.output_tok_per_s.n == 5
        assert f.concurrency is not None
        assert f.concurrency.peak <= f.cell.concurrency


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    size = Size(runs=2, cells=2, requests=5, tokens=4)

    for name in ("a", "b"):
        write_store(tmp_path / name, size)

    found = [
        {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
        for name in ("a", "b")
    ]
    assert found[0] == found[1]


def measured(size: Size, **walls: float) -> Measured:
    names = (FIRST, KEPT, LISTED)
    steps = tuple(Step(name=n, wall_s=walls.get(n[:4], 1.0), cpu_s=0.9, memory_mb=500, written_mb=20) for n in names)
    usable = Usable(rows=200, load_ms=900, sort_ms=80, filter_ms=30)
    return Measured(size=size, raw_mb=1700, kept_mb=60, steps=steps, usable=usable)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (measured(FULL), [True, True, True]),
        (measured(FULL, page=10.1), [False, True, True]),
        (replace(measured(FULL), usable=None), [True, True, None]),
        (measured(QUICK), []),
    ],
    ids=["met", "slow", "no browser", "quick"],
)
def test_targets_are_of_the_full_size(found: Measured, expected: list[bool | None]) -> None:
    assert [t.is_met for t in targets(found)] == expected


def test_what_was_not_measured_is_said() -> None:
    assert lines(measured(FULL))[-1].endswith("a table of 200 rows sorts in 80 ms, filters in 30 ms")
    assert lines(replace(measured(FULL), usable=None))[-1].endswith("no Chromium here")


def test_a_wall_time_that_other_jobs_made_is_said() -> None:
    assert notes(measured(FULL)) == []
    assert notes(measured(FULL, page=9.0)) == ["other jobs held the report up: its page took 0.9 s of a core in 9.0 s"]
