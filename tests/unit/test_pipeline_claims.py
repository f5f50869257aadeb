"""What the load goes by: metric names, capacity, drafting, priorities, and the fields that a server takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.attached import Attached, attached_profile
from orchestrator.engines.engine import MetricNames
from orchestrator.engines.registry import load_engines
from orchestrator.pipeline.claims import accepts_priority, hit_unit_tok, metric_names, stream_fields
from orchestrator.pipeline.road import Options
from orchestrator.profile.model import Serve, Speculative
from orchestrator.records.record import GateRecord
from orchestrator.sweep.outcome import Lap
from orchestrator.sweep.spec import CellProgress, LoadTarget
from orchestrator.sweep.workload import Cell
from orchestrator.values import Json
from orchestrator.wire.capacity import Capacity, read_capacity
from orchestrator.wire.probe import Capabilities, Support
from orchestrator.wire.prometheus import parse_metrics, sum_by_name
from tests.unit.gate_fakes import FakeTarget, Truth
from tests.unit.road_fakes import World, profile

WIRE = Path(__file__).parents[1] / "cases" / "wire"
ENGINES = load_engines()
DRAFTING = {"spec_drafts", "spec_draft_tok", "spec_accepted_tok"}


def exposed(engine: str) -> Mapping[str, float]:
    return sum_by_name(parse_metrics((WIRE / engine / "metrics.txt").read_text()))


@pytest.mark.parametrize(
    ("engine", "capture", "silent"), [("vllm", "vllm-0.32.0", DRAFTING), ("llamacpp", "llamacpp-b10434", set())]
)
def test_every_name_we_have_is_served_by_the_real_engine(engine: str, capture: str, silent: set[str]) -> None:
    served = exposed(capture)
    names = metric_names(ENGINES[engine].traits.metrics, served)

    assert {ours for ours, theirs in names.items() if theirs not in served} == silent


def test_an_older_versions_name_is_taken_where_it_is_served() -> None:
    names = MetricNames(kv_usage=("new", "old"), running=("here",))

    assert metric_names(names, {"old"}) == {"kv_usage": "old", "running": "here"}
    assert metric_names(names, {"old", "new"}) == {"kv_usage": "new", "running": "here"}
    assert metric_names(names) == {"kv_usage": "new", "running": "here"}


def test_llama_servers_prompt_tokens_are_those_it_computed() -> None:
    found = metric_names(ENGINES["llamacpp"].traits.metrics)

    assert found["prompt_computed_tok"] == "llamacpp:prompt_tokens_total"
    assert "prompt_tok" not in found


class Place(FakeTarget):
    """A server that answers GET paths and labels from what a test wrote down."""

    def __init__(
        self, *, json_of: Mapping[str, Json], labels: Sequence[Mapping[str, str]], served: Mapping[str, float]
    ):
        super().__init__()
        self.json_of, self.labels, self.served = json_of, labels, served

    def get_json(self, path: str, *, timeout_s: float = 10.0) -> Json:
        return self.json_of.get(path)

    def metric_labels(self, name: str) -> tuple[Mapping[str, str], ...]:
        return tuple(self.labels) if name == "vllm:cache_config_info" else ()

    def metrics(self) -> Mapping[str, float] | None:
        return self.served or None


def place(
    json_of: Mapping[str, Json] | None = None,
    labels: Sequence[Mapping[str, str]] = (),
    served: Mapping[str, float] | None = None,
) -> Place:
    return Place(json_of=json_of or {}, labels=labels, served=served or {})


def captured_labels() -> tuple[Mapping[str, str], ...]:
    samples = parse_metrics((WIRE / "vllm-0.32.0" / "metrics.txt").read_text())
    return tuple(s.labels for s in samples if s.name == "vllm:cache_config_info")


PROPS = json.loads((WIRE / "llamacpp-b10434" / "props.json").read_text())
BLOCKS = {"block_size": "16", "num_gpu_blocks": "100"}
SERVER_INFO = {"max_total_num_tokens": 5000, "page_size": 1}


@pytest.mark.parametrize(
    ("engine", "target", "expected"),
    [
        (
            "vllm",
            place(labels=captured_labels(), served=exposed("vllm-0.32.0")),
            Capacity(kv_tok=93184, unit_tok=128, is_speculative=False),
        ),
        (
            "vllm",
            place(labels=[BLOCKS, BLOCKS], served={"vllm:spec_decode_num_drafts_total": 0.0}),
            Capacity(kv_tok=3200, unit_tok=16, is_speculative=True),
        ),
        (
            "vllm",
            place(labels=[{**BLOCKS, "effective_attention_block_size": "528", "kv_cache_size_tokens": "None"}]),
            Capacity(kv_tok=1600, unit_tok=528, is_speculative=None),
        ),
        ("vllm", place(), Capacity()),
        ("llamacpp", place({"/props": PROPS}), Capacity(kv_tok=8192)),
        (
            "llamacpp",
            place({"/props": PROPS, "/slots": [{"id": 0, "speculative": False}]}),
            Capacity(kv_tok=8192, is_speculative=False),
        ),
        (
            "llamacpp",
            place({"/props": PROPS, "/slots": [{"id": 0, "speculative": True}, {"id": 1}]}),
            Capacity(kv_tok=8192, is_speculative=True),
        ),
        ("sglang", place({"/server_info": SERVER_INFO}), Capacity(kv_tok=5000, unit_tok=1)),
        (
            "sglang",
            place({"/server_info": {**SERVER_INFO, "speculative_algorithm": "EAGLE3"}}),
            Capacity(kv_tok=5000, unit_tok=1, is_speculative=True),
        ),
        (
            "sglang",
            place({"/server_info": {**SERVER_INFO, "speculative_algorithm": None}}),
            Capacity(kv_tok=5000, unit_tok=1, is_speculative=False),
        ),
        ("unknown", place({"/props": PROPS}), Capacity()),
    ],
)
def test_capacity_is_read_where_each_engine_tells_it(engine: str, target: Place, expected: Capacity) -> None:
    assert read_capacity(target, engine) == expected


@pytest.mark.parametrize(
    ("engine", "argv", "expected"),
    [
        ("vllm", ("serve", "m", "--scheduling-policy", "priority"), True),
        ("vllm", ("serve", "m", "--scheduling-policy=priority", "--seed", "1"), True),
        ("vllm", ("serve", "m", "--scheduling-policy", "fcfs"), False),
        ("vllm", (), False),
        ("sglang", ("--enable-priority-scheduling",), True),
        ("sglang", ("--priority-scheduling-preemption-threshold", "5"), False),
        ("llamacpp", ("--prio", "2"), False),
    ],
)
def test_a_priority_is_sent_only_to_a_server_started_for_it(engine: str, argv: tuple[str, ...], expected: bool) -> None:
    assert accepts_priority(argv, ENGINES[engine].traits) is expected


IDS = {"return_token_ids": True}
RUNNING = {"stream_options": {"continuous_usage_stats": True}}


@pytest.mark.parametrize(
    ("ids", "running", "expected"),
    [
        (Support.WORKS, Support.WORKS, IDS),
        (Support.ACCEPTED, Support.WORKS, {**IDS, **RUNNING}),
        (Support.REFUSED, Support.WORKS, RUNNING),
        (Support.REFUSED, Support.ACCEPTED, {}),
        (Support.UNKNOWN, Support.REFUSED, {}),
    ],
)
def test_tokens_are_counted_by_what_was_seen_to_work(ids: Support, running: Support, expected: dict[str, Json]) -> None:
    found = Capabilities(engine="x", support={"return_token_ids": ids, "continuous_usage_stats": running})

    assert stream_fields(IDS, found) == expected


def test_the_unit_of_the_hits_is_what_a_passed_gate_saw() -> None:
    gate = GateRecord(name="prefix_cache", status="pass", summary="", measured={"unit_tok": 528})

    assert hit_unit_tok([gate]) == 528
    assert hit_unit_tok([replace(gate, status="fail")]) is None
    assert hit_unit_tok([replace(gate, name="determinism")]) is None


@dataclass
class Seeing(World):
    """A world that remembers what the load was aimed at."""

    loads: list[LoadTarget] = field(default_factory=list)

    def _run_cell(
        self, load: LoadTarget, cell: Cell, repeat: int, show: Callable[[CellProgress], None], stop: Callable[[], bool]
    ) -> Lap:
        self.loads.append(load)
        return super()._run_cell(load, cell, repeat, show, stop)


def attached(**changes: Any) -> Any:
    return attached_profile(Attached(url="http://fake:8000", model="fake", **changes))


def test_the_load_knows_the_server_it_goes_to(tmp_path: Path) -> None:
    world = Seeing(tmp_path, truth=Truth(block_label=128), options=Options(ungated=True))
    world.profile = profile(
        serve=replace(profile().serve, speculative=Speculative(method="mtp", num_tokens=1)),
        flags={"scheduling-policy": "priority"},
    )
    world.go()

    load = world.loads[0]
    assert (load.engine, load.cache_unit_tok, load.is_speculative, load.accepts_priority) == ("vllm", 128, True, True)
    assert load.metrics["spec_accepted_tok"] == "vllm:spec_decode_num_accepted_tokens_total"
    assert load.metrics["running"] == "vllm:num_requests_running"


def test_an_attached_server_is_taken_for_the_engine_that_it_is(tmp_path: Path) -> None:
    world = Seeing(tmp_path, profile=attached(), hosts=(), options=Options(is_gated=False))
    world.go()

    load = world.loads[0]
    assert (load.engine, load.accepts_priority, load.cache_unit_tok) == ("vllm", False, 16)
    assert load.metrics["queue_sum_s"] == "vllm:request_queue_time_seconds_sum"


def test_gauges_that_come_late_are_no_proof_of_others_traffic(tmp_path: Path) -> None:
    world = Seeing(tmp_path, options=Options(is_gated=False))
    world.profile = profile(engine="sglang", image="lmsysorg/sglang:v0.5.23", serve=Serve(max_num_seqs=8))
    world.runtime.images["lmsysorg/sglang:v0.5.23"] = "sha256:bbbb"
    world.go()

    assert world.loads[0].metrics.keys().isdisjoint({"running", "waiting"})
    assert world.targets[-1].claims.metrics["running"] == "sglang:num_running_reqs"


REFUSED = ("cache_salt", "return_token_ids", "logprobs")


@pytest.mark.parametrize("is_attached", [False, True])
def test_a_field_that_was_refused_once_is_never_sent_again(is_attached: bool, tmp_path: Path) -> None:
    world = Seeing(tmp_path, truth=Truth(refuses_fields=REFUSED), options=Options(ungated=True))
    if is_attached:
        world.profile, world.hosts = attached(), ()
    road = world.go()

    sent = [name for target in world.targets for body in target.bodies for name in body if name in REFUSED]
    assert sorted(sent) == sorted(REFUSED), "once each, by the probe"
    assert road.run.capabilities["support"]["cache_salt"] == "refused"  # type: ignore[index,call-overload]
    assert world.loads[0].stream_fields == {}


def test_every_connection_to_the_server_is_closed_at_the_end(tmp_path: Path) -> None:
    world = Seeing(tmp_path)
    road = world.go()

    assert road.error is None
    assert len(world.targets) > 1
    assert all(target.is_closed for target in world.targets)
