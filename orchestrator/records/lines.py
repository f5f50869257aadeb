"""A cell's requests from the bytes of their file: a million of them with their events in seconds.

The events are most of a file. They are checked by the set of their types and sent on as they are; what is not plain
(times as text or fractions, a NaN, half a character) goes through the slower and more lenient reader, line by line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

import orjson

from orchestrator.records.record import RequestRecord

_FIELDS = frozenset(RequestRecord.__slots__)
_WHOLE = frozenset({int})
_WHOLE_OR_NONE = frozenset({int, type(None)})
_PAIR = frozenset({2})


def read_requests(content: bytes) -> tuple[RequestRecord, ...]:
    """One request a line, in the file's order; empty lines are none.

    Raises:
        KeyError, TypeError, ValueError: A line is not such a record.
    """
    return tuple(_request(_line(line)) for line in content.split(b"\n") if line.strip())


def _line(line: bytes) -> Mapping[str, Any]:
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError:
        raw = json.loads(line)
    if not isinstance(raw, dict):
        raise ValueError("a line of its requests is not a mapping")
    return raw


def _request(raw: Mapping[str, Any]) -> RequestRecord:
    events = _events(raw.get("events", ()))
    known = raw if raw.keys() <= _FIELDS else {k: v for k, v in raw.items() if k in _FIELDS}
    return RequestRecord(**{**known, "events": events})


def _events(raw: Any) -> tuple[tuple[int, int | None], ...]:
    if _PAIR.issuperset(map(len, raw)):
        kinds = set(map(type, chain.from_iterable(raw)))
        if kinds <= _WHOLE or (kinds <= _WHOLE_OR_NONE and all(t is not None for t, _ in raw)):
            return tuple(map(tuple, raw))
    return tuple((int(t), None if n is None else int(n)) for t, n in raw)
