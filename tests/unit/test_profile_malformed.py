"""Each malformed profile and exactly what is said about it: tests/cases/profile/malformed/NN-*.yaml and .expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import InvalidFile
from orchestrator.profile.loading import load_profile

CASES = Path(__file__).parents[1] / "cases" / "profile"
MALFORMED = sorted((CASES / "malformed").glob("*.yaml"))
ENGINES = ("vllm", "sglang", "llamacpp", "generic", "endpoint")


def complaints(path: Path) -> str:
    with pytest.raises(InvalidFile) as caught:
        load_profile(str(path), search=[CASES / "search"], engines=ENGINES)
    return str(caught.value.message).replace(f"{path.parent}/", "").replace(f"{CASES}/", "")


@pytest.mark.parametrize("path", MALFORMED, ids=[p.stem for p in MALFORMED])
def test_every_mistake_is_named_on_its_line(path: Path) -> None:
    said = complaints(path)

    assert said.splitlines() == path.with_suffix(".expected").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("path", MALFORMED, ids=[p.stem for p in MALFORMED])
def test_no_message_shows_a_token(path: Path) -> None:
    said = complaints(path)

    assert "abcdef" not in said


def test_there_are_at_least_forty_cases() -> None:
    assert len(MALFORMED) >= 40
