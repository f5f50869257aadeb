"""Command lines and variables held against the shipped lists: tests/cases/flags, and every list against itself."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from orchestrator.engines.engine import ADDED, EngineCommand, Placement
from orchestrator.engines.flags.checking import check_env, check_profile, check_words
from orchestrator.engines.flags.loading import ENGINES, choose, choose_for, load, versions
from orchestrator.engines.flags.model import Catalogue, Chosen, Conventions, Finding, Flag, Severity, ValueKind
from orchestrator.engines.flags.reading import read_words
from orchestrator.engines.flags.values import value_faults
from orchestrator.engines.registry import load_engines
from orchestrator.profile.finding import shipped_dir
from orchestrator.profile.loading import load_profile
from orchestrator.profile.model import ModelRef, Profile

CASES = Path(__file__).parents[1] / "cases" / "flags"
ALL = [(engine, version) for engine in ENGINES for version in versions(engine)]
PROFILES = sorted(path for path in shipped_dir().rglob("*.yaml") if "workloads" not in path.parts)


def rows(*names: str) -> Iterator[tuple[str, str, str, list[str]]]:
    for name in names:
        for group in yaml.safe_load((CASES / f"{name}.yaml").read_text()):
            for words, finds in group["rows"].items():
                yield group["engine"], group["version"], words, finds


def allowances() -> Iterator[tuple[str, str, str, list[str], list[str]]]:
    for group in yaml.safe_load((CASES / "allowances.yaml").read_text()):
        for words, allowed, finds in group["rows"]:
            yield group["engine"], group["version"], words, allowed, finds


def assert_found(found: tuple[Finding, ...], expected: list[str]) -> None:
    wanted = [[part.strip() for part in line.split(" | ")] for line in expected]

    assert [f"{f.severity} {f.code} {f.flag or '-'}" for f in found] == [parts[0] for parts in wanted], found
    for finding, parts in zip(found, wanted, strict=True):
        assert [part for part in parts[1:] if part not in f"{finding.message} ({finding.hint})"] == [], finding


@pytest.mark.parametrize(
    ("engine", "version", "words", "finds"),
    list(rows("names", "values", "json", "combinations", "unknown_version")),
)
def test_words_give_exactly_these_findings(engine: str, version: str, words: str, finds: list[str]) -> None:
    assert_found(check_words(choose(engine, version), shlex.split(words), ()), finds)


@pytest.mark.parametrize(("engine", "version", "words", "finds"), list(rows("variables")))
def test_variables_give_exactly_these_findings(engine: str, version: str, words: str, finds: list[str]) -> None:
    name, _, value = words.partition("=")

    assert_found(check_env(choose(engine, version), {name: value}), finds)


def test_a_variable_that_is_unset_is_not_looked_at() -> None:
    assert check_env(choose("vllm", "0.31.0"), {"VLLM_USE_V1": None}) == ()


def test_a_finding_names_the_place_of_its_word() -> None:
    words = ("m", "--max-num-seqs", "x", "--moe-backend=y", "--nope")
    origins = ("model", "serve.max_num_seqs", "serve.max_num_seqs", "args[0]", "args[1]")

    found = check_words(choose("vllm", "0.31.0"), words, origins)

    assert [finding.path for finding in found] == ["serve.max_num_seqs", "args[0]", "args[1]"]


def test_a_value_in_the_tail_is_named_itself() -> None:
    found = check_words(choose("vllm", "0.31.0"), ("--max-num-seqs", "x"), ("args[4]", "args[5]"))

    assert [finding.path for finding in found] == ["args[5]"]


@pytest.mark.parametrize("name", ["mxfp4-backend", "--mxfp4-backend", "mxfp4_backend"])
@pytest.mark.parametrize("spelling", ["--mxfp4-backend", "--mxfp4_backend"])
def test_an_allowed_flag_is_accepted_in_any_spelling(name: str, spelling: str) -> None:
    assert check_words(choose("vllm", "0.31.0"), ("m", spelling, "CUTLASS"), (), allowed=[name]) == ()


@pytest.mark.parametrize(("engine", "version", "words", "allowed", "finds"), list(allowances()))
def test_what_is_allowed_is_accepted_and_no_more(
    engine: str, version: str, words: str, allowed: list[str], finds: list[str]
) -> None:
    assert_found(check_words(choose(engine, version), words.split(" "), (), allowed=allowed), finds)


def test_a_flag_that_gate0_adds_can_be_refused() -> None:
    found = check_words(choose("vllm", "0.24.0"), ("m", "--enable-per-request-metrics"), ("model", ADDED))

    assert [(f.code, f.path) for f in found] == [("unknown_flag", "added")]
    assert "refuse_added: [enable-per-request-metrics]" in (found[0].hint or "")


def test_what_an_images_own_list_lacks_is_an_error_whatever_its_version() -> None:
    flags = {"--port": Flag(name="--port", kind=ValueKind.INT)}
    conventions = Conventions(positional=("model_tag",))
    own = Chosen(
        catalogue=Catalogue(engine="vllm", version="0.31.0", flags=flags, conventions=conventions, is_own=True)
    )

    found = check_words(own, ("m", "--port", "1", "--max-num-seqs", "8"), ())

    assert [(f.severity, f.code) for f in found] == [(Severity.ERROR, "unknown_flag")]
    assert "this image (vllm 0.31.0)" in found[0].message


def test_another_engine_has_no_list() -> None:
    profile = Profile(name="p", engine="generic")

    assert choose_for(profile) is None
    assert check_profile(profile, EngineCommand(argv=("x", "--y"), port=1), choose("vllm", None)) == ()


def test_a_list_that_is_not_the_versions_own_is_said() -> None:
    profile = Profile(name="p", engine="vllm", image="x/fork:1", engine_version="0.31.4", model=ModelRef(repo="m"))
    command = EngineCommand(argv=("m",), origins=("model",), port=1)
    chosen = choose_for(profile)
    assert chosen is not None

    found = check_profile(profile, command, chosen)

    assert [(f.severity, f.code, f.path) for f in found] == [(Severity.WARNING, "flag_list", "image")]
    assert "0.31.4" in found[0].message
    assert "0.31.0" in found[0].message


@pytest.mark.parametrize("path", PROFILES, ids=[path.stem for path in PROFILES])
def test_no_shipped_profile_has_an_error(path: Path) -> None:
    profile = load_profile(str(path), search=[shipped_dir()]).profile
    chosen = choose_for(profile)
    if chosen is None:
        return
    command = load_engines()[profile.engine].command(profile, Placement(nodes=profile.nodes))

    assert [f for f in check_profile(profile, command, chosen) if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize(("engine", "version"), ALL)
def test_every_spelling_of_a_list_reads_back(engine: str, version: str) -> None:
    catalogue = load(engine, version)

    for flag in catalogue.flags.values():
        for spelling in (flag.name, *flag.aliases, *flag.negatives):
            given = read_words(catalogue, (spelling, *_example(flag, spelling in flag.negatives)))
            assert [(g.flag, g.full, g.is_negative) for g in given] == [(flag, spelling, spelling in flag.negatives)]


@pytest.mark.parametrize(("engine", "version"), ALL)
def test_every_default_choice_and_known_value_passes_its_own_check(engine: str, version: str) -> None:
    catalogue = load(engine, version)

    wrong = [
        (flag.name, word, fault)
        for flag in catalogue.flags.values()
        for word in _values(flag)
        for fault in value_faults(catalogue, flag, word)
    ]

    assert wrong == []


def _values(flag: Flag) -> list[str]:
    if flag.kind in {ValueKind.NONE, ValueKind.BOOL}:
        return []
    default = [] if flag.default is None or flag.default == "" else flag.default
    if flag.kind in {ValueKind.JSON, ValueKind.JSON_OR_STR}:
        return [json.dumps(default)] if flag.default is not None else []
    given = default if isinstance(default, list) else [default]
    return [str(item) for item in (*given, *flag.choices, *flag.known, *flag.also)]


def _example(flag: Flag, is_negative: bool) -> tuple[str, ...]:
    if is_negative or flag.kind in {ValueKind.NONE, ValueKind.BOOL}:
        return ()
    return ("1",) * (flag.nargs if isinstance(flag.nargs, int) else 1)
