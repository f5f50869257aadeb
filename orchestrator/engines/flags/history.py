"""When flags came and went over the known versions of an engine, and what changed of those that stayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import orjson

from orchestrator.engines.flags.facts import read_catalog_file
from orchestrator.engines.images import version_key
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one version changed of a flag: its choices (`added`, `removed`) or its default (`before`, `after`)."""

    version: str
    what: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    before: Json = None
    after: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From which known version to which a name was there.

    Attributes:
        first: None: it was in the oldest known version, and maybe before.
        alias_of: The name whose alias it has become since.
    """

    first: str | None
    last: str
    alias_of: str | None = None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All known versions of an engine, oldest first.

    Attributes:
        whole: Those with a list of their own.
        flags: Spans of flags that were not always there, or changed.
        env: Spans of variables that were not in all of `whole`.
    """

    engine: str
    versions: tuple[str, ...]
    whole: tuple[str, ...]
    flags: Mapping[str, Span] = field(default_factory=dict)
    env: Mapping[str, Span] = field(default_factory=dict)


@cache
def load_history(engine: str) -> History:
    """The history of an engine that has catalogues."""
    told = orjson.loads(read_catalog_file(f"history-{engine}.json"))
    return History(
        engine=engine,
        versions=tuple(told["versions"]),
        whole=tuple(told["whole"]),
        flags={name: _span(entry) for name, entry in told["flags"].items()},
        env={name: _span(entry) for name, entry in told["env"].items()},
    )


def was_there(span: Span | None, version: str) -> bool:
    """True when a name with this span was there in the version; no span: it always was."""
    if span is None:
        return True
    began = span.first is None or version_key(span.first) <= version_key(version)
    return began and version_key(version) <= version_key(span.last)


def when_there(span: Span, history: History) -> str:
    """In words: `in 0.30.0 only`, `until 0.27.0`, `since 0.29.0`, `from 0.26.0 to 0.29.0`."""
    is_gone = span.last != history.versions[-1]
    if span.first is None:
        return f"until {span.last}" if is_gone else "in all known versions"
    if not is_gone:
        return f"since {span.first}"
    return f"in {span.last} only" if span.first == span.last else f"from {span.first} to {span.last}"


def _span(told: Mapping[str, object]) -> Span:
    changes = told.get("changes", ())
    return Span(
        first=_text(told["first"]),
        last=str(told["last"]),
        alias_of=_text(told.get("alias_of")),
        changes=tuple(_change(entry) for entry in changes) if isinstance(changes, list) else (),
    )


def _change(told: Mapping[str, Json]) -> Change:
    return Change(
        version=str(told["in"]),
        what=str(told["what"]),
        added=_texts(told.get("added")),
        removed=_texts(told.get("removed")),
        before=told.get("from"),
        after=told.get("to"),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
