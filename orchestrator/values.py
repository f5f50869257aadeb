"""Values without domain knowledge: secrets, digests, JSON, versions of time."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""Anything that JSON can say."""

Clock = Callable[[], float]
"""A monotonic clock, seconds."""

Sleep = Callable[[float], None]


class Secret:
    """A token that shows itself only to who asks for `.value`.

    Printing, formatting and JSON give `***`; equality compares the values.
    """

    __slots__ = ("_name", "_value")

    def __init__(self, name: str, value: str) -> None:
        self._name = name
        self._value = value

    @property
    def name(self) -> str:
        """The reference's name, safe to print."""
        return self._name

    @property
    def value(self) -> str:
        """The token itself: for adapters only."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self._name}=***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self._name, self._value) == (other._name, other._value)

    def __hash__(self) -> int:
        return hash((self._name, self._value))


MIN_REDACTED = 6
"""Shorter values (`EMPTY`, `none`) are words that stand elsewhere too: replacing them would hide nothing."""


def redact(text: str, secrets: Sequence[Secret]) -> str:
    """The text with `***` for each secret's value, as it is and as JSON escapes it.

    Values of less than `MIN_REDACTED` characters stay.
    """
    # Longest first: one value may be part of another.
    for form in sorted({f for secret in secrets for f in _forms(secret.value)}, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def redact_json(value: Json, secrets: Sequence[Secret]) -> Json:
    """The value with all its texts redacted. Keys are ours and stay."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, Mapping):
        return {key: redact_json(part, secrets) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [redact_json(part, secrets) for part in value]
    return value


def _forms(value: str) -> tuple[str, ...]:
    if len(value) < MIN_REDACTED:
        return ()
    return value, *(json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))


_STEERING = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor, screen
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # the window's title, links
    r"|\x1b.?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def printable(text: str) -> str:
    """The text without what a terminal obeys: escape sequences, control characters; line ends and tabs stay."""
    return _STEERING.sub("", text)


def in_words(value: Json) -> str:
    """A value as a sentence has it: `on`, `4096`, `method: mtp, num_tokens: 2`; nothing for keys without a value."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {in_words(part)}" for key, part in value.items() if part is not None)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(in_words(part) for part in value)
    return str(value)


MAX_LEVELS = 64
"""Deeper JSON is no setting of anybody's, and ends whatever goes through it level by level."""


def read_json(text: str) -> Json:
    """The value of a JSON text.

    Raises:
        ValueError: It is none (`json.JSONDecodeError`), or is nested deeper than `MAX_LEVELS`.
    """
    try:
        value: Json = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_LEVELS} levels") from None
    level: list[Json] = [value]
    for _ in range(MAX_LEVELS + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return value
    raise ValueError(f"nested deeper than {MAX_LEVELS} levels")


def _inside(value: Json) -> Sequence[Json]:
    if isinstance(value, Mapping):
        return tuple(value.values())
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def canonical_json(value: Json) -> str:
    """JSON text with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Json) -> str:
    """The first 16 hex digits of the SHA-256 over `canonical_json`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


def utc_now() -> str:
    """The time now as ISO-8601 UTC with milliseconds, `2026-11-30T06:17:56.123Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
