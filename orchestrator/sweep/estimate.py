"""How long a workload takes, before anything is known of the server: an assumption, stated as one."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.sweep.workload import Cell, Kind, Workload

TOK_PER_S = 30.0
PREFILL_TOK_PER_S = 1000.0
SHARE_LOST_PER_DOUBLING = 0.29
"""Eight users kept 36 % of one user's speed each on a bandwidth-bound machine: 0.71 cubed."""
CELL_OVERHEAD_S = 3.0
WARMUP_OUTPUT_TOK = 16


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
    return Estimate(
        minutes=seconds / 60,
        assumption=f"assumes {tok_per_s:.0f} tok/s for one user, {PREFILL_TOK_PER_S:.0f} tok/s of prompt, "
        f"and {SHARE_LOST_PER_DOUBLING:.0%} less for each at twice the users",
    )


def cell_seconds(cell: Cell, *, tok_per_s: float) -> float:
    """Seconds of one cell under `estimate`'s assumption."""
    doublings = (cell.concurrency).bit_length() - 1
    speed = tok_per_s * (1 - SHARE_LOST_PER_DOUBLING) ** doublings
    prefill_s = cell.concurrency * cell.prompt_tok / PREFILL_TOK_PER_S
    w = cell.workload
    rounds = w.repeats * (1 if cell.kind is Kind.BATCH else w.requests_per_user)
    warmups = -(-w.warmup // cell.concurrency)
    warm_s = warmups * (prefill_s + min(WARMUP_OUTPUT_TOK, cell.output_tok) / speed)
    return CELL_OVERHEAD_S + warm_s + rounds * (prefill_s + cell.output_tok / speed)
