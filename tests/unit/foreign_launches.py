"""Launches as plain values, so that cases can be data files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.foreign.found import Found
from orchestrator.foreign.model import Launch, Note
from orchestrator.profile.model import SecretRef

CASES = Path(__file__).parents[1] / "cases" / "foreign"
_UNSAID = Launch(form="", source="")


def foreign_cases(form: str, name: str) -> list[Any]:
    loaded = yaml.safe_load((CASES / form / name).read_text())
    return [pytest.param(case, id=case["name"]) for case in loaded]


def plain_launch(launch: Launch) -> dict[str, Any]:
    """What the launch says beyond defaults; form, source, places and notes left out."""
    told: dict[str, Any] = {}
    for each in dataclasses.fields(launch):
        value = getattr(launch, each.name)
        if each.name not in {"form", "source", "notes", "places", "where"} and value != getattr(_UNSAID, each.name):
            told[each.name] = _plain(value)
    return told


def plain_notes(notes: tuple[Note, ...]) -> list[list[str]]:
    return [[note.fate.value, note.where, note.what] for note in notes]


def plain_found(found: Found) -> list[dict[str, Any]]:
    return [plain_launch(launch) for launch in found.launches]


def _plain(value: Any) -> Any:
    if isinstance(value, SecretRef):
        return {"secret": value.name}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {name: inner for name, inner in fields.items() if inner not in {None, False}}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "items"):
        return {name: _plain(inner) for name, inner in value.items()}
    return value
