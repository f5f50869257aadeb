"""What memory settings come to on a host, and what came back after a stop."""

from __future__ import annotations

import pytest

from orchestrator.deploy.memory import GIB, MemoryBudget, looks_like_moe, memory_budget, memory_return
from orchestrator.profile.model import ContainerSettings, ModelRef, Profile, Serve

TOTAL = 120 * GIB
DENSE = ModelRef(repo="unsloth/Qwen3.8-27B-NVFP4")
MOE = ModelRef(repo="Qwen/Qwen3.6-35B-A3B-FP8")


def budget(profile: Profile, *, available_gib: float | None = 110.0) -> MemoryBudget:
    available = None if available_gib is None else int(available_gib * GIB)
    return memory_budget(profile, total_bytes=TOTAL, available_bytes=available)


def profile(engine: str, *, model: ModelRef = DENSE, **serve: float) -> Profile:
    return Profile(name="p", engine=engine, model=model, serve=Serve(**serve))  # type: ignore[arg-type]


def test_vllms_fraction_is_of_the_total() -> None:
    assert budget(profile("vllm", memory_fraction=0.5)).engine_gib == pytest.approx(60.0)


def test_sglangs_fraction_is_of_what_is_available() -> None:
    assert budget(profile("sglang", memory_fraction=0.5)).engine_gib == pytest.approx(55.0)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_gib_are_gib_for_every_engine(engine: str) -> None:
    assert budget(profile(engine, memory_gib=85.0)).engine_gib == 85.0


def test_an_engine_without_a_fraction_has_no_budget() -> None:
    assert budget(profile("llamacpp")).engine_gib is None


def test_a_vllm_without_a_fraction_takes_its_default() -> None:
    assert budget(profile("vllm")).engine_gib == pytest.approx(108.0)


def test_vllm_is_refused_when_less_than_its_share_is_available() -> None:
    assert budget(profile("vllm", memory_fraction=0.9), available_gib=107.9).problem == (
        "vllm refuses to start unless 108.0 GiB are available, 107.9 GiB are"
    )


def test_vllm_is_let_in_when_its_share_is_available() -> None:
    assert budget(profile("vllm", memory_fraction=0.9), available_gib=108.1).problem is None


def test_a_share_that_nobody_declared_is_no_problem() -> None:
    assert budget(profile("vllm"), available_gib=20.0).problem is None


@pytest.mark.parametrize(
    ("model", "available_gib", "is_warned"),
    [(DENSE, 94.1, False), (DENSE, 93.9, True), (MOE, 95.9, True), (MOE, 96.1, False)],
)
def test_ten_gib_should_stay_and_twelve_for_moe(model: ModelRef, available_gib: float, is_warned: bool) -> None:
    found = budget(profile("vllm", model=model, memory_fraction=0.7), available_gib=available_gib)

    assert bool(found.warnings) is is_warned


def test_the_plan_shows_how_the_figure_comes_about() -> None:
    assert budget(profile("vllm", memory_fraction=0.7)).lines == (
        "memory_fraction 0.7 of 120.0 GiB total: the engine may take 84.0 GiB",
        "110.0 GiB available now, 26.0 GiB stay for everything else",
    )


def test_before_the_host_was_asked_the_meaning_is_said() -> None:
    unasked = memory_budget(profile("sglang", memory_fraction=0.7), total_bytes=None, available_bytes=None)

    assert unasked.lines == ("memory_fraction 0.7 of what is available when it starts",)


def test_an_engine_on_the_cpu_has_no_such_budget() -> None:
    on_cpu = Profile(
        name="p", engine="vllm", serve=Serve(memory_fraction=0.9), container=ContainerSettings(gpus="none")
    )

    assert budget(on_cpu, available_gib=1.0) == MemoryBudget(lines=("memory_fraction 0.9 of the host's total memory",))


@pytest.mark.parametrize(
    ("name", "is_moe"),
    [
        ("Qwen/Qwen3.6-35B-A3B-FP8", True),
        ("openai/gpt-oss-120b", True),
        ("google/gemma-4-26B-A4B-it", True),
        ("unsloth/Qwen3.8-27B-NVFP4", False),
        ("Qwen/Qwen3-VL-8B", False),
        ("a3b/dense-7b", False),
    ],
)
def test_moe_models_are_told_by_the_habits_of_their_names(name: str, is_moe: bool) -> None:
    assert looks_like_moe(ModelRef(repo=name)) is is_moe


@pytest.mark.parametrize(
    ("after_gib", "is_back", "line"),
    [
        (109.5, True, "84.5 GiB came back in 3 s"),
        (100.0, False, "75.0 GiB came back in 3 s, 10.0 GiB less available than before the start"),
    ],
)
def test_what_came_back_is_compared_with_before_the_start(after_gib: float, is_back: bool, line: str) -> None:
    found = memory_return(
        before_start_bytes=110 * GIB, before_stop_bytes=25 * GIB, after_stop_bytes=int(after_gib * GIB), waited_s=3.0
    )

    assert (found.is_back, found.line) == (is_back, line)


def test_without_a_figure_from_before_nothing_is_missing_or_back() -> None:
    found = memory_return(before_start_bytes=None, before_stop_bytes=25 * GIB, after_stop_bytes=100 * GIB, waited_s=1.0)

    assert (found.returned_bytes, found.missing_bytes, found.is_back) == (75 * GIB, None, None)
