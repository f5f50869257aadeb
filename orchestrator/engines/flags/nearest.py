"""The name that was probably meant, and the versions that know a name or a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher

from orchestrator.engines.flags.history import Span, load_history, when_there
from orchestrator.engines.flags.loading import load
from orchestrator.engines.flags.model import Catalogue

ALIKE = 0.72
SHOWN = 12
LENGTHS = (4, 8)
"""From so many letters on one slip, and two slips, are still recognised as such."""


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The most similar name, None when none is similar. Dashes, underscores and case make no difference."""
    wanted = _folded(word)
    best, best_ratio = None, ALIKE
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for name in names:
        matcher.set_seq1(_folded(name))
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = name, ratio
    return best


def is_slip_of(word: str, names: Iterable[str]) -> bool:
    """True when the word is a name with one or two letters wrong, missing, too many or swapped.

    Other digits are no slip: `fp4` is not meant as `fp8`, nor `qwen35` as `qwen3`.
    """
    wanted = _folded(word)
    digits = re.findall(r"\d+", wanted)
    room = sum(len(wanted) >= length for length in LENGTHS)
    others = (_folded(name) for name in names)
    alike = (one for one in others if abs(len(one) - len(wanted)) <= room and re.findall(r"\d+", one) == digits)
    return any(_distance(wanted, one) <= room for one in alike)


def _distance(one: str, other: str) -> int:
    """How many letters must be changed, added, left out or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, theirs in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and (letter, one[i - 2]) == (other[j - 2], theirs):
                least = min(least, older[j - 2] + 1)
            row.append(least)
    return row[-1]


def listed(values: Iterable[str]) -> str:
    """Values for a hint, the first dozen."""
    shown = list(values)
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return ", ".join(shown[:SHOWN]) + more


def versions_that(engine: str, holds: Callable[[Catalogue], bool]) -> str | None:
    """In words which versions with a whole list do so (`until 0.5.18`), None when none does. Reads all of them."""
    history = load_history(engine)
    inside = [version for version in history.whole if holds(load(engine, version))]
    if not inside:
        return None
    first = None if inside[0] == history.whole[0] else inside[0]
    return when_there(Span(first=first, last=inside[-1]), history)


def _folded(name: str) -> str:
    return name.lstrip("-").lower().replace("_", "-")
