"""What the raw stamps mean, on small cells whose figures can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator.figures.cell import batch_time, cell_figures, efficiency
from orchestrator.figures.request import itl_ms, tpot_ms
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.sweep.outcome import cell_outcome
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.workload import Workload

MS = 1_000_000
S = 1_000_000_000


def request(**changes: object) -> RequestRecord:
    """Sent at 0, first token at 100 ms, 11 tokens one a time every 10 ms, ended at 210 ms."""
    base = RequestRecord(
        repeat=0,
        index=0,
        scheduled_ns=0,
        sent_ns=0,
        headers_ns=5 * MS,
        first_event_ns=90 * MS,
        first_token_ns=100 * MS,
        last_token_ns=200 * MS,
        end_ns=210 * MS,
        events=tuple((100 * MS + i * 10 * MS, 1) for i in range(11)),
        http_status=200,
        prompt_tok=128,
        output_tok=11,
        cached_tok=0,
        token_source="one_per_event",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def cell(**changes: object) -> CellRecord:
    base = CellRecord(
        id="closed-p128-o11-c1",
        workload="w",
        kind="closed",
        concurrency=1,
        prompt_tok=128,
        output_tok=11,
        repeats=2,
        requests_per_repeat=1,
        digest="d",
        spans_ns=((0, S), (2 * S, 4 * S)),
        duration_s=4.2,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_first_token_counts_from_the_first_byte_sent_and_not_from_an_empty_event() -> None:
    figures = cell_figures(cell(), [request(sent_ns=20 * MS)])

    assert figures.ttft_ms.p50 == 80.0


def test_tpot_divides_by_the_tokens_after_the_first_event() -> None:
    assert tpot_ms(request()) == 10.0


def test_tpot_leaves_out_all_tokens_of_a_speculative_first_event() -> None:
    events = ((100 * MS, 3), (200 * MS, 8))

    assert tpot_ms(request(events=events)) == 100 / 8


@pytest.mark.parametrize("change", [{"output_tok": None}, {"events": ((100 * MS, None),)}, {"first_token_ns": None}])
def test_tpot_is_null_when_the_tokens_are_unknown(change: dict[str, object]) -> None:
    assert tpot_ms(request(**change)) is None


def test_itl_counts_a_chunk_of_several_tokens_once() -> None:
    assert itl_ms(request(events=((0, 4), (30 * MS, 4), (50 * MS, 1)))) == (30.0, 20.0)


def test_the_rate_is_the_mean_over_repeats_of_tokens_over_span() -> None:
    figures = cell_figures(cell(), [request(), request(repeat=1, output_tok=44)])

    assert figures.output_tok_per_s is not None
    assert (figures.output_tok_per_s.mean, figures.output_tok_per_s.n) == ((11 + 22) / 2, 2)
    assert figures.output_tok_per_s.sd == pytest.approx(math.sqrt(60.5))


def test_a_repeat_with_an_uncounted_request_gives_no_rate() -> None:
    figures = cell_figures(cell(), [request(), request(repeat=1, output_tok=None)])

    assert figures.output_tok_per_s is not None
    assert figures.output_tok_per_s.n == 1


def test_failures_are_in_no_mean_and_infinite_in_the_adjusted_percentiles() -> None:
    failed = request(index=1, failure="http_400", first_token_ns=None, end_ns=None, output_tok=None)

    figures = cell_figures(cell(), [request(), failed, replace(failed, index=2)])

    assert figures.failures == {"http_400": 2}
    assert figures.ttft_ms.p50 == 100.0
    assert figures.ttft_adjusted_ms.p50 == math.inf
    assert figures.ttft_adjusted_ms.mean is None


def test_the_cached_share_is_null_when_one_server_count_is_missing() -> None:
    figures = cell_figures(cell(), [request(cached_tok=64), request(index=1, cached_tok=None)])

    assert figures.cached_share is None


def test_the_cached_share_is_over_all_prompt_tokens() -> None:
    figures = cell_figures(cell(), [request(cached_tok=64), request(index=1, cached_tok=0)])

    assert figures.cached_share == 0.25


def test_efficiency_compares_with_as_many_single_users() -> None:
    single = cell_figures(cell(spans_ns=((0, S),)), [request(output_tok=31)])
    eight = cell_figures(cell(concurrency=8, spans_ns=((0, S),)), [request(output_tok=90)])

    assert efficiency(eight, single) == pytest.approx(90 / (8 * 31))
    assert efficiency(eight, None) is None


def test_the_batch_time_is_derived_from_the_rate() -> None:
    figures = cell_figures(cell(output_tok=256, spans_ns=((0, S),)), [request(output_tok=31)])

    found = batch_time(figures, 200)

    assert found is not None
    assert (found.kind, round(found.seconds)) == ("derived", 1652)


def test_the_batch_time_is_measured_when_that_many_answers_ran() -> None:
    ran = [request(index=i) for i in range(4)]

    found = batch_time(cell_figures(cell(requests_per_repeat=4, spans_ns=((0, 3 * S),)), ran), 4)

    assert found is not None
    assert (found.kind, found.seconds) == ("measured", 3.0)


def test_a_cell_keeps_for_how_many_answers_its_workload_wants_the_batch_time() -> None:
    point = Workload(name="w", batch_answers=40).cells()[0]

    outcome = cell_outcome(LoadTarget(base_url="http://127.0.0.1:1", model="m"), point, ())

    assert outcome.record.batch_answers == 40
