"""A catalogue as JSON and back: the form of the shipped files, and of lists that were read from an image.

Only what is not the default is written, so a switch without a remark is `{"kind": "none"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from orchestrator.engines.flags.model import Catalogue, Conventions, Flag, ValueKind
from orchestrator.values import Json

KINDS = {kind.value: kind for kind in ValueKind}
TUPLES = ("aliases", "negatives", "choices", "known", "also")


def encode(catalogue: Catalogue) -> dict[str, Json]:
    """The catalogue as JSON; `decode` is its inverse."""
    whole: dict[str, Json] = {
        "engine": catalogue.engine,
        "version": catalogue.version,
        "conventions": _changed(catalogue.conventions),
        "flags": _encode_flags(catalogue.flags),
    }
    if catalogue.json_classes:
        whole["json_classes"] = {name: _encode_flags(keys) for name, keys in catalogue.json_classes.items()}
    if catalogue.env:
        whole["env"] = dict(catalogue.env)
    if catalogue.env_prefix:
        whole["env_prefix"] = catalogue.env_prefix
    for name in ("is_own", "is_partial"):
        if getattr(catalogue, name):
            whole[name] = True
    return whole


def decode(document: Mapping[str, Any]) -> Catalogue:
    """A catalogue from what `encode` made.

    Raises:
        KeyError, TypeError: It was made by something else; the files are our own, so there is no kinder answer.
    """
    told = dict(document)
    told["flags"] = _decode_flags(told["flags"])
    told["json_classes"] = {name: _decode_flags(keys) for name, keys in told.get("json_classes", {}).items()}
    conventions = told.get("conventions", {})
    told["conventions"] = Conventions(**{**conventions, "positional": tuple(conventions.get("positional", ()))})
    return Catalogue(**told)


def decode_flag(name: str, told: Mapping[str, Any]) -> Flag:
    """One flag, or one key of a JSON class, from its entry."""
    values = dict(told)
    values["kind"] = KINDS[values["kind"]]
    if "item" in values:
        values["item"] = KINDS[values["item"]]
    for key in TUPLES:
        if key in values:
            values[key] = tuple(values[key])
    return Flag(name=name, **values)


def _encode_flags(flags: Mapping[str, Flag]) -> dict[str, Json]:
    return {name: {key: told for key, told in _changed(flag).items() if key != "name"} for name, flag in flags.items()}


def _decode_flags(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Flag]:
    return {name: decode_flag(name, entry) for name, entry in told.items()}


def _changed(value: Flag | Conventions) -> dict[str, Json]:
    """The fields that differ from their default."""
    found: dict[str, Json] = {}
    for item in fields(value):
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        given = getattr(value, item.name)
        if given != default:
            found[item.name] = list(given) if isinstance(given, tuple) else given
    return found
