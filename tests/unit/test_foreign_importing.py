"""Texts of every kind from end to end: the profile and its loss report, or what is said of a text that is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engines.registry import load_engines
from orchestrator.errors import InputError
from orchestrator.foreign.importing import import_text
from orchestrator.foreign.seeming import seems
from orchestrator.foreign.tolerant_yaml import load_tolerant
from tests.unit.foreign_launches import foreign_cases

ENGINES = load_engines()


@pytest.mark.parametrize("case", foreign_cases("import", "profiles.yaml"))
def test_a_text_becomes_a_profile_and_nothing_goes_without_a_word(case: dict[str, Any]) -> None:
    (one,) = import_text(case["text"], source="source.sh", engines=ENGINES, image=case.get("image")).profiles

    assert dict(one.draft.document) == case["document"]
    told = [[note.fate.value, note.where, note.what, note.why] for note in one.draft.notes]
    assert case["notes"] is None or told == case["notes"]


@pytest.mark.parametrize("case", foreign_cases("import", "refused.yaml"))
def test_a_text_that_is_none_is_told_what_it_is_and_what_to_do(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        import_text(case["text"], source="source.sh", engines=ENGINES)

    assert caught.value.message == case["message"]
    assert case["hint"] is None or caught.value.hint == case["hint"]


def test_one_server_of_several_is_chosen_by_its_name_or_its_profiles() -> None:
    text = "docker run --name one img vllm serve org/a\ndocker run img vllm serve org/b\n"

    chosen = [
        import_text(text, source="x", engines=ENGINES, service=name).profiles[0].draft.document["model"]
        for name in ("one", "b")
    ]

    assert chosen == ["org/a", "org/b"]


TWICE = """\
services:
  a: &base
    image: x:1
    image: vllm/vllm-openai:v0.31.0
    environment: {A: 1}
    command:
      - --model
      - org/old
    command: !reset --model org/m
  b:
    <<: *base
    environment: !!str text
"""


def test_of_two_equal_keys_the_last_counts_and_lines_keep_their_numbers() -> None:
    read = load_tolerant(TWICE, "c.yml")

    service = read.document.find(("services", "a"))

    assert service is not None
    assert service.plain() == {"image": "vllm/vllm-openai:v0.31.0", "environment": {"A": 1}, "command": "--model org/m"}
    assert read.document.line_of(["services", "b", "environment"]) == 12
    assert [(note.what, note.where) for note in read.notes] == [
        ("!reset", "line 9"),
        ("image", "line 3"),
        ("command", "line 6"),
    ]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80) | st.lists(st.sampled_from([*TWICE.split(" "), "!a", "[", "{", "---\n"])).map(" ".join))
def test_any_text_seems_to_be_something_or_nothing(text: str) -> None:
    seeming = seems(text)
    refused = "c.yml"
    try:
        load_tolerant(text, "c.yml")
    except InputError as exc:
        refused = exc.message

    assert seeming is None or (seeming.what and seeming.hint)
    assert "c.yml" in refused


def test_a_text_without_end_is_no_command_line() -> None:
    with pytest.raises(InputError, match=r"x:1: 30002 words: this is no command line of a server"):
        import_text("vllm serve " + "word " * 30_000, source="x", engines=ENGINES)
