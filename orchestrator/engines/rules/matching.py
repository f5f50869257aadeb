"""The conditions of a rule over named circumstances: equality, one of a list, or a few comparisons."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from orchestrator.values import Json

Look = Callable[[str], Json]
"""A circumstance's value by its name; None: not declared, or not known."""

_ON = frozenset({"on", "true", "1", "yes"})
_OFF = frozenset({"off", "false", "0", "no"})
_SUFFIXES = {"k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2, "g": 1000**3, "G": 1024**3}
ANY = "any"
UNLESS = "unless"


def holds(conditions: Mapping[str, Json], look: Look) -> bool:
    """True when every condition holds.

    `any: [{…}, {…}]` needs one of its groups, `unless: {…}` (or a list of groups) none.
    """
    return all(_one(name, wanted, look) for name, wanted in conditions.items())


def names_in(conditions: Mapping[str, Json]) -> tuple[str, ...]:
    """Names of all circumstances that the conditions look at."""
    found: list[str] = []
    for name, wanted in conditions.items():
        if name in {ANY, UNLESS}:
            found += [inner for group in _groups(wanted) for inner in names_in(group)]
        else:
            found.append(name)
    return tuple(dict.fromkeys(found))


def comparisons_in(conditions: Mapping[str, Json]) -> tuple[str, ...]:
    """All comparison words that stand in the conditions."""
    found: list[str] = []
    for name, wanted in conditions.items():
        if name in {ANY, UNLESS}:
            found += [word for group in _groups(wanted) for word in comparisons_in(group)]
        elif isinstance(wanted, Mapping):
            found += [str(word) for word in wanted]
    return tuple(found)


def number(value: Json) -> float | None:
    """A number, also from a word (`0.7`, `8k`, `8K`); None: it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kKmMgG]?)", str(value).strip())
    return float(found[1]) * _SUFFIXES.get(found[2], 1) if found else None


def _one(name: str, wanted: Json, look: Look) -> bool:
    if name == ANY:
        return any(holds(group, look) for group in _groups(wanted))
    if name == UNLESS:
        return not any(holds(group, look) for group in _groups(wanted))
    value = look(name)
    if isinstance(wanted, Mapping):
        return all(COMPARISONS[word](value, than) for word, than in wanted.items())
    return _is(value, wanted)


def _groups(wanted: Json) -> tuple[Mapping[str, Json], ...]:
    groups = (wanted,) if isinstance(wanted, Mapping) else wanted if isinstance(wanted, Sequence) else ()
    return tuple(group for group in groups if isinstance(group, Mapping))


def _is(value: Json, wanted: Json) -> bool:
    if isinstance(wanted, list):
        return any(_is(value, one) for one in wanted)
    if isinstance(wanted, bool):
        return value is wanted or (isinstance(value, str) and value.lower() in (_ON if wanted else _OFF))
    if value is None or isinstance(value, bool) or wanted is None:
        return value is wanted
    return str(value).lower() == str(wanted).lower()


def _given(value: Json, wanted: Json) -> bool:
    return (value is not None) is wanted


def _not(value: Json, wanted: Json) -> bool:
    return not _is(value, wanted)


def _matches(value: Json, pattern: Json) -> bool:
    texts = value if isinstance(value, list) else [value]
    return any(re.search(str(pattern), str(text)) is not None for text in texts if text is not None)


def _without(value: Json, pattern: Json) -> bool:
    return not _matches(value, pattern)


def _compared(compare: Callable[[float, float], bool]) -> Callable[[Json, Json], bool]:
    def test(value: Json, than: Json) -> bool:
        left, right = number(value), number(than)
        return left is not None and right is not None and compare(left, right)

    return test


COMPARISONS: Mapping[str, Callable[[Json, Json], bool]] = {
    "given": _given,
    "not": _not,
    "matches": _matches,
    "without": _without,
    "above": _compared(lambda left, right: left > right),
    "at_least": _compared(lambda left, right: left >= right),
    "below": _compared(lambda left, right: left < right),
    "at_most": _compared(lambda left, right: left <= right),
}
"""`given`: declared at all. `matches`: a regular expression is found in it, or in one of a list; `without`: in none.
A comparison with what is not declared, or is no number, does not hold."""
