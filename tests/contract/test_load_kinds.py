"""Swarms, sessions and mixed lanes against the mock: what its cache and its counters know is what the record says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import Fault, MockSettings
from orchestrator.records.record import RequestRecord
from orchestrator.sweep.lengths import Lengths, fixed
from orchestrator.sweep.prompts import Counter, PromptBook
from orchestrator.sweep.runner import CellOutcome, CellRunner, LoadTarget, run_cell
from orchestrator.sweep.scripts.script import Script, script_of
from orchestrator.sweep.workload import Cell, Kind, LaneLoad, SwarmCell, Workload

BLOCK_TOK = 16
HEAD_TOK, TAIL_TOK = 4, 3
PREFIX_TOK, QUESTION_TOK = 2010, 40
SHARED_TOK = PREFIX_TOK - TAIL_TOK
KEPT_TOK = SHARED_TOK // BLOCK_TOK * BLOCK_TOK
FAST = MockSettings(step_s=0.0005, template_head_tok=HEAD_TOK, template_tail_tok=TAIL_TOK)
SWARM = Workload(
    name="w",
    kinds=(Kind.SWARM,),
    agents=(6,),
    prefix_tokens=(PREFIX_TOK,),
    prompt_tokens=(fixed(QUESTION_TOK),),
    output_tokens=(fixed(5),),
    repeats=2,
    warmup=2,
    request_timeout_s=20.0,
)
TALK = Workload(
    name="w",
    kinds=(Kind.SESSIONS,),
    concurrency=(2,),
    sessions=5,
    turns=4,
    prompt_tokens=(fixed(33),),
    output_tokens=(fixed(21),),
    repeats=1,
    warmup=1,
    request_timeout_s=20.0,
)
PERSON = LaneLoad(name="person", concurrency=2, prompt=fixed(40), output=fixed(4), think_s=0.05)
BATCH = LaneLoad(name="batch", concurrency=3, prompt=fixed(90), output=fixed(10))
VISITORS = LaneLoad(name="visitors", rate=20.0, burstiness=0.5, prompt=fixed(50), output=fixed(3))
MIXED = Workload(name="w", kinds=(Kind.MIXED,), lanes=(PERSON, BATCH, VISITORS), duration_s=0.5, repeats=1, warmup=1)


def target_of(server: MockServer, **changes: Any) -> LoadTarget:
    return LoadTarget(base_url=server.base_url, model=server.settings.model, **changes)


def cell_of(workload: Workload, variant: str = "") -> Cell:
    (cell,) = [c for c in workload.cells() if c.variant == variant]
    return cell


def load(cell: Cell, settings: MockSettings = FAST, **target: Any) -> CellOutcome:
    with MockServer(settings) as server:
        return run_cell(target_of(server, **target), cell)


def broken(outcome: CellOutcome) -> list[str]:
    """The guards that fell, but the one that judges this machine's speed."""
    return [str(g["name"]) for g in outcome.record.guards if g["name"] != "client_lag"]


def of_phase(outcome: CellOutcome, name: str) -> list[RequestRecord]:
    return [r for r in outcome.requests if r.phase == name]


def only(values: Sequence[Any] | set[Any]) -> Any:
    assert len(set(values)) == 1, values
    return next(iter(values))


def test_cold_swarm_comes_all_at_once_and_nothing_is_expected_of_the_cache() -> None:
    with MockServer(replace(FAST, ttft_s=0.3)) as server:
        outcome = run_cell(target_of(server), cell_of(SWARM, SwarmCell.COLD))
        most = server.counters.most_running

    assert most == 6
    assert broken(outcome) == []
    assert only([r.phase for r in outcome.requests]) == "main"
    assert [r.track for r in outcome.requests] == list(range(6)) * 2
    assert only([r.prompt_tok for r in outcome.requests]) == PREFIX_TOK + QUESTION_TOK
    assert only([r.expected_prompt_tok for r in outcome.requests]) == PREFIX_TOK + QUESTION_TOK
    assert only([r.expected_cached_tok for r in outcome.requests]) is None
    assert abs(only([r.shared_tok for r in outcome.requests]) - SHARED_TOK) <= 2


def test_cold_swarm_reads_the_prefix_again_where_prompts_in_flight_are_not_shared() -> None:
    settings = replace(FAST, ttft_s=0.3, shares_in_flight=False)
    stampede = load(cell_of(SWARM, SwarmCell.COLD), settings)
    shared = load(cell_of(SWARM, SwarmCell.COLD), replace(settings, shares_in_flight=True))

    assert [r.cached_tok for r in stampede.requests] == [0] * 12
    assert sorted(r.cached_tok or 0 for r in shared.requests) == [0] * 2 + [KEPT_TOK] * 10, "the first of each repeat"


@pytest.mark.parametrize(("variant", "agents"), [(SwarmCell.PRIMED, 6), (SwarmCell.SINGLE, 1)])
def test_prime_loads_the_prefix_and_all_agents_find_it(variant: SwarmCell, agents: int) -> None:
    with MockServer(replace(FAST, shares_in_flight=False)) as server:
        outcome = run_cell(target_of(server), cell_of(SWARM, variant))
        truth = [t.cached_tok for t in server.truths if t.prompt_tok == PREFIX_TOK + QUESTION_TOK]

    primes, agents_asked = of_phase(outcome, "prime"), of_phase(outcome, "main")
    assert broken(outcome) == []
    assert [(r.repeat, r.output_tok, r.cached_tok) for r in primes] == [(0, 1, 0), (1, 1, 0)], "cold in each repeat"
    assert len(agents_asked) == 2 * agents
    assert only([(r.cached_tok, r.expected_cached_tok) for r in agents_asked]) == (KEPT_TOK, KEPT_TOK)
    assert truth == ([0] + [KEPT_TOK] * agents) * 2
    prime_end = max(r.end_ns or 0 for r in primes if r.repeat == 0)
    assert all(r.scheduled_ns >= prime_end for r in agents_asked if r.repeat == 0)


def test_server_that_keeps_the_prefix_in_coarse_pieces_shows_what_is_read_again() -> None:
    outcome = load(cell_of(SWARM, SwarmCell.PRIMED), replace(FAST, block_tok=512), cache_unit_tok=16)

    again = [(r.shared_tok or 0) - (r.cached_tok or 0) for r in of_phase(outcome, "main")]
    assert only([r.cached_tok for r in of_phase(outcome, "main")]) == SHARED_TOK // 512 * 512
    assert abs(only(again) - SHARED_TOK % 512) <= 2


def test_evicting_loads_its_prefixes_one_after_the_other_and_spreads_the_agents() -> None:
    workload = replace(SWARM, prefixes=4, repeats=1, agents=(6,))
    with MockServer(replace(FAST, ttft_s=0.02)) as server:
        outcome = run_cell(target_of(server), cell_of(workload, SwarmCell.EVICTING))

    primes, agents = of_phase(outcome, "prime"), of_phase(outcome, "main")
    assert [r.track for r in primes] == [0, 1, 2, 3]
    assert all(b.scheduled_ns == a.end_ns for a, b in pairwise(primes))
    assert len({r.nonce for r in primes}) == 4
    assert [next(p.track for p in primes if p.nonce == r.nonce) for r in agents] == [0, 0, 1, 2, 2, 3]
    assert only([r.expected_cached_tok for r in agents]) is None
    assert only([r.cached_tok for r in agents]) == KEPT_TOK, "all fit into a cache without end"


def test_agents_of_an_evicted_prefix_read_it_again() -> None:
    workload = replace(SWARM, prefixes=4, repeats=1, agents=(2,), warmup=0)
    room = (PREFIX_TOK + QUESTION_TOK) * 2 // BLOCK_TOK + 8

    outcome = load(
        cell_of(workload, SwarmCell.EVICTING), replace(FAST, cache_blocks=room, shares_in_flight=False, ttft_s=0.3)
    )

    assert [r.cached_tok for r in of_phase(outcome, "main")] == [0, KEPT_TOK], "prefix 0 is gone, prefix 2 is there"
    assert broken(outcome) == []


@pytest.mark.parametrize(
    ("prefixes", "kv_tok", "expected"), [(5, 20_000, 5), (None, 20_000, 15), (None, 1_000, 2), (None, None, 12)]
)
def test_evicting_takes_more_prefixes_than_fit(prefixes: int | None, kv_tok: int | None, expected: int) -> None:
    cell = cell_of(replace(SWARM, prefixes=prefixes, prefix_tokens=(2000,)), SwarmCell.EVICTING)

    found = plain_script(cell, kv_tok=kv_tok)

    (prime,) = [p for p in found.phases if p.name == "prime"]
    assert prime.requests == expected


def plain_script(cell: Cell, **target: Any) -> Script:
    counter = Counter(count=lambda text: 7 + len(text.split()), is_cheap=True, overhead_tok=7)
    book = PromptBook(counter, seed=1, rng=random.Random(1))
    plain = LoadTarget(base_url="http://x/v1", model="m", template_overhead_tok=7)
    return script_of(cell, book, replace(plain, **target), 0)


def test_swarm_warms_up_without_its_prefix() -> None:
    found = plain_script(cell_of(SWARM, SwarmCell.COLD))

    warmup, main = found.phases
    assert (warmup.name, warmup.is_recorded) == ("warmup", False)
    assert only([j.expected_prompt_tok for lane in warmup.lanes for t in lane.tracks for j in t.jobs]) == 64 + 7
    (lane,) = main.lanes
    assert (lane.users, lane.requests) == (6, 6)


def test_swarm_without_a_tokenizer_is_exact_and_cold_too() -> None:
    outcome = load(cell_of(replace(SWARM, warmup=0), SwarmCell.PRIMED), replace(FAST, has_tokenize=False))

    primes = of_phase(outcome, "prime")
    assert broken(outcome) == []
    assert [r.cached_tok for r in primes] == [0, 0], "fitting did not load what is measured"
    assert all(r.prompt_tok == r.expected_prompt_tok for r in outcome.requests)
    assert only([r.prompt_tok for r in primes]) == pytest.approx(PREFIX_TOK + QUESTION_TOK, abs=4)


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_swarm_works_on_both_endpoints(endpoint: str) -> None:
    outcome = load(cell_of(replace(SWARM, endpoint=endpoint), SwarmCell.PRIMED))

    agents = of_phase(outcome, "main")
    shared_tok = PREFIX_TOK - (TAIL_TOK if endpoint == "chat" else 0)
    assert broken(outcome) == []
    assert only([r.cached_tok for r in agents]) == shared_tok // BLOCK_TOK * BLOCK_TOK


def sessions_of(outcome: CellOutcome) -> list[list[RequestRecord]]:
    """The turns of each session, in order."""
    tracks = sorted({r.track for r in outcome.requests if r.track is not None})
    return [sorted((r for r in outcome.requests if r.track == t), key=lambda r: r.turn) for t in tracks]


def test_scripted_sessions_grow_by_what_is_known_and_find_their_last_prompt() -> None:
    with MockServer(replace(FAST, ttft_s=0.1)) as server:
        outcome = run_cell(target_of(server), cell_of(TALK))
        most = server.counters.most_running

    assert broken(outcome) == []
    assert most == 2
    for turns in sessions_of(outcome):
        grown = [33 + k * (TAIL_TOK + 21 + 33) for k in range(4)]
        assert [r.prompt_tok for r in turns] == grown
        assert [r.expected_prompt_tok for r in turns] == grown
        assert [r.shared_tok for r in turns] == [None, *grown[:-1]]
        assert [r.cached_tok for r in turns] == [0, *(tok // BLOCK_TOK * BLOCK_TOK for tok in grown[:-1])]
        assert [r.expected_cached_tok for r in turns] == [r.cached_tok for r in turns]
    assert [len(turns) for turns in sessions_of(outcome)] == [4] * 5


def test_models_own_answers_stand_in_the_history() -> None:
    outcome = load(cell_of(replace(TALK, history="model")))

    assert broken(outcome) == []
    for turns in sessions_of(outcome):
        grown = [33 + k * (TAIL_TOK + 21 + 33) for k in range(4)]
        assert [r.prompt_tok for r in turns] == grown
        assert [r.cached_tok for r in turns] == [
            0,
            *((tok + 21) // BLOCK_TOK * BLOCK_TOK for tok in grown[:-1]),
        ], "the answer is reused too"
        assert [r.expected_prompt_tok for r in turns] == [33, None, None, None]
        assert [r.shared_tok for r in turns] == [None] * 4


def test_reasoning_does_not_go_back_into_the_history() -> None:
    outcome = load(cell_of(replace(TALK, history="model")), replace(FAST, reasoning_tok=6))

    for turns in sessions_of(outcome):
        assert [r.prompt_tok for r in turns] == [33 + k * (TAIL_TOK + 21 - 6 + 33) for k in range(4)]


@pytest.mark.parametrize("fault", [Fault.HTTP_500, Fault.NO_TOKENS])
def test_a_conversation_ends_with_the_answer_that_did_not_come(fault: Fault) -> None:
    outcome = load(cell_of(replace(TALK, history="model", warmup=0)), replace(FAST, fault=fault, fault_every=7))

    ended = [turns for turns in sessions_of(outcome) if any(r.failure for r in turns)]
    assert ended
    for turns in ended:
        assert [r.failure for r in turns[:-1]] == [None] * (len(turns) - 1)
        assert turns[-1].failure is not None
    assert "not_sent" in str(outcome.record.guards) or all(len(turns) == 4 for turns in ended)


def test_each_turn_is_due_when_its_user_has_thought() -> None:
    outcome = load(cell_of(replace(TALK, think_s=0.03)))

    for turns in sessions_of(outcome):
        assert [b.scheduled_ns for b in turns[1:]] == [(a.end_ns or 0) + 30_000_000 for a in turns[:-1]]
        assert all((r.sent_ns or 0) >= r.scheduled_ns for r in turns)


def test_users_take_the_sessions_one_after_the_other() -> None:
    found = sessions_of(load(cell_of(TALK)))

    ends = sorted(turns[-1].end_ns or 0 for turns in found)
    starts = [turns[0].scheduled_ns for turns in found]
    assert starts[0] == starts[1] < min(starts[2:])
    assert sorted(starts[2:]) == ends[:3], "a free user takes the next"


def test_drawn_lengths_are_the_same_in_each_run() -> None:
    drawn = replace(
        TALK, prompt_tokens=(Lengths(around=60, spread=0.5),), output_tokens=(Lengths(around=20, spread=0.5),)
    )

    one, two = (load(cell_of(drawn)) for _ in range(2))

    sizes = [[(r.prompt_tok, r.output_tok) for turns in sessions_of(o) for r in turns] for o in (one, two)]
    assert sizes[0] == sizes[1]
    assert len({tok for _, tok in sizes[0]}) > 5
    assert broken(one) == []


def by_lane(outcome: CellOutcome) -> dict[str, list[RequestRecord]]:
    lanes: dict[str, list[RequestRecord]] = {}
    for r in outcome.requests:
        lanes.setdefault(r.lane, []).append(r)
    return lanes


MIXED_SPEED = replace(FAST, step_s=0.002)


def test_lanes_run_side_by_side_with_their_own_sizes_until_the_clock_ends_them() -> None:
    outcome = load(cell_of(MIXED, "together"), MIXED_SPEED)

    lanes = by_lane(outcome)
    assert broken(outcome) == []
    assert list(lanes) == ["person", "batch", "visitors"]
    sizes = {name: only([(r.prompt_tok, r.output_tok) for r in part]) for name, part in lanes.items()}
    assert sizes == {"person": (40, 4), "batch": (90, 10), "visitors": (50, 3)}
    assert len(lanes["visitors"]) == 10
    start = min(r.scheduled_ns for r in outcome.requests if r.lane == "batch")
    assert all(r.scheduled_ns < start + 500_000_000 for r in outcome.requests)
    assert all((r.ready_ns or 0) == r.scheduled_ns for r in outcome.requests)
    assert len({r.nonce for r in outcome.requests}) == len(outcome.requests)


def test_a_closed_lane_thinks_between_an_answer_and_the_next_request() -> None:
    person = by_lane(load(cell_of(MIXED, "together"), MIXED_SPEED))["person"]

    start = min(r.scheduled_ns for r in person)
    due = {(r.end_ns or 0) + 50_000_000 for r in person}
    assert [r.scheduled_ns for r in person[:2]] == [start, start]
    assert len(person) > 4
    assert all(r.scheduled_ns in due for r in person[2:])


@pytest.mark.parametrize("name", ["person", "batch", "visitors"])
def test_a_lane_alone_gets_the_requests_that_it_gets_beside_the_others(name: str) -> None:
    alone = plain_script(cell_of(MIXED, f"alone-{name}"))
    together = plain_script(cell_of(MIXED, "together"))

    (lane,) = alone.phases[-1].lanes
    beside = next(other for other in together.phases[-1].lanes if other.name == name)
    assert (lane.name, lane.users, lane.duration_s) == (name, beside.users, 0.5)
    assert [t.at_s for t in lane.tracks] == [t.at_s for t in beside.tracks]
    assert [j.output_tok for t in lane.tracks for j in t.jobs] == [j.output_tok for t in beside.tracks for j in t.jobs]


@pytest.mark.parametrize(
    ("accepts", "sent"), [(True, {"batch": 5, "person": None}), (False, {"batch": None, "person": None})]
)
def test_priority_is_sent_where_the_server_takes_it_and_noted_where_not(accepts: bool, sent: dict[str, Any]) -> None:
    workload = replace(
        MIXED, lanes=(PERSON, replace(BATCH, priority=5, extra_body={"top_k": 1})), extra_body={"top_k": 9}
    )

    found = plain_script(cell_of(workload, "together"), accepts_priority=accepts)

    lanes = {lane.name: lane.body for lane in found.phases[-1].lanes}
    assert {name: body["priority"] for name, body in lanes.items()} == sent
    assert {name: body["extra"] for name, body in lanes.items()} == {"person": {"top_k": 9}, "batch": {"top_k": 1}}
    assert found.notes == (() if accepts else ("lane batch: the server takes no priority, 5 was left out",))


def test_what_was_left_out_is_in_the_record() -> None:
    workload = replace(MIXED, lanes=(PERSON, replace(BATCH, priority=5)), duration_s=0.05)
    settings = replace(MIXED_SPEED, refused_fields=("priority",))

    outcome = load(cell_of(workload, "together"), settings)

    assert {r.failure for r in outcome.requests} == {None}
    assert outcome.record.laps[0]["notes"] == ["lane batch: the server takes no priority, 5 was left out"]


def test_requests_made_ready_for_a_lane_have_a_bound() -> None:
    ready = {
        lane.name: plain_script(cell_of(replace(MIXED, duration_s=2.0), f"alone-{lane.name}")).phases[-1].requests
        for lane in MIXED.lanes
    }

    assert ready == {"person": 2 * 20, "batch": 3 * 40, "visitors": 40}


def test_a_swarms_record_is_the_mocks_own_count() -> None:
    workload = replace(SWARM, warmup=0, repeats=1)
    with MockServer(FAST) as server, CellRunner() as runner:
        cell, target = cell_of(workload, SwarmCell.PRIMED), target_of(server)
        runner.script(target, cell, 0)
        before = server.counters.prompt
        lap = runner(target, cell, 0)
        counted = server.counters.prompt - before

    assert sum(r.prompt_tok or 0 for r in lap.requests) == counted == 7 * (PREFIX_TOK + QUESTION_TOK)
