"""Ranges of versions as people write them: `>=0.28,<0.32`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.engines.images import Version

_PART = re.compile(r"(>=|<=|==|>|<)\s*(\d+(?:\.\d+)*)")
_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """Bounds that must all hold; `text` as it was written."""

    text: str
    bounds: tuple[tuple[str, Version], ...]

    def holds(self, version: Version) -> bool:
        """True when the version is inside. `0.28` means 0.28.0, so `<=0.28` leaves 0.28.1 out."""
        return all(_COMPARE[word](_padded(version), _padded(bound)) for word, bound in self.bounds)


def version_range(text: str) -> VersionRange:
    """Read a range.

    Raises:
        ValueError: It is none.
    """
    parts = [part.strip() for part in text.split(",")]
    found = [_PART.fullmatch(part) for part in parts]
    if not all(found):
        raise ValueError(f"not a version range: {text!r}, expected as `>=0.28,<0.32`")
    return VersionRange(text=text, bounds=tuple((m[1], version_numbers(m[2])) for m in found if m is not None))


def version_numbers(text: str) -> Version:
    """`0.28.1` -> (0, 28, 1)."""
    return tuple(int(part) for part in text.split("."))


def dotted(version: Version) -> str:
    return ".".join(str(part) for part in version)


def _padded(version: Version) -> Version:
    return (*version, *(0,) * (4 - len(version)))
