"""overload: half the capacity, then `factor` times it, then half again, on one clock that waits for nobody.

One phase with three lanes, `before`, `main` and `after`, because the backlog of `main` must still be there when
`after` begins: a phase of its own would wait until it has melted.
"""

from __future__ import annotations

from orchestrator.sweep.arrivals import arrivals
from orchestrator.sweep.prompts import PromptBook
from orchestrator.sweep.scripts.drawn import drawn_jobs
from orchestrator.sweep.scripts.open import timed_tracks
from orchestrator.sweep.scripts.script import Script, Texts, body_of, warmup_phase
from orchestrator.sweep.spec import MAIN, Lane, LoadTarget, Phase
from orchestrator.sweep.workload import CALM_SHARE, Cell

BEFORE, AFTER = "before", "after"


def script(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """See `script_of`. Requests are numbered through in the order they are due."""
    w, texts, rate = cell.workload, Texts(), cell.rate_rps or 1.0
    phases = list(warmup_phase(cell, book, texts, target))
    seed, body = str(w.seed + repeat), body_of(cell, target)
    jobs = drawn_jobs(
        cell.prompt, cell.output, cell.requests_per_repeat, seed=seed, book=book, texts=texts, target=target
    )
    parts = (
        (BEFORE, rate * CALM_SHARE, 0.0),
        (MAIN, rate * w.factor, w.recovery_s),
        (AFTER, rate * CALM_SHARE, w.recovery_s + w.duration_s),
    )
    lanes, first = [], 0
    for (name, rps, start_s), n in zip(parts, cell.overload_requests, strict=True):
        offsets = arrivals(n, rps, burstiness=cell.burstiness, mode=w.arrivals, seed=f"{seed}/{name}")
        tracks = timed_tracks(jobs[first : first + n], [start_s + at for at in offsets], first=first)
        lanes.append(Lane(name=name, tracks=tracks, body=body))
        first += n
    phases.append(Phase(lanes=tuple(lanes)))
    return Script(texts=texts.table, phases=tuple(phases))
