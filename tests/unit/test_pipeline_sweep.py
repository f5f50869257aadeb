"""The sweep stage against a fake load: the order of the repeats, when it stops, what it keeps, what it looks for."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orchestrator.pipeline.events import CellEnded, CellMoved, LapEnded, Notice
from orchestrator.pipeline.road import Options
from orchestrator.records.store import StoredCell
from orchestrator.sweep.lengths import fixed
from orchestrator.sweep.workload import Cell, Kind, Search, Slo, Workload
from tests.unit.road_fakes import World, stored

GRID = Workload(name="grid", output_tokens=(fixed(8),), concurrency=(1, 2, 4), repeats=4)
CELLS = ["closed-p128-o8-c1", "closed-p128-o8-c2", "closed-p128-o8-c4"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, workloads=(GRID,))


def cells(world: World) -> dict[str, StoredCell]:
    return {c.cell.id: c for c in stored(world).cells()}


def events_of(world: World, kind: str) -> list[dict[str, Any]]:
    lines = (stored(world).directory / "events.jsonl").read_text().splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == kind]


def test_each_round_runs_every_cell_once_in_an_order_of_its_own(world: World) -> None:
    world.go()

    rounds = [world.cells_run[i : i + 3] for i in range(0, 12, 3)]
    assert [sorted(r) for r in rounds] == [CELLS] * 4
    assert len({tuple(r) for r in rounds}) > 1
    again = World(world.folder / "again", workloads=(GRID,))
    again.folder.mkdir()
    again.go()
    assert again.cells_run == world.cells_run, "the seed fixes the order"


def test_listed_order_runs_cell_after_cell(world: World) -> None:
    world.workloads = (replace(GRID, order="listed"),)
    world.go()

    assert world.cells_run == [c for c in CELLS for _ in range(4)]


def test_repeats_lie_one_after_the_other_on_the_cells_clock(world: World) -> None:
    world.go()

    for found in cells(world).values():
        spans = found.cell.spans_ns
        assert len(spans) == found.cell.repeats_done == 4
        assert all(a[1] < b[0] for a, b in pairwise(spans))
        for r in found.requests:
            start, end = spans[r.repeat]
            assert start == r.sent_ns
            assert end == r.end_ns
        orders = [lap["order"] for lap in found.cell.laps]
        assert orders == sorted(orders)


def test_every_repeat_is_on_disk_when_it_ends(world: World) -> None:
    seen: list[int] = []

    def look(event: object) -> None:
        if isinstance(event, LapEnded):
            seen.append(sum(c.cell.repeats_done for c in stored(world).cells()))

    world.on_event = look
    world.go()

    assert seen == list(range(1, 13))


def test_kept_cells_have_their_place_among_all(world: World) -> None:
    first = world.go()
    world.events.clear()

    world.go(first.run)

    ended = [e for e in world.events if isinstance(e, CellEnded)]
    assert [(e.index, e.total) for e in ended] == [(0, 3), (1, 3), (2, 3)]
    assert all(e.text.startswith("kept from an earlier attempt: ") for e in ended)


def test_a_stop_between_repeats_loses_none_and_resume_runs_the_rest(world: World) -> None:
    def stop_at_seventh(cell: Cell) -> None:
        if len(world.cells_run) == 6:
            world.cancel.set()

    world.on_cell = stop_at_seventh
    first = world.go()
    done = {name: c.cell.repeats_done for name, c in cells(world).items()}
    assert sum(done.values()) == 6
    world.cells_run.clear()
    world.on_cell, world.cancel = lambda _: None, type(world.cancel)()

    world.go(first.run)

    assert {name: world.cells_run.count(name) + done[name] for name in CELLS} == dict.fromkeys(CELLS, 4)
    assert {c.cell.stop_reason for c in cells(world).values()} == {"all"}


def test_even_rates_stop_early_and_say_so(world: World) -> None:
    world.workloads = (replace(GRID, tight=0.02),)
    world.span_s = lambda cell, repeat: 1.0 if cell.concurrency < 4 else 1.0 + repeat
    world.go()

    assert {name: (c.cell.repeats_done, c.cell.stop_reason) for name, c in cells(world).items()} == {
        CELLS[0]: (3, "tight"),
        CELLS[1]: (3, "tight"),
        CELLS[2]: (4, "all"),
    }


def test_a_tight_cell_is_finished_for_resume_too(world: World) -> None:
    world.workloads = (replace(GRID, tight=0.02),)
    first = world.go()
    world.cells_run.clear()
    world.go(first.run)

    assert world.cells_run == []


def test_budget_ends_the_sweep_after_the_repeat_that_spent_it(world: World) -> None:
    world.options = Options(budget_s=5.0)
    world.go()

    assert len(world.cells_run) == 5
    assert {c.cell.stop_reason for c in cells(world).values()} == {"budget"}
    ended = [e.text for e in world.events if isinstance(e, CellEnded)]
    assert all("repeats (budget)" in text for text in ended)


def test_what_the_budget_never_reached_is_named(world: World) -> None:
    world.options = Options(budget_s=2.0)
    world.go()

    (unrun,) = set(CELLS) - set(world.cells_run)
    notices = [e.text for e in world.events if isinstance(e, Notice) and e.is_warning]
    assert any("not begun within the budget" in t and unrun in t for t in notices)


def test_progress_tells_what_is_left(world: World) -> None:
    moves: list[CellMoved] = []
    inner = world._run_cell

    def show_once(load: Any, cell: Cell, repeat: int, show: Any, stop: Any) -> Any:
        from orchestrator.sweep.spec import CellProgress

        show(CellProgress(repeat=repeat, phase="main", done=0, total=1, in_flight=1, failed=0, events=0, elapsed_s=0))
        return inner(load, cell, repeat, show, stop)

    world._run_cell = show_once  # type: ignore[method-assign]
    world.on_event = lambda e: moves.append(e) if isinstance(e, CellMoved) else None
    world.go()

    assert moves[0].left_s is None
    assert moves[-1].left_s == pytest.approx(1.0, abs=0.5)
    assert "repeat 4/4" in moves[-1].text


SLO = Slo(name="chat", ttft_s=1.0, share=0.95)
SEARCH = Workload(
    name="limit",
    output_tokens=(fixed(8),),
    concurrency=(1,),
    requests_per_user=100,
    repeats=3,
    search=Search(over="concurrency", low=1, high=64, precision=0.1, slo=SLO),
)


def test_search_finds_the_last_number_of_users_that_meets_the_slo(world: World) -> None:
    world.workloads = (SEARCH,)
    world.ttft_s = lambda cell: 0.09 * cell.concurrency
    world.go()

    (answer,) = events_of(world, "search")
    assert (answer["best"], answer["missed"], answer["ended"]) == (11, 12, "bracketed")
    assert answer["is_certain"] is True
    assert all(c.cell.stop_reason == "decided" and c.cell.repeats_done == 1 for c in cells(world).values())
    assert any("met up to 11 users, missed at 12" in e.text for e in world.events if isinstance(e, Notice))


def test_search_goes_on_from_the_levels_that_are_known(world: World) -> None:
    world.workloads = (SEARCH,)
    world.ttft_s = lambda cell: 0.09 * cell.concurrency
    first = world.go()
    world.cells_run.clear()
    world.go(first.run)

    assert world.cells_run == []
    assert [e["best"] for e in events_of(world, "search")] == [11, 11]


def test_search_counts_failed_requests_as_misses(world: World) -> None:
    world.workloads = (SEARCH,)
    world.failed = lambda cell: 0.5 if cell.concurrency > 11 else 0.0
    world.go()

    (answer,) = events_of(world, "search")
    assert (answer["best"], answer["missed"], answer["ended"]) == (11, 12, "bracketed")


def test_search_judges_by_its_own_service_level(world: World) -> None:
    world.workloads = (replace(SEARCH, slo=Slo(name="office", ttft_s=0.2)),)
    world.ttft_s = lambda cell: 0.09 * cell.concurrency
    world.go()

    assert events_of(world, "search")[0]["best"] == 11
    assert {c.cell.slo["name"] for c in cells(world).values()} == {"chat"}


def test_search_that_the_budget_ends_says_what_it_knows(world: World) -> None:
    world.workloads = (SEARCH,)
    world.options = Options(budget_s=3.0)
    world.go()

    (answer,) = events_of(world, "search")
    assert (answer["ended"], answer["best"], answer["missed"]) == ("budget", 4, None)
    assert any(
        "no answer, the budget ended; met up to 4 so far" in e.text for e in world.events if isinstance(e, Notice)
    )


def test_resumed_search_for_another_service_level_judges_the_stored_requests_anew(world: World) -> None:
    world.workloads = (SEARCH,)
    world.ttft_s = lambda cell: 0.09 * cell.concurrency
    first = world.go()
    world.cells_run.clear()
    search = replace(SEARCH.search, slo=Slo(name="half", ttft_s=0.5, share=0.95))  # type: ignore[type-var]
    world.workloads = (replace(SEARCH, search=search),)
    world.go(first.run)

    assert [e["best"] for e in events_of(world, "search")] == [11, 5]
    assert {c.cell.slo["name"] for c in cells(world).values() if c.cell.concurrency in (1, 2, 4, 5, 6, 8)} == {"half"}
    assert sorted(set(world.cells_run)) == ["closed-p128-o8-c5", "closed-p128-o8-c6"]


def test_search_over_rates_names_each_level(world: World) -> None:
    search = Search(over="rate", low=1.0, high=8.0, precision=0.2, slo=SLO)
    world.workloads = (replace(SEARCH, kinds=(Kind.OPEN,), rate=(1.0,), requests=200, search=search),)
    world.ttft_s = lambda cell: 0.3 * (cell.rate_rps or 0.0)
    world.go()

    assert [c.split("-")[-1] for c in world.cells_run] == ["r1", "r2", "r4", "r2.83", "r3.36"]
    assert events_of(world, "search")[0]["best"] == 2.83


def test_the_capacity_of_an_overload_is_a_cell_beside_the_users_own(world: World) -> None:
    both = Workload(
        name="both", kinds=(Kind.CLOSED, Kind.OVERLOAD), output_tokens=(fixed(8),), concurrency=(8,), repeats=2
    )
    world.workloads = (both,)
    world.go()

    done = {name: c.cell.repeats_done for name, c in cells(world).items()}
    assert done == {"closed-p128-o8-c8": 2, "closed-capacity-p128-o8-c8": 1, "overload-p128-o8-measured": 2}


def test_overload_measures_the_capacity_first_and_runs_at_a_multiple_of_it(world: World) -> None:
    world.workloads = (Workload(name="past", kinds=(Kind.OVERLOAD,), output_tokens=(fixed(8),), rate=(), repeats=2),)
    rates: list[float | None] = []
    world.on_cell = lambda cell: rates.append(cell.rate_rps)
    world.span_s = lambda cell, _: 6.0 if cell.kind is Kind.CLOSED else 1.0
    first = world.go()

    assert rates == [None, 4.0, 4.0], "24 requests of eight slots in six seconds"
    found = cells(world)
    assert found["overload-p128-o8-measured"].cell.rate_rps == 4.0
    rates.clear()
    world.go(first.run)
    assert rates == []


def test_the_stage_says_how_many_cells_broke_a_guard(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = world._run_cell

    def short(load: Any, cell: Cell, repeat: int, show: Any, stop: Any) -> Any:
        lap = inner(load, cell, repeat, show, stop)
        off = 1 if cell.concurrency == 2 else 0
        return replace(lap, requests=tuple(replace(r, output_tok=8 - off) for r in lap.requests))

    monkeypatch.setattr(world, "_run_cell", short)
    world.go()

    (stage,) = [s for s in stored(world).run.stages if s["name"] == "sweeps"]
    assert stage["detail"] == "3 cells measured, 1 of all invalid: a guard was broken"
