"""Does each request fit into the server's context? Asked before anything is sent, not by one refusal after another."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.errors import InputError
from orchestrator.sweep.lengths import Lengths
from orchestrator.sweep.workload import Cell, Kind, Workload

SHOWN = 3


def sure_tok(cell: Cell) -> int:
    """Prompt and answer of the longest request that the cell is sure to send.

    Of drawn lengths the shortest counts: that some draws may be too long is for the guard on failures. A recording's
    words are counted by the server alone: 0.
    """
    if cell.kind is Kind.REPLAY:
        return 0
    if cell.kind is Kind.MIXED:
        lanes = [x for x in cell.workload.lanes if cell.variant in (f"alone-{x.name}", "together")]
        return max((_shortest(x.prompt) + _shortest(x.output) for x in lanes), default=0)
    prompt, output = _shortest(cell.prompt), _shortest(cell.output)
    if cell.kind is Kind.SESSIONS:
        answers = cell.workload.turns if cell.workload.history == "scripted" else 1
        return cell.workload.turns * prompt + answers * output
    return cell.depth_tok + cell.prefix_tok + prompt + output


def require_room(workloads: Sequence[Workload], max_model_len: int | None) -> None:
    """
    Args:
        max_model_len: Tokens of one request, prompt and answer, that the server takes; None: not known, all passes.

    Raises:
        InputError: Some cells ask for more, with their names.
    """
    if max_model_len is None:
        return
    for workload in workloads:
        asked = {cell.id: sure_tok(cell) for cell in workload.cells()}
        too_long = [name for name, tok in asked.items() if tok > max_model_len]
        if too_long:
            names = ", ".join(too_long[:SHOWN]) + (", …" if len(too_long) > SHOWN else "")
            raise InputError(
                f"workload {workload.name}: {max(asked.values())} tokens of prompt and answer do not fit into the "
                f"server's {max_model_len}: {names} ({len(too_long)} of {len(asked)} cells)",
                hint="leave them out or make them shorter with `--set`, as in `--set prompt_tokens=512,1024`, "
                "or serve a longer context (max_model_len)",
            )


def _shortest(lengths: Lengths) -> int:
    if lengths.fixed is not None:
        return lengths.fixed
    drawn = lengths.least
    if lengths.around is not None:
        drawn = math.floor(lengths.around * (1 - lengths.spread))
    elif lengths.table:
        drawn = min(lengths.table)
    return max(lengths.least, min(lengths.most, drawn))
