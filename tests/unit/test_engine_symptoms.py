"""Dead servers' logs, captured and constructed, against the cause and the remedy that each must give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.deploy.diagnosis import diagnose
from orchestrator.deploy.progress import StageReader
from orchestrator.engines.engine import Symptom
from orchestrator.engines.registry import load_engines

LOGS = Path(__file__).resolve().parents[1] / "cases" / "logs"
ENGINES = load_engines()
CAPTURED: dict[str, tuple[str, str]] = json.loads((LOGS / "symptoms" / "captured.json").read_text())
CONSTRUCTED = tuple(sorted((LOGS / "symptoms").glob("*.log")))
READY = ("llamacpp-start.log", "vllm-start.log", "vllm-start-compiled.log", "vllm-hybrid-start.log")


def header(text: str) -> dict[str, str]:
    lines = (line[2:].partition(": ") for line in text.splitlines() if line.startswith("# "))
    return {name: value for name, _, value in lines}


def log_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("# ")]


@pytest.mark.parametrize("name", sorted(CAPTURED))
def test_a_captured_death_is_named_with_its_remedy(name: str) -> None:
    cause, says = CAPTURED[name]
    symptoms = ENGINES[name.partition("-")[0]].traits.symptoms

    found = diagnose(log_lines((LOGS / name).read_text()), 1, False, symptoms)

    assert found is not None
    assert found.cause == cause
    assert says in f"{found.message}; {found.hint}"


@pytest.mark.parametrize("case", CONSTRUCTED, ids=lambda c: c.stem)
def test_a_death_in_the_engines_wording_is_named_with_its_remedy(case: Path) -> None:
    text = case.read_text()
    expected = header(text)
    symptoms = ENGINES[expected["engine"]].traits.symptoms

    found = diagnose(log_lines(text), int(expected["exit_code"]), False, symptoms)

    assert found is not None
    assert found.cause == expected["cause"]
    assert expected["says"] in f"{found.message}; {found.hint}"


@pytest.mark.parametrize("name", READY)
def test_a_healthy_start_shows_no_symptom(name: str) -> None:
    symptoms = ENGINES[name.partition("-")[0]].traits.symptoms

    assert diagnose(log_lines((LOGS / name).read_text()), None, False, symptoms) is None


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp", "generic"])
def test_a_kernel_kill_is_out_of_memory_without_any_line(engine: str) -> None:
    found = diagnose([], None, True, ENGINES[engine].traits.symptoms)

    assert found is not None
    assert (found.cause, found.line) == ("out_of_memory", None)


def test_a_stated_cause_stands_over_the_exit_code_of_a_kill() -> None:
    line = "vllm serve: error: unrecognized arguments: --x"

    found = diagnose([line], 137, False, ENGINES["vllm"].traits.symptoms)

    assert found is not None
    assert (found.cause, found.line) == ("unknown_flag", line)


def test_an_exit_code_keeps_a_symptom_to_itself() -> None:
    only_2 = Symptom(cause="c", pattern="boom", message="m", hint="h", exit_codes=(2,))

    assert diagnose(["boom"], 1, False, (only_2,)) is None


def test_a_line_hidden_behind_a_progress_bar_is_read() -> None:
    symptom = Symptom(cause="c", pattern="^boom (?P<what>.+)|(?P<never>x)", message="{what}{never}", hint="{a: 1}")

    found = diagnose(["12%\r45%\rboom here"], 1, False, (symptom,))

    assert found is not None
    assert (found.message, found.hint, found.line) == ("here", "{a: 1}", "boom here")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp"])
def test_every_engine_names_the_causes_that_a_user_meets(engine: str) -> None:
    causes = {symptom.cause for symptom in ENGINES[engine].traits.symptoms}

    needed = {"out_of_memory", "kv_too_small", "unknown_flag", "bad_flag_value", "port_in_use", "model_not_found"}
    assert needed | {"model_gated", "no_kernel_image", "driver_too_old"} <= causes


def stages(name: str) -> list[str]:
    reader = StageReader(ENGINES[name.partition("-")[0]].traits.log_stages)
    return [str(stage) for line in log_lines((LOGS / name).read_text()) if (stage := reader.feed(line))]


@pytest.mark.parametrize("name", READY)
def test_a_start_passes_through_its_stages_and_ends_ready(name: str) -> None:
    seen = stages(name)

    assert "starting" in seen[0]
    assert any(stage.startswith("weights") for stage in seen)
    assert seen[-1] == "ready"


def test_vllms_own_progress_is_shown() -> None:
    assert "weights 100%" in stages("vllm-start.log")


@pytest.mark.parametrize(
    ("engine", "line", "stage"),
    [
        ("vllm", "model-00002-of-00005.safetensors:  45%|####5     | 2.2G/4.9G", "download 45%"),
        ("vllm", "Loading safetensors checkpoint shards:  67% Completed | 6/9 [00:16<00:08,  2.94s/it]", "weights 67%"),
        ("vllm", "INFO [backends.py:1128] Dynamo bytecode transform time: 3.54 s", "compile"),
        ("vllm", "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  29%|##9  | 10/35", "graph capture 29%"),
        ("vllm", "INFO [autotuner.py:256] flashinfer.jit: [Autotuner]: Autotuning process starts ...", "autotune"),
        ("vllm", "INFO [gpu_worker.py:760] Available KV cache memory: 43.2 GiB", "kv cache 43.2 GiB"),
        ("sglang", "[2026-10-06 18:02:31] Load weight begin. avail mem=111.31 GB", "weights"),
        (
            "sglang",
            "[2026-10-06 18:02] KV Cache is allocated. dtype: bf16, #tokens: 834615, K size: 5 GB",
            "kv cache 834615",
        ),
        ("sglang", "Capturing batches (bs=1 avail_mem=11.18 GB): 100%|####| 36/36", "graph capture 100%"),
        ("sglang", "[2026-10-06 18:12:31] The server is fired up and ready to roll!", "ready"),
        ("llamacpp", "0.00.003.934 I srv    load_model: loading model '/m.gguf'", "weights"),
    ],
)
def test_a_line_tells_the_stage(engine: str, line: str, stage: str) -> None:
    assert str(StageReader(ENGINES[engine].traits.log_stages).feed(line)) == stage


def test_only_a_change_is_told() -> None:
    reader = StageReader(ENGINES["vllm"].traits.log_stages)
    line = "Loading safetensors checkpoint shards:  67% Completed"

    told = [reader.feed(line), reader.feed(line), reader.feed("nothing of note")]

    assert [str(stage) for stage in told] == ["weights 67%", "None", "None"]
    assert str(reader.current) == "weights 67%"


def test_the_last_part_of_a_progress_bar_counts() -> None:
    reader = StageReader(ENGINES["vllm"].traits.log_stages)

    told = reader.feed(
        "Loading safetensors checkpoint shards:   0% Completed\rLoading safetensors checkpoint shards:  50% C"
    )

    assert str(told) == "weights 50%"
