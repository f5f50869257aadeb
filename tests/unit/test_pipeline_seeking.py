"""A search over rates in words: where the server cannot follow, a short run may still keep the service level."""

from __future__ import annotations

import pytest

from orchestrator.figures.cell import CellFigures, cell_figures
from orchestrator.figures.slo import Slo
from orchestrator.pipeline.seeking import Seeker
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.sweep.lengths import fixed
from orchestrator.sweep.workload import Cell, Kind, Search, Workload

S = 1_000_000_000
SLO = Slo(name="chat", ttft_s=30.0, share=0.95)
SEARCH = Search(over="rate", low=8.0, high=16.0, precision=0.5, slo=SLO)
WORKLOAD = Workload(name="w", kinds=(Kind.OPEN,), output_tokens=(fixed(8),), rate=(8.0,), search=SEARCH)


def figures_at(rate: float, *, capacity: float) -> CellFigures:
    """100 requests by the clock to a server that answers one after the other, `capacity` a second."""
    requests, free_s = [], 0.0
    for i in range(100):
        due_s = i / rate
        free_s = max(free_s, due_s) + 1 / capacity
        due, end = round(due_s * S), round(free_s * S)
        requests.append(
            RequestRecord(
                repeat=0,
                index=i,
                scheduled_ns=due,
                sent_ns=due,
                first_event_ns=end - S // 100,
                first_token_ns=end - S // 100,
                last_token_ns=end,
                end_ns=end,
                output_tok=8,
                prompt_tok=8,
            )
        )
    record = CellRecord(
        id=f"r{rate:g}",
        workload="w",
        kind="open",
        concurrency=0,
        rate_rps=rate,
        prompt_tok=8,
        output_tok=8,
        repeats=1,
        requests_per_repeat=100,
        slo=SLO.as_json(),
        spans_ns=((0, requests[-1].end_ns or 0),),
        digest="",
    )
    return cell_figures(record, requests)


@pytest.mark.parametrize(
    ("capacity", "note"),
    [
        (100.0, ()),
        (10.0, ("requests pile up at 16, kept up with at 8: more `requests` would show if it lasts",)),
        (5.0, ("requests pile up at 16: more `requests` would show if it lasts",)),
    ],
)
def test_requests_that_pile_up_at_the_best_rate_are_said(capacity: float, note: tuple[str, ...]) -> None:
    seeker = Seeker(Cell(workload=WORKLOAD, kind=Kind.OPEN, prompt=fixed(8), output=fixed(8), concurrency=0))
    while (level := seeker.next_level()) is not None:
        seeker.take(level, figures_at(level, capacity=capacity), can_go_on=False)

    assert seeker.found is not None
    assert seeker.as_json()["notes"] == list(note)
    assert seeker.words.endswith("; ".join(("the highest tried", *note)))
