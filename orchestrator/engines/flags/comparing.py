"""What sets two lists of one engine apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.engines.flags.facts import load_facts
from orchestrator.engines.flags.history import History
from orchestrator.engines.flags.model import Catalogue, Flag
from orchestrator.engines.flags.reading import spellings
from orchestrator.engines.images import version_key
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """`new` took over from `old`; several: each a part of it."""

    old: str
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultChanged:
    """A flag's default, as a value or in the engine's own words; None: none, or computed. `since`: None: not known."""

    name: str
    before: Json
    after: Json
    since: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicesChanged:
    """Values of a flag that came and went; known values count as choices."""

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """From the older list to the newer, by canonical name, sorted.

    Attributes:
        added, removed: Without those that were renamed, or that became another flag's alias.
        defaults: Without those of flags that have no effect any more.
        choices: Of those too: a value that is gone ends the start all the same.
        deprecated: Newly so, or newly without effect.
        keys_added, keys_removed: Of JSON flags: `SpeculativeConfig.moe_backend`.
        env_added, env_removed: Variables; empty where one of the lists knows none.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[Renamed, ...] = ()
    defaults: tuple[DefaultChanged, ...] = ()
    choices: tuple[ChoicesChanged, ...] = ()
    deprecated: tuple[Flag, ...] = ()
    keys_added: tuple[str, ...] = ()
    keys_removed: tuple[str, ...] = ()
    env_added: tuple[str, ...] = ()
    env_removed: tuple[str, ...] = ()


def compare(before: Catalogue, after: Catalogue, history: History) -> Differences:
    """What changed from one list of an engine to another; a flag that only changed its main spelling is not named."""
    old, new = spellings(before), spellings(after)
    renamed = _renamed(before, after)
    gone = {one.old for one in renamed}
    came = {name for one in renamed for name in one.new}
    both = [(flag, new[name].flag) for name, flag in sorted(before.flags.items()) if name in new]
    working = [(then, now) for then, now in both if not now.is_inert and not now.is_removed]
    return Differences(
        added=tuple(sorted(name for name in after.flags if name not in old and name not in came)),
        removed=tuple(sorted(name for name in before.flags if name not in new and name not in gone)),
        renamed=renamed,
        defaults=tuple(change for pair in working for change in _default_changed(*pair, after, history)),
        choices=tuple(change for pair in both for change in _choices_changed(*pair)),
        deprecated=tuple(now for then, now in both if _is_going(now) and not _is_going(then)),
        keys_added=_only(_keys(after), _keys(before)),
        keys_removed=_only(_keys(before), _keys(after)),
        env_added=_only(after.env, before.env) if before.env else (),
        env_removed=_only(before.env, after.env) if after.env else (),
    )


def _renamed(before: Catalogue, after: Catalogue) -> tuple[Renamed, ...]:
    new = spellings(after)
    found = []
    for rename in load_facts(before.engine).renames.values():
        heirs = tuple(name for name in rename.new if name.partition(" ")[0] in new)
        if rename.old in before.flags and rename.old not in new and heirs:
            found.append(Renamed(old=rename.old, new=heirs))
    return tuple(sorted(found, key=lambda one: one.old))


def _default_changed(then: Flag, now: Flag, after: Catalogue, history: History) -> list[DefaultChanged]:
    was, has = _default(then), _default(now)
    if was == has:
        return []
    span = history.flags.get(now.name)
    at = [
        change.version
        for change in (span.changes if span else ())
        if change.what == "default" and version_key(change.version) <= version_key(after.version)
    ]
    return [DefaultChanged(name=now.name, before=was, after=has, since=at[-1] if at else None)]


def _default(flag: Flag) -> Json:
    return flag.default if flag.default is not None else flag.default_text


def _choices_changed(then: Flag, now: Flag) -> list[ChoicesChanged]:
    was, has = then.choices or then.known, now.choices or now.known
    if not was or not has:
        return []
    added, removed = _only(has, was), _only(was, has)
    return [ChoicesChanged(name=now.name, added=added, removed=removed)] if added or removed else []


def _is_going(flag: Flag) -> bool:
    return bool(flag.deprecated or flag.is_inert or flag.is_removed)


def _keys(catalogue: Catalogue) -> tuple[str, ...]:
    return tuple(f"{name}.{key}" for name, keys in catalogue.json_classes.items() for key in keys)


def _only(
    these: Mapping[str, object] | tuple[str, ...], those: Mapping[str, object] | tuple[str, ...]
) -> tuple[str, ...]:
    known = set(those)
    return tuple(sorted(name for name in these if name not in known))
