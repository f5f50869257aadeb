"""Conditions that can be told without running anything: `[ -n "" ]`, `[[ a == b ]]`, `case` patterns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence

from orchestrator.foreign.shell.expanding import Word

_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
TESTS = frozenset({"[", "[[", "test"})


def decide(words: Sequence[Word]) -> bool | None:
    """Whether a test command succeeds; None when only running it tells (files, unset variables, other commands)."""
    texts = [word.text for word in words]
    if texts[:1] == ["!"]:
        inner = decide(words[1:])
        return None if inner is None else not inner
    if texts in (["true"], [":"]):
        return True
    if texts == ["false"]:
        return False
    if not texts or texts[0] not in TESTS:
        return None
    closing = {"[": "]", "[[": "]]"}.get(texts[0])
    body = list(words[1:-1]) if closing is not None and texts[-1] == closing else list(words[1:])
    return _all_of(body)


def _all_of(words: Sequence[Word]) -> bool | None:
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.text == "||":
            return None
        if word.text in {"&&", "-a"}:
            parts.append([])
        else:
            parts[-1].append(word)
    outcomes = [_one(part) for part in parts]
    if False in outcomes:
        return False
    return None if None in outcomes else True


def _one(words: Sequence[Word]) -> bool | None:
    if not all(word.is_known for word in words):
        return None
    match [word.text for word in words]:
        case ["!", *_]:
            inner = _one(words[1:])
            return None if inner is None else not inner
        case ["-n", text] | [text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case [left, "=" | "==", right]:
            return matches(left, right)
        case [left, "!=", right]:
            return not matches(left, right)
        case [left, "=~", right]:
            return _found_in(left, right)
        case [left, operator, right] if operator in _NUMBERS and _is_number(left) and _is_number(right):
            return _NUMBERS[operator](int(left), int(right))
    return None


def matches(text: str, pattern: str) -> bool:
    """A shell pattern (`*`, `?`, `[…]`) against a whole text."""
    return text == pattern or (len(pattern) < 200 and fnmatch.fnmatchcase(text, pattern.replace("[^", "[!")))


def _found_in(text: str, pattern: str) -> bool | None:
    """A shell's regular expression in a text; None for one that Python might read otherwise."""
    if len(pattern) > 200 or len(text) > 1_000 or re.search(r"\[\[|[*+}?]\)?[*+{?]|\(\?|\\", pattern) is not None:
        return None
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return None


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdecimal() and len(text) < 18
