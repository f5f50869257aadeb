"""How near a stream comes to the memory's limit: hand-made records, answers worked out by hand in each case's head."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.report.model_facts import find_precision
from orchestrator.report.roofline import Gain, Roof, gains, roofs
from tests.unit.test_report import run
from tests.unit.use_records import row_of

CASES = sorted((Path(__file__).parents[1] / "cases" / "roofline").glob("*.yaml"))


def seen_roof(roof: Roof) -> dict[str, Any]:
    reading, told = roof.reading, None if roof.steps is None else roof.steps.told
    return {
        "cell": roof.point.figures.cell.id,
        "weights_gb": None if reading is None else reading.weight_bytes / 1e9,
        "kv_gb": None if reading is None or reading.kv_bytes is None else reading.kv_bytes / 1e9,
        "limit": roof.limit_tok_per_s,
        "alone": roof.alone.value,
        "method": roof.alone.method,
        "share": roof.share,
        "steps": "none" if roof.steps is None else "not told" if told is None else f"{told.value:g} {told.method}",
        "step_share": roof.step_share,
        "bandwidth": None if roof.bandwidth is None else f"{roof.bandwidth.gb_per_s:g} {roof.bandwidth.method}",
        "unknown": list(roof.unknown),
    }


def seen_gain(gain: Gain) -> dict[str, Any]:
    at = gain.point.figures.cell.concurrency
    return {"single": gain.single.value, "peak": gain.peak.value, "at": at, "gain": gain.value}


def is_like(found: Any, expected: Any) -> bool:
    """As many digits as the case was worked out to."""
    is_number = isinstance(expected, float) and found is not None
    return math.isclose(found, expected, rel_tol=1e-3) if is_number else bool(found == expected)


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_the_limit_is_bandwidth_over_bytes(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    rows = [row_of(name, raw) for name, raw in case["runs"].items()]
    found = {"roofs": [seen_roof(r) for r in roofs(rows)], "gains": [seen_gain(g) for g in gains(rows)]}

    for part in ("roofs", "gains"):
        if part in case:
            assert len(found[part]) == len(case[part])
            for one, expected in zip(found[part], case[part], strict=True):
                wrong = {k: (one[k], v) for k, v in expected.items() if not is_like(one[k], v)}
                assert wrong == {}


@pytest.mark.parametrize(
    ("model", "profile", "bits"),
    [
        ("doth4580/Qwen3.8-Flash-Next-EXL3-3.05bpw", {}, 3.05),
        ("unsloth/Qwen3.8-Flash-Next-GGUF:UD-IQ1_S", {}, 1.5625),
        ("ggml-org/SmolLM2-135M-GGUF", {"model": {"repo": "x", "file": "smollm2-135m-q8_0.gguf"}}, 8.5),
        ("/models/SmolLM2-135M-Instruct.Q4_1.gguf", {}, 5.0),
        ("smollm2-135m", {"model": {"path": "SmolLM2-135M-Instruct.IQ4_XS.gguf"}}, 4.25),
        ("smollm2-135m", {"model": {"path": "SmolLM2-135M-Instruct.odd.gguf"}}, None),
        ("RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic", {}, 8),
        ("google/gemma-4-26B-A4B-it", {}, 16),
        ("google/gemma-4-26B-A4B-it", {"serve": {"quantization": "fp8"}}, 8),
        ("openai/gpt-oss-120b", {}, 4.25),
        ("someone/mystery", {}, None),
    ],
)
def test_the_precision_is_told_by_the_setting_then_the_name(model: str, profile: dict[str, Any], bits: float) -> None:
    found = find_precision(run("a", model=model, profile=profile))

    assert (None if found is None else found.bits) == bits
