"""Service levels, and cells set beside others of their series."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.figures.cell import CellFigures, cell_figures, efficiency, find_single
from orchestrator.figures.goodput import Met, SloVerdict, judge, slo_verdict
from orchestrator.figures.lanes import slowdowns
from orchestrator.figures.prefill import prefill_speed
from orchestrator.figures.slo import Slo
from orchestrator.figures.swarm import warm_agent
from tests.unit.figure_cases import cell_of, request_of, requests_of


def figures(cell: dict[str, Any], requests: list[dict[str, Any]]) -> CellFigures:
    return cell_figures(cell_of(cell), requests_of(requests))


TEN_TOKENS = {"sent": 500, "scheduled": 0, "events": [[1500, 1], [2400, 9]], "end": 2500}


@pytest.mark.parametrize(
    ("slo", "request_", "expected"),
    [
        (Slo(ttft_s=1.5), TEN_TOKENS, Met.MET),
        (Slo(ttft_s=1.4), TEN_TOKENS, Met.MISSED),
        (Slo(ttft_s=1.0, start="send"), TEN_TOKENS, Met.MET),
        (Slo(e2e_s=2.5), TEN_TOKENS, Met.MET),
        (Slo(e2e_s=2.4), TEN_TOKENS, Met.MISSED),
        (Slo(tpot_ms=100), TEN_TOKENS, Met.MET),
        (Slo(tpot_ms=99), TEN_TOKENS, Met.MISSED),
        (Slo(ttft_s=9, tpot_ms=99), TEN_TOKENS, Met.MISSED),
        (Slo(tpot_ms=100), {"events": [[100, None], [200, None]]}, Met.UNKNOWN),
        (Slo(tpot_ms=100), {"events": [[100, 1]]}, Met.UNKNOWN),
        (Slo(tpot_ms=100, ttft_s=0.05), {"events": [[100, 1]]}, Met.MISSED),
        (Slo(ttft_s=9), {"failure": "http_5xx"}, Met.MISSED),
        (Slo(ttft_s=9), {"failure": "closed_early", "events": [[100, 1]]}, Met.MISSED),
        (Slo(ttft_s=1), {"failure": "cancelled", "end": 900}, Met.UNKNOWN),
        (Slo(ttft_s=1), {"failure": "cancelled", "end": 1100}, Met.MISSED),
        (Slo(ttft_s=1, e2e_s=5), {"failure": "cancelled", "events": [[100, 1]], "end": 1100}, Met.UNKNOWN),
        (Slo(e2e_s=1), {"failure": "cancelled", "events": [[100, 1]], "end": 1100}, Met.MISSED),
    ],
)
def test_a_request_meets_all_limits_or_misses(slo: Slo, request_: dict[str, Any], expected: Met) -> None:
    assert judge(request_of({**request_}), slo) is expected


@pytest.mark.parametrize(
    ("met", "missed", "unknown", "share", "expected"),
    [
        (0, 0, 0, 0.95, SloVerdict.UNDECIDED),
        (72, 0, 0, 0.95, SloVerdict.UNDECIDED),
        (73, 0, 0, 0.95, SloVerdict.MET),
        (73, 0, 1, 0.95, SloVerdict.UNDECIDED),
        (80, 20, 0, 0.95, SloVerdict.MISSED),
        (80, 2, 18, 0.95, SloVerdict.UNDECIDED),
        (5, 0, 0, 1.0, SloVerdict.MET),
        (5, 1, 0, 1.0, SloVerdict.MISSED),
        (5, 0, 1, 1.0, SloVerdict.UNDECIDED),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(
    met: int, missed: int, unknown: int, share: float, expected: SloVerdict
) -> None:
    assert slo_verdict(met, missed, unknown, share) is expected


def cold(prompt_tok: int, ttft_ms: float, concurrency: int = 1, **more: Any) -> CellFigures:
    cell = {"id": f"p{prompt_tok}-c{concurrency}", "prompt_tok": prompt_tok, "concurrency": concurrency}
    request = {"prompt_tok": prompt_tok, "cached_tok": 0, "events": [[ttft_ms, 1], [ttft_ms + 10, 1]], **more}
    return figures(cell, [request])


def test_the_slope_between_two_cold_lengths_cancels_what_is_constant() -> None:
    # 50 ms of network and step, 1 ms a token.
    short, long = cold(1000, 1050), cold(3000, 3050)

    found = [prefill_speed(point, [short, long]) for point in (short, long)]

    assert [f.tok_per_s for f in found if f] == pytest.approx([1000.0, 1000.0])
    assert {f.method for f in found if f} == {"slope: 1000 to 3000 tokens at 1"}


def test_the_templates_head_in_the_cache_makes_no_prompt_warm() -> None:
    # 32 tokens of template before the nonce, which the cache gives every prompt; 50 ms, and 1 ms a computed token.
    head = {"cached_tok": 32, "expected_cached_tok": 32, "nonce": "n"}
    short, long = cold(1000, 1018, **head), cold(3000, 3018, **head)

    found = prefill_speed(short, [short, long])

    assert found is not None
    assert (found.tok_per_s, found.method) == (pytest.approx(1000.0), "slope: 968 to 2968 tokens at 1")
    assert cold(3000, 3050, cached_tok=512, expected_cached_tok=512, shared_tok=520, nonce="n").cold is None


def test_the_slope_is_taken_of_one_user_where_there_is_one() -> None:
    series = [cold(1000, 4000, 8), cold(3000, 12_000, 8), cold(1000, 1050), cold(3000, 3050)]

    found = prefill_speed(series[0], series)

    assert found is not None
    assert found.method == "slope: 1000 to 3000 tokens at 1"


@pytest.mark.parametrize(
    "long",
    [
        cold(3000, 3050, cached_tok=512),
        cold(3000, 3050, cached_tok=None),
        cold(3000, 1050),
        cold(1000, 3050),
    ],
    ids=["cached", "unknown", "no_longer", "same_length"],
)
def test_no_slope_without_two_cold_lengths(long: CellFigures) -> None:
    short = cold(1000, 1050)

    assert prefill_speed(short, [short, long]) is None


def test_a_lane_is_compared_with_itself_alone() -> None:
    lanes = {"kind": "mixed", "concurrency": 2}
    chat = {"lane": "chat", "events": {"from": 100, "n": 11, "step": 10, "tok": 1}}
    slow = {"lane": "chat", "events": {"from": 300, "n": 11, "step": 20, "tok": 1}}
    together = figures({**lanes, "id": "t", "variant": "together"}, [slow, {"lane": "batch", "events": [[5, 1]]}])
    alone = figures({**lanes, "id": "a", "variant": "alone-chat"}, [chat])

    (found,) = slowdowns(together, [together, alone])

    assert found.ttft is not None
    assert found.tpot is not None
    assert found.rate is not None
    assert found.lane == "chat"
    assert [found.ttft.value, found.tpot.value, found.rate.value] == pytest.approx([3.0, 2.0, 0.4])
    assert slowdowns(alone, [together, alone]) == ()


def test_a_swarm_is_set_beside_one_agent_on_the_warm_prefix() -> None:
    swarm = {"kind": "swarm", "prefix_tok": 1000}
    many = figures({**swarm, "id": "m", "variant": "primed", "concurrency": 8}, [{"events": [[900, 1]]}])
    one = figures({**swarm, "id": "s", "variant": "single"}, [{"events": [[50, 1], [100, 9]], "cached_tok": 75}])
    broken = figures({**swarm, "id": "b", "variant": "single", "guards": [{"name": "n", "message": "m"}]}, [])

    found = warm_agent(many, [many, broken, one])

    assert found is not None
    assert (found.ttft_ms, found.per_user_tok_per_s, found.cached_share) == (50, 100, 0.75)
    assert warm_agent(many, [many, broken]) is None


def test_efficiency_compares_with_the_same_depth_only() -> None:
    deep = figures({"id": "d", "concurrency": 4, "depth_tok": 4096}, [{"events": [[10, 80]]}])
    flat = figures({"id": "f"}, [{"events": [[10, 40]]}])
    single = figures({"id": "s", "depth_tok": 4096}, [{"events": [[10, 25]]}])

    assert find_single(deep, [deep, flat, single]) is single
    assert efficiency(deep, single) == pytest.approx(0.8)
