"""Many runs as rows: what is kept is taken, the rest is read, on all cores where there is much of it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from orchestrator.records.store import StoredRun
from orchestrator.report.derived.cells import Outcome, Plan, compute, compute_elsewhere, finish, plan
from orchestrator.report.derived.files import FOLDER
from orchestrator.report.tables import RunRow, run_row

POOL_BYTES = 64_000_000
"""Raw records from which on other processes help: below, starting them takes longer than reading."""
PART_BYTES = 4_000_000

Tell = Callable[[int, int], None]
"""Called once before much is read: number of cells, bytes of their requests."""


def derived_folder(run: StoredRun, root: Path | None) -> Path | None:
    """Where the derived data of a run of that results folder are; None for a run of elsewhere."""
    if root is None or run.directory.parent.resolve() != root.resolve():
        return None
    return root / FOLDER / run.directory.name


def rows_of(
    runs: Sequence[StoredRun], root: Path | None = None, *, cores: int | None = None, tell: Tell | None = None
) -> tuple[RunRow, ...]:
    """One row a run, in their order.

    Args:
        root: The results folder beside whose records the derived data are kept; None: they are not.
        cores: At most so many processes; default all that this one may use.
    """
    plans = [plan(run, derived_folder(run, root)) for run in runs]
    outcomes = _outcomes(plans, cores or len(os.sched_getaffinity(0)), tell)
    return tuple(run_row(p.run, finish(p, outcomes, derived_folder(p.run, root))) for p in plans)


def _outcomes(plans: Sequence[Plan], cores: int, tell: Tell | None) -> Mapping[Path, Outcome]:
    """By path, of all cells that are to be read."""
    sizes = {path: (p.stamps[path][1] or (0,))[0] for p in plans for path in p.to_read}
    found: dict[Path, Outcome] = {}
    if sum(sizes.values()) >= POOL_BYTES:
        if tell is not None:
            tell(len(sizes), sum(sizes.values()))
        if cores > 1:
            found = _on_all_cores(sizes, cores)
    return {path: found[path] if path in found else compute(path) for path in sizes}


def _on_all_cores(sizes: Mapping[Path, int], cores: int) -> dict[Path, Outcome]:
    """As far as the processes came: one that is killed takes what it had not given back with it."""
    found: dict[Path, Outcome] = {}
    parts = list(_parts(sizes))
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(min(cores, len(parts)), mp_context=context, initializer=_begin) as pool:
            for part, outcomes in zip(parts, pool.map(compute_elsewhere, parts), strict=True):
                found.update(zip(part, outcomes, strict=True))
    except (BrokenProcessPool, OSError):
        pass
    return found


def _parts(sizes: Mapping[Path, int]) -> Iterator[list[Path]]:
    part: list[Path] = []
    held = 0
    for path, size in sizes.items():
        part.append(path)
        held += size
        if held >= PART_BYTES:
            yield part
            part, held = [], 0
    if part:
        yield part


def _begin() -> None:
    """In the other process. Ctrl-C is for the one that asked; requests have no cycles that a collector could find."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
