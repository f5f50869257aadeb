"""The whole profile in one comment line of an export, and the way back.

A command line does not say everything that a profile declares: its name, the task, how the image is pulled,
`memory_gib`, what gate0 must not add. The line is in a profile file's own words and holds no secret, only references.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from orchestrator.profile.building import build_profile
from orchestrator.profile.digest import as_json
from orchestrator.profile.model import Profile
from orchestrator.values import Json

MARK = "gate0-profile:"
_WITH_DEFAULTS = ("container", "ready")
"""Mappings that a profile always has, whose own entries may be defaults."""


def carry(profile: Profile) -> str:
    """The profile as one line of JSON in a profile file's words; what every profile has by default is left out."""
    whole = _without_unset(as_json(profile))
    usual = as_json(Profile(name=profile.name, engine=profile.engine))
    short = {key: _pruned(key, value, usual.get(key)) for key, value in whole.items() if _is_said(key, value, usual)}
    is_enough = _without_unset(as_json(build_profile(short))) == whole
    return json.dumps(short if is_enough else whole)


def find(text: str) -> Mapping[str, Json] | None:
    """The profile that an export carries; None when there is none, or when its line is damaged."""
    return next(_found(text), None)


def _is_said(key: str, value: Json, usual: Mapping[str, Json]) -> bool:
    return key in ("name", "engine") or value != usual.get(key)


def _pruned(key: str, value: Json, usual: Json) -> Json:
    if key not in _WITH_DEFAULTS or not isinstance(value, Mapping) or not isinstance(usual, Mapping):
        return value
    return {name: inner for name, inner in value.items() if inner != usual.get(name)}


def _without_unset(plain: Mapping[str, Json]) -> dict[str, Json]:
    """A variable that is unset is not there: a profile file says so only to take back a parent's."""
    env = plain.get("env")
    kept = {name: value for name, value in env.items() if value is not None} if isinstance(env, Mapping) else {}
    return {key: kept if key == "env" else value for key, value in plain.items() if key != "env" or kept}


def _found(text: str) -> Iterator[Mapping[str, Json]]:
    for line in text.split("\n"):
        sign, mark, rest = line.partition(MARK)
        if not mark or sign.strip() != "#":
            continue
        try:
            value = json.loads(rest)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            yield value
