"""The name that was probably meant, and the versions that know a name or a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from itertools import takewhile

from orchestrator.engines.flags.history import Span, load_history, when_there
from orchestrator.engines.flags.loading import load
from orchestrator.engines.flags.model import Catalogue

ALIKE = 0.72
REST_ALIKE = 0.5
OPPOSITES = frozenset({"no", "disable"})
"""A name with one of these more says the opposite."""

SHOWN = 12
LENGTHS = (4, 8)
"""From so many letters on one slip, and two slips, are still recognised as such."""


def nearest(word: str, names: Iterable[str], *, least: float = ALIKE) -> str | None:
    """The most similar name, None when none is similar. Dashes, underscores and case make no difference.

    What differs must be similar too: `enable-spec-v2` is not meant as `enable-cp-v2`, whatever else they share.

    Args:
        least: How similar it must be at the least, from 0 to 1.
    """
    wanted = _folded(word)
    best, best_ratio = None, least
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for name in names:
        folded = _folded(name)
        matcher.set_seq1(folded)
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio and _differs_little(wanted, folded):
                best, best_ratio = name, ratio
    return best


def nearest_value(word: str, values: Iterable[str]) -> str | None:
    """The value that was probably meant: one that begins so, else a similar one; of a format (`fp8`) no other one."""
    wanted = _folded(word)
    # Of equally similar ones the one that begins alike.
    known = sorted(values, key=lambda value: (-_shared(wanted, _folded(value)), value))
    longer = [value for value in known if _folded(value).startswith(wanted)] if len(wanted) > 1 else []
    if longer:
        return nearest(word, longer, least=0)
    near = nearest(word, known)
    is_format = near is not None and re.search(r"\d", wanted)
    if not is_format or _letters(wanted) == _letters(_folded(near or "")):
        return near
    return near if is_slip_of(word, (near or "",)) else None


def _differs_little(one: str, other: str) -> bool:
    """The words that only one of the two names has are similar, or one has all words of the other."""
    ours, theirs = one.split("-"), other.split("-")
    only_ours = [word for word in ours if word not in theirs]
    only_theirs = [word for word in theirs if word not in ours]
    if OPPOSITES & {*only_ours, *only_theirs}:
        return False
    ours_left, theirs_left = "".join(only_ours), "".join(only_theirs)
    if not ours_left or not theirs_left or (ours_left.isdigit() and theirs_left.isdigit()):
        return True
    return SequenceMatcher(None, ours_left, theirs_left, autojunk=False).ratio() >= REST_ALIKE


def _shared(one: str, other: str) -> int:
    """How many letters both begin with."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _letters(word: str) -> str:
    """What a format's name begins with: `mxfp` of `mxfp8`."""
    return re.split(r"\d", word, maxsplit=1)[0]


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
