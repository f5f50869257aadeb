"""Docker's refusals, each a captured answer under tests/cases/docker_refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.deploy.refusals import engine_unreachable, is_passing, pull_refused, start_refused

FOLDER = Path(__file__).resolve().parents[1] / "cases" / "docker_refusals"
CASES = [json.loads(path.read_text()) | {"name": path.stem} for path in sorted(FOLDER.glob("*.json"))]


def refusal(case: dict[str, object]) -> errors.RuntimeFailure:
    words = str(case["words"])
    if case["phase"] == "start":
        return start_refused("spark01", "serve", int(str(case["status"])), words)
    if case["phase"] == "pull":
        return pull_refused("spark01", "some/image:1", words)
    return engine_unreachable("spark01", int(str(case["exit_code"])), words)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_refusal_becomes_the_error_that_names_host_words_and_remedy(case: dict[str, str]) -> None:
    error = refusal(case)

    assert type(error).__name__ == case["error"]
    assert error.message.startswith("spark01: ")
    assert case.get("message", case["words"]) in error.message
    assert error.hint is None if case["hint"] is None else case["hint"] in (error.hint or "")


@pytest.mark.parametrize("case", [one for one in CASES if one["phase"] == "pull"], ids=lambda case: case["name"])
def test_only_a_registry_that_stumbles_is_asked_again(case: dict[str, object]) -> None:
    assert is_passing(str(case["words"])) is case["is_passing"]
