"""A flag of a command line as an entry of a profile's `flags`, when its words then come out as the source has them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.words import Parser, words
from orchestrator.foreign.items import Item, read_items
from orchestrator.profile.model import FlagValue
from orchestrator.values import Json, read_json

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,8})\.[0-9]{1,12}")


def keyed(item: Item, parser: Parser, catalogue: Catalogue, engine: str) -> tuple[str, FlagValue] | None:
    """Key and value of a flag, None when it can only stand word for word in `args`."""
    if not item.name.startswith("-") or item.dotted is not None or item.is_added or not item.is_spelled_out:
        return None
    key = item.name.lstrip("-")
    if not _KEY.fullmatch(key):
        return None
    for value in _values(item):
        written = words(parser, key, value)
        if written and [i.meaning for i in read_items(engine, catalogue, written)] == [item.meaning]:
            return key, value
    return None


def _values(item: Item) -> tuple[FlagValue, ...]:
    """Values to try, the most telling first."""
    if not item.values:
        return (False,) if item.is_negative else (True,)
    if len(item.values) > 1:
        return ([_scalar(value) for value in item.values], list(item.values))
    only = item.values[0]
    as_list = ([_scalar(only)],) if item.takes in {"*", "+"} and item.is_known else ()
    parts = [_scalar(part) for part in only.split(",")] if "," in only and not only.startswith(("{", "[")) else []
    mapping = _mapping(only)
    return (*((mapping,) if mapping is not None else ()), _scalar(only), only, *as_list, *((parts,) if parts else ()))


def _scalar(text: str) -> Json:
    """A number where the text is exactly how it would be written, else the text."""
    if _INT.fullmatch(text) and str(int(text)) == text:
        return int(text)
    if _DECIMAL.fullmatch(text) and str(float(text)) == text:
        return float(text)
    return text


def _mapping(text: str) -> Mapping[str, Json] | None:
    """A JSON object. One with a null or an empty key stays text: a profile takes null for "not said"."""
    if not text.startswith("{"):
        return None
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value and not _has_null(value) else None


def _has_null(value: Json) -> bool:
    if isinstance(value, Mapping):
        return any(not key or _has_null(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(_has_null(inner) for inner in value)
    return value is None or (isinstance(value, float) and not (abs(value) < 1e300))
