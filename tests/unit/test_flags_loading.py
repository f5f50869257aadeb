"""The shipped lists: that they are there, which one is chosen, what they tell of versions, and what sets two apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from orchestrator.engines import llamacpp, vllm
from orchestrator.engines.flags.comparing import DefaultChanged, Renamed, compare
from orchestrator.engines.flags.document import decode, encode
from orchestrator.engines.flags.facts import load_facts
from orchestrator.engines.flags.history import Span, load_history, was_there, when_there
from orchestrator.engines.flags.loading import (
    ENGINES,
    choose,
    is_certain,
    load,
    versions,
    wanted_version,
)
from orchestrator.engines.flags.model import ValueKind
from orchestrator.engines.flags.reading import spellings
from orchestrator.engines.images import image_tag_version, version_key
from orchestrator.engines.words import Parser
from orchestrator.errors import InputError
from orchestrator.profile.digest import profile_digest
from orchestrator.profile.model import Profile
from tools import catalogs

DEV = "0.5.0-dev+0c1e57098"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_list_travels_with_the_package(engine: str) -> None:
    folder = files("orchestrator.engines").joinpath("catalogs")
    history = load_history(engine)

    told = {version: json.loads(folder.joinpath(f"{engine}-{version}.json").read_bytes()) for version in history.whole}

    assert {version: one["version"] for version, one in told.items()} == {version: version for version in history.whole}


def test_the_wheel_takes_the_folder_of_lists_along() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()

    assert 'packages = ["orchestrator", "gates"]' in text
    assert "exclude" not in text.split("[tool.hatch.build.targets.sdist]")[0].split("[tool.hatch")[-1]


def test_versions_are_told_oldest_first() -> None:
    assert versions("llamacpp") == ("b10434", DEV)
    assert versions("vllm")[0] == "0.20.0"
    assert versions("vllm")[-1] == "0.33.0"
    assert versions("sglang") == ("0.5.9", "0.5.12", "0.5.15", "0.5.18", "0.5.20", "0.5.21", "0.5.22", "0.5.23")
    assert all(list(versions(engine)) == sorted(versions(engine), key=version_key) for engine in ENGINES)


@pytest.mark.parametrize(
    ("engine", "version", "flags"),
    [
        ("vllm", "0.20.0", 241),
        ("vllm", "0.26.0", 274),
        ("vllm", "0.33.0", 320),
        ("sglang", "0.5.18", 488),
        ("sglang", "0.5.23", 531),
        ("llamacpp", "b10434", 248),
        ("llamacpp", DEV, 255),
    ],
)
def test_a_list_holds_every_flag_of_its_version(engine: str, version: str, flags: int) -> None:
    assert len(load(engine, version).flags) == flags


@pytest.mark.parametrize(
    ("engine", "wanted", "version", "told", "certain"),
    [
        ("vllm", "0.31.0", "0.31.0", None, True),
        ("vllm", "v0.31.0-cu130", "0.31.0", None, True),
        ("vllm", "0.31", "0.31.0", None, True),
        (
            "vllm",
            "0.31.2",
            "0.31.0",
            "there is no flag list for vllm 0.31.2; that of 0.31.0, the nearest lower one",
            True,
        ),
        ("vllm", "0.40.1", "0.33.0", "vllm 0.40.1; that of 0.33.0", False),
        ("vllm", "0.23.0", "0.22.0", "vllm 0.23.0; that of 0.22.0", False),
        ("vllm", "0.24.0", "0.24.0", None, False),
        ("vllm", "0.11.0", "0.20.0", "that of 0.20.0, the oldest one known", False),
        ("vllm", "0.33.0rc1", "0.32.0", "vllm 0.33.0rc1; that of 0.32.0", False),
        ("vllm", "latest", "0.33.0", "`latest` tells no version; the flag list of the newest one known, 0.33.0", False),
        ("vllm", None, "0.33.0", "nothing tells the version of vllm", False),
        ("sglang", "0.5.19", "0.5.18", "sglang 0.5.19; that of 0.5.18", False),
        ("sglang", "0.5.23.post1", "0.5.23", None, True),
        ("llamacpp", "b10434", "b10434", None, True),
        ("llamacpp", "b9999", "b10434", "the oldest one known", False),
        ("llamacpp", "b12000", "b10434", "the nearest lower one", False),
        ("llamacpp", "0.5.0", DEV, f"that of {DEV}", False),
    ],
)
def test_the_list_of_a_version(engine: str, wanted: str | None, version: str, told: str | None, certain: bool) -> None:
    chosen = choose(engine, wanted)

    assert chosen.catalogue.version == version
    assert (chosen.note is None) is (told is None)
    assert told is None or told in (chosen.note or "")
    assert is_certain(chosen) is certain


@pytest.mark.parametrize("ask", [lambda: versions("nope"), lambda: choose("nope", None), lambda: load("vllm", "9.9")])
def test_a_list_that_is_not_there_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(InputError) as caught:
        ask()

    assert caught.value.hint


@pytest.mark.parametrize(
    ("engine", "image", "expected"),
    [
        ("vllm", "vllm/vllm-openai:v0.31.0-cu130", "0.31.0"),
        ("vllm", "vllm/vllm-openai:v0.31.0@sha256:" + "0" * 64, "0.31.0"),
        ("vllm", "vllm/vllm-openai:latest", None),
        ("vllm", "vllm/vllm-openai:cu130-nightly", None),
        ("vllm", "nvcr.io/nvidia/vllm:26.05-py3", None),
        ("vllm", "ghcr.io/x/dspark-vllm:0.1.1", None),
        ("sglang", "lmsysorg/sglang:v0.5.23-cu130", "0.5.23"),
        ("sglang", "lmsysorg/sglang:spark", None),
        ("llamacpp", "ghcr.io/ggml-org/llama.cpp:server-cuda-b10434", "b10434"),
        ("llamacpp", "ghcr.io/ggml-org/llama.cpp:full-b10500", "b10500"),
        ("llamacpp", "ghcr.io/ggml-org/llama.cpp:server-cuda", None),
        ("generic", "vllm/vllm-openai:v0.31.0", None),
        ("vllm", None, None),
    ],
)
def test_the_version_that_an_image_tells(engine: str, image: str | None, expected: str | None) -> None:
    assert wanted_version(Profile(name="p", engine=engine, image=image)) == expected


def test_the_profiles_own_word_wins_and_changes_nothing_of_what_runs() -> None:
    stated = Profile(name="p", engine="vllm", image="vllm/vllm-openai:v0.31.0", engine_version="0.33.0")
    plain = Profile(name="p", engine="vllm", image="vllm/vllm-openai:v0.31.0")

    assert wanted_version(stated) == "0.33.0"
    assert profile_digest(stated) == profile_digest(plain)


@pytest.mark.parametrize(("engine", "version"), [(e, v) for e in ENGINES for v in versions(e)])
def test_a_list_as_json_and_back_is_the_same(engine: str, version: str) -> None:
    catalogue = load(engine, version)

    assert decode(json.loads(json.dumps(encode(catalogue)))) == catalogue


@pytest.mark.parametrize("engine", ENGINES)
def test_every_name_known_by_hand_is_a_flags(engine: str) -> None:
    facts, history = load_facts(engine), load_history(engine)
    known = {spelling for version in history.versions for spelling in spellings(load(engine, version))}
    conditions = {c.flag for rule in facts.combinations for c in rule.when}
    named = {word for rule in facts.combinations for word in (*rule.needs, *rule.excludes)}
    heirs = {word.partition(" ")[0] for rename in facts.renames.values() for word in rename.new}

    assert ({remark.flag for remark in facts.remarks} | conditions | named | heirs) - known == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_no_variable_said_to_be_gone_is_in_a_later_list(engine: str) -> None:
    late = [
        (name, version)
        for name, gone in load_facts(engine).variables.items()
        for version in load_history(engine).whole
        if version_key(version) >= version_key(gone.since) and name in load(engine, version).env
    ]

    assert late == []


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_no_renamed_flag_is_in_the_version_that_dropped_it(engine: str) -> None:
    late = [
        old
        for old, rename in load_facts(engine).renames.items()
        if rename.since in versions(engine)
        and old in load(engine, rename.since).flags
        and old != "--disable-log-requests"
    ]

    assert late == []


def test_a_list_put_together_undoes_what_later_versions_changed() -> None:
    old, whole = load("vllm", "0.22.0"), load("vllm", "0.26.0")

    assert (old.is_partial, whole.is_partial, old.env) == (True, False, {})
    assert "--prefix-match-unit" not in old.flags
    assert "int4_per_token_head" in whole.flags["--kv-cache-dtype"].choices
    assert "int4_per_token_head" not in old.flags["--kv-cache-dtype"].choices
    assert "mori" in old.flags["--all2all-backend"].choices
    assert "mori" not in whole.flags["--all2all-backend"].choices


def test_a_flag_that_no_whole_list_has_is_known_by_name() -> None:
    flags = load("sglang", "0.5.9").flags

    assert flags["--ds-channel-config-path"].nargs == "*"
    assert flags["--enable-double-sparsity"].kind is ValueKind.NONE
    assert "--ds-channel-config-path" not in load("sglang", "0.5.12").flags


def test_spans_in_words() -> None:
    history = load_history("vllm")

    assert when_there(Span(first=None, last="0.27.0"), history) == "until 0.27.0"
    assert when_there(Span(first="0.29.0", last="0.33.0"), history) == "since 0.29.0"
    assert when_there(Span(first="0.30.0", last="0.30.0"), history) == "in 0.30.0 only"
    assert when_there(Span(first="0.26.0", last="0.29.0"), history) == "from 0.26.0 to 0.29.0"
    assert when_there(Span(first=None, last="0.33.0"), history) == "in all known versions"
    assert [was_there(Span(first="0.26.0", last="0.29.0"), v) for v in ("0.25.0", "0.26.0", "0.29.0", "0.30.0")] == [
        *(False, True, True, False)
    ]


def test_versions_have_an_order() -> None:
    told = ["b9", "b10434", "0.5.0-dev+abc", "0.5", "0.5.1", "0.31.0", "1.0"]

    assert sorted([*told[4:], *told[:4]], key=version_key) == told
    assert version_key("0.31") == version_key("v0.31.0")
    assert version_key("nightly") < version_key("b1")
    assert image_tag_version("a/vllm-openai:v1.2.3x", ("vllm-openai",)) == "1.2.3"


def test_what_sets_two_versions_apart() -> None:
    found = compare(load("vllm", "0.30.0"), load("vllm", "0.31.0"), load_history("vllm"))

    assert found.renamed == (
        Renamed(old="--enable-mamba-fine-grained-prefix-cache", new=("--enable-mamba-shared-prefix-checkpoint",)),
    )
    assert "--enable-mamba-shared-prefix-checkpoint" not in found.added
    assert "--max-num-active-seqs" in found.added
    assert found.removed == ()
    assert "--log-config-file" in {flag.name for flag in found.deprecated}


def test_changed_defaults_and_choices_are_told() -> None:
    found = compare(load("vllm", "0.31.0"), load("vllm", "0.33.0"), load_history("vllm"))
    choices = {change.name: change for change in found.choices}

    assert DefaultChanged(name="--allowed-origins", before=["*"], after=[], since="0.32.0") in found.defaults
    assert choices["--mamba-cache-mode"].removed == ("all",)
    assert "ultraquant_4bit" in choices["--kv-cache-dtype"].added
    assert {flag.name for flag in found.deprecated} == {
        *("--disable-cascade-attn", "--ir-op-priority", "--mamba-cache-mode")
    }
    assert "SpeculativeConfig.disable_lookahead_block_hashes" in found.keys_added


def test_a_list_beside_itself_has_no_differences() -> None:
    one = load("sglang", "0.5.22")

    found = compare(one, one, load_history("sglang"))

    assert [getattr(found, name) for name in found.__slots__ if getattr(found, name)] == []


def test_an_extracted_list_becomes_ours() -> None:
    told = {
        "engine": "vllm",
        "version": "1.0.0",
        "conventions": {
            "underscores_equal_dashes": True,
            "abbreviations_accepted": True,
            "positional": ["model_tag"],
            "json_dotted_keys": True,
            "nullable_literal": "None",
        },
        "flags": [
            {"name": "--headless", "aliases": [], "value": "bool", "default": False, "store": "store_true"},
            {"name": "--x", "aliases": ["-x"], "negatives": ["--no-x"], "value": "bool", "default": None},
            {
                "name": "--n",
                "value": "int",
                "human_int": True,
                "constraints": {"ge": 1},
                "nullable": True,
                "also": [-1],
            },
            {"name": "--c", "value": "json", "json_class": "C", "default": "<C()>"},
        ],
        "json_classes": {"C": {"k": {"value": "str", "known_values": ["a"], "default": None}}},
        "env": {"VLLM_A": {"type": "int", "default": 3}, "VLLM_B": {"type": None, "default": None}},
    }

    made = catalogs.catalogue_of(told)

    assert [(flag.kind, flag.negatives) for flag in made.flags.values()] == [
        (ValueKind.NONE, ()),
        (ValueKind.BOOL, ("--no-x",)),
        (ValueKind.INT, ()),
        (ValueKind.JSON, ()),
    ]
    assert (made.flags["--n"].bounds, made.flags["--n"].also, made.flags["--n"].is_nullable) == (
        {"ge": 1.0},
        ("-1",),
        True,
    )
    assert (made.flags["--c"].default, made.flags["--c"].default_text) == (None, "C()")
    assert made.json_classes["C"]["k"].known == ("a",)
    assert made.env == {"VLLM_A": "3", "VLLM_B": None}
    assert (made.env_prefix, made.conventions.null_word, made.conventions.dotted) == ("VLLM_", "None", True)


@pytest.mark.parametrize(("engine", "parser"), [("vllm", vllm.PARSER), ("llamacpp", llamacpp.PARSER)])
def test_the_aliases_that_are_written_are_those_of_the_newest_list(engine: str, parser: Parser) -> None:
    known = spellings(load(engine, versions(engine)[-1]))

    wrong = {alias: name for alias, name in parser.aliases.items() if known[alias].flag.name != f"--{name}"}

    assert wrong == {}
