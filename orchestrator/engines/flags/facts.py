"""What is known by hand of an engine's flags: what has no effect, new names, gone variables, what goes together.

The file `catalogs/facts-<engine>.json` is written by hand; every name in it is in a catalogue or in the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from orchestrator.engines.flags.model import Catalogue, Flag, Severity
from orchestrator.engines.images import version_key

CATALOGS = "orchestrator.engines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What holds of a flag from a version on; of several the last one that has begun counts."""

    flag: str
    since: str
    deprecated: str | None = None
    is_inert: bool = False
    successor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """`old` is gone from version `since` on; `new` are the spellings that took over, (): nothing did."""

    old: str
    new: tuple[str, ...]
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneVariable:
    """A variable that is read no more from version `since` on; `successor`: a flag or variable, None: nothing."""

    name: str
    since: str
    successor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A flag is given, by the spelling that is meant (a negative one too).

    `among`: and has one of these values, in any case; `not_among`: and has another one. None: whatever its value.
    """

    flag: str
    among: tuple[str, ...] | None = None
    not_among: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """If all of `when` hold, all of `needs` must be given too and none of `excludes`."""

    when: tuple[Condition, ...]
    needs: tuple[str, ...]
    excludes: tuple[str, ...]
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known by hand of one engine."""

    remarks: tuple[Remark, ...] = ()
    renames: Mapping[str, Rename]
    variables: Mapping[str, GoneVariable]
    combinations: tuple[Combination, ...] = ()


@cache
def load_facts(engine: str) -> Facts:
    """The facts of an engine that has catalogues."""
    told = orjson.loads(read_catalog_file(f"facts-{engine}.json"))
    return Facts(
        remarks=tuple(Remark(**entry) for entry in told["flags"]),
        renames={
            entry["from"]: Rename(old=entry["from"], new=tuple(entry["to"]), since=entry["in"])
            for entry in told["renames"]
        },
        variables={
            entry["name"]: GoneVariable(name=entry["name"], since=entry["in"], successor=entry["to"])
            for entry in told["env"]
        },
        combinations=tuple(_combination(entry) for entry in told["combinations"]),
    )


def annotate(catalogue: Catalogue) -> Catalogue:
    """The catalogue with the remarks that hold for its version; an image's own list tells few of them itself."""
    flags = dict(catalogue.flags)
    for remark in load_facts(catalogue.engine).remarks:
        flag = flags.get(remark.flag)
        if flag is not None and version_key(remark.since) <= version_key(catalogue.version):
            flags[remark.flag] = _remarked(flag, remark)
    return replace(catalogue, flags=flags)


def read_catalog_file(name: str) -> bytes:
    """A file of the folder of catalogues, which travels in the wheel."""
    return files(CATALOGS).joinpath("catalogs", name).read_bytes()


def _remarked(flag: Flag, remark: Remark) -> Flag:
    told = replace(flag, successor=remark.successor or flag.successor)
    if flag.is_removed:
        return told
    return replace(told, deprecated=remark.deprecated or flag.deprecated, is_inert=remark.is_inert or flag.is_inert)


def _combination(entry: Mapping[str, Any]) -> Combination:
    return Combination(
        when=tuple(_condition(told) for told in entry["when"]),
        needs=tuple(entry.get("needs", ())),
        excludes=tuple(entry.get("excludes", ())),
        severity=Severity(entry["severity"]),
        message=entry["message"],
    )


def _condition(told: str | Mapping[str, Any]) -> Condition:
    if isinstance(told, str):
        return Condition(flag=told)
    return Condition(flag=told["flag"], among=_words(told.get("in")), not_among=_words(told.get("not_in")))


def _words(told: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if told is None else tuple(told)
