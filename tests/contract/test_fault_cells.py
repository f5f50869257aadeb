"""What other tools get wrong only under a load (`level: cell` of tests/cases/faults): each has its right value here.

Nothing is asserted of how fast this machine is. Schedules are held to their plan to the nanosecond; where a client has
to be late, it is stopped for a while.
"""

from __future__ import annotations

import math
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from orchestrator.errors import TargetError
from orchestrator.figures.request import itl_ms, lateness_ms
from orchestrator.mock.server import MockServer
from orchestrator.records.record import RequestRecord
from orchestrator.records.store import StoredCell
from orchestrator.report.cell_line import cell_words
from orchestrator.sweep.arrivals import arrivals
from orchestrator.sweep.guards.client import LATE_NS
from orchestrator.sweep.process import LoadProcess
from orchestrator.sweep.prompts import Counter, PromptBook
from orchestrator.sweep.runner import CellRunner
from tests.contract.fault_client import FaultCase, all_cases
from tests.contract.test_load_contract import Stuck
from tests.contract.truth_client import (
    CellRun,
    Process,
    TruthCase,
    run_case,
    run_cell_with_truth,
    runner_of,
    target_of,
)
from tests.contract.truth_figures import as_expected, our_ttft_ms, scheduled_ttft_ms

STALL_S = 0.3
CASES = {case.name: case for case in all_cases() if case.level == "cell"}


def whole(case: FaultCase, **settings: Any) -> TruthCase:
    return TruthCase(
        name=case.name,
        claim=case.claim,
        settings={**case.settings, **settings},
        target=case.target,
        workload=case.workload,
        is_counted=case.is_counted,
        lies=case.lies,
    )


def run_of(case: FaultCase, *, process: Process = LoadProcess) -> CellRun:
    """The case's one cell, which is what the case expects."""
    (run,) = run_case(whole(case), process=process).values()
    assert isinstance(case.expect, Mapping)
    want = {"guards": [], "failures": {}, **case.expect}
    assert as_expected(run, want) == want
    return run


def guards_of(run: CellRun) -> dict[str, str]:
    return {g["name"]: g["message"] for g in run.outcome.record.guards}


class Stalled(LoadProcess):
    """Stopped for `STALL_S` once answers come."""

    stall_s: ClassVar[float] = STALL_S

    def messages(self, is_cancelled: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        is_over = False
        for message in super().messages(is_cancelled):
            progress = message.get("progress")
            if not is_over and progress is not None and progress["phase"] == "main" and progress["events"] > 0:
                is_over = True
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(self.stall_s)
                os.kill(self.pid, signal.SIGCONT)
            yield message


def the_definition_is_in_the_record(case: FaultCase) -> None:
    run = run_of(case)
    told = run.outcome.record.definitions

    assert (told["ttft"], told["ttfa"]) == ("first_token_from_send/v1", "first_answer_from_send/v1")
    for r in run.outcome.requests:
        assert (r.first_token_ns, r.first_answer_ns) == (r.events[0][0], r.events[5][0])


def windows_are_said_and_whole(case: FaultCase) -> None:
    run = run_of(case)
    cell, requests, decode = run.outcome.record, run.outcome.requests, run.figures.decode
    parts = [[r for r in requests if r.repeat == repeat] for repeat in range(2)]
    spans = [(min(r.sent_ns or 0 for r in part), max(r.end_ns or 0 for r in part)) for part in parts]

    assert list(cell.spans_ns) == spans
    assert decode.run is not None
    assert decode.run.mean == pytest.approx(statistics.fmean(72 / ((b - a) / 1e9) for a, b in spans))
    assert len({cell.definitions[name] for name in ("output", "tg_all_decoding", "tg_steady")}) == 3
    assert all(sum(itl_ms(r)) == pytest.approx((r.last_token_ns - r.first_token_ns) / 1e6) for r in requests)  # type: ignore[operator]


def counters_contradict_the_answers(case: FaultCase) -> None:
    run = run_of(case)
    server = run.outcome.record.server

    assert {p.truth.cached_tok for p in run.pairs_of()} == {48}
    assert (server["cached_by_counters"], server["cached_by_usage"]) == (96, 0)
    assert "expected 48" in guards_of(run)["cached_tokens"]


def prompts_are_fresh_and_others_are_caught(case: FaultCase) -> None:
    whole_case = whole(case)
    (cell,) = whole_case.load().cells()
    with MockServer(whole_case.mock()) as server:
        target = target_of(server)
        found = []
        for rng in (None, None, Stuck(), Stuck()):
            with runner_of(whole_case, rng=rng) as runner:
                found.append(run_cell_with_truth(server, target, cell, runner, whole_case))
    fresh, same = found[:2], found[2:]
    nonces = [r.nonce for run in fresh for r in run.outcome.requests]

    assert {p.truth.cached_tok for run in fresh for p in run.pairs} == {0}
    assert [run.guards for run in fresh] == [[], []]
    assert len(set(nonces)) == len(nonces) == 24
    assert [run.guards for run in same] == [["cached_tokens"], ["cached_tokens"]]


def failures_are_apart(case: FaultCase) -> None:
    run = run_of(case)
    figures, good = run.figures, [r for r in run.outcome.requests if r.failure is None]

    assert figures.ttft_ms.max == max(our_ttft_ms(p) for p in run.pairs)
    assert figures.ttft_adjusted_ms.max == math.inf
    assert figures.e2e_ms.n == len(good) == len(run.pairs)
    assert figures.output_tok == sum(p.truth.output_tok for p in run.pairs)


def failures_are_shown(case: FaultCase) -> None:
    run = run_of(case)

    assert "2 of 4 requests failed: closed_early 2" in guards_of(run)["failures"]
    line = cell_words(StoredCell(cell=run.outcome.record, requests=run.outcome.requests))
    assert "2 failed: closed_early" in line


def arrivals_stay_where_they_were_planned(case: FaultCase) -> None:
    run = run_of(case, process=Stalled)
    (lap,), w = run.outcome.record.laps, run.cell.workload
    phases = lap["phases"]
    assert isinstance(phases, list)
    start_ns = next(p["start_ns"] for p in phases if p["name"] == "main")
    planned = arrivals(w.requests, w.rate[0], burstiness=w.burstiness[0], mode=w.arrivals, seed=str(w.seed))
    by_place = sorted(run.outcome.requests, key=lambda r: r.track or 0)
    late = [r for r in by_place if (lateness_ms(r) or 0.0) > LATE_NS / 1e6]

    assert [r.scheduled_ns - start_ns for r in by_place] == [round(at * 1e9) for at in planned]
    assert all(r.scheduled_ns <= r.sent_ns for r in by_place if r.sent_ns is not None)
    assert max(lateness_ms(r) or 0.0 for r in by_place) > 0.5 * STALL_S * 1000
    assert run.figures.open is not None
    assert run.figures.open.late_share == len(late) / len(by_place)
    assert f"{len(late)} of {len(by_place)} requests left this machine" in guards_of(run)["late_sends"]


def think_time_begins_with_the_end(case: FaultCase) -> None:
    requests = {(r.track, r.turn): r for r in run_of(case).outcome.requests}
    gaps = [r.scheduled_ns - (requests[track, turn - 1].end_ns or 0) for (track, turn), r in requests.items() if turn]

    assert gaps == [30_000_000] * 6


def the_wait_at_the_cap_is_a_latency(case: FaultCase) -> None:
    run = run_of(case)
    in_order = sorted(run.outcome.requests, key=lambda r: r.scheduled_ns)
    waited = [r for r in in_order if r.ready_ns is not None and r.ready_ns > r.scheduled_ns]

    assert len(waited) == 6, "two hold both places longer than all others take to arrive"
    assert waited == sorted(waited, key=lambda r: r.sent_ns or 0), "in the order they were due"
    for r in waited:
        assert sum(o.sent_ns < r.ready_ns < o.end_ns for o in in_order if o is not r) < 2  # type: ignore[operator]
    figures = run.figures
    assert figures.headline_ttft_ms == figures.ttft_scheduled_ms
    assert figures.ttft_scheduled_ms.max == max(scheduled_ttft_ms(p) for p in run.pairs)
    assert figures.ttft_ms.max == max(our_ttft_ms(p) for p in run.pairs)
    assert figures.queue_wait_ms.max == max(_wait_ms(r) for r in in_order)


def _wait_ms(r: RequestRecord) -> float:
    return ((r.ready_ns or 0) - r.scheduled_ns) / 1e6


def a_queue_is_named_and_apart_from_the_prefill(case: FaultCase) -> None:
    fits, queues = run_case(whole(case)).values()

    assert (fits.outcome.record.is_queueing, queues.outcome.record.is_queueing) == (False, True)
    assert (fits.counters.most_running, queues.counters.most_running) == (2, 2)
    line = cell_words(StoredCell(cell=queues.outcome.record, requests=queues.outcome.requests))
    assert "queueing for 2 slots" in line
    beside, truths = queues.figures.server, [p.truth for p in queues.pairs]
    assert beside is not None
    assert beside.queue_ms is not None
    assert beside.queue_ms.max == pytest.approx(max((t.started_ns - t.received_ns) / 1e6 for t in truths))
    assert beside.ttft_ms.max == pytest.approx(max((t.first_ns - t.started_ns) / 1e6 for t in truths))


def everyone_is_let_in(case: FaultCase) -> None:
    run = run_of(case)

    assert len({r.scheduled_ns for r in run.outcome.requests}) == 1


def a_slow_client_is_named(case: FaultCase) -> None:
    run = run_of(case, process=Stalled)
    lag_ms = run.outcome.record.client["loop_lag_ms_p99"]

    assert isinstance(lag_ms, float)
    assert lag_ms > 0.5 * STALL_S * 1000
    assert "this machine is too slow or too busy for the load" in guards_of(run)["client_lag"]
    assert not run.outcome.record.is_valid


def one_load_follows_the_other(case: FaultCase) -> None:
    runs = run_case(whole(case))

    assert [(cell, len(run.pairs), run.guards) for cell, run in runs.items()] == [
        ("closed-p48-o4-c1", 4, []),
        ("closed-p48-o4-c3", 12, []),
    ]


def prompts_are_as_long_as_asked(case: FaultCase) -> None:
    for has_tokenize in (True, False):
        for run in run_case(whole(case, has_tokenize=has_tokenize)).values():
            assert {p.truth.prompt_tok for p in run.pairs} == {run.cell.prompt_tok}
            assert run.guards == []
    drifted = run_case(replace(whole(case, word_tok=3), workload={**case.workload, "prompt_tokens": [333]}))
    assert [run.guards for run in drifted.values()] == [["prompt_length"]]
    assert_nothing_is_sent_that_cannot_be_counted(case)


def assert_nothing_is_sent_that_cannot_be_counted(case: FaultCase) -> None:
    cell = whole(case).load().cells()[0]
    nothing = PromptBook(Counter(count=lambda _: 0, is_cheap=True, overhead_tok=0), seed=1)
    with MockServer(whole(case).mock()) as server:
        with CellRunner(book=nothing) as runner, pytest.raises(TargetError, match="counts 0 tokens"):
            runner(target_of(server), cell)
        assert server.counters.requests == 0


def warm_up_pays_for_the_first(case: FaultCase) -> None:
    run = run_of(case)
    (warm,) = run.rest

    assert warm.first_ns - warm.started_ns >= 200_000_000
    assert all(p.truth.received_ns > warm.last_ns for p in run.pairs)
    assert run.outcome.record.warmup_requests == 1


CHECKS: Mapping[str, Callable[[FaultCase], None]] = {
    "09-the-definition-is-written-down": the_definition_is_in_the_record,
    "26-windows-are-said": windows_are_said_and_whole,
    "32-zero-whatever-is-true": counters_contradict_the_answers,
    "34b-the-same-prompt-in-a-cell": prompts_are_fresh_and_others_are_caught,
    "49-failures-are-apart": failures_are_apart,
    "50-failures-are-shown": failures_are_shown,
    "53-the-asked-rate": arrivals_stay_where_they_were_planned,
    "54-think-time-after-the-answer": think_time_begins_with_the_end,
    "57-the-wait-at-the-cap": the_wait_at_the_cap_is_a_latency,
    "60-endless-rate": a_queue_is_named_and_apart_from_the_prefill,
    "62-no-hidden-cap": everyone_is_let_in,
    "63-fast-enough": a_slow_client_is_named,
    "64-one-load-after-the-other": one_load_follows_the_other,
    "67-the-asked-prompt-length": prompts_are_as_long_as_asked,
    "74b-warm-up": warm_up_pays_for_the_first,
}


def test_every_fault_of_a_whole_load_has_its_check() -> None:
    assert set(CHECKS) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_load_is_measured_right(name: str) -> None:
    CHECKS[name](CASES[name])
