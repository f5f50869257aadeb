"""Another tool's JSON, read key by key: complaints name file, format, place and key, and what nobody read is kept.

Their files come from many versions, so a key that is absent or null is "not told" unless it is needed; a key of another
type than any version writes is an error, never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from orchestrator.errors import InputError
from orchestrator.values import Json, canonical_json

T = TypeVar("T")

MAX_KEPT_BYTES = 4096
MAX_EXTRA_BYTES = 65536
NOT_A_RESULT = "is the file whole, and of a version that gate0 reads? `gate0 import --help` lists them"


class Part:
    """One JSON object of the file.

    Args:
        where: File and the format that it was recognised as, for messages.
        path: The place of this object in the file, as `benchmarks[2].metrics`; empty for the whole.
    """

    def __init__(self, raw: Mapping[str, Any], *, where: str, path: str = "") -> None:
        self.raw = raw
        self.where = where
        self.path = path
        self._read: set[str] = set()

    def has(self, key: str) -> bool:
        """The key is there and not null."""
        return self.raw.get(key) is not None

    def find_number(self, key: str) -> float | None:
        """
        Returns:
            None when the file does not tell it; `math.inf` for a bare `Infinity` or the text "inf".

        Raises:
            InputError: It is no number.
        """
        value = self._take(key)
        if value is None:
            return None
        if value == "inf":
            return math.inf
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, f"{value!r:.60} is not a number")
        return None if math.isnan(value) else value

    def number(self, key: str) -> float:
        return self._needed(key, self.find_number(key))

    def find_count(self, key: str) -> int | None:
        """A whole number; `8.0` is one too."""
        value = self.find_number(key)
        if value is None or math.isinf(value):
            return None
        if value != int(value):
            raise self.wrong(key, f"{value!r} is not a whole number")
        return int(value)

    def count(self, key: str) -> int:
        return self._needed(key, self.find_count(key))

    def find_text(self, key: str) -> str | None:
        value = self._take(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, f"{value!r:.60} is not text")
        return value

    def find_list(self, key: str) -> list[Any] | None:
        value = self._take(key)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, f"{value!r:.60} is not a list")
        return value

    def find_numbers(self, key: str) -> list[float | None] | None:
        """A list of numbers; None in it stays None."""
        values = self.find_list(key)
        for value in values or ():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise self.wrong(key, f"{value!r:.60} in it is not a number")
        return values

    def find_part(self, key: str) -> Part | None:
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"{value!r:.60} is not an object")
        return Part(value, where=self.where, path=self._at(key))

    def part(self, key: str) -> Part:
        return self._needed(key, self.find_part(key))

    def parts(self, key: str) -> tuple[Part, ...]:
        """A needed list of objects."""
        values: list[Any] = self._needed(key, self.find_list(key))
        return parts_of(values, where=self.where, path=self._at(key))

    def rest(self, *, but: Sequence[str] = ()) -> dict[str, Json]:
        """What nobody read, bounded in size (see `kept`); `but` is left out, it stands in the copy of the file."""
        return kept({k: v for k, v in self.raw.items() if k not in self._read and k not in but})

    def wrong(self, key: str, message: str) -> InputError:
        return InputError(f"{self.where}: {self._at(key)}: {message}", hint=NOT_A_RESULT)

    def _needed(self, key: str, value: T | None) -> T:
        if value is None:
            raise self.wrong(key, "is null" if key in self.raw else "is missing")
        return value

    def _take(self, key: str) -> Any:
        self._read.add(key)
        return self.raw.get(key)

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def parts_of(values: Sequence[Any], *, where: str, path: str = "") -> tuple[Part, ...]:
    """
    Raises:
        InputError: One of them is not an object.
    """
    for index, value in enumerate(values):
        if not isinstance(value, Mapping):
            raise InputError(f"{where}: {path}[{index}]: {value!r:.60} is not an object", hint=NOT_A_RESULT)
    single = len(values) == 1 and not path
    return tuple(Part(v, where=where, path="" if single else f"{path}[{i}]") for i, v in enumerate(values))


def kept(values: Mapping[str, Any]) -> dict[str, Json]:
    """The values as JSON can say them; a value above 4 KiB, or past 64 KiB together, is replaced by its size.

    Nothing is lost by that: the file itself lies beside the record.
    """
    found: dict[str, Json] = {}
    total = 0
    for key, value in values.items():
        plain = finite(value)
        size = len(canonical_json(plain).encode())
        if size > MAX_KEPT_BYTES or total + size > MAX_EXTRA_BYTES:
            found[key] = {"left_out_bytes": size}
            continue
        found[key] = plain
        total += size
    return found


def finite(value: Any) -> Json:
    """The value with `Infinity` and `NaN`, which JSON has no word for, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value  # type: ignore[no-any-return]
