"""systemd units as launches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.foreign.systemd import looks_like_systemd, read_systemd
from orchestrator.foreign.systemd_words import split_line
from tests.unit.foreign_launches import foreign_cases, plain_found, plain_notes


@pytest.mark.parametrize("case", foreign_cases("systemd", "launches.yaml"))
def test_a_unit_becomes_a_launch(case: dict[str, Any]) -> None:
    files = case.get("files", {})
    found = read_systemd(case["text"], source="/etc/systemd/system/srv.service", read_file=files.get)

    assert plain_found(found) == case["launches"]
    assert [note for launch in found.launches for note in plain_notes(launch.notes)] == case.get("notes", [])


@pytest.mark.parametrize("case", foreign_cases("systemd", "words.yaml"))
def test_a_line_is_split_as_systemd_does(case: dict[str, Any]) -> None:
    assert [word.text for word in split_line(case["text"], line=1)] == case["words"]


def test_a_unit_that_serves_nothing_says_so() -> None:
    found = read_systemd("[Service]\nExecStart=/usr/sbin/nginx\n", source="x")

    assert (found.launches, plain_notes(found.notes)) == ((), [["dropped", "line 2", "ExecStart=/usr/sbin/nginx"]])


def test_a_unit_is_recognised_by_its_sections() -> None:
    assert [looks_like_systemd(text) for text in ("[Service]\nExecStart=/x\n", "[Unit]\nDescription=x\n", "a")] == [
        True,
        False,
        False,
    ]


FRAGMENTS = "[Service] ExecStart= Environment= EnvironmentFile= vllm serve m docker run img bash % %h $A ${A ' \" \\ =x"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*FRAGMENTS.split(), "\n", " ", "#", "\\\n"]), max_size=30).map("".join) | st.text())
def test_any_unit_is_read_or_refused_and_nothing_else(text: str) -> None:
    refused = "line 1"
    try:
        read_systemd(text, source="x", read_file=lambda path: path)
    except InputError as exc:
        refused = exc.message

    assert "line " in refused
