"""Every verdict of every built-in gate, reached on a server with known truth: one file a case."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.plugins import load_gates
from tests.unit.gate_fakes import Counter, FakeTarget, Truth, default_claims, shown

CASES = Path(__file__).resolve().parents[1] / "cases" / "gates"
GATES = load_gates()


def found_cases() -> list[Any]:
    paths = [p for name in GATES for p in sorted((CASES / name).glob("*.json"))]
    return [pytest.param(p.parent.name, json.loads(p.read_text()), id=f"{p.parent.name}-{p.stem}") for p in paths]


@pytest.mark.parametrize(("gate", "case"), found_cases())
def test_gate_judges_the_known_truth(gate: str, case: dict[str, Any]) -> None:
    verdict = judged(gate, case)

    assert verdict.status.value == case["status"], verdict.summary
    assert [words for words in case["summary_has"] if words not in verdict.summary] == [], verdict.summary
    assert [words for words in case.get("summary_lacks", ()) if words in verdict.summary] == [], verdict.summary
    assert "hint" not in case or verdict.hint == case["hint"]


@pytest.mark.parametrize(("gate", "case"), found_cases())
def test_every_case_says_what_its_summary_tells(gate: str, case: dict[str, Any]) -> None:
    assert all(words.strip() for words in case["summary_has"])
    assert case["summary_has"], f"{gate}: a verdict whose words are not looked at could say anything"


@pytest.mark.parametrize(("gate", "case"), found_cases())
def test_verdict_is_plain_json_of_bounded_size(gate: str, case: dict[str, Any]) -> None:
    verdict = judged(gate, case)

    text = json.dumps([dict(verdict.measured), [dict(e) for e in verdict.evidence]], allow_nan=False)

    assert len(text) < 300_000
    assert verdict.summary == verdict.summary.strip()
    assert "\n" not in verdict.summary


@pytest.mark.parametrize("gate", GATES)
def test_each_gate_reaches_pass_and_skip_and_error(gate: str) -> None:
    reached = {json.loads(p.read_text())["status"] for p in (CASES / gate).glob("*.json")}

    assert {"pass", "skip", "error"} <= reached
    assert reached & {"fail", "unstable"}


def test_no_counter_hint_names_the_flag_of_the_engine() -> None:
    verdict = judged("prefix_cache", {"truth": {"counters": "none"}, "claims": {}, "params": {"prompt_tokens": 500}})

    assert verdict.hint is not None
    assert "--enable-prompt-tokens-details" in verdict.hint


def test_prompts_begin_with_a_nonce_that_is_never_used_again() -> None:
    target = FakeTarget()
    params = {**GATES["prefix_cache"].defaults, "prompt_tokens": 500, "second_prompt_tokens": 400}

    GATES["prefix_cache"].check(target, params)
    GATES["prefix_cache"].check(target, params)

    firsts = {str(b["messages"][0]["content"]).split()[0] for b in target.bodies}  # type: ignore[index,call-overload]
    assert len(firsts) == 6  # a sample and two lengths, twice
    assert all(len(word) == 16 for word in firsts)


def test_determinism_sends_one_prompt_of_length_one_modulo_64() -> None:
    target = FakeTarget()
    params = {**GATES["determinism"].defaults, "prompt_tokens": [300, 500]}

    verdict = GATES["determinism"].check(target, params)

    lengths = [p["prompt_tok"] for p in verdict.measured["prompts"]]  # type: ignore[union-attr,index,call-overload]
    assert lengths[0] % 64 == 1


def test_cold_runs_carry_a_fresh_salt_and_warm_runs_none() -> None:
    target = FakeTarget()
    params = {**GATES["determinism"].defaults, "prompt_tokens": [300]}

    GATES["determinism"].check(target, params)

    salts = [b.get("cache_salt") for b in target.bodies if b.get("logprobs")]
    assert len(set(salts[:2])) == 2
    assert salts[2:] == [None, None, None]


def test_long_prompts_are_kept_as_digest_head_and_tail() -> None:
    verdict = judged("context", {"truth": {}, "claims": {"max_model_len": 8000}, "params": {}})

    assert '"sha256"' in shown(verdict.evidence)
    assert "blue door" in shown(verdict.evidence)


def judged(gate: str, case: dict[str, Any]) -> Verdict:
    claims = {k: tuple(v) if k == "flush" else v for k, v in case["claims"].items()}
    truth = {k: tuple(v) if k == "refuses_fields" else v for k, v in case["truth"].items()}
    found: Any = GATES[gate]
    if "nonce" in {f.name for f in fields(found)}:
        found = replace(found, nonce=Counter())
    params = {**found.defaults, **case["params"]}
    if "sample_s" in params:
        params["sample_s"] = 0.001
    target = FakeTarget(Truth(**truth), default_claims(**claims), is_watched=gate == "concurrency")
    verdict: Verdict = found.check(target, params)
    assert isinstance(verdict.status, Status)
    return verdict
