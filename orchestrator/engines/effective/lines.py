"""Log lines as data: what a line tells, and what it admits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.engines.effective.model import Notice, NoticeKind, Reading, Telling
from orchestrator.values import Json

SOURCE = "log"
QUOTE_CHARS = 600
"""A quoted line is cut here: a whole configuration may stand in one line."""

_INT = re.compile(r"-?\d{1,3}(?:,\d{3})+|-?\d+")
_FLOAT = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_WORDS: Mapping[str, Json] = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tells:
    """A line that tells something. Its named groups are readings of these names.

    Attributes:
        values: Readings that the line gives without saying their value.
        only_first: Later lines of this kind speak of something else (the draft model's layers).
    """

    pattern: str
    telling: Telling = Telling.SEEN
    values: Mapping[str, Json] = field(default_factory=dict)
    only_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Admits:
    """A line in which the engine says that something declared does not hold.

    Attributes:
        about: Name of the reading it is about; may be built from the line's groups (`env.{name}`). Dashes become
            underscores and leading ones go.
        value: What runs instead; a group named `value` in the pattern wins.
    """

    kind: NoticeKind
    pattern: str
    about: str
    value: Json = None


def tell(log: Iterable[str], table: Sequence[Tells]) -> Iterator[Reading]:
    """Every reading that the lines give, in their order."""
    compiled = [(re.compile(rule.pattern), rule) for rule in table]
    done: set[str] = set()
    for line in log:
        for pattern, rule in compiled:
            if rule.pattern in done or (match := pattern.search(line)) is None:
                continue
            if rule.only_first:
                done.add(rule.pattern)
            found = {name: plain(text) for name, text in match.groupdict().items() if text is not None}
            for name, value in (*rule.values.items(), *found.items()):
                yield Reading(name=name, value=value, source=SOURCE, quote=quoted(line), telling=rule.telling)


def admit(log: Iterable[str], table: Sequence[Admits], words: Mapping[str, str]) -> Iterator[Notice]:
    """What the lines admit, each thing once. Of several rules that match a line the first one counts.

    Args:
        words: The engine's own names to ours.
    """
    compiled = [(re.compile(rule.pattern), rule) for rule in table]
    seen: set[tuple[NoticeKind, str, str]] = set()
    for line in log:
        found = next(((rule, match) for pattern, rule in compiled if (match := pattern.search(line))), None)
        if found is None:
            continue
        rule, match = found
        groups = {name: text or "" for name, text in match.groupdict().items()}
        value = plain(groups["value"]) if groups.get("value") else rule.value
        about = name_of(rule.about.format(**groups), words)
        key = (rule.kind, about, repr(value))
        if key not in seen:
            seen.add(key)
            yield Notice(kind=rule.kind, about=about, value=value, quote=quoted(line))


def name_of(flag: str, words: Mapping[str, str]) -> str:
    """A flag or key as a reading's name: `--gpu-memory-utilization` -> `memory_fraction`."""
    if flag.startswith("env."):
        return flag
    key = flag.strip("`'\" ").lstrip("-").replace("-", "_").replace(" ", "_").lower()
    return words.get(key, key)


def plain(text: str) -> Json:
    """A word of a log as a number, a truth value, or itself."""
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if _INT.fullmatch(word):
        return int(word.replace(",", ""))
    return float(word) if _FLOAT.fullmatch(word) else word


def quoted(line: str) -> str:
    """The line as it is kept."""
    text = line.strip()
    return text if len(text) <= QUOTE_CHARS else f"{text[:QUOTE_CHARS]} […]"
