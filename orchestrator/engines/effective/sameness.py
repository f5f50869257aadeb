"""When a declared value and a told one are the same, though they are written differently."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import StrEnum

from orchestrator.engines.effective.reprs import is_sequence
from orchestrator.values import Json, read_json

_HUMAN = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[kKmMgG])")
_UNITS = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}
_TRUE, _FALSE = frozenset({"true", "on", "yes", "enabled"}), frozenset({"false", "off", "no", "disabled"})
_NULL = frozenset({"None", "null", ""})
DTYPES = {
    "torch.bfloat16": "bf16",
    "bfloat16": "bf16",
    "torch.float16": "f16",
    "float16": "f16",
    "fp16": "f16",
    "half": "f16",
    "torch.float32": "f32",
    "float32": "f32",
    "fp32": "f32",
    "float": "f32",
    "fp8": "fp8_e4m3",
    "torch.float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3",
    "fp8_e4m3fn": "fp8_e4m3",
    "torch.float8_e5m2": "fp8_e5m2",
    "float8_e5m2": "fp8_e5m2",
}
"""Spellings of one number format."""

_BITS = (
    ("32", 32.0),
    ("16", 16.0),
    ("q8_0", 8.5),
    ("fp8", 8.0),
    ("int8", 8.0),
    ("mxfp8", 8.0),
    ("q5", 5.5),
    ("q4", 4.5),
    ("iq4", 4.5),
    ("fp4", 4.5),
)
METHODS = {
    "deepseek_mtp": "mtp",
    "qwen3_next_mtp": "mtp",
    "qwen3_5_mtp": "mtp",
    "glm4_moe_mtp": "mtp",
    "ernie_mtp": "mtp",
    "mimo_mtp": "mtp",
    "nextn": "mtp",
    "draft-mtp": "mtp",
    "draft-eagle3": "eagle3",
    "draft-dflash": "dflash",
    "draft-dspark": "dspark",
    "draft-simple": "draft_model",
    "ngram-simple": "ngram",
}
"""Names of one way to speculate."""


class Likeness(StrEnum):
    """SAME, DIFFERENT, or INCOMPARABLE: values of two kinds, of which nobody can say."""

    SAME = "same"
    DIFFERENT = "different"
    INCOMPARABLE = "incomparable"


def liken(declared: Json, running: Json, *, is_word: bool = False) -> Likeness:
    """Compare two values.

    Args:
        is_word: They are names of a choice (a backend, a dtype): case, `-` and `_` don't matter.

    `8k` is 8000 and `8K` 8192; `on`, `"True"` and true are one; JSON in a text is that JSON; of a mapping only the
    declared keys count; one item is a list of one.
    """
    declared, running = _read(declared), _read(running)
    if isinstance(declared, Mapping):
        return _like_mapping(declared, running)
    if is_sequence(declared) or is_sequence(running):
        return _like_list(declared, running, is_word=is_word)
    if declared is None or running is None:
        return _verdict(_is_nothing(declared) and _is_nothing(running))
    if isinstance(declared, bool) or isinstance(running, bool):
        return _like_truth(declared, running)
    if isinstance(declared, int | float) and isinstance(running, int | float):
        return _verdict(math.isclose(declared, running, rel_tol=1e-6, abs_tol=1e-9))
    if isinstance(declared, str) and isinstance(running, str):
        return _verdict(_word(declared) == _word(running) if is_word else declared == running)
    return Likeness.INCOMPARABLE


def number(value: Json) -> float | None:
    """The value as a number, `8k` included; None: it is none."""
    read = _read(value)
    return None if isinstance(read, bool) or not isinstance(read, int | float) else float(read)


def kv_bits(dtype: str) -> float | None:
    """Bits of one element of a KV cache of this type; None: not known (`auto`)."""
    word = DTYPES.get(dtype.lower(), dtype.lower())
    return next((bits for part, bits in _BITS if part in word), None)


def method_of(name: str) -> str:
    """The one name of a way to speculate."""
    return METHODS.get(name.lower(), name.lower())


def _read(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in _NULL:
        return None
    if human := _HUMAN.fullmatch(text):
        return float(human.group("number")) * _UNITS[human.group("unit")]
    if text[:1] in ("{", "["):
        return _json(text)
    try:
        return float(text)
    except ValueError:
        return text


def _json(text: str) -> Json:
    try:
        return read_json(text)
    except ValueError:
        return text


def _like_mapping(declared: Mapping[str, Json], running: Json) -> Likeness:
    if not isinstance(running, Mapping):
        return Likeness.DIFFERENT if running is None else Likeness.INCOMPARABLE
    found = [liken(value, running[key], is_word=True) for key, value in declared.items() if key in running]
    if Likeness.DIFFERENT in found:
        return Likeness.DIFFERENT
    is_all_told = len(found) == len(declared) and Likeness.INCOMPARABLE not in found
    return Likeness.SAME if is_all_told else Likeness.INCOMPARABLE


def _like_list(declared: Json, running: Json, *, is_word: bool) -> Likeness:
    mine, theirs = _listed(declared), _listed(running)
    if len(mine) != len(theirs):
        return Likeness.DIFFERENT
    found = [liken(a, b, is_word=is_word) for a, b in zip(mine, theirs, strict=True)]
    return next((worst for worst in (Likeness.DIFFERENT, Likeness.INCOMPARABLE) if worst in found), Likeness.SAME)


def _listed(value: Json) -> list[Json]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str) and "," in value:
        return [part.strip() for part in value.split(",")]
    return [] if value is None else [value]


def _like_truth(declared: Json, running: Json) -> Likeness:
    mine, theirs = _truth(declared), _truth(running)
    return Likeness.INCOMPARABLE if mine is None or theirs is None else _verdict(mine is theirs)


def _truth(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return {0: False, 1: True}.get(int(value)) if value in (0, 1) else None
    word = str(value).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _is_nothing(value: Json) -> bool:
    """`none` is also a word of its own: of a cache mode, of a graph mode."""
    return value is None or (isinstance(value, str) and value.lower() == "none")


def _word(text: str) -> str:
    word = text.strip().lower()
    return DTYPES.get(word, METHODS.get(word, word)).replace("-", "_")


def _verdict(is_same: bool) -> Likeness:
    return Likeness.SAME if is_same else Likeness.DIFFERENT
