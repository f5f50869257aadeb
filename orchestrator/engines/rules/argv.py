"""What a command line says, by the name of each flag, with the place in the profile that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.given import given
from orchestrator.engines.words import Parser
from orchestrator.values import Json, read_json


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFlag:
    """A flag's value as its words tell it, and where it was declared (empty: not known)."""

    value: Json
    origin: str


def given_flags(parser: Parser, command: EngineCommand) -> Mapping[str, GivenFlag]:
    """All flags of a command by canonical name; the last of a repeated one, dotted keys of one gathered."""
    found: dict[str, GivenFlag] = {}
    for flag in given(parser, command):
        value, origin = _read(flag.value), flag.path
        before = found.get(flag.name)
        if isinstance(value, dict) and before is not None and isinstance(before.value, dict):
            value, origin = {**before.value, **value}, before.origin
        found[flag.name] = GivenFlag(value=value, origin=origin)
    return found


def _read(value: Json) -> Json:
    """JSON in a word as what it says."""
    if isinstance(value, list):
        return [_read(one) for one in value]
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value
