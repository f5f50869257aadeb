"""What is found of a profile beside its words: its list, its versions, its allowances, the files that it names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.engines.engine import Placement
from orchestrator.engines.flags.checking import check_profile, check_words
from orchestrator.engines.flags.listing import is_other_version
from orchestrator.engines.flags.loading import choose, choose_for, load
from orchestrator.engines.flags.model import Chosen, Severity
from orchestrator.engines.flags.named_files import named_files
from orchestrator.engines.flags.nearest import is_slip_of
from orchestrator.engines.registry import load_engines
from orchestrator.profile.building import build_profile

CASES = Path(__file__).parents[1] / "cases" / "flags"
PROFILES = yaml.safe_load((CASES / "profiles.yaml").read_text())


def found_of(told: dict[str, Any], chosen: Chosen | None = None) -> list[tuple[str, str]]:
    profile = build_profile({"name": "p", "engine": "vllm", "model": "m/m", **told})
    command = load_engines()["vllm"].command(profile, Placement())
    listing = chosen or choose_for(profile)
    assert listing is not None
    found = check_profile(profile, command, listing)
    return [(f"{one.severity} {one.code} {one.path}", f"{one.message} ({one.hint})") for one in found]


@pytest.mark.parametrize("case", PROFILES, ids=[str(case["profile"])[:80] for case in PROFILES])
def test_a_profile_gives_exactly_these_findings(case: dict[str, Any]) -> None:
    wanted = [line.split(" | ") for line in case["finds"]]

    found = found_of(case["profile"])

    assert [heads for heads, _ in found] == [parts[0] for parts in wanted], found
    for (_, text), parts in zip(found, wanted, strict=True):
        assert [part for part in parts[1:] if part not in text] == [], text


def test_an_allowance_that_an_images_own_list_needs_no_more_may_be_needed_elsewhere() -> None:
    own = Chosen(catalogue=replace(load("vllm", "0.31.0"), is_own=True), wanted="0.31.0")
    told = {"image": "x/y@sha256:aa", "flags": {"moe-backend": "marlin"}, "allow_unknown_flags": ["moe-backend"]}

    assert found_of(told, own) == []
    assert [head for head, _ in found_of({**told, "flags": {}}, own)] == [
        "warning idle_allowance allow_unknown_flags[0]"
    ]


def test_an_image_that_says_another_version_than_the_profile_is_warned_of() -> None:
    own = Chosen(catalogue=replace(load("vllm", "0.31.0"), version="0.31.1.dev7+g1", is_own=True))

    assert found_of({"image": "x/y:1", "engine_version": "0.31.1"}, own) == []
    ((head, text),) = found_of({"image": "x/y:1", "engine_version": "0.30.0"}, own)
    assert head == "warning version_mismatch engine_version"
    assert "0.30.0 is stated, and the image itself says 0.31.1.dev7+g1" in text


@pytest.mark.parametrize(
    ("one", "other", "is_other"),
    [
        ("0.31.0", "0.31.0", False),
        ("0.31", "0.31.2", False),
        ("0.31.0", "0.31.2", True),
        ("v0.31.0-cu130", "0.31.0", False),
        ("0.5.2", "0.5.20", True),
        ("b10434", "b10435", True),
        ("b10434", "0.5.0-dev", False),
        ("nightly", "0.31.0", False),
        ("0.31.0", "of unknown version", False),
    ],
)
def test_two_texts_name_other_releases(one: str, other: str, is_other: bool) -> None:
    assert is_other_version(one, other) is is_other
    assert is_other_version(other, one) is is_other


@pytest.mark.parametrize(
    ("word", "name", "is_slip"),
    [
        ("num_speculative_token", "num_speculative_tokens", True),
        ("num-speculative-tokens", "num_speculative_tokens", True),
        ("tritno", "triton", True),
        ("tirtno", "triton", False),
        ("flashinfre_cutlas", "flashinfer_cutlass", True),
        ("auto", "aut", True),
        ("aut", "auto", False),
        ("fp4", "fp8", False),
        ("FP8", "fp8", True),
        ("qwen35_coder", "qwen3_coder", False),
        ("qwen3_codre", "qwen3_coder", True),
        ("draft_attention_backend", "attention_backend", False),
        ("", "auto", False),
    ],
)
def test_a_slip_in_a_name_is_told_from_another_name(word: str, name: str, is_slip: bool) -> None:
    assert is_slip_of(word, ("zzzzzzzzzz", name)) is is_slip


def files() -> Iterator[tuple[str, str, list[str]]]:
    for group in yaml.safe_load((CASES / "files.yaml").read_text()):
        for words, named in group["rows"].items():
            yield group["engine"], words, named


@pytest.mark.parametrize(("engine", "words", "named"), list(files()))
def test_words_name_these_files(engine: str, words: str, named: list[str]) -> None:
    found = named_files(choose(engine, None).catalogue, shlex.split(words), ())

    assert [f"{file.flag} {file.path}" for file in found] == named


def test_a_named_file_knows_where_its_path_was_declared() -> None:
    words, origins = ("m", "--chat-template", "x.jinja"), ("model", "args[0]", "args[1]")
    joined = ("m", "--chat-template=x.jinja"), ("model", "args[0]")
    catalogue = load("vllm", "0.31.0")

    assert [file.origin for file in named_files(catalogue, words, origins)] == ["args[1]"]
    assert [file.origin for file in named_files(catalogue, *joined)] == ["args[0]"]


def own_list(names: tuple[str, ...]) -> Chosen:
    catalogue = load("vllm", "0.31.0")
    flags = dict(catalogue.flags)
    for name in ("--tool-call-parser", "--reasoning-parser"):
        flags[name] = replace(flags[name], choices=names, known=())
    return Chosen(catalogue=replace(catalogue, flags=flags, is_own=True), wanted="0.31.0")


TOOLS = "m --enable-auto-tool-choice --tool-call-parser"


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (f"{TOOLS} hermes", []),
        (f"{TOOLS} qwen3_coder", ["flag_choice"]),
        (f"{TOOLS} mine --tool-parser-plugin /p.py", []),
        (f"{TOOLS} mine --reasoning-parser-plugin /p.py", ["flag_choice"]),
        ("m --reasoning-parser qwen3", ["flag_choice"]),
        ("m --reasoning-parser qwen3 --reasoning-parser-plugin /p.py", []),
        ("m --reasoning-parser ''", []),
    ],
)
def test_a_parser_that_the_image_has_not_registered_is_an_error_unless_a_plugin_brings_it(
    words: str, codes: list[str]
) -> None:
    found = check_words(own_list(("hermes",)), shlex.split(words), ())

    assert [one.code for one in found] == codes
    assert all(one.severity is Severity.ERROR and "one of hermes" in (one.hint or "") for one in found)
