"""The road against fakes: what is done, in which order, what is kept, and what is left behind (nothing)."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.deploy.runtime import LABEL_PROFILE, LABEL_RUN, ServerSpec
from orchestrator.errors import Interrupted, LockHeld, RefusedError, ServerDied, StoreError, TargetError
from orchestrator.fleet.facts.model import Docker
from orchestrator.gating.suite import load_gates, load_suite
from orchestrator.pipeline.campaign import Turns, exit_code
from orchestrator.pipeline.events import Cancel, Event, GateBegan, Notice, StageBegan, StageMoved
from orchestrator.pipeline.preparing import facts_of, warn_of_hosts
from orchestrator.pipeline.road import Options
from orchestrator.pipeline.run import travel
from orchestrator.pipeline.stoppable import StoppableTarget
from orchestrator.profile.model import GeneratedKey, Serve
from tests.unit.gate_fakes import FakeTarget, Truth
from tests.unit.road_fakes import GIB, IMAGE, World, profile, stored

STAGES = ["preflight", "pull", "start", "ready", "effective", "gates", "sweeps", "collect"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def assert_nothing_left(world: World) -> None:
    assert [s for r in world.runtimes.values() for s in r.find()] == []
    assert world.locked == []
    assert all(r.is_closed for name, r in world.runtimes.items() if name in world.hosts)


def test_the_whole_road_ends_passed_with_nothing_left(world: World) -> None:
    road = world.go()

    assert road.error is None
    assert world.stages == STAGES
    run = stored(world).run
    assert (run.status, run.gates["prefix_cache"], run.image_digest) == ("passed", "pass", "sha256:aaaa")
    assert [s["status"] for s in run.stages] == ["passed", "skipped", *["passed"] * 6]
    assert "--gpu-memory-utilization" in run.command[0]
    assert_nothing_left(world)


def test_facts_that_decide_nothing_before_the_start_are_in_the_record_all_the_same(world: World) -> None:
    world.go()

    (host,) = stored(world).run.hosts
    assert host["before"]["watchdogs"] == ["earlyoom"]
    assert host["before"]["home"] == "/home/me"
    assert any(isinstance(e, Notice) and "earlyoom" in e.text for e in world.events)


def test_hosts_and_engine_are_sampled_beside_gates_and_sweeps(world: World) -> None:
    world.truth = Truth(counters="both")
    road = world.go()

    lines = [json.loads(line) for line in (road.writer.directory / "telemetry.jsonl").read_text().splitlines()]
    assert {line["memory"]["available_bytes"] for line in lines if "memory" in line} == {100 * GIB}
    assert any("cache_hits_tok" in line["engine"] for line in lines if "engine" in line)
    assert all(line["at"].endswith("Z") and line["where"] == "spark01" for line in lines)


def test_the_record_is_on_disk_before_the_first_stage(world: World) -> None:
    seen: list[str] = []

    def look(event: Event) -> None:
        if isinstance(event, StageBegan) and event.stage == "preflight":
            seen.append(stored(world).run.status)

    world.on_event = look
    world.go()

    assert seen == ["running"]


def test_a_failed_gate_stops_before_the_sweep(world: World) -> None:
    world.truth = Truth(wrong="alone")

    road = world.go()

    assert isinstance(road.error, RefusedError)
    assert "coherence" in road.error.message
    assert world.cells_run == []
    assert stored(world).run.status == "gate_failed"
    assert_nothing_left(world)


@pytest.mark.parametrize(
    ("going_on", "is_swept", "hint"),
    [
        (Options().going_on, True, "`--ungated` sweeps all the same and marks every figure"),
        ("without `--gates` it is swept", True, "without `--gates` it is swept"),
        (Options().going_on, False, None),
    ],
)
def test_how_to_go_on_is_said_where_there_is_a_way(
    world: World, going_on: str | None, is_swept: bool, hint: str | None
) -> None:
    world.truth, world.options = Truth(wrong="alone"), Options(going_on=going_on)
    world.workloads = world.workloads if is_swept else ()

    road = world.go()

    assert isinstance(road.error, RefusedError)
    assert road.error.hint == hint


def test_an_ungated_sweep_says_so_on_every_cell(world: World) -> None:
    world.truth, world.options = Truth(wrong="alone"), Options(ungated=True)

    road = world.go()

    assert road.error is None
    assert stored(world).run.is_ungated is True
    assert [c.cell.is_ungated for c in stored(world).cells()] == [True, True]


def test_a_gate_that_may_fail_does_not_stop(world: World) -> None:
    world.profile = profile(serve=Serve(max_model_len=32768, max_num_seqs=8, tool_call_parser="hermes"))
    world.truth = Truth(tools="no call")

    road = world.go()

    assert stored(world).run.gates["tool_call"] == "fail"
    assert road.error is None


def test_an_unstable_gate_goes_on(world: World) -> None:
    world.truth = Truth(flips="alternate", jitter=0.3)

    road = world.go()

    assert road.error is None
    assert stored(world).run.gates["determinism"] == "unstable"
    assert len(world.cells_run) == 2


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_stop_at_any_stage_leaves_nothing_and_resumes(world: World, stage: str) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, StageBegan) and event.stage == stage:
            world.cancel.set()

    world.on_event = stop
    first = world.go()

    assert isinstance(first.error, Interrupted)
    assert stored(world).run.status == "interrupted"
    assert_nothing_left(world)

    world.on_event, world.cancel = lambda _: None, type(world.cancel)()
    second = world.go(first.run)

    assert second.error is None
    assert (second.run.attempts, second.run.status, second.run.id) == (2, "passed", first.run.id)
    assert len(stored(world).cells()) == 2


def test_resume_keeps_verdicts_and_cells_that_depend_on_nothing_changed(world: World) -> None:
    first = world.go()
    asked = len(world.targets[-1].bodies)
    world.cells_run.clear()

    second = world.go(first.run)

    assert world.cells_run == []
    assert len(world.targets[-1].bodies) < asked
    assert {s["name"]: s["status"] for s in second.run.stages}["gates"] == "skipped"
    assert {s["name"]: s["status"] for s in second.run.stages}["sweeps"] == "skipped"


def test_resume_measures_again_under_another_image(world: World) -> None:
    first = world.go()
    world.cells_run.clear()
    world.runtime.images[IMAGE] = "sha256:bbbb"

    world.go(first.run)

    assert len(world.cells_run) == 2


def test_resume_goes_on_with_the_cell_that_was_under_way(world: World) -> None:
    def stop_at_second(cell: Any) -> None:
        if cell.concurrency == 2:
            world.cancel.set()

    world.on_cell = stop_at_second
    first = world.go()
    world.cells_run.clear()
    world.on_cell, world.cancel = lambda _: None, type(world.cancel)()

    world.go(first.run)

    assert world.cells_run == ["closed-p128-o8-c2"]


def test_the_same_digest_that_runs_already_is_left_up(world: World) -> None:
    world.options = Options(keep=True, deploy_only=True)
    world.go()
    world.options = Options(deploy_only=True)

    again = world.go()

    assert [verb for verb, _ in world.runtime.calls].count("start") == 1
    assert len(world.runtime.find()) == 1
    assert {s["name"]: s["status"] for s in again.run.stages}["start"] == "skipped"


def test_a_server_with_a_generated_key_is_never_reused(world: World) -> None:
    world.profile = profile(serve=Serve(max_model_len=32768, max_num_seqs=8, api_key=GeneratedKey()))
    world.options = Options(keep=True, deploy_only=True)

    world.go()
    world.go()

    assert [verb for verb, _ in world.runtime.calls].count("start") == 2
    assert len(world.runtime.find()) == 1


def test_another_digest_replaces_our_server_and_keeps_its_log(world: World) -> None:
    world.options = Options(keep=True, deploy_only=True)
    world.go()
    world.runtime.write(world.runtime.find()[0].id, "the old log")
    world.profile = profile(serve=Serve(max_model_len=16384, max_num_seqs=4))

    road = world.go()

    assert len(world.runtime.find()) == 1
    assert any(isinstance(e, Notice) and "replaces gate0-fake" in e.text for e in world.events)
    assert "the old log" in (road.writer.directory / "replaced-gate0-fake.log").read_text()


def test_what_is_not_ours_is_never_touched(world: World) -> None:
    world.runtime.add_foreign("somebody")
    other = ServerSpec(name="gate0-other", image=IMAGE, labels={LABEL_RUN: "other-run", LABEL_PROFILE: "other"})
    world.runtime.start(other)

    world.go()

    assert [s.name for s in world.runtime.find()] == ["gate0-other"]
    assert [s.name for s in world.runtime.foreign()] == ["somebody"]


def test_a_server_that_dies_is_reported_with_its_log_kept(world: World) -> None:
    world.runtime.on_start("gate0-fake", log=("loading", "torch.OutOfMemoryError: CUDA out of memory."), dies_with=1)

    road = world.go()

    assert isinstance(road.error, ServerDied)
    assert road.error.cause == "out_of_memory"
    assert "out of memory" in (road.writer.directory / "container-0.log").read_text()
    assert stored(world).run.error["log_tail"][-1].endswith("out of memory.")
    assert_nothing_left(world)


def test_a_held_lock_touches_nothing(world: World) -> None:
    world.lock_error = LockHeld("spark01", "held by somebody")

    road = world.go()

    assert exit_code([road.error]) == 3
    assert world.runtime.calls == []
    assert stored(world).run.status == "failed"


def test_one_dead_rank_of_two_takes_the_other_down_and_both_logs_are_kept(world: World) -> None:
    world.hosts = ("spark01", "spark02")
    world.profile = profile(nodes=2, serve=Serve(max_model_len=32768, max_num_seqs=8, tensor_parallel=2))
    world.truth = Truth(breaks=0)  # rank 0 waits for its peer and answers nobody
    world.runtimes["spark02"].on_start("gate0-fake-1", log=("NCCL error: no route to host",), dies_with=1)

    road = world.go()

    assert isinstance(road.error, ServerDied)
    assert "spark02" in road.error.message
    assert "no route to host" in (road.writer.directory / "container-1.log").read_text()
    assert (road.writer.directory / "container-0.log").is_file()
    assert_nothing_left(world)


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_host_is_named_in_front_where_several_form_one_engine(world: World, nodes: int) -> None:
    world.profile = profile(nodes=nodes, serve=Serve(max_model_len=32768, max_num_seqs=8, tensor_parallel=nodes))
    world.hosts = ("spark01", "spark02")[:nodes]
    world.options = Options(deploy_only=True, keep=True)
    road = world.go()

    said = [e.text for e in world.events if isinstance(e, Notice | StageMoved)] + road.endings
    words = [text for text in said if not text.startswith(("GB10-", "SERVE-"))]  # of the profile, whatever the host
    named = [text for text in words if text.startswith(("spark01: ", "spark02: "))]
    assert words
    assert named == (words if nodes == 2 else [])


def test_hosts_with_different_images_are_refused(world: World) -> None:
    world.hosts = ("spark01", "spark02")
    world.profile = profile(nodes=2, serve=Serve(max_model_len=32768, max_num_seqs=8, tensor_parallel=2))
    world.runtimes["spark02"].images[IMAGE] = "sha256:cccc"

    road = world.go()

    assert road.error is not None
    assert "different images" in road.error.message
    assert_nothing_left(world)


def test_the_return_of_memory_is_measured_after_the_stop(world: World) -> None:
    world.memory = [40 * GIB, 60 * GIB, 90 * GIB, 100 * GIB]

    world.go()

    back = stored(world).run.memory_returned["spark01"]
    assert (back["returned_bytes"], back["is_back"]) == (60 * GIB, True)


def test_what_goes_wrong_while_collecting_does_not_hide_the_first_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.truth = Truth(wrong="alone")
    original = type(world.runtime).log_tail

    def broken(self: Any, server_id: str, lines: int) -> tuple[str, ...]:
        if lines == 0 and world.stages[-1] == "collect":
            raise ServerDied("the log is gone", exit_code=None, log_tail=(), cause=None)
        return original(self, server_id, lines)

    monkeypatch.setattr(type(world.runtime), "log_tail", broken)
    road = world.go()

    assert isinstance(road.error, RefusedError)
    assert any(isinstance(e, Notice) and "saving the log failed" in e.text for e in world.events)
    assert_nothing_left(world)


def test_a_fault_of_gate0_itself_is_recorded_as_failed_and_cleans_up(world: World) -> None:
    def bug(_: Any) -> None:
        raise ZeroDivisionError("a bug")

    world.on_cell = bug
    with pytest.raises(ZeroDivisionError):
        world.go()

    assert stored(world).run.status == "failed"
    assert_nothing_left(world)


@pytest.mark.parametrize("stage", STAGES[2:-1])
def test_a_disk_that_fills_up_at_any_stage_stops_the_server(
    world: World, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    road = world.road()

    def fill(event: Event) -> None:
        if isinstance(event, StageBegan) and event.stage == stage:
            for method in ("_write", "append_line"):
                monkeypatch.setattr(road.writer, method, refuse)

    def refuse(*_: Any) -> None:
        raise StoreError("no space left to write results", hint="--resume")

    world.on_event = fill
    travel(road)

    assert isinstance(road.error, StoreError)
    assert_nothing_left(world)


def test_an_observer_that_breaks_does_not_keep_the_server_up(world: World) -> None:
    def broken(event: Event) -> None:
        if isinstance(event, StageBegan) and event.stage == "collect":
            raise OSError(5, "Input/output error")

    world.on_event = broken
    with pytest.raises(OSError, match="Input/output"):
        world.go()

    assert_nothing_left(world)


def test_a_server_that_dies_under_the_load_is_diagnosed_and_not_measured_on(world: World) -> None:
    def die(cell: Any) -> None:
        world.cell_failure = "connect"
        words = ["torch.OutOfMemoryError: CUDA out of memory."]
        world.runtime.die(world.runtime.find()[0].id, 1, last_words=words)

    world.on_cell = die
    road = world.go()

    assert isinstance(road.error, ServerDied)
    assert (road.error.cause, exit_code([road.error])) == ("out_of_memory", 3)
    assert len(world.cells_run) == 1
    assert_nothing_left(world)


def test_a_sweep_without_one_answer_is_not_passed(world: World) -> None:
    world.cell_failure = "http_400"

    road = world.go()

    assert isinstance(road.error, TargetError)
    assert "http_400 (server says http_400)" in road.error.message
    assert "the server's log is in the record" in (road.error.hint or "")
    assert stored(world).run.status == "failed"


def test_of_a_server_that_someone_else_started_no_log_is_promised(tmp_path: Path) -> None:
    attached = profile(engine="endpoint", image=None, attach="http://box:8000/v1")
    world = World(tmp_path, profile=attached, hosts=(), cell_failure="connect")

    road = world.go()

    assert isinstance(road.error, TargetError)
    assert "log" not in (road.error.hint or "")
    assert "is the server still up?" in (road.error.hint or "")


def test_a_server_that_dies_at_a_gate_is_a_death_and_not_a_verdict(world: World) -> None:
    def die(event: Event) -> None:
        if isinstance(event, GateBegan):
            world.targets[-1].truth = Truth(breaks=0)
            world.runtime.die(world.runtime.find()[0].id, 137, oom_killed=True)

    world.on_event = die
    road = world.go()

    assert isinstance(road.error, ServerDied)
    assert "at the gate coherence" in road.error.message
    assert stored(world).run.status == "failed"
    assert_nothing_left(world)


def test_invalid_cells_are_measured_again_on_resume(world: World) -> None:
    world.cell_failure = "http_400"
    first = world.go()
    world.cell_failure = None
    world.cells_run.clear()

    second = world.go(first.run)

    assert second.error is None
    assert len(world.cells_run) == 2
    assert all(c.cell.is_valid for c in stored(world).cells())


def test_a_failed_verdict_is_asked_again_on_resume(world: World) -> None:
    world.truth = Truth(wrong="alone")
    first = world.go()
    world.truth = Truth()

    second = world.go(first.run)

    assert isinstance(first.error, RefusedError)
    assert second.error is None
    assert second.run.gates["coherence"] == "pass"


def test_resume_under_another_suite_is_gated_and_named_anew(world: World) -> None:
    world.suite = load_suite("gate0", gates=load_gates())
    first = world.go()
    world.suite = None

    second = world.go(first.run)

    assert (first.run.suite, second.run.suite) == ("gate0", "quick")
    assert {g.name for g in stored(world).gates()} == set(second.run.gates)
    assert (second.writer.directory / "superseded/attempt-2/gates/context.json").is_file()


def test_one_record_never_mixes_two_images(world: World) -> None:
    first = world.go()
    world.runtime.images[IMAGE] = "sha256:bbbb"

    def stop(_: Any) -> None:
        world.cancel.set()

    world.on_cell = stop
    world.go(first.run)

    assert stored(world).run.image_digest == "sha256:bbbb"
    assert stored(world).cells() == ()
    assert len(list(first.writer.directory.glob("superseded/attempt-2/sweeps/quick/*.json"))) == 2


def test_a_resume_that_finds_the_lock_held_leaves_the_living_runs_record_alone(world: World) -> None:
    first = world.go()
    path = first.writer.directory / "run.json"
    before = path.read_bytes()
    world.lock_error = LockHeld("spark01", "held by the run itself")

    second = world.go(first.run)

    assert isinstance(second.error, LockHeld)
    assert path.read_bytes() == before


def test_a_log_of_an_earlier_attempt_is_kept_beside_the_new_one(world: World) -> None:
    world.runtime.on_start("gate0-fake", log=("the first death",), dies_with=1)
    first = world.go()
    world.runtime.on_start("gate0-fake", log=("the second life",))

    second = world.go(first.run)

    assert "second life" in (second.writer.directory / "container-0.log").read_text()
    assert "first death" in (second.writer.directory / "superseded/attempt-1/container-0.log").read_text()


def test_the_same_declaration_is_found_running_whatever_is_free_now(world: World) -> None:
    image = "lmsysorg/sglang:v0.5.23"
    world.runtime.images[image] = "sha256:dddd"
    serve = Serve(max_model_len=32768, max_num_seqs=8, memory_gib=85.0)
    world.profile = profile(engine="sglang", image=image, serve=serve)
    world.options = Options(keep=True, deploy_only=True)
    world.go()
    world.available_bytes = 25 * GIB  # the server has taken what it wanted

    again = world.go()

    assert again.error is None
    assert [verb for verb, _ in world.runtime.calls].count("start") == 1


def test_ctrl_c_does_not_wait_for_a_gates_answer() -> None:
    cancel, asked, answered = Cancel(), threading.Event(), threading.Event()

    class Slow(FakeTarget):
        def chat(self, *_: Any, **__: Any) -> Any:
            asked.set()
            answered.wait(30)
            raise AssertionError("the answer came first")

    stopping = threading.Thread(target=lambda: (asked.wait(10), cancel.set()))
    stopping.start()
    with pytest.raises(Interrupted):
        StoppableTarget(Slow(), cancel).chat({"messages": []})
    stopping.join()
    answered.set()


def test_hosts_are_swept_one_at_a_time_unless_asked_together() -> None:
    alone, together = Turns(together=False), Turns(together=True)

    with alone():
        second = threading.Thread(target=lambda: alone().__enter__(), daemon=True)
        second.start()
        second.join(0.05)
        assert second.is_alive()
    second.join(5)
    assert not second.is_alive()
    with together(), together():
        pass


def test_answers_that_break_under_load_make_the_cells_invalid(world: World) -> None:
    def break_after(cell: Any) -> None:
        if cell.concurrency == 2:
            for target in world.targets:
                target.truth = Truth(wrong="alone")

    world.on_cell = break_after

    road = world.go()

    assert isinstance(road.error, RefusedError)
    assert "after the sweep" in road.error.message
    guards = [[g["name"] for g in c.cell.guards] for c in stored(world).cells()]
    assert guards == [["coherence_after_sweep"], ["coherence_after_sweep"]]

    world.on_cell = lambda _: None
    world.cells_run.clear()
    again = world.go(road.run)

    assert again.error is None
    assert len(world.cells_run) == 2
    assert again.run.gates["coherence_after_sweep"] == "pass"


def test_the_exit_code_is_the_heaviest(world: World) -> None:
    refused, died = RefusedError("x"), ServerDied("y", exit_code=1, log_tail=(), cause=None)

    assert exit_code([None, refused]) == 1
    assert exit_code([refused, died]) == 3
    assert exit_code([refused, Interrupted("z")]) == 130
    assert exit_code([None]) == 0


@pytest.mark.parametrize(("runtime", "count"), [("docker", 1), ("process", 0)])
def test_a_host_without_docker_is_no_concern_of_a_plain_process(world: World, runtime: str, count: int) -> None:
    world.profile = profile(runtime=runtime)
    world.options = Options(deploy_only=True, keep=True)
    road = world.go()
    for rank in road.ranks:
        rank.facts = replace(facts_of(rank), docker=Docker(problem="not_running"))
    world.events.clear()

    warn_of_hosts(road)

    notes = [e.text for e in world.events if isinstance(e, Notice)]
    assert sum(text.startswith("docker: ") for text in notes) == count
