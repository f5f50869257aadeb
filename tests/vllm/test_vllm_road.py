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

from orchestrator.figures.cell import cell_figures
from orchestrator.records.store import Store, StoredCell
from tests.lab.kinds import WORKLOADS, write_workloads
from tools.vllm_parts import VllmParts

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
GATE0 = Path(sys.executable).with_name("gate0")
SMALL = ("--workload", "quick", "--set", "concurrency=1,2", "--set", "repeats=1", "--set", "output_tokens=16")
SHARED_MACHINE = {"client_lag", "late_sends"}
GATES = (
    *("effective", "coherence", "tool_call", "prefix_cache", "determinism", "prefix_sharing", "context"),
    "concurrency",
)


@dataclass(frozen=True)
class Ended:
    """How `gate0 run` ended, and its record."""

    code: int
    err: str
    run: dict[str, Any]
    directory: Path

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """Each declared setting beside what runs."""
        return {row["path"]: row for row in self.run["effective"]["compared"]}

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


def test_smollm2_passes_every_gate_and_the_sweep(vllm_parts: VllmParts, tmp_path: Path) -> None:
    text = head(vllm_parts, "smollm2-vllm", vllm_parts.smollm2, 18131)
    text += f"serve: {{chat_template: {vllm_parts.template}}}\n"

    ended = run(tmp_path, text, *SMALL)

    assert ended.code == 0, ended.err
    assert {name: ended.run["gates"][name] for name in GATES} == dict.fromkeys(GATES, "pass"), ended.err
    assert ended.run["status"] == "passed"
    assert ended.run["engine_version"].startswith("0.32.0")
    assert ended.run["effective"]["catalogue"]["version"] == "0.32.0"
    assert {r["agreement"] for r in ended.rows.values()} == {"same"}
    assert len(list(ended.directory.glob("sweeps/quick/*.requests.jsonl"))) == 2
    for path in ended.directory.glob("sweeps/quick/*.requests.jsonl"):
        for line in path.read_text().splitlines():
            request = json.loads(line)
            assert request["failure"] is None
            assert request["token_source"] == "token_ids"
            assert request["output_tok"] == 16
            assert sum(n for _, n in request["events"]) == 16


def test_every_kind_of_load_is_measured_and_agrees_with_the_servers_counters(
    vllm_parts: VllmParts, tmp_path: Path
) -> None:
    text = head(vllm_parts, "smollm2-vllm", vllm_parts.smollm2, 18134)
    text += f"serve: {{chat_template: {vllm_parts.template}}}\ngates: {{suite: quick}}\n"
    words = write_workloads(tmp_path / "workloads", swarm={"prefix_tokens": 700}, depth={"depth": 400})

    ended = run(tmp_path, text, *words)

    assert ended.code == 0, ended.err
    (stored,), _ = Store(tmp_path / "results").runs()
    cells = stored.cells()
    assert {c.cell.workload for c in cells} == set(WORKLOADS)
    for found in cells:
        broken = {str(g["name"]): g["message"] for g in found.cell.guards}
        assert {k: v for k, v in broken.items() if k not in SHARED_MACHINE} == {}, found.cell.id
        assert all(r.failure is None for r in found.requests), found.cell.id
    swarm = {c.cell.variant: c for c in cells if c.cell.workload == "swarm"}
    assert set(swarm) == {"single", "cold", "primed", "evicting"}
    for variant, found in swarm.items():
        assert told_by_requests(found) == told_by_counters(found), variant
    primed = cell_figures(swarm["primed"].cell, swarm["primed"].requests).swarm
    assert primed is not None
    assert primed.cached_share is not None
    assert primed.cached_share > 0.7


def told_by_requests(found: StoredCell) -> float:
    """Cached tokens by each request's own usage, warm-up included."""
    (lap,) = found.cell.laps
    unrecorded = lap["unrecorded"]
    warm = unrecorded.get("cached_tok", 0) if isinstance(unrecorded, dict) else 0
    return float(sum(r.cached_tok or 0 for r in found.requests) + warm)


def told_by_counters(found: StoredCell) -> float:
    """Cached tokens by the server's counter, before and after the repeat."""
    (lap,) = found.cell.laps
    before, after = lap["server_before"], lap["server_after"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    return float(after["cache_hits_tok"] - before["cache_hits_tok"])


def test_each_portable_setting_is_confirmed_and_planted_faults_are_caught(
    vllm_parts: VllmParts, tmp_path: Path
) -> None:
    text = head(vllm_parts, "smollm2-vllm", vllm_parts.smollm2, 18135).replace("nobind}", "nobind, VLLM_NO_SUCH: '1'}")
    text += (
        f"serve: {{chat_template: {vllm_parts.template}, max_model_len: 2048, max_num_seqs: 3, seed: 7,\n"
        "  max_num_batched_tokens: 2048, prefix_caching: true, kv_cache_dtype: auto, thinking: false,\n"
        "  max_output: 256}\n"
        "flags: {speculative-config: {method: ngram, num_speculative_tokens: 3, prompt_lookup_min: 400,"
        " prompt_lookup_max: 400}}\n"
        "workloads: null\ngates: {suite: runs.yaml, params: null}\n"
    )
    (tmp_path / "runs.yaml").write_text("title: what runs\ngates:\n  - gate: effective\n")

    ended = run(tmp_path, text)

    portable = {path: row["agreement"] for path, row in ended.rows.items() if path.startswith("serve.")}
    assert ended.code == 1, ended.err
    assert portable == dict.fromkeys(portable, "same")
    assert len(portable) == 10
    assert ended.rows["env.VLLM_NO_SUCH"]["agreement"] == "ignored"
    assert "Unknown vLLM environment variable detected" in ended.rows["env.VLLM_NO_SUCH"]["quote"]
    behaviours = {e["path"]: e for e in ended.gate("effective")["evidence"] if "path" in e}
    assert behaviours["behaviour.speculation"]["agreement"] == "contradicted"
    assert "no draft was made" in behaviours["behaviour.speculation"]["why"]
    assert behaviours["behaviour.prefix_caching"]["agreement"] == "same"


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
