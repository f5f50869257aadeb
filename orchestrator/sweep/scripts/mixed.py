"""mixed: named lanes side by side, and each of them alone; all end by the clock.

A closed lane has its users, who think between an answer and their next request; an open lane has its arrivals. Nobody
knows how many requests a closed lane will get through, so as many are made ready as a very fast server would answer
(`FASTEST_TOK_PER_S` for each user, at least `LEAST_S` a request), up to `MOST_READY`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from orchestrator.sweep.arrivals import arrivals
from orchestrator.sweep.prompts import PromptBook
from orchestrator.sweep.scripts.drawn import drawn_jobs
from orchestrator.sweep.scripts.open import timed_tracks
from orchestrator.sweep.scripts.script import Script, Texts, body_of, single_tracks, warmup_phase
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Phase
from orchestrator.sweep.workload import Cell, LaneLoad, Workload

TOGETHER = "together"
ALONE = "alone-"
FASTEST_TOK_PER_S = 1000.0
LEAST_S = 0.05
MOST_READY = 4096
IN_TEMPLATE = frozenset({"chat_template_kwargs", "tools", "reasoning_effort"})
"""A lane's own fields that change its prompts: their length is then not what was counted."""


def script(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """See `script_of`. Lengths and arrivals follow the workload's seed plus the repeat, and the lane's name: a lane
    alone gets the same requests as beside the others."""
    w, texts = cell.workload, Texts()
    phases = list(warmup_phase(cell, book, texts, target))
    loads = [lane for lane in w.lanes if cell.variant in {TOGETHER, ALONE + lane.name}]
    lanes = tuple(
        _lane(cell, load, book=book, texts=texts, target=target, seed=f"{w.seed + repeat}/{load.name}")
        for load in loads
    )
    phases.append(Phase(lanes=lanes))
    notes = [note for load in loads for note in _notes(w, load, target)]
    return Script(texts=texts.table, phases=tuple(phases), notes=tuple(notes))


def ready_requests(load: LaneLoad, duration_s: float) -> int:
    """How many are made ready for a lane."""
    if load.rate is not None:
        return max(1, round(load.rate * duration_s))
    request_s = load.think_s + max(LEAST_S, load.output.typical / FASTEST_TOK_PER_S)
    return min(MOST_READY, (load.concurrency or 1) * math.ceil(duration_s / request_s))


def _lane(cell: Cell, load: LaneLoad, *, book: PromptBook, texts: Texts, target: LoadTarget, seed: str) -> Lane:
    w = cell.workload
    n = ready_requests(load, w.duration_s)
    jobs: Sequence[Job] = drawn_jobs(load.prompt, load.output, n, seed=seed, book=book, texts=texts, target=target)
    if IN_TEMPLATE & load.extra_body.keys():
        jobs = [replace(job, expected_prompt_tok=None, expected_cached_tok=None) for job in jobs]
    body = body_of(
        cell,
        target,
        priority=load.priority if target.accepts_priority else None,
        extra={**w.extra_body, **load.extra_body},
    )
    if load.rate is not None:
        # Scaled to the lane's time, so that none is due after it.
        at_s = arrivals(n, n / w.duration_s, burstiness=load.burstiness, seed=seed)
        return Lane(name=load.name, tracks=timed_tracks(jobs, at_s), body=body, duration_s=w.duration_s)
    users = load.concurrency or 1
    # The first request of each user follows no answer.
    thinking = [replace(job, think_s=load.think_s) if i >= users else job for i, job in enumerate(jobs)]
    return Lane(name=load.name, tracks=single_tracks(thinking), body=body, users=users, duration_s=w.duration_s)


def _notes(w: Workload, load: LaneLoad, target: LoadTarget) -> list[str]:
    notes = []
    if load.priority is not None and not target.accepts_priority:
        notes.append(f"lane {load.name}: the server takes no priority, {load.priority} was left out")
    if load.rate is None and ready_requests(load, w.duration_s) == MOST_READY:
        notes.append(f"lane {load.name}: {MOST_READY} requests are ready, once they are used up the lane ends")
    return notes
