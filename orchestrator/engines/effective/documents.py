"""Looking into what a server answered, without trusting its shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from orchestrator.engines.effective.model import Reading, Telling, Told
from orchestrator.values import Json

_SECRET = re.compile(r"(?i)(?:^|_)(?:api_keys?|hf_token|password|secret(?:_key)?|launch_command)$")


def document(told: Told, path: str) -> Json:
    """The answer of a path, whatever its query was (`/server_info?config_format=json`); None: not at hand."""
    return next((found for key, found in told.documents.items() if key.partition("?")[0] == path), None)


def mapping(value: Json) -> Mapping[str, Json]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Json) -> tuple[Json, ...]:
    """The value where it is a list, else nothing."""
    return tuple(value) if isinstance(value, list | tuple) else ()


def is_secret(key: str) -> bool:
    """A key whose value is a credential, or may hold one."""
    return bool(_SECRET.search(key))


def without_secrets(value: Json) -> Json:
    """The value without the keys that hold credentials, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_secrets(inner) for key, inner in value.items() if not is_secret(key)}
    return [without_secrets(inner) for inner in value] if isinstance(value, list | tuple) else value


def fields(found: Mapping[str, Json], source: str, words: Mapping[str, str], telling: Telling) -> Iterator[Reading]:
    """One reading for each key, under our word for it; credentials are left out."""
    for key, value in found.items():
        if not is_secret(key) and not key.startswith("_"):
            yield Reading(name=words.get(key, key), value=value, source=f"{source} {key}", telling=telling)


def model_listing(told: Told, *, root: str | None = None) -> Iterator[Reading]:
    """`/v1/models` of any engine: names (aliases too) and the limit of a request.

    Args:
        root: Reading that its `root` is; vLLM says there where the weights lie, SGLang repeats the name.
    """
    source = "/v1/models"
    entries = [mapping(entry) for entry in items(mapping(document(told, source)).get("data"))]
    if not entries:
        return
    names: list[Json] = []
    for entry in entries:
        names.extend(name for name in (entry.get("id"), *items(entry.get("aliases"))) if name not in names)
    yield Reading(name="served_name", value=names, source=f"{source} id", telling=Telling.SEEN)
    first = entries[0]
    for key, name in (("max_model_len", "max_model_len"), ("root", root)):
        if name is not None and first.get(key) is not None:
            yield Reading(name=name, value=first[key], source=f"{source} {key}", telling=Telling.SEEN)
