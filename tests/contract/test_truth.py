"""Every kind of load against a server whose truth is known: counts to the letter, stamps in the order of what happened.

No limit in milliseconds: what is compared are two clocks' readings of the same events, which stall together.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping

import pytest

from orchestrator.figures.request import tpot_ms
from orchestrator.figures.stats import Percentiles, Spread, percentile
from orchestrator.mock.settings import Flavour
from orchestrator.sweep.workload import Kind, SwarmCell
from tests.contract.truth_client import CellRun, Pair, TruthCase, cases_in, run_kind
from tests.contract.truth_figures import (
    as_expected,
    main_pairs,
    our_tpot_ms,
    our_ttft_ms,
    rates,
    scheduled_ttft_ms,
    true_tpot_ms,
    true_ttft_ms,
)

CASES = cases_in("kinds")
CELLS = [(case, cell) for case in CASES for cell in case.expect]
IDS = [cell if len(case.expect) == 1 and case.name == cell else f"{case.name}/{cell}" for case, cell in CELLS]
TELLS_TIMES = (Flavour.VLLM, Flavour.LLAMACPP)

each_cell = pytest.mark.parametrize(("case", "cell"), CELLS, ids=IDS)


def run_of(case: TruthCase, cell: str) -> CellRun:
    return run_kind(case.name)[cell]


def test_every_kind_of_load_has_its_case() -> None:
    cells = [cell for case in CASES for cell in case.load().cells()]
    swarms = {c.variant for c in cells if c.kind is Kind.SWARM}
    histories = {(c.kind, c.workload.history) for c in cells}
    recordings = {(c.workload.format, bool(c.workload.conversations[0].blocks)) for c in cells if c.kind is Kind.REPLAY}

    assert {c.kind for c in cells} == set(Kind)
    assert swarms == {v.value for v in SwarmCell}
    assert {"alone-chat", "alone-batch", "together"} <= {c.variant for c in cells}
    assert {(k, h) for k in (Kind.SESSIONS, Kind.REPLAY) for h in ("scripted", "model")} <= histories
    assert recordings == {("sharegpt", False), ("trace", True), ("trace", False)}
    assert {c.workload.depth_cache for c in cells if c.depth_tok} == {"cold", "warm"}
    assert {c.workload.endpoint for c in cells} == {"chat", "completions"}
    assert {case.mock().flavour for case in CASES} == set(Flavour)
    assert {case.backend for case in CASES} == {"own", "aiohttp"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_case_says_what_is_right_for_each_of_its_cells(case: TruthCase) -> None:
    assert [c.id for c in case.load().cells()] == list(case.expect)


@each_cell
def test_the_cell_is_what_the_case_expects(case: TruthCase, cell: str) -> None:
    run, want = run_of(case, cell), {"guards": [], "failures": {}, **case.expect[cell]}

    assert as_expected(run, want) == want


@each_cell
def test_every_answer_has_one_truth_and_every_truth_its_answer(case: TruthCase, cell: str) -> None:
    run = run_of(case, cell)
    unrecorded = [lap["unrecorded"] for lap in run.outcome.record.laps]

    assert len(run.pairs) == len(run.outcome.requests)
    assert len(run.rest) == sum(u["requests"] for u in unrecorded if isinstance(u, Mapping) and u)  # type: ignore[misc]
    if case.mock().flavour in TELLS_TIMES:
        assert {p.others for p in run.pairs} == {0}, "its own times name it"


@each_cell
def test_counts_are_the_servers(case: TruthCase, cell: str) -> None:
    for record, truth in ((p.record, p.truth) for p in run_of(case, cell).pairs):
        assert (record.prompt_tok, record.cached_tok) == (truth.prompt_tok, truth.cached_tok)
        assert (record.output_tok, len(record.events)) == (truth.output_tok, truth.events)
        assert sum(n or 0 for _, n in record.events) == truth.output_tok
        assert record.events[0][1] == truth.first_tok


@each_cell
def test_stamps_stand_in_the_order_of_what_happened(case: TruthCase, cell: str) -> None:
    for pair in run_of(case, cell).pairs:
        r, t = pair.record, pair.truth
        assert r.sent_ns is not None
        assert r.ready_ns is not None
        assert r.headers_ns is not None
        assert r.first_token_ns is not None
        assert r.last_token_ns is not None
        assert r.end_ns is not None
        assert r.scheduled_ns <= r.ready_ns <= r.sent_ns <= t.received_ns <= t.started_ns <= t.first_ns
        assert t.first_ns <= r.first_token_ns - (r.stamp_lag_ns or 0), "the kernel had it no earlier than it was sent"
        assert t.received_ns <= r.headers_ns <= r.first_token_ns
        assert t.last_ns <= r.last_token_ns <= r.end_ns
        assert (r.first_token_ns, r.last_token_ns) == (r.events[0][0], r.events[-1][0])
        assert [at for at, _ in r.events] == sorted(at for at, _ in r.events)


@each_cell
def test_figures_are_those_of_the_stamps_and_of_the_true_counts(case: TruthCase, cell: str) -> None:
    run = run_of(case, cell)
    figures, pairs = run.figures, main_pairs(run)

    assert_values(figures.ttft_ms, [our_ttft_ms(p) for p in pairs])
    assert_values(figures.ttft_scheduled_ms, [scheduled_ttft_ms(p) for p in pairs])
    assert_values(figures.tpot_ms, [v for p in pairs if (v := our_tpot_ms(p)) is not None])
    assert figures.output_tok == sum(p.truth.output_tok for p in pairs)
    assert figures.cached_share == share(pairs)
    assert_rates(figures.output_tok_per_s, rates(run, lambda t: t.output_tok))
    assert_rates(figures.prompt_tok_per_s, rates(run, lambda t: t.prompt_tok))


@each_cell
def test_the_servers_own_time_leaves_the_true_gap(case: TruthCase, cell: str) -> None:
    run, flavour = run_of(case, cell), case.mock().flavour
    beside, pairs = run.figures.server, main_pairs(run)
    if flavour not in TELLS_TIMES:
        assert beside is None
        return

    assert beside is not None
    assert beside.has_queue == (flavour is Flavour.VLLM)
    starts = [p.truth.received_ns if beside.has_queue else p.truth.started_ns for p in pairs]
    own_ms = [(p.truth.first_ns - start) / 1e6 for p, start in zip(pairs, starts, strict=True)]
    assert_values(beside.gap_ms, [our_ttft_ms(p) - own for p, own in zip(pairs, own_ms, strict=True)])
    assert beside.gap_ms.min is not None
    assert beside.gap_ms.min > 0, "a token is seen after it was sent"


@each_cell
def test_the_servers_counters_account_for_every_token(case: TruthCase, cell: str) -> None:
    run = run_of(case, cell)
    truths, server = run.truths, run.outcome.record.server
    prompt_tok, output_tok = sum(t.prompt_tok for t in truths), sum(t.output_tok for t in truths)
    cached_tok = sum(t.cached_tok for t in truths)

    assert server["ours"] == {"requests": len(truths), "prompt_tok": prompt_tok, "output_tok": output_tok}
    assert (server["cached_by_counters"], server["cached_by_usage"]) == (cached_tok, cached_tok)
    assert server["output_tok"] == output_tok
    if case.mock().flavour is Flavour.LLAMACPP:
        assert server["prompt_computed_tok"] == prompt_tok - cached_tok
    else:
        assert server["prompt_tok"] == prompt_tok
        assert server["ttft_ms"] == pytest.approx(statistics.fmean(true_ttft_ms(t) for t in truths))


SWARMS = [(case, cell) for case, cell in CELLS if cell.startswith("swarm")]


@pytest.mark.parametrize(("case", "cell"), SWARMS, ids=[cell for _, cell in SWARMS])
def test_what_a_swarm_reads_again_is_what_the_server_computed_again(case: TruthCase, cell: str) -> None:
    run = run_of(case, cell)
    swarm, pairs, repeats = run.figures.swarm, run.pairs_of(), run.cell.workload.repeats
    again = [max(0, (p.record.shared_tok or 0) - p.truth.cached_tok) for p in pairs]
    first = [p for p in run.pairs_of("prime") if p.record.repeat == 0]

    assert swarm is not None
    assert swarm.reread_tok is not None
    assert swarm.reread_total_tok is not None
    assert_values(swarm.reread_tok, [float(tok) for tok in again])
    assert swarm.reread_total_tok.mean == sum(again) / repeats
    assert swarm.hit_ends == dict(sorted(Counter(p.truth.cached_tok for p in pairs).items()))
    assert (swarm.prefix_load is None) == (first == [])


def share(pairs: list[Pair]) -> float:
    return sum(p.truth.cached_tok for p in pairs) / sum(p.truth.prompt_tok for p in pairs)


def assert_values(found: Percentiles, values: list[float]) -> None:
    assert found.n == len(values)
    assert (found.min, found.max) == pytest.approx((min(values), max(values)), rel=1e-9)
    assert found.mean == pytest.approx(statistics.fmean(values), rel=1e-9)
    assert found.p50 == pytest.approx(percentile(values, 0.5), rel=1e-9)


def assert_rates(found: Spread | None, values: list[float]) -> None:
    assert found is not None
    assert found.n == len(values)
    assert found.mean == pytest.approx(statistics.fmean(values), rel=1e-9)


def test_with_four_tokens_an_event_tpot_is_right_to_one_percent() -> None:
    (run,) = run_kind("four-tokens-an-event").values()
    ratios = [(tpot_ms(p.record) or 0.0) / true_tpot_ms(p.truth) for p in run.pairs]

    assert {(p.truth.output_tok, p.truth.events, p.truth.first_tok) for p in run.pairs} == {(64, 16, 4)}
    assert statistics.median(ratios) == pytest.approx(1.0, rel=0.01)
    assert 60 / 63 < 0.99, "dividing by N - 1 would show"


def test_the_true_ttft_is_found_within_the_clients_own_lag() -> None:
    (run,) = run_kind("four-tokens-an-event").values()
    errors_ms = [our_ttft_ms(p) - true_ttft_ms(p.truth) for p in run.pairs]
    lag_ms = run.outcome.record.client["loop_lag_ms_p99"]

    assert isinstance(lag_ms, float)
    assert min(errors_ms) > 0
    assert statistics.median(errors_ms) < 0.01 * statistics.median(our_ttft_ms(p) for p in run.pairs) + lag_ms
