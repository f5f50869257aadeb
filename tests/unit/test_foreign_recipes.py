"""Recipes as profiles: one small file for each kind of thing that people write, with profile and loss report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.engine import Placement
from orchestrator.engines.registry import load_engines
from orchestrator.errors import InputError
from orchestrator.foreign.importing import Outcome, import_text
from orchestrator.profile.building import build_profile, resolved_value
from orchestrator.profile.yaml_lines import load_document

CASES = Path(__file__).parents[1] / "cases" / "foreign" / "recipes"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))
ENGINES = load_engines()


def imported(text: str, source: str = "recipe.yaml") -> Outcome:
    return import_text(text, source=source, engines=ENGINES)


def case(name: str) -> tuple[Outcome, list[dict[str, Any]]]:
    expected = json.loads((CASES / f"{name}.expected.json").read_text())
    return imported((CASES / f"{name}.yaml").read_text(), f"{name}.yaml"), expected


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_becomes_this_profile(name: str) -> None:
    outcome, expected = case(name)

    assert [one.draft.document for one in outcome.profiles] == [profile["document"] for profile in expected]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_recipe_disappears_without_a_word(name: str) -> None:
    outcome, expected = case(name)

    said = [[f"{n.fate.value} | {n.where} | {n.what}" for n in one.draft.notes] for one in outcome.profiles]

    assert said == [profile["notes"] for profile in expected]


@pytest.mark.parametrize("name", NAMES)
def test_the_written_profile_reads_back_as_the_same_document(name: str) -> None:
    for one in imported((CASES / f"{name}.yaml").read_text()).profiles:
        assert resolved_value(load_document(one.text, "there")) == one.draft.document


def argv(text: str) -> tuple[str, ...]:
    (one,) = imported(text).profiles
    profile = build_profile(one.draft.document)
    return ENGINES[profile.engine].command(profile, Placement(nodes=profile.nodes)).argv


HEAD = 'recipe_version: "2"\nmodel: org/M\ncontainer: team/image:v1\n'


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--max-num-seqs 8", ("--max-num-seqs", "8")),
        ("--max_num_seqs=8", ("--max-num-seqs", "8")),
        ("--no-enable-prefix-caching", ("--no-enable-prefix-caching",)),
        ("--compilation-config.mode 3", ("--compilation-config.mode", "3")),
        ("-O3", ("--optimization-level", "3")),
        ("--gpu-memory-utilization 0.80", ("--gpu-memory-utilization", "0.8")),
        ("--max-model-len 128k", ("--max-model-len", "128000")),
        ("--max-model-len -1", ("--max-model-len", "-1")),
        ("--override-generation-config '{\"x\":null}'", ("--override-generation-config", '{"x":null}')),
        ("--served-model-name 'two words'", ("--served-model-name", "two words")),
        ("--enable-chunked-prefil", ("--enable-chunked-prefil",)),
        ("--unheard-of a b", ("--unheard-of", "a", "b")),
    ],
)
def test_a_flag_comes_out_as_the_engine_takes_it(command: str, words: tuple[str, ...]) -> None:
    found = argv(f"{HEAD}command: |\n  vllm serve {{model}} {command}\n")

    assert found[:1] == ("org/M",)
    assert any(found[at : at + len(words)] == words for at in range(len(found)))


def test_a_key_in_the_command_is_nowhere_in_the_outcome() -> None:
    (one,) = imported(f"{HEAD}command: vllm serve x/y --api-key tops3cret-value\n").profiles

    assert "tops3cret" not in one.text + repr(one.draft)
    assert one.draft.document["serve"] == {"api_key": {"secret": "VLLM_API_KEY"}}


def test_a_secret_in_the_environment_becomes_a_reference() -> None:
    (one,) = imported(f"{HEAD}env: {{HF_TOKEN: hf_abcdefghijklmnop1234}}\ncommand: vllm serve x/y\n").profiles

    assert "hf_abcdef" not in one.text + repr(one.draft)
    assert one.draft.document["env"] == {"HF_TOKEN": {"secret": "HF_TOKEN"}, "HF_HOME": "/cache/huggingface"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("framework: llama-benchy\nargs: {pp: [2048]}\n", "says how to measure (llama-benchy), not what to serve"),
        ("name: x\nengine: vllm\nimage: a/b\n", "is a profile of gate0's own"),
        ("just: words\nand: more\n", "is no configuration that gate0 reads"),
        (
            'recipe_version: "4"\nmodel: m\nlaunch: ds4-server -c 1 --port 80\n',
            "starts ds4, which gate0 does not serve",
        ),
        (f"{HEAD}command: python3 train.py\n", "starts no server that gate0 can make a profile of"),
        (f"{HEAD}command: |\n  vllm serve {{model}} \\\n    --dtype 'auto\n", "recipe.yaml:5"),
        ("model: org/M\ncontainer: a/b\ncommand: vllm serve a\0b\n", "recipe.yaml:3: holds a NUL character"),
    ],
    ids=["benchmark", "profile", "other", "native", "no server", "open quote", "no text"],
)
def test_what_is_no_server_is_refused_with_what_it_is(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        imported(text)

    assert message in refused.value.message


def test_an_unknown_flag_of_an_official_image_is_not_waved_through() -> None:
    text = HEAD.replace("team/image:v1", "vllm/vllm-openai:v0.31.0")
    (one,) = imported(f"{text}command: vllm serve x/y --unheard-of 1\n").profiles

    assert one.draft.document["flags"] == {"unheard-of": 1}
    assert "allow_unknown_flags" not in one.draft.document
