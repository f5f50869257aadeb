"""The stage `effective` on the road: what is collected, compared, recorded, said, and handed to the gate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.deploy.own_flags import FORMAT, Subject
from orchestrator.deploy.runtime import LABEL_PORT, LABEL_RUN, IsCancelled, Runtime, Server, ServerSpec
from orchestrator.engines.effective.lines import QUOTE_CHARS
from orchestrator.engines.flags.document import encode
from orchestrator.engines.flags.loading import load
from orchestrator.engines.flags.model import Catalogue
from orchestrator.errors import RefusedError, RuntimeNotInstalled
from orchestrator.pipeline.attached_host import serving_on
from orchestrator.pipeline.claims import differing
from orchestrator.pipeline.events import Notice
from orchestrator.pipeline.reading_back import collect
from orchestrator.pipeline.road import Box, Job, Options
from orchestrator.pipeline.start_log import LOG_LINES, mask
from orchestrator.profile.model import RuntimeKind, Serve
from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Target
from tests.contract.fakes import FakeHost
from tests.unit.gate_fakes import FakeTarget, Truth
from tests.unit.road_fakes import World, profile, stored

ECHO = (
    "(APIServer pid=1) INFO 11-30 06:00:00 [utils.py:233] non-default args: {'model_tag': 'some/model', "
    "'served_model_name': ['fake'], 'max_model_len': 32768, 'max_num_seqs': %s, 'gpu_memory_utilization': 0.5, "
    "'enable_prefix_caching': True, 'enable_prompt_tokens_details': True, 'enable_per_request_metrics': True}"
)


class Telling(FakeTarget):
    """A server that answers more paths than `/v1/models`, and keeps words in the labels of a metric."""

    documents: Mapping[str, Json] = {"/version": {"version": "0.31.0"}}
    asked: list[str]

    def get_json(self, path: str, *, timeout_s: float = 10.0) -> Json:
        self.asked = [*getattr(self, "asked", []), path]
        return self.documents.get(path) or super().get_json(path, timeout_s=timeout_s)

    def metrics(self) -> Mapping[str, float] | None:
        return {**(super().metrics() or {}), "vllm:cache_config_info": 1.0}

    def metric_labels(self, name: str) -> tuple[Mapping[str, str], ...]:
        return ({"enable_prefix_caching": "True"},) if name == "vllm:cache_config_info" else ()


@dataclass
class Reading(World):
    """A world whose server tells of itself, and may have a host to be looked at."""

    evidence: Box | None = None
    opened: list[str] = field(default_factory=list)

    def job(self) -> Job:
        return replace(super().job(), evidence=self.evidence)

    def _target(self, url: str, model: str, claims: Claims, key: object) -> Target:
        target = Telling(self.truth, claims)
        self.targets.append(target)
        return target


@pytest.fixture
def world(tmp_path: Path) -> Reading:
    return Reading(tmp_path)


def rows(world: World) -> dict[str, str]:
    return {c["path"]: c["agreement"] for c in stored(world).run.effective["compared"]}


def warnings(world: World) -> list[str]:
    return [e.text for e in world.events if isinstance(e, Notice) and e.is_warning]


def test_what_the_server_tells_is_recorded_compared_and_passes(world: Reading) -> None:
    world.runtime.on_start("gate0-fake", log=(ECHO % 8,))

    road = world.go()

    assert road.error is None
    run = stored(world).run
    found = rows(world)
    assert {p: found[p] for p in ("serve.max_model_len", "serve.max_num_seqs", "serve.prefix_caching")} == {
        "serve.max_model_len": "same",
        "serve.max_num_seqs": "same",
        "serve.prefix_caching": "same",
    }
    assert run.effective["catalogue"] == {"engine": "vllm", "version": "0.31.0", "note": None}
    assert run.effective["told"] == {"log_lines": 1, "documents": ["/v1/models", "/version"], "metrics": 3}
    assert run.gates["effective"] == "pass"
    (gate,) = [g for g in stored(world).gates() if g.name == "effective"]
    assert gate.measured["same"] == sum(a == "same" for a in found.values())
    assert [e["path"] for e in gate.evidence if "path" in e]


def test_a_contradicted_setting_is_said_at_once_and_fails_before_anything_is_measured(world: Reading) -> None:
    world.runtime.on_start("gate0-fake", log=(ECHO % 4,))

    road = world.go()

    assert isinstance(road.error, RefusedError)
    assert road.error.message.startswith("spark01: effective did not pass: serve.max_num_seqs: declared 8, runs 4")
    assert world.cells_run == []
    (said,) = [w for w in warnings(world) if w.startswith("serve.max_num_seqs")]
    assert said.startswith("serve.max_num_seqs: declared 8, the server runs 4 (")
    assert rows(world)["serve.max_num_seqs"] == "contradicted"


def test_a_deploy_reads_back_too(world: Reading) -> None:
    world.runtime.on_start("gate0-fake", log=(ECHO % 4,))
    world.options = Options(deploy_only=True)

    road = world.go()

    assert road.error is None
    assert rows(world)["serve.max_num_seqs"] == "contradicted"
    assert any(w.startswith("serve.max_num_seqs") for w in warnings(world))


def test_verdicts_and_cells_stand_as_long_as_the_same_settings_differ(world: Reading) -> None:
    world.options = Options(ungated=True)
    world.runtime.on_start("gate0-fake", log=(ECHO % 4,))
    first = world.go()
    world.cells_run.clear()

    world.go(first.run)
    kept = list(world.cells_run)
    world.runtime.on_start("gate0-fake", log=(ECHO % 2,))
    world.go(first.run)

    assert kept == []
    assert len(world.cells_run) == 2


def test_a_share_of_what_was_free_then_is_not_held_against_a_server_that_was_up(world: Reading) -> None:
    world.profile = profile(serve=Serve(max_model_len=32768, max_num_seqs=8, memory_gib=60.0))
    world.options = Options(keep=True, deploy_only=True)
    world.runtime.on_start("gate0-fake", log=((ECHO % 8).replace("0.5", "0.123"),))
    world.go()
    first = rows(world)["serve.memory_gib"]

    world.go()

    assert (first, rows(world)["serve.memory_gib"]) == ("contradicted", "unconfirmed")


def test_identity_counts_only_what_runs_as_something_else() -> None:
    compared: list[Json] = [
        {"path": "a", "agreement": "same", "running": 1},
        {"path": "b", "agreement": "changed", "running": 2},
        {"path": "c", "agreement": "unconfirmed", "running": None},
        {"path": "d", "agreement": "ignored", "running": None},
    ]

    assert differing({"compared": compared}) == [["b", 2], ["d", None]]
    assert differing({}) == []


@pytest.mark.parametrize(
    ("engine", "paths"),
    [
        ("vllm", {"/version", "/v1/models", "/server_info?config_format=json"}),
        ("sglang", {"/v1/models", "/server_info"}),
        ("llamacpp", {"/v1/models", "/props", "/slots"}),
        ("unknown", {"/v1/models", "/version", "/props", "/server_info"}),
    ],
)
def test_each_engine_is_asked_where_it_tells(engine: str, paths: set[str]) -> None:
    target = Telling()

    told = collect(target, engine, [f"line {i}" for i in range(LOG_LINES + 1)])

    assert set(target.asked) == paths
    assert "/v1/models" in told.documents
    assert told.labels == {"vllm:cache_config_info": ({"enable_prefix_caching": "True"},)}
    assert (len(told.log), told.log[0]) == (LOG_LINES, "line 0")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "non-default args: {'api_key': ['sk-1', 'sk-2'], 'port': 80}",
            "non-default args: {'api_key': ***, 'port': 80}",
        ),
        ("args: --api-key sk-1 --port 80", "args: --api-key *** --port 80"),
        ("Namespace(api_key='sk-1', hf_token=abc)", "Namespace(api_key=***, hf_token=***)"),
        ('{"admin_api_key": "sk-1"}', '{"admin_api_key": ***}'),
        ("api_key=None, max_num_batched_tokens=8192", "api_key=None, max_num_batched_tokens=8192"),
        ("api_key=SecretStr('sk-1'), port=80", "api_key=***, port=80"),
        (
            "AWS_SECRET_ACCESS_KEY=abc HUGGING_FACE_HUB_TOKEN=abc",
            "AWS_SECRET_ACCESS_KEY=*** HUGGING_FACE_HUB_TOKEN=***",
        ),
        ("headers: Bearer abcdef123, hf_abcdefghijklmnopqrst", "headers: Bearer ***, ***"),
        ("tokens: 8192, secretary: no", "tokens: 8192, secretary: no"),
    ],
)
def test_credentials_in_others_logs_are_not_kept(line: str, shown: str) -> None:
    assert mask(line) == shown


def test_no_part_of_a_credential_is_recorded_where_a_quoted_line_is_cut(world: Reading) -> None:
    key = "a1b2c3d4-not-to-be-seen"
    head, tail = (ECHO % 4).split("'max_num_seqs'")
    filler = "-" * (QUOTE_CHARS - 6 - len(f"{head}'x': '', 'hf_token': '"))
    head += f"'x': '{filler}', 'hf_token': '"
    assert (head + key)[:QUOTE_CHARS].endswith(key[:6])
    world.runtime.on_start("gate0-fake", log=(f"{head}{key}', 'max_num_seqs'{tail}",))

    world.go()

    row = next(c for c in stored(world).run.effective["compared"] if c["path"] == "serve.max_num_seqs")
    assert "'hf_token': ***" in row["quote"]
    assert key[:4] not in json.dumps(stored(world).run.effective)


def test_keys_that_hold_credentials_are_left_out_of_what_a_server_answers() -> None:
    target = Telling()
    target.documents = {
        "/version": {"version": "0.31.0", "extra": {"password": "p", "keep": [{"API_KEY": "k", "n": 1}]}}
    }

    told = collect(target, "vllm")

    assert told.documents["/version"] == {"version": "0.31.0", "extra": {"keep": [{"n": 1}]}}


def test_a_log_in_colours_is_read_as_any_other(world: Reading) -> None:
    head, fields = (ECHO % 8).split("INFO")
    world.runtime.on_start("gate0-fake", log=(f"\x1b[1;36m{head}\x1b[0;0mINFO{fields}\x1b[0m",))

    world.go()

    row = next(c for c in stored(world).run.effective["compared"] if c["path"] == "serve.max_num_seqs")
    assert (row["agreement"], row["quote"]) == ("same", ECHO % 8)


def server(name: str, *, ports: tuple[int, ...] = (), image: str = "x", **more: Any) -> Server:
    base = {"labels": {}, "is_running": True, "image_digest": None}
    return Server(id=name, name=name, image=image, ports=ports, **{**base, **more})


PUBLISHED = server("published", ports=(8000,))
LABELLED = server("ours", labels={LABEL_RUN: "r", LABEL_PORT: "8000"})
BY_WORDS = server("by-words", has_host_network=True, command=("vllm", "serve", "m", "--port", "8000"))
BY_EQUALS = server("by-equals", has_host_network=True, command=("vllm", "serve", "m", "--port=8000"))
ELSEWHERE = server("elsewhere", has_host_network=True, command=("vllm", "serve", "m", "--port", "9000"))
USUAL = server("usual", has_host_network=True, image="vllm/vllm-openai:v0.31.0", command=("serve", "m"))
BRIDGED = server("bridged", image="vllm/vllm-openai:v0.31.0", command=("--port", "8000"))


@pytest.mark.parametrize(
    ("servers", "found"),
    [
        ([PUBLISHED, BY_WORDS], ["published"]),
        ([LABELLED, ELSEWHERE], ["ours"]),
        ([BY_WORDS, ELSEWHERE, BRIDGED], ["by-words"]),
        ([BY_EQUALS], ["by-equals"]),
        ([USUAL, ELSEWHERE], ["usual"]),
        ([BY_WORDS, USUAL], ["by-words", "usual"]),
        ([ELSEWHERE, BRIDGED], []),
    ],
)
def test_the_container_behind_an_address_is_found_by_its_port(servers: list[Server], found: list[str]) -> None:
    assert [s.name for s in serving_on(servers, 8000)] == found


ATTACHED = profile(
    engine="endpoint",
    image=None,
    model=replace(profile().model, repo=None),
    attach="http://spark01:8000/v1",
    attach_container="somebody",
    serve=Serve(max_model_len=32768),
)


@pytest.fixture
def attached(tmp_path: Path) -> Reading:
    world = Reading(tmp_path, profile=ATTACHED, hosts=(), evidence=Box(host=FakeHost("spark01")))
    foreign = world.runtime.add_foreign("somebody", image="vllm/vllm-openai:v0.31.0")
    world.runtime.write(foreign.id, ECHO % 8, "args: --api-key sk-1")
    return world


def test_an_attached_servers_host_is_looked_at_and_nothing_is_touched(attached: Reading) -> None:
    road = attached.go()

    assert road.error is None, road.error
    run = stored(attached).run
    assert attached.stages == ["reach", "look", "effective", "gates", "sweeps", "collect"]
    (host,) = run.hosts
    assert (host["name"], host["role"]) == ("spark01", "evidence")
    assert host["before"]["home"] == host["after"]["home"] == "/home/me"
    assert (run.image, run.image_digest) == ("vllm/vllm-openai:v0.31.0", "sha256:aaaa")
    log = (road.writer.directory / "container-0.log").read_text()
    assert log.splitlines() == [ECHO % 8, "args: --api-key ***"]
    assert (road.writer.directory / "telemetry.jsonl").read_text().count('"where":"spark01"') > 0
    assert {verb for verb, _ in attached.runtime.calls} <= {"find", "foreign", "image_digest"}
    assert attached.locked == []
    assert [s.is_running for s in attached.runtime.foreign()] == [True]
    assert attached.runtime.is_closed


def test_what_an_endpoint_declares_is_compared_by_what_its_server_tells(attached: Reading) -> None:
    attached.go()
    assert rows(attached)["serve.max_model_len"] == "same"

    attached.profile = replace(ATTACHED, serve=Serve(max_model_len=65536))
    road = attached.go()

    assert isinstance(road.error, RefusedError)
    assert "serve.max_model_len: declared 65536, runs 32768" in road.error.message


def test_without_a_declaration_there_is_nothing_to_hold_a_server_to(tmp_path: Path) -> None:
    bare = profile(
        engine="endpoint", image=None, model=ATTACHED.model, served_name=None, attach="http://h:1/v1", serve=Serve()
    )
    world = Reading(tmp_path, profile=bare, hosts=())

    world.go()

    run = stored(world).run
    assert run.gates["effective"] == "skip"
    assert run.effective["told"]["log_lines"] == 0


@pytest.mark.parametrize(
    ("name", "said"), [("nobody", "no container is named nobody"), (None, "no container serves port 8000")]
)
def test_a_container_that_is_not_found_is_a_note(attached: Reading, name: str | None, said: str) -> None:
    attached.profile = replace(ATTACHED, attach_container=name)

    road = attached.go()

    assert road.error is None
    assert [w for w in warnings(attached) if said in w] != []
    assert not (road.writer.directory / "container-0.log").exists()


def test_a_host_without_docker_still_gives_its_facts(attached: Reading) -> None:
    attached.runtime.unavailable = RuntimeNotInstalled("no docker there")

    road = attached.go()

    assert road.error is None
    assert [w for w in warnings(attached) if "no docker there" in w] != []
    assert stored(attached).run.hosts[0]["after"]["home"] == "/home/me"


def test_gate0s_own_server_is_found_by_its_label(attached: Reading) -> None:
    attached.profile = replace(ATTACHED, attach_container=None)
    image = "vllm/vllm-openai:v0.31.0"
    ours = ServerSpec(name="gate0-p", image=image, labels={LABEL_RUN: "r", LABEL_PORT: "8000"})
    attached.runtime.start(ours)

    road = attached.go()

    assert road.ranks[0].server is not None
    assert road.ranks[0].server.name == "gate0-p"
    assert [s.name for s in attached.runtime.find() if s.is_running] == ["gate0-p"]


def test_an_image_whose_own_list_was_read_is_compared_by_that(
    world: Reading, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    kept = cache / "gate0" / "flags"
    kept.mkdir(parents=True)
    own = replace(load("vllm", "0.30.0"), version="0.30.1+patched", is_own=True)
    (kept / "vllm-sha256-aaaa.json").write_text(json.dumps({"format": FORMAT, "catalogue": encode(own)}))
    world.own_flags = lambda *_: own

    world.go()

    assert stored(world).run.effective["catalogue"]["version"] == "0.30.1+patched"
    assert stored(world).run.effective["catalogue"]["note"] == "the image's own list"


def test_a_programs_own_list_is_compared_by_though_nothing_keeps_it(world: Reading) -> None:
    own = replace(load("vllm", "0.30.0"), version="0.30.1+patched", is_own=True)
    asked: list[str] = []

    def read(_: Runtime, subject: Subject, __: IsCancelled) -> Catalogue:
        asked.append(subject.image)
        return own

    world.own_flags = read
    world.profile = profile(runtime=RuntimeKind.PROCESS, image=None, binary="/opt/bin/vllm")
    world.runtime.images["/opt/bin/vllm"] = "file:sha256:aaaa"
    world.options = Options(keep=True, deploy_only=True)

    world.go()
    started = stored(world).run.effective["catalogue"]
    world.go()
    found_up = stored(world).run.effective["catalogue"]

    assert started == {"engine": "vllm", "version": "0.30.1+patched", "note": "the program's own list"}
    assert found_up == started
    assert asked == ["/opt/bin/vllm", "/opt/bin/vllm"]


@pytest.mark.parametrize(
    ("declared", "told", "version"),
    [
        ({"engine_version": "0.30.0"}, "0.31.0", "0.31.0"),
        ({"engine_version": "0.30.0"}, "0.1.dev1+gabcdef", "0.30.0"),
        ({}, "0.1.dev1+gabcdef", "0.31.0"),
        ({"image": "mine/vllm:spark"}, "0.31.7", "0.31.0"),
    ],
)
def test_a_build_of_its_own_is_compared_by_the_list_that_the_profile_states(
    world: Reading, monkeypatch: pytest.MonkeyPatch, declared: dict[str, Any], told: str, version: str
) -> None:
    world.profile = profile(**declared)
    world.runtime.images["mine/vllm:spark"] = "sha256:aaaa"
    monkeypatch.setattr(Telling, "documents", {"/version": {"version": told}})

    world.go()

    assert stored(world).run.effective["catalogue"]["version"] == version


@pytest.mark.parametrize(
    ("truth", "declared", "words"),
    [
        (Truth(listed_len=8192), 32768, "8192 of the declared 32768 tokens of context"),
        (Truth(listed_len=32768), 32768, "32768 tokens of context"),
        (Truth(listed_len=32768), None, "32768 tokens of context"),
        (Truth(listed_len=65536), 32768, "65536 tokens of context, 32768 declared"),
        (Truth(listed_len=None), 32768, "32768 tokens of context (declared)"),
    ],
)
def test_the_context_that_is_said_is_the_one_that_runs(
    world: Reading, truth: Truth, declared: int | None, words: str
) -> None:
    world.truth = truth
    world.profile = profile(serve=Serve(max_model_len=declared, max_num_seqs=8))
    world.options = Options(deploy_only=True)

    world.go()

    (stage,) = [s for s in stored(world).run.stages if s["name"] == "effective"]
    assert f"slots (declared), {words}, declared and running" in stage["detail"]


@pytest.mark.parametrize(("device", "found"), [("CPU_Mapped", "contradicted"), ("CUDA0", None)])
def test_a_container_that_was_given_gpus_and_uses_none_is_contradicted(
    world: Reading, device: str, found: str | None
) -> None:
    world.profile = profile(engine="llamacpp", serve=Serve(max_num_seqs=8))
    world.options = Options(deploy_only=True)
    line = f"load_tensors:   {device} model buffer size =    92.10 MiB"
    world.runtime.on_start("gate0-fake", log=("load_tensors: offloaded 31/31 layers to GPU", line))

    world.go()

    assert rows(world).get("container.gpus") == found
    told = [r for r in stored(world).run.effective["readings"] if r["name"] in ("layers_offloaded", "is_on_gpu")]
    assert [(r["name"], r["value"]) for r in told] == [("layers_offloaded", "0/31" if found else "31/31")]
