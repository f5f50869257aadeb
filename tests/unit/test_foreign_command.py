"""Bare command lines as launches."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.foreign.command import looks_like_command, read_command
from tests.unit.foreign_launches import foreign_cases, plain_found, plain_notes


@pytest.mark.parametrize("case", foreign_cases("command", "launches.yaml"))
def test_a_command_becomes_a_launch_without_a_container(case: dict[str, Any]) -> None:
    found = read_command(case["text"], source="-", values=case.get("values"))

    assert plain_found(found) == case["launches"]
    assert [note for launch in found.launches for note in plain_notes(launch.notes)] == case.get("notes", [])


def test_another_server_is_named_and_no_launch() -> None:
    found = read_command("trtllm-serve org/m --port 1", source="-")

    assert (found.launches, plain_notes(found.notes)) == ((), [["dropped", "line 1", "trtllm-serve"]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm serve m", True),
        ("A=1 python3 -m sglang.launch_server --x", True),
        ("./build/bin/llama-server -m x", True),
        ("# vllm serve m", False),
        ("pip install vllm", False),
    ],
)
def test_a_command_is_recognised_by_its_program(text: str, expected: bool) -> None:
    assert looks_like_command(text) is expected
