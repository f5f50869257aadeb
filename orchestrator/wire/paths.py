"""One value inside another."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.values import Json


def dig(value: Json, path: str) -> Json:
    """What lies at a dotted path (`a.b.0.c`), None when it does not lead anywhere."""
    for key in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
