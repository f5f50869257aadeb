"""The sweep stage: repeat after repeat of all cells, with what an earlier attempt finished.

The repeats of a workload's cells are interleaved: each round runs every cell once, in an order shuffled by the
workload's seed, so that a machine that grows warm or slow in an hour does so under all cells alike. A cell is written
after each of its repeats: what is on disk is true whenever the sweep ends. Where a level is looked for (`search`) or a
capacity has to be known first (`overload`), `pipeline.seeking` says what comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.engines.rules.silencing import without_silenced
from orchestrator.errors import TargetError
from orchestrator.figures.cell import CellFigures, cell_figures
from orchestrator.pipeline import remaining
from orchestrator.pipeline.calibration import doubts, error_at
from orchestrator.pipeline.course import Course, cell_digest, is_finished, is_tight, stands, stored_laps, turns
from orchestrator.pipeline.death import raise_if_dead
from orchestrator.pipeline.events import CellBegan, CellEnded, CellMoved, LapEnded
from orchestrator.pipeline.planning import load_advisories, priming_advisories
from orchestrator.pipeline.road import Road, RunCell
from orchestrator.pipeline.seeking import Seeker, capacity_cell, capacity_rps, seekers
from orchestrator.records.aside import foreign_cell_files, set_aside
from orchestrator.records.store import StoredCell
from orchestrator.report.cell_line import cell_words
from orchestrator.sweep.hosts import host_summary
from orchestrator.sweep.outcome import CellOutcome, cell_outcome
from orchestrator.sweep.spec import CellProgress, LoadTarget
from orchestrator.sweep.workload import Cell, Kind
from orchestrator.values import Json, digest

__all__ = ["cell_digest", "sweep_cells"]


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
        sweep = _Sweep(
            road=road,
            load=load,
            serving=serving,
            serving_digest=serving_digest,
            run_cell=run_cell,
            calibration=road.tools.calibration(),
        )
        return sweep.run()


@dataclass(slots=True, eq=False, kw_only=True)
class _Sweep:
    """All courses of one sweep, and where it is."""

    road: Road
    load: LoadTarget
    serving: Mapping[str, Json]
    serving_digest: str
    run_cell: RunCell
    calibration: Mapping[str, Json] | None = None
    courses: list[Course] = field(default_factory=list)
    untold: list[tuple[Course, StoredCell]] = field(default_factory=list)
    laps_done: int = 0
    started_s: float = 0.0

    def run(self) -> tuple[int, int]:
        self.started_s = self.road.tools.clock()
        self._say_doubts()
        fixed = {w.name: [self._course(cell) for cell in w.cells()] for w in self.road.job.workloads if not w.search}
        self._tell_kept()
        for workload in self.road.job.workloads:
            if workload.search is not None:
                for seeker in seekers(workload):
                    self._seek(seeker)
                continue
            for course in turns(fixed[workload.name], workload):
                self._turn(course)
        unrun = [c.name for c in self.courses if not c.laps]
        if unrun:
            self.road.note(f"not begun within the budget: {', '.join(unrun)}", is_warning=True)
        return sum(bool(c.laps) and not c.is_kept for c in self.courses), sum(c.is_kept for c in self.courses)

    def _say_doubts(self) -> None:
        """What is not known of this machine's own error, once a sweep; the error itself goes into the record."""
        streams = max((c.concurrency for w in self.road.job.workloads for c in w.cells()), default=0)
        if (doubt := doubts(self.calibration, streams)) is not None:
            self.road.note(doubt, is_warning=self.calibration is not None)
        if self.calibration is not None:
            self.road.save(client_error=self.calibration)
        workloads = self.road.job.workloads
        found = (*load_advisories(workloads, self.load.slots), *priming_advisories(workloads, self.load))
        for advice in without_silenced(found, self.road.job.profile.silence).advisories:
            self.road.note(f"{advice.message} ({advice.hint})", is_warning=True)

    def _course(self, cell: Cell) -> Course:
        """The cell's course, with what an earlier attempt has of it."""
        course = Course(cell=cell, digest=cell_digest(cell, self.serving))
        self.courses.append(course)
        found = self.road.writer.find_cell(cell.workload.name, cell.id)
        if found is None or found.cell.digest != course.digest or not stands(found):
            return course
        found = self._judged_anew(found, cell)
        course.laps = stored_laps(found)
        if cell.kind is Kind.OVERLOAD and cell.rate_rps is None:
            course.rate_rps = found.cell.rate_rps
        if is_finished(found):
            course.stop_reason = found.cell.stop_reason
            course.is_kept = True
            self.untold.append((course, found))
        return course

    def _tell_kept(self) -> None:
        """When all cells of a list are known: what is kept has its place among them."""
        for course, found in self.untold:
            self._tell_end(course, found, prefix="kept from an earlier attempt: ")
        self.untold.clear()

    def _judged_anew(self, found: StoredCell, cell: Cell) -> StoredCell:
        """The service level is none of the load: the stored requests are judged by the one of today."""
        slo = {} if cell.slo is None else cell.slo.as_json()
        if dict(found.cell.slo) == slo:
            return found
        reason = "interrupted" if found.cell.stop_reason == "decided" else found.cell.stop_reason
        judged = StoredCell(cell=replace(found.cell, slo=slo, stop_reason=reason), requests=found.requests)
        self.road.writer.write_cell(judged.cell, judged.requests)
        return judged

    def _seek(self, seeker: Seeker) -> None:
        """Level after level, until the search has its answer or the budget ends."""
        by_level: dict[float, Course] = {}
        while (level := seeker.next_level()) is not None:
            is_new = level not in by_level
            if is_new:
                by_level[level] = self._course(seeker.cell_at(level))
                self._tell_kept()
            course = by_level[level]
            if course.stop_reason is None and not (is_new and course.laps):
                self._turn(course)
            if not course.laps:
                seeker.give_up()
                break
            seeker.take(level, self._figures(course), can_go_on=course.stop_reason is None)
            if not seeker.is_open(level) and course.stop_reason is None:
                course.stop_reason = "decided"
                self._tell_end(course, self._write(course), prefix="")
        self.road.note(seeker.words)
        self.road.writer.append_event("search", seeker.as_json())

    def _turn(self, course: Course) -> None:
        """One more repeat, unless the budget is over."""
        if self._is_over_budget(course):
            return
        if course.cell.kind is Kind.OVERLOAD and course.cell.rate_rps is None and course.rate_rps is None:
            course.rate_rps = self._capacity(course.cell)
            if course.rate_rps is None:
                course.stop_reason = "budget"
                return
        self._lap(course)
        self._judge(course)

    def _capacity(self, cell: Cell) -> float | None:
        """Requests per second that the server answers when kept busy; measured as a cell of its own."""
        course = self._course(capacity_cell(cell, self.load))
        self._tell_kept()
        while course.stop_reason is None:
            self._turn(course)
        return capacity_rps(self._figures(course)) if course.laps else None

    def _is_over_budget(self, course: Course) -> bool:
        budget_s = self.road.job.options.budget_s
        if budget_s is None or self.road.tools.clock() - self.started_s < budget_s:
            return False
        course.stop_reason = "budget"
        if course.laps:
            self._tell_end(course, self._write(course), prefix="")
        return True

    def _lap(self, course: Course) -> None:
        road, index, total, repeat = self.road, self.courses.index(course), len(self.courses), len(course.laps)
        left_s = remaining.remaining_s(self.courses)

        def show(progress: CellProgress) -> None:
            moved = CellMoved(
                where=road.where,
                cell=course.name,
                index=index,
                total=total,
                share=progress.share,
                text=f"repeat {repeat + 1}/{course.repeats}: {progress.text}",
                left_s=left_s,
            )
            road.observer.on(moved)

        with road.tools.sweep_turn():
            road.cancel.check()
            road.observer.on(CellBegan(where=road.where, cell=course.name, index=index, total=total))
            road.writer.append_event("cell", {"cell": course.name, "repeat": repeat, "index": index, "total": total})
            began_s = road.tools.clock()
            lap = self.run_cell(self.load, course.to_run, repeat, show, road.cancel.is_set)
            hosts = host_summary(road.samples.between(began_s, road.tools.clock()))
        road.cancel.check()
        course.laps.append(replace(lap, record={**lap.record, "order": self.laps_done, "hosts": hosts}))
        self.laps_done += 1

    def _judge(self, course: Course) -> None:
        """Write the cell as it is now; say so when it is finished."""
        stored, tight = self._write(course), course.cell.workload.tight
        if len(course.laps) >= course.repeats:
            course.stop_reason = "all"
        elif tight is not None and is_tight(cell_figures(stored.cell, stored.requests).output_tok_per_s, tight):
            course.stop_reason = "tight"
        if course.stop_reason is not None:
            stored = self._write(course)
        self.road.observer.on(
            LapEnded(where=self.road.where, cell=course.name, repeat=len(course.laps) - 1, stored=stored)
        )
        if course.stop_reason is not None:
            self._tell_end(course, stored, prefix="")
        self._refuse_silence(course, stored)

    def _write(self, course: Course) -> StoredCell:
        outcome = cell_outcome(self.load, course.to_run, course.laps, stop_reason=course.stop_reason or "interrupted")
        course.laps = [replace(lap, record=r) for lap, r in zip(outcome.laps, outcome.record.laps, strict=True)]
        record = replace(
            outcome.record,
            id=course.cell.id,
            digest=course.digest,
            serving_digest=self.serving_digest,
            is_ungated=self.road.run.is_ungated,
            client_error={} if self.calibration is None else error_at(self.calibration, _peak(outcome)),
        )
        self.road.writer.write_cell(record, outcome.requests)
        self.road.save()
        return StoredCell(cell=record, requests=outcome.requests)

    def _figures(self, course: Course) -> CellFigures:
        found = self.road.writer.find_cell(course.cell.workload.name, course.cell.id)
        assert found is not None, "a course with a repeat is on disk"
        return cell_figures(found.cell, found.requests)

    def _tell_end(self, course: Course, stored: StoredCell, *, prefix: str) -> None:
        ended = CellEnded(
            where=self.road.where,
            cell=stored.cell,
            index=self.courses.index(course),
            total=len(self.courses),
            text=prefix + cell_words(stored),
        )
        self.road.observer.on(ended)

    def _refuse_silence(self, course: Course, stored: StoredCell) -> None:
        """A failed request may be a dead server's; a repeat without one answer ends the sweep in any case."""
        of_lap = [r for r in stored.requests if r.repeat == course.laps[-1].repeat]
        good = sum(r.failure is None for r in of_lap)
        if good < len(of_lap):
            raise_if_dead(self.road, f"in cell {course.name}")
        if of_lap and not good:
            kinds = ", ".join(sorted({str(r.failure) for r in of_lap}))
            words = next((f" ({r.error})" for r in of_lap if r.error), "")
            log = "; the server's log is in the record" if self.road.job.boxes else "; is the server still up?"
            raise TargetError(
                f"{self.road.where}: no request of {course.name} was answered: {kinds}{words}",
                hint=f"each request's words are in {course.cell.id}.requests.jsonl{log}",
            )


def _peak(outcome: CellOutcome) -> int:
    """Most requests in flight at once: what the client's error goes by, whatever the kind of load."""
    found = cell_figures(outcome.record, outcome.requests).concurrency
    return max(found.peak if found is not None else 0, outcome.record.concurrency, 1)
