"""Kept figures: the same as computed ones to the last digit, gone as soon as a record changes, never an error."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.figures.cell import CellFigures, cell_figures
from orchestrator.records.record import RequestRecord
from orchestrator.records.store import Store, StoredCell, StoredRun, requests_file
from orchestrator.report.derived import cells as derived_cells
from orchestrator.report.derived import files, rows
from orchestrator.report.derived.form import from_plain, to_plain
from orchestrator.report.derived.rows import rows_of
from orchestrator.report.raw import RawRecords
from orchestrator.report.tables import run_row
from tests.unit import chart_records as made
from tests.unit.figure_cases import CASES as FIGURES
from tests.unit.figure_cases import cell_of, requests_of
from tests.unit.test_report_kinds import CASES, stored

KINDS = sorted(CASES.glob("*.json"))
CELLS = sorted((FIGURES / "cells").glob("*.json"))


def cells_of(path: Path) -> list[StoredCell]:
    case = json.loads(path.read_text())
    if path.parent == CASES:
        return stored(case)
    return [StoredCell(cell=cell_of(case["cell"]), requests=tuple(requests_of(case["requests"])))]


def write(folder: Path, cells: Sequence[StoredCell]) -> StoredRun:
    """Each cell under a name of its own."""
    named = [replace(c, cell=replace(c.cell, id=f"{c.cell.id}-{i}")) for i, c in enumerate(cells)]
    return made.write(folder, "a", named)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the cells whose raw records were read."""
    found: list[str] = []
    whole = derived_cells.read_cell

    def counted(path: Path) -> object:
        found.append(path.stem)
        return whole(path)

    monkeypatch.setattr(derived_cells, "read_cell", counted)
    return found


@pytest.mark.parametrize("path", [*KINDS, *CELLS], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_row_of_kept_figures_is_the_row_of_the_raw_records(path: Path, tmp_path: Path, read: list[str]) -> None:
    run = write(tmp_path, cells_of(path))
    fresh = run_row(run)

    (first,) = rows_of([run], tmp_path)
    asked = len(read)
    (second,) = rows_of([run], tmp_path)

    assert asked == len(fresh.points) > 0
    assert read[asked:] == []
    # Not by == alone: 1 and 1.0, a list and a tuple must stay apart too.
    assert (repr(first), repr(second)) == (repr(fresh), repr(fresh))
    assert json.dumps(second.as_json()) == json.dumps(fresh.as_json())


@pytest.mark.parametrize("path", [*KINDS, *CELLS], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_figures_of_every_kind_survive_as_json(path: Path) -> None:
    for c in cells_of(path):
        figures = cell_figures(c.cell, c.requests)
        there = json.loads(json.dumps(to_plain(replace(figures, cell=plain_cell(figures))), allow_nan=False))

        assert repr(replace(from_plain(there), cell=figures.cell)) == repr(figures)


def plain_cell(figures: CellFigures) -> object:
    return replace(figures.cell, spans_ns=(), laps=())


def test_percentiles_among_failures_stay_infinite(tmp_path: Path) -> None:
    run = write(tmp_path, [made.closed(4, 100, 0.5, failed=7, rounds=4)])

    rows_of([run], tmp_path)
    (row,) = rows_of([run], tmp_path)

    found = row.points[0].figures.ttft_adjusted_ms
    assert (found.n, found.mean, found.p50, found.max) == (48, None, 500.0, math.inf)


def set_size(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def set_same_size(path: Path) -> None:
    """Other content, as long as before, with the old time of change."""
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"cached_tok":null', b'"cached_tok":1234'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.replace(copy, path)


@pytest.mark.parametrize("change", [set_size, set_same_size, replaced], ids=lambda f: f.__name__)
@pytest.mark.parametrize("of", [lambda p: p, requests_file], ids=["cell", "requests"])
def test_a_changed_record_is_read_again_and_no_other(
    change: Callable[[Path], None], of: Callable[[Path], Path], tmp_path: Path, read: list[str]
) -> None:
    run = write(tmp_path, [made.closed(n, 100 * n, 0.5) for n in (1, 2, 4)])
    rows_of([run], tmp_path)
    read.clear()

    change(of(run.cell_files()[1]))
    (row,) = rows_of([run], tmp_path)

    assert read == ["closed-p128-o100-c2-1"]
    assert repr(row) == repr(run_row(run))
    read.clear()
    rows_of([run], tmp_path)
    assert read == []


def spoil(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def other_digit(path: Path) -> None:
    head, _, body = path.read_bytes().partition(b"\n")
    path.write_bytes(head + b"\n" + body.replace(b"1", b"2"))


def other_version(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(files.version().encode(), b"0" * 16))


def sealed(content: object) -> Callable[[Path], None]:
    return lambda path: files.write(path, content) and None


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILED = {
    "empty": spoil(b""),
    "no text": spoil(b"\xff\x00"),
    "cut": cut,
    "other digit": other_digit,
    "other version": other_version,
    "a list": sealed([1]),
    "no entries": sealed({"sweeps/concurrency/closed-p128-o100-c1-0.json": 7}),
    "too few figures": sealed({"sweeps/concurrency/closed-p128-o100-c1-0.json": [[], [1, 2]]}),
    "a folder": as_folder,
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_file_is_computed_again(name: str, tmp_path: Path, read: list[str]) -> None:
    run = write(tmp_path, [made.closed(1, 100, 0.5)])
    rows_of([run], tmp_path)
    read.clear()

    SPOILED[name](tmp_path / ".derived" / "a" / "figures.json")
    (row,) = rows_of([run], tmp_path)

    assert read == ["closed-p128-o100-c1-0"]
    assert repr(row) == repr(run_row(run))


def test_a_folder_that_cannot_be_written_keeps_nothing_and_says_nothing(tmp_path: Path) -> None:
    run = write(tmp_path, [made.closed(1, 100, 0.5)])
    (tmp_path / ".derived").write_text("a file")

    found = [rows_of([run], tmp_path)[0] for _ in range(2)]

    assert [repr(row) for row in found] == [repr(run_row(run))] * 2
    assert (tmp_path / ".derived").read_text() == "a file"


def test_a_run_of_elsewhere_leaves_nothing_beside_it(tmp_path: Path) -> None:
    run = write(tmp_path / "theirs", [made.closed(1, 100, 0.5)])

    rows_of([run], tmp_path / "ours")

    assert sorted(p.name for p in tmp_path.rglob("*") if p.name.startswith(".")) == []


def test_a_cell_that_cannot_be_read_is_named_each_time(tmp_path: Path) -> None:
    run = write(tmp_path, [made.closed(n, 100 * n, 0.5) for n in (1, 2)])
    requests_file(run.cell_files()[0]).write_text("{")

    found = [rows_of([run], tmp_path)[0] for _ in range(2)]

    assert [len(row.points) for row in found] == [1, 1]
    assert all("sweeps/concurrency/closed-p128-o100-c1-0.json" in row.warnings[0] for row in found)


def test_a_cell_that_is_gone_is_kept_no_longer(tmp_path: Path) -> None:
    run = write(tmp_path, [made.closed(n, 100 * n, 0.5) for n in (1, 2)])
    rows_of([run], tmp_path)

    run.cell_files()[0].unlink()
    (row,) = rows_of([run], tmp_path)

    assert [p.figures.cell.concurrency for p in row.points] == [2]
    assert list(files.read(tmp_path / ".derived" / "a" / "figures.json")) == [
        "sweeps/concurrency/closed-p128-o100-c2-1.json"
    ]


def test_much_is_read_by_other_processes_with_the_same_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(rows, "POOL_BYTES", 1)
    monkeypatch.setattr(rows, "PART_BYTES", 1)
    run = write(tmp_path, [made.closed(n, 100 * n, 0.5) for n in (1, 2, 4)])
    requests_file(run.cell_files()[2]).write_text("{")
    told: list[tuple[int, int]] = []

    (row,) = rows_of([run], tmp_path, cores=2, tell=lambda cells, size: told.append((cells, size)))

    assert read == []  # in this process
    assert told == [(3, sum(requests_file(p).stat().st_size for p in run.cell_files()))]
    assert repr(row) == repr(run_row(run))


def broken_pool(*_: object, **__: object) -> AbstractContextManager[object]:
    raise OSError("no processes here")


def test_without_other_processes_it_is_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(rows, "POOL_BYTES", 1)
    monkeypatch.setattr(rows, "ProcessPoolExecutor", broken_pool)
    run = write(tmp_path, [made.closed(1, 100, 0.5)])

    (row,) = rows_of([run], tmp_path, cores=2)

    assert read == ["closed-p128-o100-c1-0"]
    assert repr(row) == repr(run_row(run))


def without_events(requests: Sequence[RequestRecord]) -> tuple[RequestRecord, ...]:
    return tuple(replace(r, events=()) for r in requests)


@pytest.mark.parametrize("path", [*KINDS, *CELLS], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_kept_requests_are_the_raw_ones_without_events(path: Path, tmp_path: Path) -> None:
    run = write(tmp_path, cells_of(path))

    for c in run.cells():
        found = [RawRecords.of([run], root).cell("a", c.cell) for root in (tmp_path, tmp_path, None)]
        expected = StoredCell(cell=c.cell, requests=without_events(c.requests))
        assert [repr(f) for f in found] == [repr(expected)] * 3


def test_kept_requests_spare_the_raw_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write(tmp_path, [made.closed(2, 100, 0.5)])
    (c,) = run.cells()
    RawRecords.of([run], tmp_path).cell("a", c.cell)

    monkeypatch.setattr(StoredRun, "find_cell", lambda *_: pytest.fail("read the raw file"))
    kept = RawRecords.of([run], tmp_path).cell("a", c.cell)

    assert kept is not None
    assert kept.requests == without_events(c.requests)


def test_kept_requests_follow_their_record(tmp_path: Path) -> None:
    run = write(tmp_path, [made.closed(2, 100, 0.5)])
    (c,) = run.cells()
    RawRecords.of([run], tmp_path).cell("a", c.cell)

    Store(tmp_path).new_run("a").write_cell(c.cell, c.requests[:3])
    found = RawRecords.of([run], tmp_path).cell("a", c.cell)
    requests_file(run.cell_files()[0]).unlink()

    assert found is not None
    assert found.requests == without_events(c.requests[:3])
    assert RawRecords.of([run], tmp_path).cell("a", c.cell) is None


def test_what_is_derived_can_be_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write(tmp_path, [made.closed(1, 100, 0.5)])
    rows_of([run], tmp_path)
    before = sorted(p for p in tmp_path.rglob("*") if ".derived" not in p.parts)
    assert (tmp_path / ".derived" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172")

    codes = [main(["results", "clean", "--derived", "--results", str(tmp_path)]) for _ in range(2)]

    assert codes == [0, 0]
    assert sorted(tmp_path.rglob("*")) == before
    assert capsys.readouterr().out.splitlines()[1:] == ["nothing derived is kept"]


def test_clean_wants_to_be_told_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "clean", "--results", str(tmp_path)]) == 2

    assert "--derived" in capsys.readouterr().err


def test_the_list_of_results_reads_a_record_once(tmp_path: Path, read: list[str]) -> None:
    write(tmp_path, [made.closed(1, 100, 0.5)])

    codes = [main(["results", "list", "--results", str(tmp_path)]) for _ in range(2)]

    assert codes == [0, 0]
    assert read == ["closed-p128-o100-c1-0"]
