"""What is said of a profile in the preflight: rules, earlier runs' answers, silence, weights that are not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.rules.answering import PastRun
from orchestrator.pipeline.advising import say_remarks, warn_of_weights
from orchestrator.pipeline.events import Notice, StageBegan
from orchestrator.pipeline.planning import served
from orchestrator.pipeline.road import Box, Rank, Road
from orchestrator.profile.model import ContainerSettings, ModelRef, Mount, Serve, Speculative
from tests.contract.fakes import FakeHost
from tests.unit.road_fakes import World, profile

HUB = "/home/me/.cache/huggingface/hub/models--o--Qwen3.8-27B-NVFP4"
HYBRID = profile(
    model=ModelRef(repo="o/Qwen3.8-27B-NVFP4"),
    serve=Serve(prefix_caching=True, max_num_seqs=8, speculative=Speculative(method="mtp", num_tokens=1)),
    container=ContainerSettings(mounts=(Mount(source="~/.cache/huggingface", target="/root/.cache/huggingface"),)),
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(folder=tmp_path, profile=HYBRID)


def notices(world: World) -> list[Notice]:
    return [event for event in world.events if isinstance(event, Notice)]


def said(world: World, code: str) -> Notice:
    return next(notice for notice in notices(world) if notice.text.startswith(f"{code}: "))


def asked(world: World, **changes: Any) -> Road:
    """A road that has just learnt which image its host has."""
    road = world.road()
    road.job = replace(road.job, **changes)
    road.image_digest = "sha256:aaaa"
    return road


def past(**changes: Any) -> PastRun:
    mine = served(HYBRID)
    run = PastRun(
        id="r1",
        engine=mine.engine,
        model=mine.model,
        profile_digest=mine.profile_digest,
        image_digest="sha256:aaaa",
        gates={"prefix_cache": "pass", "determinism": "pass"},
    )
    return replace(run, **changes)


def test_a_doubt_that_only_a_gate_can_settle_is_a_warning(world: World) -> None:
    say_remarks(asked(world))

    notice = said(world, "GB10-CACHE-01")
    assert notice.is_warning
    assert "Gate 0 tells" in notice.text
    assert not said(world, "SERVE-OPEN-01").is_warning


def test_an_earlier_run_on_the_same_image_answers_it(world: World) -> None:
    say_remarks(asked(world, past_runs=(past(),)))

    notice = said(world, "GB10-CACHE-01")
    assert not notice.is_warning
    assert notice.text.endswith("; answered by run r1: prefix_cache and determinism passed on sha256:aaaa")


def test_a_run_on_another_image_does_not(world: World) -> None:
    say_remarks(asked(world, past_runs=(past(image_digest="sha256:bbbb"),)))

    assert said(world, "GB10-CACHE-01").is_warning


def test_silence_is_kept_and_counted(world: World) -> None:
    world.profile = replace(HYBRID, silence=("GB10-CACHE-01", "SERVE-OPEN-01"))

    say_remarks(asked(world))

    texts = [notice.text for notice in notices(world)]
    assert not any(text.startswith("GB10-CACHE-01") for text in texts)
    assert texts[-1] == "2 silenced: GB10-CACHE-01, SERVE-OPEN-01"


def checkpoint(host: FakeHost, *, has_mtp: bool) -> None:
    files = (
        f"{HUB}/refs/main",
        f"{HUB}/snapshots/abc/model.safetensors.index.json",
        f"{HUB}/snapshots/abc/config.json",
    )
    host.answer(("find",), stdout="\n".join(files))
    host.files[files[0]] = "abc\n"
    host.files[files[2]] = json.dumps({"num_hidden_layers": 64})
    host.answer(("grep",), exit_code=0 if has_mtp else 1)


def with_host(world: World, *, has_mtp: bool) -> Road:
    road, host = asked(world), FakeHost("spark01")
    checkpoint(host, has_mtp=has_mtp)
    facts = world.tools().quick_facts(host)
    road.ranks.append(Rank(index=0, box=Box(host=host), runtime=world.runtime, facts=facts))
    return road


@pytest.mark.parametrize("has_mtp", [True, False])
def test_a_checkpoint_without_mtp_weights_is_warned_of(world: World, has_mtp: bool) -> None:
    warn_of_weights(with_host(world, has_mtp=has_mtp))

    expected = (
        f"no_mtp_weights: {HUB}/snapshots/abc/model.safetensors.index.json lists no MTP tensors, and fake wants "
        "o/Qwen3.8-27B-NVFP4 to draft with its own (a copy that kept them, or another method)"
    )
    assert [notice.text for notice in notices(world)] == ([] if has_mtp else [expected])


def test_a_host_is_not_asked_without_need(world: World) -> None:
    world.profile = replace(HYBRID, serve=Serve(prefix_caching=True))
    road = with_host(world, has_mtp=False)
    host = road.ranks[0].box.host
    assert isinstance(host, FakeHost)

    warn_of_weights(road)

    assert host.runs == []


def test_the_preflight_says_it_before_anything_starts(world: World) -> None:
    world.go()

    names = [
        e.stage if isinstance(e, StageBegan) else e.text for e in world.events if isinstance(e, StageBegan | Notice)
    ]
    told = next(index for index, name in enumerate(names) if name.startswith("GB10-CACHE-01: "))
    assert names.index("preflight") < told < names.index("pull")
