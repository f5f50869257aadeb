"""How long a workload takes, before anything is known of the server: an assumption, stated as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.sweep.workload import GRID, Cell, Kind, SwarmCell, Workload

TOK_PER_S = 30.0
PREFILL_TOK_PER_S = 1000.0
SHARE_LOST_PER_DOUBLING = 0.29
"""Eight users kept 36 % of one user's speed each on a bandwidth-bound machine: 0.71 cubed."""
MOST_AT_ONCE = 32
"""Requests that a server without a cap is taken to run at the same time; more of them wait."""
EVICTING_PREFIXES = 12
"""For an evicting cell that leaves the number to the server's cache."""
CELL_OVERHEAD_S = 3.0
WARMUP_OUTPUT_TOK = 16
SEARCH_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Minutes, and what they assume, for the plan."""

    minutes: float
    assumption: str


def estimate(workload: Workload, *, tok_per_s: float = TOK_PER_S) -> Estimate:
    """The minutes of all cells, if one user alone gets `tok_per_s`.

    The speed that is left at more users is a guess from one machine, see `SHARE_LOST_PER_DOUBLING`.
    """
    seconds = sum(cell_seconds(cell, tok_per_s=tok_per_s) for cell in workload.cells())
    if workload.search is not None:
        seconds += SEARCH_STEPS * max(cell_seconds(cell, tok_per_s=tok_per_s) for cell in workload.cells())
    return Estimate(minutes=seconds / 60, assumption="; ".join(_assumptions(workload, tok_per_s)))


def cell_seconds(cell: Cell, *, tok_per_s: float) -> float:
    """Seconds of one cell, all repeats and the warm-up of each, under `estimate`'s assumption."""
    box = _Box(tok_per_s=tok_per_s)
    w, users = cell.workload, max(1, cell.concurrency)
    warm_s = -(-w.warmup // users) * box.round_s(users, cell.prompt_tok, min(WARMUP_OUTPUT_TOK, cell.output_tok))
    return CELL_OVERHEAD_S + w.repeats * (warm_s + _REPEAT[cell.kind](cell, box))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    tok_per_s: float

    def speed(self, users: float) -> float:
        """Tokens a second for each of so many."""
        return self.tok_per_s * math.pow(1 - SHARE_LOST_PER_DOUBLING, math.log2(max(1.0, users)))

    def round_s(self, users: float, prompt_tok: float, output_tok: float) -> float:
        """So many requests at once: their prompts one after the other, their answers side by side."""
        return users * prompt_tok / PREFILL_TOK_PER_S + output_tok / self.speed(users)

    def backlog_s(self, requests: float, at_once: int, prompt_tok: float, output_tok: float) -> float:
        """So many requests as fast as they go through."""
        users = min(at_once, max(1.0, requests))
        return requests / users * self.round_s(users, prompt_tok, output_tok)


def _grid(cell: Cell, box: _Box) -> float:
    rounds = 1 if cell.kind is Kind.BATCH else cell.workload.requests_per_user
    return rounds * box.round_s(cell.concurrency, cell.depth_tok + cell.prompt_tok, cell.output_tok)


def _swarm(cell: Cell, box: _Box) -> float:
    prefixes = 1
    if cell.variant == SwarmCell.EVICTING:
        prefixes = max(cell.concurrency, cell.workload.prefixes or EVICTING_PREFIXES)
    loading_s = prefixes * cell.prefix_tok / PREFILL_TOK_PER_S
    return loading_s + box.round_s(cell.concurrency, cell.prompt_tok, cell.output_tok)


def _arriving(cell: Cell, box: _Box, requests: float, span_s: float) -> float:
    """Whichever is longer: the schedule with the last answer, or the work."""
    prompt_tok, output_tok = cell.prompt_tok, cell.output_tok
    at_once = cell.workload.cap or MOST_AT_ONCE
    users = min(at_once, requests * box.round_s(1, prompt_tok, output_tok) / max(span_s, 1e-9))
    last_s = box.round_s(1, prompt_tok, 0) + output_tok / box.speed(users)
    return max(span_s + last_s, box.backlog_s(requests, at_once, prompt_tok, output_tok))


def _open(cell: Cell, box: _Box) -> float:
    span_s = cell.workload.requests / (cell.rate_rps or 1.0)
    return _arriving(cell, box, cell.workload.requests, span_s)


def _overload(cell: Cell, box: _Box) -> float:
    w = cell.workload
    span_s = 2 * w.recovery_s + w.duration_s
    return _arriving(cell, box, cell.requests_per_repeat, span_s)


def _sessions(cell: Cell, box: _Box) -> float:
    w = cell.workload
    turn_s = w.think_s + box.round_s(cell.concurrency, cell.prompt_tok, cell.output_tok)
    return math.ceil(cell.sessions / cell.concurrency) * (w.turns * turn_s - w.think_s)


def _replay(cell: Cell, box: _Box) -> float:
    w = cell.workload
    if cell.rate_rps is None:
        span_s = max((c.at_s or 0.0 for c in w.conversations), default=0.0) / w.speed
    else:
        span_s = len(w.conversations) / cell.rate_rps
    turns = cell.requests_per_repeat / max(1, len(w.conversations))
    talk_s = (turns - 1) * (w.think_s + box.round_s(1, cell.prompt_tok, cell.output_tok))
    return talk_s + _arriving(cell, box, cell.requests_per_repeat, span_s)


def _mixed(cell: Cell, box: _Box) -> float:
    lanes = [lane for lane in cell.workload.lanes if cell.variant in {"together", f"alone-{lane.name}"}]
    last_s = max(box.round_s(lane.concurrency or 1, lane.prompt.typical, lane.output.typical) for lane in lanes)
    return cell.workload.duration_s + last_s


_REPEAT: Mapping[Kind, Callable[[Cell, _Box], float]] = {
    **dict.fromkeys(GRID, _grid),
    Kind.SWARM: _swarm,
    Kind.OPEN: _open,
    Kind.OVERLOAD: _overload,
    Kind.SESSIONS: _sessions,
    Kind.REPLAY: _replay,
    Kind.MIXED: _mixed,
}


def _assumptions(w: Workload, tok_per_s: float) -> list[str]:
    found = [
        f"assumes {tok_per_s:.0f} tok/s for one user, {PREFILL_TOK_PER_S:.0f} tok/s of prompt, "
        f"and {SHARE_LOST_PER_DOUBLING:.0%} less for each at twice the users"
    ]
    kinds = set(w.kinds)
    if Kind.SWARM in kinds:
        found.append("a swarm's prefix read once, in an evicting cell by every agent")
    if kinds & {Kind.OPEN, Kind.OVERLOAD, Kind.REPLAY}:
        found.append(f"{w.cap or MOST_AT_ONCE} arrivals served at the same time, the others waiting")
    if kinds & {Kind.SESSIONS, Kind.REPLAY}:
        found.append("earlier turns taken from the cache in sessions, read again in a replay")
    if not w.ignore_eos:
        found.append("answers as long as their limit")
    if w.tight is not None:
        found.append("all repeats, though `tight` may end a cell early")
    if w.search is not None:
        found.append(f"{SEARCH_STEPS} steps of search, each as long as the longest cell")
    return found
