"""The parts that rules are made of: versions, conditions, words of a command line, families, silence and answers."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.engines.engine import Advisory, EngineCommand
from orchestrator.engines.flags.loading import load, versions
from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.registry import load_engines
from orchestrator.engines.rules.answering import PastRun, Served, answered
from orchestrator.engines.rules.argv import given_flags
from orchestrator.engines.rules.families import all_families, find_family
from orchestrator.engines.rules.matching import holds, names_in, number
from orchestrator.engines.rules.reading import all_rules, read_rule
from orchestrator.engines.rules.silencing import unknown_codes, without_silenced
from orchestrator.engines.rules.versions import version_range
from orchestrator.engines.rules.vocabulary import mistakes
from orchestrator.engines.vllm import PARSER
from orchestrator.profile.digest import profile_digest
from orchestrator.profile.loading import load_profile, search_path

WINNER = "qwen3.8-27b-nvfp4-mtp1-checkpoint"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">=0.28,<0.32", (0, 31, 4), (0, 32, 0)),
        (">=0.28,<0.32", (0, 28), (0, 27, 9)),
        ("<0.5.19", (0, 5, 18), (0, 5, 19)),
        ("==0.31", (0, 31, 0), (0, 31, 1)),
        (">0.30, <=0.33", (0, 33), (0, 30)),
    ],
)
def test_a_range_of_versions(text: str, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    assert version_range(text).holds(inside)
    assert not version_range(text).holds(outside)


@pytest.mark.parametrize("text", ["0.28", ">=", "", "~=0.3", ">=0.28;<0.3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version range"):
        version_range(text)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"a": 1}, True),
        ({"a": "1"}, True),
        ({"a": True}, False),
        ({"on": True}, True),
        ({"on": False}, False),
        ({"word": True}, True),
        ({"missing": {"given": False}}, True),
        ({"missing": {"not": "x"}}, True),
        ({"missing": {"above": 0}}, False),
        ({"missing": {"below": 9}}, False),
        ({"a": [2, 1]}, True),
        ({"big": {"at_least": 32768, "below": 32769}}, True),
        ({"list": {"matches": "^b"}}, True),
        ({"list": {"without": "^b"}}, False),
        ({"any": [{"a": 2}, {"on": True}]}, True),
        ({"any": [{"a": 2}, {"on": False}]}, False),
        ({"a": 1, "unless": {"on": True, "word": False}}, True),
        ({"a": 1, "unless": [{"on": True}]}, False),
        ({}, True),
    ],
)
def test_conditions(conditions: dict[str, Any], expected: bool) -> None:
    values: dict[str, Any] = {"a": 1, "on": True, "word": "on", "big": "32K", "list": ["a", "bc"]}

    assert holds(conditions, values.get) is expected


def test_names_are_found_inside_groups() -> None:
    assert names_in({"a": 1, "any": [{"b": 1}, {"unless": {"c": 1}}]}) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("value", "expected"), [("8k", 8000.0), ("8K", 8192.0), ("0.7", 0.7), (-1, -1.0), ("auto", None), (True, None)]
)
def test_numbers_as_engines_take_them(value: Any, expected: float | None) -> None:
    assert number(value) == expected


def test_a_command_line_is_read_with_its_origins() -> None:
    argv = ("m", "--max-num-seqs", "8", "--no-enable-prefix-caching", "-sc.method", "mtp", "--x=1", "--y", "[" * 9999)
    origins = ("model", "s", "s", "p", *(f"args[{index}]" for index in range(5)))

    found = given_flags(PARSER, EngineCommand(argv=argv, origins=origins, port=1))

    assert {name: (flag.value, flag.origin) for name, flag in found.items()} == {
        "max-num-seqs": ("8", "s"),
        "enable-prefix-caching": (False, "p"),
        "speculative-config": ({"method": "mtp"}, "args[0]"),
        "x": ("1", "args[2]"),
        "y": ("[" * 9999, "args[3]"),
    }


@pytest.mark.parametrize(
    ("model", "state"),
    [
        ("unsloth/Qwen3.8-27B-NVFP4", "gdn"),
        ("Qwen/Qwen3.6-35B-A3B-FP8", "gdn"),
        ("unsloth/Qwen3.8-Flash-Next-GGUF:UD-IQ1_S", "gdn"),
        ("Qwen/Qwen3-Coder-Next-FP8", "gdn"),
        ("/models/Qwen3.6-27B-Q4_K_M.gguf", "gdn"),
        ("/cache/hub/models--nvidia--GLM-5.3-Flash-NVFP4/snapshots/53e0082eedebd806", "kda"),
        ("~/models/Qwen3.8-27B/model.gguf", "gdn"),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "mamba"),
        ("nvidia/GLM-5.3-Flash-NVFP4", "kda"),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "kda"),
        ("nvidia/GLM-5.2-NVFP4", None),
        ("openai/gpt-oss-120b", None),
        ("google/gemma-4-26B-A4B-it", None),
        ("deepseek-ai/DeepSeek-V4-Flash", None),
        ("Qwen/Qwen3-32B", None),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", None),
    ],
)
def test_a_repositorys_name_tells_the_family(model: str, state: str | None) -> None:
    family = find_family(model)

    assert family is not None
    assert family.state == state


@pytest.mark.parametrize(
    "model", ["someone/unheard-of", "qwen3.8-27b/unheard-of", "nvidia/MiniMax-M3-NVFP4", "/", "", None]
)
def test_an_unknown_name_is_unknown_and_not_plain(model: str | None) -> None:
    assert find_family(model) is None


def test_experts_and_windows_are_told_apart() -> None:
    moe, dense, windows = (find_family(m) for m in ("a/Qwen3.6-35B-A3B", "a/Qwen3.6-27B", "openai/gpt-oss-20b"))

    assert moe is not None
    assert dense is not None
    assert windows is not None
    assert (moe.is_moe, dense.is_moe, windows.has_sliding_window) == (True, False, True)


def test_no_family_guesses_mtp_weights_and_each_has_a_source() -> None:
    assert all(family.source for family in all_families())
    assert not any("mtp" in name for name in dir(all_families()[0]))


def test_every_flag_in_a_rule_exists_in_some_version_of_its_engines() -> None:
    gone = {"swap-space", "mamba-scheduler-strategy"}  # before the first list; rules still speak to old recipes
    known = {engine: _names(engine) for engine in ("vllm", "sglang", "llamacpp")}
    wanted = {
        (rule.code, name.split(".")[1])
        for rule in all_rules()
        for name in (*names_in(rule.when), *rule.paths)
        if name.startswith("flag.")
        if not any(name.split(".")[1] in known[engine] for engine in rule.engines or known)
    }

    assert {(code, flag) for code, flag in wanted if flag not in gone} == set()


def _names(engine: str) -> set[str]:
    parser = {"vllm": PARSER}.get(engine)
    found: set[str] = set()
    for version in versions(engine):
        catalogue: Catalogue = load(engine, version)
        for flag in catalogue.flags.values():
            words = (flag.name, *flag.aliases)
            found |= {word.lstrip("-") for word in words}
            found |= {parser.canonical(word) for word in words} if parser else set()
    return found


def test_a_rule_with_an_unknown_word_is_named() -> None:
    rule = read_rule(
        {
            "code": "X-1",
            "title": "t",
            "message": "{serve.max_model_length} of {model.name}",
            "hint": "flags: {fit: off}",
            "evidence": ["e"],
            "standing": "s",
            "when": {"serve.nothing": {"over": 3}, "env.ANY": {"given": True}},
            "paths": ["container.ulimits.memlock"],
        }
    )

    assert list(mistakes(rule)) == [
        "X-1: no comparison is called over",
        "X-1: there is no circumstance serve.nothing",
        "X-1: there is no circumstance serve.max_model_length",
    ]


def test_a_rule_without_evidence_is_refused() -> None:
    with pytest.raises(ValueError, match="X-1: a rule says where it is known from"):
        read_rule({"code": "X-1", "title": "t", "message": "m", "hint": "h", "standing": "s"})


def test_silenced_codes_are_left_out_and_named() -> None:
    heard = without_silenced([Advisory(code="A-1", message="a"), Advisory(code="B-1", message="b")], {"A-1"})

    assert [a.code for a in heard.advisories] == ["B-1"]
    assert heard.silenced == ("A-1",)


def test_an_unknown_code_gets_the_nearest() -> None:
    assert unknown_codes(["GB10-CACHE-01", "GB10-CASH-01", "inert_flag"], ["inert_flag"]) == (
        ("silence[1]", "no advisory has the code GB10-CASH-01; did you mean `GB10-CACHE-01`?"),
    )


SERVED = Served(engine="vllm", model="o/m", profile_digest="d1", image_digest="sha256:aaa")
QUESTION = Advisory(code="GB10-CACHE-01", message="m", gates=("prefix_cache", "determinism"))
PASSED = {"prefix_cache": "pass", "determinism": "pass"}


def run(name: str, gates: dict[str, str], **changes: Any) -> PastRun:
    base: dict[str, Any] = {"engine": "vllm", "model": "o/m", "profile_digest": "d1", "image_digest": "sha256:aaa"}
    return PastRun(id=name, gates=gates, **(base | changes))


def test_gates_that_passed_on_the_same_image_answer() -> None:
    (found,) = answered([QUESTION], SERVED, [run("r1", PASSED)])

    assert found.answer == "answered by run r1: prefix_cache and determinism passed on sha256:aaa"


@pytest.mark.parametrize(
    "past",
    [
        [],
        [run("r1", {"prefix_cache": "pass"})],
        [run("r1", PASSED | {"determinism": "unstable"})],
        [run("r1", PASSED | {"determinism": "error"})],
        [run("r1", PASSED, image_digest="sha256:bbb")],
        [run("r1", PASSED, image_digest=None)],
        [run("r1", PASSED, profile_digest="d2")],
        [run("r1", PASSED, engine="sglang")],
        [run("r1", PASSED, model="o/other")],
    ],
)
def test_anything_less_does_not_answer(past: list[PastRun]) -> None:
    (found,) = answered([QUESTION], SERVED, past)

    assert (found.answer, found.seen) == (None, None)


def test_a_later_failure_takes_the_answer_back_and_is_named() -> None:
    (found,) = answered([QUESTION], SERVED, [run("r1", PASSED), run("r2", PASSED | {"determinism": "fail"})])

    assert found.answer is None
    assert found.seen == "seen in run r2: determinism failed on sha256:aaa"


def test_a_later_run_that_gated_nothing_changes_nothing() -> None:
    (found,) = answered([QUESTION], SERVED, [run("r1", PASSED), run("r2", {"prefix_cache": "skip"})])

    assert found.answer is not None


def test_without_a_host_the_newest_image_is_spoken_of() -> None:
    unasked = Served(engine="vllm", model="o/m", profile_digest="d1")
    past = [run("r1", PASSED, image_digest="sha256:old"), run("r2", PASSED)]

    (found,) = answered([QUESTION], unasked, past)

    expected = "answered by run r2: prefix_cache and determinism passed on sha256:aaa, if the image still is that one"
    assert found.answer == expected


def test_an_advisory_that_no_gate_answers_stays() -> None:
    (found,) = answered([Advisory(code="GB10-MEM-01", message="m")], SERVED, [run("r1", PASSED)])

    assert found.answer is None


def test_the_swarm_reports_winner_is_warned_of_and_answered_by_its_own_gates() -> None:
    profile = load_profile(WINNER, search=search_path()).profile
    advisories = {a.code: a for a in load_engines()["vllm"].advisories(profile)}
    cache = advisories["GB10-CACHE-01"]
    assert cache.path == "serve.prefix_caching"
    assert "vllm-project/vllm#55600" in cache.evidence

    served = Served(engine="vllm", model="unsloth/Qwen3.8-27B-NVFP4", profile_digest=profile_digest(profile))
    past = run("w1", PASSED, model=served.model, profile_digest=served.profile_digest, image_digest="sha256:e31")
    (found,) = answered([cache], served, [past])

    assert (found.answer or "").startswith("answered by run w1: prefix_cache and determinism passed on sha256:e31")
