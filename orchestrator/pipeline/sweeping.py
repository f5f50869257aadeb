"""The sweep stage: repeat after repeat of all cells, with what an earlier attempt finished.

The repeats of a workload's cells are interleaved: each round runs every cell once, in an order shuffled by the
workload's seed, so that a machine that grows warm or slow in an hour does so under all cells alike. A cell is written
after each of its repeats: what is on disk is true whenever the sweep ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.errors import TargetError
from orchestrator.figures.cell import cell_figures
from orchestrator.figures.stats import Spread
from orchestrator.pipeline.death import raise_if_dead
from orchestrator.pipeline.events import CellBegan, CellEnded, CellMoved
from orchestrator.pipeline.road import Road, RunCell
from orchestrator.records.aside import foreign_cell_files, set_aside
from orchestrator.records.store import StoredCell
from orchestrator.sweep.outcome import Lap, cell_outcome
from orchestrator.sweep.spec import CellProgress, LoadTarget
from orchestrator.sweep.workload import Cell, Workload
from orchestrator.values import Json, digest

TIGHT_REPEATS = 3


def cell_digest(cell: Cell, serving: Mapping[str, Json]) -> str:
    """Identity of a cell: the load, and what it was sent to (image, argv, effective settings), not the container."""
    return digest({"load": cell.load_digest(), "serving": dict(serving)})


@dataclass(slots=True, eq=False)
class _Course:
    """One cell on its way. `stop_reason`: set once no more repeats are to come."""

    cell: Cell
    digest: str
    laps: list[Lap] = field(default_factory=list)
    stop_reason: str | None = None
    is_kept: bool = False

    @property
    def name(self) -> str:
        return f"{self.cell.workload.name}/{self.cell.id}"


def sweep_cells(road: Road, load: LoadTarget, serving: Mapping[str, Json]) -> tuple[int, int]:
    """Run all cells of all workloads; returns how many were `(measured, kept)`.

    What an earlier attempt stored stands when load and serving are the same and it broke no guard: a finished cell is
    kept, one with too few repeats goes on. Cells of another serving are set aside, so that one record never mixes two.

    Raises:
        ServerDied: The server ended under the load.
        TargetError: A whole repeat went unanswered by a server that still runs, or that is not ours to look at.
    """
    serving_digest = digest(dict(serving))
    set_aside(
        road.writer.directory, foreign_cell_files(road.writer.directory, serving_digest), attempt=road.run.attempts
    )
    with road.tools.cell_runner() as run_cell:
        sweep = _Sweep(road=road, load=load, serving=serving, serving_digest=serving_digest, run_cell=run_cell)
        for workload in road.job.workloads:
            sweep.add(workload)
        return sweep.run()


@dataclass(slots=True, eq=False, kw_only=True)
class _Sweep:
    """All courses of one sweep, and where it is."""

    road: Road
    load: LoadTarget
    serving: Mapping[str, Json]
    serving_digest: str
    run_cell: RunCell
    courses: dict[str, list[_Course]] = field(default_factory=dict)
    laps_done: int = 0
    started_s: float = 0.0

    def add(self, workload: Workload) -> None:
        self.courses[workload.name] = [self._course(cell) for cell in workload.cells()]

    def run(self) -> tuple[int, int]:
        self.started_s = self.road.tools.clock()
        everything = [c for courses in self.courses.values() for c in courses]
        for course in everything:
            if course.is_kept:
                self._tell_end(course, self._stored(course), prefix="kept from an earlier attempt: ")
        for courses in self.courses.values():
            for course, is_last in _order(courses):
                if course.stop_reason is None and not self._is_over_budget(course):
                    self._lap(course)
                    self._judge(course, is_last=is_last)
        unrun = [c.name for c in everything if not c.laps]
        if unrun:
            self.road.note(f"not begun within the budget: {', '.join(unrun)}", is_warning=True)
        return sum(bool(c.laps) and not c.is_kept for c in everything), sum(c.is_kept for c in everything)

    def _course(self, cell: Cell) -> _Course:
        course = _Course(cell=cell, digest=cell_digest(cell, self.serving))
        found = self.road.writer.find_cell(cell.workload.name, cell.id)
        if found is None or found.cell.digest != course.digest or not _stands(found):
            return course
        course.laps = stored_laps(found)
        if found.cell.repeats_done >= cell.workload.repeats or found.cell.stop_reason == "tight":
            course.stop_reason = found.cell.stop_reason
            course.is_kept = True
        return course

    def _is_over_budget(self, course: _Course) -> bool:
        budget_s = self.road.job.options.budget_s
        if budget_s is None or self.road.tools.clock() - self.started_s < budget_s:
            return False
        course.stop_reason = "budget"
        if course.laps:
            self._tell_end(course, self._write(course), prefix="")
        return True

    def _lap(self, course: _Course) -> None:
        road, total = self.road, sum(len(c) for c in self.courses.values())
        index = self._index(course)

        def show(progress: CellProgress) -> None:
            moved = CellMoved(
                where=road.where,
                cell=course.name,
                index=index,
                total=total,
                share=progress.share,
                text=f"repeat {progress.repeat + 1}/{course.cell.workload.repeats}: {progress.text}",
            )
            road.observer.on(moved)

        with road.tools.sweep_turn():
            road.cancel.check()
            road.observer.on(CellBegan(where=road.where, cell=course.name, index=index, total=total))
            repeat = len(course.laps)
            road.writer.append_event("cell", {"cell": course.name, "repeat": repeat, "index": index, "total": total})
            lap = self.run_cell(self.load, course.cell, repeat, show, road.cancel.is_set)
        road.cancel.check()
        course.laps.append(replace(lap, record={**lap.record, "order": self.laps_done}))
        self.laps_done += 1

    def _judge(self, course: _Course, *, is_last: bool) -> None:
        """Write the cell as it is now; say so when it is finished."""
        w, stored = course.cell.workload, self._write(course)
        rate = cell_figures(stored.cell, stored.requests).output_tok_per_s
        if len(course.laps) >= w.repeats:
            course.stop_reason = "all"
        elif w.tight is not None and _is_tight(rate, w.tight):
            course.stop_reason = "tight"
            stored = self._write(course)
        if course.stop_reason is not None:
            self._tell_end(course, stored, prefix="")
        self._refuse_silence(course, stored)

    def _write(self, course: _Course) -> StoredCell:
        outcome = cell_outcome(self.load, course.cell, course.laps, stop_reason=course.stop_reason or "interrupted")
        course.laps = [replace(lap, record=r) for lap, r in zip(course.laps, outcome.record.laps, strict=True)]
        record = replace(
            outcome.record,
            digest=course.digest,
            serving_digest=self.serving_digest,
            is_ungated=self.road.run.is_ungated,
        )
        self.road.writer.write_cell(record, outcome.requests)
        self.road.save()
        return StoredCell(cell=record, requests=outcome.requests)

    def _stored(self, course: _Course) -> StoredCell:
        found = self.road.writer.find_cell(course.cell.workload.name, course.cell.id)
        assert found is not None
        return found

    def _index(self, course: _Course) -> int:
        return [c for courses in self.courses.values() for c in courses].index(course)

    def _tell_end(self, course: _Course, stored: StoredCell, *, prefix: str) -> None:
        total = sum(len(c) for c in self.courses.values())
        text = prefix + cell_words(stored)
        where, index = self.road.where, self._index(course)
        self.road.observer.on(CellEnded(where=where, cell=stored.cell, index=index, total=total, text=text))

    def _refuse_silence(self, course: _Course, stored: StoredCell) -> None:
        """A failed request may be a dead server's; a repeat without one answer ends the sweep in any case."""
        of_lap = [r for r in stored.requests if r.repeat == course.laps[-1].repeat]
        good = sum(r.failure is None for r in of_lap)
        if good < len(of_lap):
            raise_if_dead(self.road, f"in cell {course.name}")
        if of_lap and not good:
            kinds = ", ".join(sorted({str(r.failure) for r in of_lap}))
            raise TargetError(
                f"{self.road.where}: no request of {course.name} was answered: {kinds}",
                hint="its requests.jsonl has the server's words; the server's log is in the record",
            )


def _order(courses: Sequence[_Course]) -> Iterator[tuple[_Course, bool]]:
    """Every course as often as it has repeats to run; with it, whether that is its last."""
    if not courses:
        return
    w = courses[0].cell.workload
    todo = {id(c): w.repeats - len(c.laps) for c in courses if c.stop_reason is None}
    if w.order == "listed":
        for course in courses:
            for left in range(todo.get(id(course), 0), 0, -1):
                yield course, left == 1
        return
    for round_ in range(w.repeats):
        shuffled = list(courses)
        random.Random(f"{w.seed}/order/{round_}").shuffle(shuffled)
        for course in shuffled:
            left = todo.get(id(course), 0)
            if left > 0:
                todo[id(course)] = left - 1
                yield course, left == 1


def stored_laps(found: StoredCell) -> list[Lap]:
    """The repeats of a stored cell, to go on from."""
    laps = []
    for record in found.cell.laps:
        requests = tuple(r for r in found.requests if r.repeat == record.get("repeat"))
        laps.append(Lap(record=record, requests=requests))
    return laps


def _is_tight(rate: Spread | None, half_width: float) -> bool:
    """The mean over at least three repeats is known to within that share of it."""
    if rate is None or rate.n < TIGHT_REPEATS or rate.relative_half_width is None:
        return False
    return rate.relative_half_width <= half_width


def _stands(found: StoredCell) -> bool:
    return found.cell.status == "measured" and found.cell.is_valid


def cell_words(stored: StoredCell) -> str:
    """A finished cell in one line, with what makes it invalid or different."""
    cell, figures = stored.cell, cell_figures(stored.cell, stored.requests)
    rate, first = figures.output_tok_per_s, figures.ttft_ms.p50
    parts = [
        f"{rate.mean:.1f} tok/s" if rate else "no rate",
        f"first token {first / 1000:.2f} s" if first is not None else "no first token",
        f"{figures.good}/{figures.requests} good",
        *(f"{count} failed: {name}" for name, count in figures.failures.items()),
        *(f"invalid: {g.get('name')}: {g.get('message')}" for g in cell.guards),
    ]
    if cell.is_queueing:
        parts.append(f"queueing for {cell.slots} slots")
    if cell.repeats_done < cell.repeats:
        parts.append(f"{cell.repeats_done} of {cell.repeats} repeats ({cell.stop_reason})")
    return ", ".join(parts)
