"""Every kind of load against a real llama-server: what its record holds, and that it fits the server's own word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.figures.cell import CellFigures, cell_figures
from orchestrator.records.store import Store, StoredCell
from tests.lab.command import Workplace
from tests.lab.kinds import WORKLOADS, write_workloads
from tests.lab.running import RunningLab

ROOT = Path(__file__).resolve().parents[2]
LAB_PROFILE = str(ROOT / "profiles" / "lab" / "smollm2-llamacpp.yaml")
SHARED_MACHINE = {"client_lag", "late_sends"}
"""Guards that two busy cores may break without anyone's fault."""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, lab: RunningLab) -> Iterator[dict[str, list[StoredCell]]]:
    """The cells of every workload, by its name."""
    place = Workplace(tmp_path_factory.mktemp("kinds"), lab)
    profile = place.write_profile("smol", f"extends: {LAB_PROFILE}\nserve: {{tool_call_parser: null}}\n")
    up = place.on_hosts("deploy", profile)
    assert up.code == 0, up.err
    try:
        words = write_workloads(place.folder / "workloads")
        ended = place.run("sweep", "--url", f"http://{lab.address('spark01')}:8080/v1", *words, deadline_s=280)
        assert ended.code == 0, ended.err
        runs, _ = Store(place.folder / "results").runs()
        found: dict[str, list[StoredCell]] = {}
        for cell in runs[-1].cells():
            found.setdefault(cell.cell.workload, []).append(cell)
        yield found
    finally:
        assert place.on_hosts("stop", "smol").code == 0
    lab.assert_clean("spark01")


def figures(cells: list[StoredCell], variant: str = "") -> CellFigures:
    (found,) = [c for c in cells if c.cell.variant == variant]
    return cell_figures(found.cell, found.requests)


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_every_cell_is_whole_and_valid(swept: dict[str, list[StoredCell]], name: str) -> None:
    for found in swept[name]:
        broken = {str(g["name"]): g["message"] for g in found.cell.guards}
        assert {k: v for k, v in broken.items() if k not in SHARED_MACHINE} == {}, found.cell.id
        assert found.requests
        assert all(r.failure is None for r in found.requests)
        assert all(r.first_token_ns is not None and r.prompt_tok and r.output_tok for r in found.requests)


def test_client_and_server_agree_on_the_first_token(swept: dict[str, list[StoredCell]]) -> None:
    for found in swept["closed"]:
        if found.cell.concurrency == 1:
            server = cell_figures(found.cell, found.requests).server
            assert server is not None
            assert server.gap_ms is not None
            assert -1.0 < (server.gap_ms.p50 or 0.0) < 50.0


def test_prefill_speed_is_the_servers_own(swept: dict[str, list[StoredCell]]) -> None:
    prefill = figures(swept["ingest"]).prefill
    assert prefill is not None
    assert prefill.tok_per_s > 0


def test_a_warm_context_comes_from_the_cache(swept: dict[str, list[StoredCell]]) -> None:
    (found,) = swept["depth"]
    main = [r for r in found.requests if r.phase == "main"]
    assert {r.phase for r in found.requests} == {"context", "main"}
    assert all((r.cached_tok or 0) >= 128 for r in main)


def test_a_primed_swarm_shares_what_a_cold_one_reads_again(swept: dict[str, list[StoredCell]]) -> None:
    assert {c.cell.variant for c in swept["swarm"]} == {"single", "cold", "primed", "evicting"}
    single = figures(swept["swarm"], "single").swarm
    assert single is not None
    assert single.cached_share is not None
    assert single.cached_share > 0.5


def test_an_open_loop_says_what_it_asked_for_and_what_it_got(swept: dict[str, list[StoredCell]]) -> None:
    found = figures(swept["open"]).open
    assert found is not None
    assert found.asked_rps == 2
    assert found.scheduled_rps is not None
    assert found.scheduled_rps == pytest.approx(2, rel=0.25)
    assert found.queue_wait_ms.n == 10


def test_an_overload_has_a_verdict_at_a_measured_capacity(swept: dict[str, list[StoredCell]]) -> None:
    kinds = {c.cell.kind: c for c in swept["overload"]}
    assert set(kinds) == {"closed", "overload"}
    past = cell_figures(kinds["overload"].cell, kinds["overload"].requests)
    assert (kinds["overload"].cell.rate_rps or 0) > 0
    assert past.overload is not None
    assert past.overload.verdict in {"queues", "copes"}


def test_sessions_grow_by_the_models_own_answers(swept: dict[str, list[StoredCell]]) -> None:
    (found,) = swept["sessions"]
    by_track: dict[int, list[int]] = {}
    for r in sorted(found.requests, key=lambda r: r.turn):
        by_track.setdefault(r.track or 0, []).append(r.prompt_tok or 0)
    for prompts in by_track.values():
        assert len(prompts) == 3
        assert all(later - earlier >= 48 + 12 for earlier, later in pairwise(prompts))


def test_replay_sends_all_turns(swept: dict[str, list[StoredCell]]) -> None:
    assert len(swept["replay"][0].requests) == 3
    assert [r.prompt_tok for r in sorted(swept["trace"][0].requests, key=lambda r: r.scheduled_ns)] == [90, 120, 100]


def test_mixed_lanes_are_told_apart_and_alone(swept: dict[str, list[StoredCell]]) -> None:
    by_variant = {c.cell.variant: {r.lane for r in c.requests} for c in swept["mixed"]}
    assert by_variant == {"alone-person": {"person"}, "alone-batch": {"batch"}, "together": {"person", "batch"}}
