"""The real vLLM on the CPU, taken down the road by `gate0 run`: gates, sweep, a death at the first request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools.vllm_parts import VllmParts

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
GATE0 = Path(sys.executable).with_name("gate0")
SMALL = ("--workload", "quick", "--set", "concurrency=1,2", "--set", "repeats=1", "--set", "output_tokens=16")
GATES = ("coherence", "tool_call", "prefix_cache", "determinism", "prefix_sharing", "context", "concurrency")


@dataclass(frozen=True)
class Ended:
    """How `gate0 run` ended, and its record."""

    code: int
    err: str
    run: dict[str, Any]
    directory: Path

    def gate(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "gates" / f"{name}.json").read_text())
        return found


def run(folder: Path, text: str, *words: str) -> Ended:
    """Write the profile and run it on this machine."""
    path = folder / "profile.yaml"
    path.write_text(text)
    environment = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG")}
    done = subprocess.run(
        (GATE0, "run", path, "--on", "local", *words),
        cwd=folder,
        env={**environment, "HOME": str(folder), "GATE0_TRACE": "1"},
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )
    (record,) = folder.glob("results/*/run.json")
    return Ended(done.returncode, done.stderr, json.loads(record.read_text()), record.parent)


def head(parts: VllmParts, parent: str, model: Path, port: int) -> str:
    return (
        f"name: under-test\nextends: {ROOT}/profiles/lab/{parent}.yaml\n"
        f"binary: {parts.vllm}\nmodel: {{path: {model}}}\nport: {port}\n"
        "env: {HF_HUB_OFFLINE: '1', VLLM_CPU_OMP_THREADS_BIND: nobind}\n"
    )


def test_smollm2_passes_all_seven_gates_and_the_sweep(vllm_parts: VllmParts, tmp_path: Path) -> None:
    text = head(vllm_parts, "smollm2-vllm", vllm_parts.smollm2, 18131)
    text += f"serve: {{chat_template: {vllm_parts.template}}}\n"

    ended = run(tmp_path, text, *SMALL)

    assert ended.code == 0, ended.err
    assert {name: ended.run["gates"][name] for name in GATES} == dict.fromkeys(GATES, "pass"), ended.err
    assert ended.run["status"] == "passed"
    assert ended.run["engine_version"].startswith("0.32.0")
    assert len(list(ended.directory.glob("sweeps/quick/*.requests.jsonl"))) == 2
    for path in ended.directory.glob("sweeps/quick/*.requests.jsonl"):
        for line in path.read_text().splitlines():
            request = json.loads(line)
            assert request["failure"] is None
            assert request["token_source"] == "token_ids"
            assert request["output_tok"] == 16
            assert sum(n for _, n in request["events"]) == 16


def test_the_hybrid_models_late_first_hit_is_reported_as_such(vllm_parts: VllmParts, tmp_path: Path) -> None:
    text = head(vllm_parts, "tiny-hybrid-vllm", vllm_parts.tiny_hybrid, 18132)
    text += (
        "workloads: null\ngates: {suite: quick, params: {prefix_cache: {prompt_tokens: 4000}}, optional: [coherence]}\n"
    )

    ended = run(tmp_path, text)

    gate = ended.gate("prefix_cache")
    assert gate["status"] == "pass", (gate, ended.err)
    assert "late hit" in gate["summary"]


def test_a_server_that_dies_at_its_first_request_ends_in_a_diagnosis(vllm_parts: VllmParts, tmp_path: Path) -> None:
    text = head(vllm_parts, "tiny-hybrid-vllm", vllm_parts.tiny_hybrid, 18133)
    text += "flags: {load-format: dummy}\nserve: {speculative: {method: mtp, num_tokens: 2}}\n"

    ended = run(tmp_path, text)

    assert ended.code == 3
    assert "died at its first request" in ended.err
    assert ended.run["error"]["cause"] == "died_at_first_request"
    assert ended.run["status"] == "failed"
    assert (ended.directory / "container-0.log").stat().st_size > 1000
    assert not ended.run["gates"]
