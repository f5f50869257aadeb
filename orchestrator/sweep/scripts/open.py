"""open: each request at its own time, fixed in advance; with a cap the late ones wait in the client."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.sweep.arrivals import arrivals
from orchestrator.sweep.prompts import PromptBook
from orchestrator.sweep.scripts.drawn import drawn_jobs
from orchestrator.sweep.scripts.script import Script, Texts, body_of, warmup_phase
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Phase, Track
from orchestrator.sweep.workload import Cell


def script(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """See `script_of`. Arrivals and lengths follow the workload's seed plus the repeat."""
    w, n, texts = cell.workload, cell.requests_per_repeat, Texts()
    phases = list(warmup_phase(cell, book, texts, target))
    seed = str(w.seed + repeat)
    at_s = arrivals(n, cell.rate_rps or 1.0, burstiness=cell.burstiness, mode=w.arrivals, seed=seed, ramp=w.ramp)
    jobs = drawn_jobs(cell.prompt, cell.output, n, seed=seed, book=book, texts=texts, target=target)
    lane = Lane(tracks=timed_tracks(jobs, at_s), body=body_of(cell, target), cap=cell.concurrency or None)
    phases.append(Phase(lanes=(lane,)))
    return Script(texts=texts.table, phases=tuple(phases))


def timed_tracks(jobs: Sequence[Job], at_s: Sequence[float], *, first: int = 0) -> tuple[Track, ...]:
    """Each job a track of its own with its time, numbered from `first`."""
    numbered = enumerate(zip(jobs, at_s, strict=True), start=first)
    return tuple(Track(jobs=(job,), at_s=at, number=i) for i, (job, at) in numbered)
