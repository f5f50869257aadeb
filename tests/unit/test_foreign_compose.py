"""Compose files: services as launches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.foreign.compose import looks_like_compose, read_compose
from orchestrator.foreign.found import Found
from orchestrator.foreign.interpolation import Interpolation
from tests.unit.foreign_launches import foreign_cases, plain_found, plain_notes


def read(case: dict[str, Any]) -> Found:
    files = case.get("files", {})
    return read_compose(case["text"], source="compose.yaml", values=case.get("values"), read_file=files.get)


@pytest.mark.parametrize("case", foreign_cases("compose", "launches.yaml"))
def test_a_service_that_serves_becomes_a_launch(case: dict[str, Any]) -> None:
    assert plain_found(read(case)) == case["launches"]


@pytest.mark.parametrize("case", foreign_cases("compose", "notes.yaml"))
def test_what_has_no_place_is_noted_where_it_stands(case: dict[str, Any]) -> None:
    found = read(case)

    assert plain_notes(found.notes) == case.get("others", [])
    assert [note for launch in found.launches for note in plain_notes(launch.notes)] == case["notes"]


@pytest.mark.parametrize("case", foreign_cases("compose", "interpolation.yaml"))
def test_variables_are_filled_in_as_compose_does(case: dict[str, Any]) -> None:
    word = Interpolation(values=case.get("values", {})).word(case["text"], line=1)

    assert [word.text, list(word.missing)] == [case["becomes"], case.get("missing", [])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("services: {}\n", "compose.yaml: no services"),
        ("services:\n  a: 'x\n", "compose.yaml:2: a quote is opened here and never closed"),
        ("services:\n  a:\n    image: vllm\n    command: vllm serve 'm\n", "line 4: `'` is opened and never closed"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_compose(text, source="compose.yaml")

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [("name: x\nservices:\n  a: {}\n", True), ("command: vllm serve\n", False), ("x:\n  services: 1\n", False)],
)
def test_a_compose_file_is_recognised_by_its_services(text: str, expected: bool) -> None:
    assert looks_like_compose(text) is expected


SERVICE = (
    "image environment command entrypoint env_file volumes ports deploy gpus ulimits shm_size extends build networks"
)
VALUES = st.sampled_from(
    ["vllm serve m", "${A:-b}", "${A", "'", "[a, b]", "{a: b}", "all", "64g", "-1", "~", "a:b:c", '["A=b", C]', "$$A"]
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(SERVICE.split()), VALUES, max_size=8))
def test_any_service_is_read_or_refused_and_nothing_else(service: dict[str, str]) -> None:
    text = "services:\n  a:\n    image: vllm\n    command: vllm serve m\n  b:\n    x-any: 1\n"
    text += "".join(f"    {key}: {value}\n" for key, value in service.items())
    refused = "compose.yaml:1"
    try:
        read_compose(text, source="compose.yaml", read_file=lambda path: "A=b\n")
    except InputError as exc:
        refused = exc.message

    assert refused.startswith(("compose.yaml:", "line "))
