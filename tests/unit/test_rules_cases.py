"""Every rule speaks of what it is about and of nothing near it: cases under tests/cases/rules, by the rules' files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.engines.engine import Advisory
from orchestrator.engines.registry import load_engines
from orchestrator.engines.rules.reading import FILES, all_rules
from orchestrator.engines.rules.vocabulary import mistakes
from orchestrator.profile.building import build_profile

CASES = Path(__file__).parents[1] / "cases" / "rules"
ENGINES = load_engines()
BASES: Mapping[str, Mapping[str, Any]] = {
    "vllm": {"image": "vllm/vllm-openai:v0.33.0", "model": "someone/model"},
    "sglang": {"image": "lmsysorg/sglang:v0.5.23", "model": "someone/model"},
    "llamacpp": {"image": "ghcr.io/ggml-org/llama.cpp:server-cuda13", "model": "someone/model"},
    "generic": {},
    "endpoint": {},
}


def by_rule() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for name in FILES:
        cases = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
        assert not found.keys() & cases.keys()
        found.update(cases)
    return found


def advisories(case: Mapping[str, Any]) -> tuple[Advisory, ...]:
    base = BASES[case.get("engine", "vllm")]
    plain = {"name": "case", "engine": "vllm", **base, **case}
    profile = build_profile({key: value for key, value in plain.items() if value is not None})
    engine = ENGINES[profile.engine]
    assert engine.problems(profile) == ()
    return engine.advisories(profile)


def pairs(kind: str) -> list[Any]:
    return [
        pytest.param(code, case, id=f"{code}-{index}")
        for code, cases in by_rule().items()
        for index, case in enumerate(cases[kind])
    ]


RULES = all_rules()


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_every_rule_has_a_case_that_triggers_it_and_one_that_does_not(rule: Any) -> None:
    cases = by_rule()[rule.code]

    assert cases["fires"]
    assert cases["silent"]


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_every_rule_uses_the_vocabulary_and_says_where_it_is_from(rule: Any) -> None:
    assert list(mistakes(rule)) == []
    assert rule.evidence
    assert rule.standing
    assert rule.hint


def test_codes_are_unique_and_every_case_is_of_a_rule() -> None:
    codes = [rule.code for rule in RULES]

    assert len(set(codes)) == len(codes)
    assert set(by_rule()) == set(codes)


@pytest.mark.parametrize(("code", "case"), pairs("fires"))
def test_a_rule_speaks(code: str, case: Mapping[str, Any]) -> None:
    found = {advisory.code: advisory for advisory in advisories(case["profile"])}

    assert code in found
    assert case["says"] in found[code].message
    assert found[code].path == case["path"]


@pytest.mark.parametrize(("code", "case"), pairs("silent"))
def test_a_rule_keeps_silent(code: str, case: Mapping[str, Any]) -> None:
    assert code not in [advisory.code for advisory in advisories(case)]
