"""The guards against a server whose truth is known: what goes wrong there makes the cell invalid here, by its name."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from orchestrator.engines.registry import load_engines
from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import Flavour, MockSettings
from orchestrator.pipeline.claims import metric_names
from orchestrator.sweep.lengths import fixed
from orchestrator.sweep.outcome import cell_outcome
from orchestrator.sweep.runner import CellOutcome, CellProgress, CellRunner, LoadProcess, LoadTarget, run_cell
from orchestrator.sweep.spec import LoadSpec
from orchestrator.sweep.workload import Cell, Kind, SwarmCell, Workload

FAST = MockSettings(step_s=0.0005)
ENGINES = load_engines()
WORKLOAD = Workload(
    name="w",
    prompt_tokens=(fixed(48),),
    output_tokens=(fixed(12),),
    concurrency=(3,),
    repeats=2,
    warmup=1,
    request_timeout_s=20.0,
)


def target_of(server: MockServer, **changes: Any) -> LoadTarget:
    names = metric_names(ENGINES[server.settings.flavour.value].traits.metrics)
    return LoadTarget(base_url=server.base_url, model=server.settings.model, metrics=names, **changes)


def cell_of(kind: Kind = Kind.BATCH, **changes: Any) -> Cell:
    return replace(WORKLOAD, kinds=(kind,), **changes).cells()[0]


def load(settings: MockSettings, cell: Cell, **target: Any) -> CellOutcome:
    with MockServer(settings) as server:
        return run_cell(target_of(server, **target), cell)


def broken(outcome: CellOutcome) -> dict[str, str]:
    """The guards that fell, but the one that judges this machine's speed."""
    return {g["name"]: g["message"] for g in outcome.record.guards if g["name"] != "client_lag"}


@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_clean_cell_agrees_with_the_servers_counters_to_the_token(flavour: Flavour) -> None:
    outcome = load(replace(FAST, flavour=flavour, tokens_per_event=3), cell_of())

    told = outcome.record.server
    assert broken(outcome) == {}
    assert told["repeats"] == 2
    assert told["ours"] == {"requests": 8, "prompt_tok": 8 * 48, "output_tok": 2 * (3 * 12 + 12)}
    assert told["output_tok"] == 96
    assert told["prompt_computed_tok" if flavour is Flavour.LLAMACPP else "prompt_tok"] == 8 * 48
    assert told["spec_drafts"] == 8 * 4


def test_the_servers_own_times_are_means_of_its_histograms() -> None:
    told = load(replace(FAST, ttft_s=0.02), cell_of()).record.server

    assert told["ttft_n"] == told["queue_n"] == 8
    assert isinstance(told["ttft_ms"], float)
    assert told["ttft_ms"] >= 20.0


def test_a_restart_in_the_middle_is_named_beside_its_failures() -> None:
    with MockServer(FAST) as server:
        first = run_cell(target_of(server), cell_of(repeats=1))
        asked = server.counters.requests
    assert broken(first) == {}

    found = broken(load(replace(FAST, restarts_at=asked, ttft_s=0.3), cell_of(repeats=1)))

    assert set(found) == {"failures", "server_restarted"}
    assert "the server was restarted in repeat 0" in found["server_restarted"]


def ask(server: MockServer, words: int, output_tok: int) -> dict[str, Any]:
    return {"json": {"prompt": "other " * words, "max_tokens": output_tok, "stream": True, "ignore_eos": True}}


@pytest.mark.parametrize("flavour", list(Flavour))
def test_another_clients_request_in_the_middle_is_foreign_traffic(flavour: Flavour) -> None:
    settings = replace(FAST, flavour=flavour, ttft_s=0.5)
    with MockServer(settings) as server, httpx.Client(trust_env=False, timeout=30.0) as other:

        def intrude(progress: CellProgress) -> None:
            if progress.in_flight and progress.phase == "main" and not intruded:
                intruded.append(True)
                other.post(f"{server.base_url}/completions", **ask(server, 400, 4)).raise_for_status()

        intruded: list[bool] = []
        outcome = run_cell(target_of(server), cell_of(repeats=1), on_progress=intrude)

    kind = "computed prompt tokens" if flavour is Flavour.LLAMACPP else "prompt tokens"
    assert broken(outcome) == {
        "foreign_traffic": f"in repeat 0 the server counted {4 * 48 + 400} {kind}, ours were {4 * 48}: "
        "somebody else uses it"
    }


@contextmanager
def endless(server: MockServer) -> Iterator[None]:
    """Another client whose answer runs on for as long as the block does."""
    with (
        httpx.Client(trust_env=False, timeout=30.0) as other,
        other.stream("POST", f"{server.base_url}/completions", **ask(server, 8, 100_000)) as answer,
    ):
        pieces = answer.iter_raw()
        next(pieces)
        yield


def test_a_server_that_is_busy_before_we_begin_is_not_ours_alone() -> None:
    with MockServer(replace(FAST, step_s=0.005)) as server, endless(server):
        outcome = run_cell(target_of(server), cell_of(repeats=1))

    assert broken(outcome)["foreign_traffic"] == "before repeat 0 the server had 1 running already"


WARM: dict[str, Any] = {"depth": (64,), "depth_cache": "warm", "repeats": 1}


@pytest.mark.parametrize("head_tok", [4, 40])
def test_a_warm_cell_on_a_warm_cache_is_valid_whatever_the_template_puts_before_it(head_tok: int) -> None:
    outcome = load(
        replace(FAST, template_head_tok=head_tok), cell_of(**{**WARM, "depth": (96,), "prompt_tokens": (fixed(80),)})
    )

    assert broken(outcome) == {}
    assert outcome.record.server["cached_by_counters"] == outcome.record.server["cached_by_usage"]


def test_a_warm_cell_without_a_cache_is_not_what_it_says() -> None:
    found = broken(load(replace(FAST, prefix_caching=False), cell_of(**WARM)))

    assert list(found) == ["cached_tokens"]
    assert "3 prompts were not in the prefix cache as they should be: expected 48 tokens" in found["cached_tokens"]


def test_a_warm_cell_whose_server_tells_no_cached_tokens_is_valid_with_a_note() -> None:
    outcome = load(replace(FAST, reports_cached_tok=False), cell_of(**WARM))

    assert broken(outcome) == {}
    assert outcome.record.server["notes"] == [
        "the server told no cached tokens of 3 answers: whether the shared prefix was read is not known"
    ]


def test_drafts_without_counts_of_their_tokens_leave_no_time_per_token() -> None:
    settings = replace(FAST, tokens_per_event=4)

    blind = broken(load(settings, cell_of(), is_speculative=True))
    seeing = broken(load(settings, cell_of(), is_speculative=True, stream_fields={"return_token_ids": True}))

    assert blind == {
        "token_source": "the server drafts tokens, and 6 of 6 answers do not say how many came with each event "
        "(12 tokens in 3 events): TPOT and ITL cannot be known"
    }
    assert seeing == {}


@pytest.mark.skipif(sys.platform == "win32", reason="stops a process by a signal")
def test_a_client_that_stands_still_sends_late_and_says_so() -> None:
    cell = cell_of(Kind.OPEN, rate=(50.0,), requests=60, repeats=1)

    def start(spec: LoadSpec) -> LoadProcess:
        started.append(LoadProcess(spec))
        return started[0]

    def stall(progress: CellProgress) -> None:
        if progress.phase == "main" and progress.done >= 5 and not stalled:
            stalled.append(True)
            os.kill(started[0].pid, signal.SIGSTOP)
            time.sleep(0.4)  # the fault itself: some twenty requests become due in it
            os.kill(started[0].pid, signal.SIGCONT)

    started: list[LoadProcess] = []
    stalled: list[bool] = []
    with MockServer(FAST) as server, CellRunner(process=start) as runner:
        target = target_of(server)
        outcome = cell_outcome(target, cell, [runner(target, cell, 0, stall)])

    assert stalled
    assert "of 60 requests left this machine more than 5 ms late" in broken(outcome)["late_sends"]


@pytest.mark.parametrize("kind", [Kind.SWARM, Kind.SESSIONS])
def test_what_stands_on_a_warm_prefix_is_valid_with_a_cache_and_not_without(kind: Kind) -> None:
    changes: dict[str, Any] = {"cells_of_swarm": (SwarmCell.PRIMED,), "prefix_tokens": (96,), "agents": (3,)}
    cell = cell_of(kind, **(changes if kind is Kind.SWARM else {}), turns=3, repeats=1)

    warm, cold = load(FAST, cell), load(replace(FAST, prefix_caching=False), cell)

    assert broken(warm) == {}
    assert list(broken(cold)) == ["cached_tokens"]
    assert "were not in the prefix cache as they should be" in broken(cold)["cached_tokens"]
