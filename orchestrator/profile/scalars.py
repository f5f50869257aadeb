"""How an unquoted word in our YAML is read, and what to write when it was read otherwise than meant.

One rule in place of YAML 1.1's dozen: `true`/`false` are booleans, decimal numbers are numbers, `null`, `~` or nothing
is null; every other word is text exactly as written. So `on`, `no`, `22:22`, `010`, `0x1F`, `1_000`, `1e-3` and dates
stay what the user typed, and where a number or a boolean is wanted they are refused with the form to write instead.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

Scalar = None | bool | int | float | str

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_SWITCH = {"on": True, "yes": True, "y": True, "off": False, "no": False, "n": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_EXPONENT = re.compile(r"[-+]?[0-9]{1,18}[eE][-+]?[0-9]{1,3}")
_SUFFIXED = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([kKmMgG])(?:i?[bB]?)")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[_,' ][0-9]{3})+|[1-9][0-9]*(?:_[0-9]+)+")
_OCTAL = re.compile(r"0o?[0-7]{1,18}")
_POWER = {"k": 1, "m": 2, "g": 3}


def read_plain(written: str) -> Scalar:
    """The value of an unquoted scalar, by the rule above."""
    if written in _NULL:
        return None
    if written in _BOOLEAN:
        return _BOOLEAN[written]
    if _INTEGER.fullmatch(written):
        return int(written)
    if _FLOAT.fullmatch(written) and math.isfinite(number := float(written)):
        return number
    return written


def is_ambiguous(written: str) -> bool:
    """True when other YAML readers take this unquoted word for a number or a boolean, and ours keeps it as text."""
    looks_numeric = (
        _EXPONENT.fullmatch(written) or _OCTAL.fullmatch(written) or re.fullmatch(r"0x[0-9a-fA-F]+|[0-9_]+", written)
    )
    return isinstance(read_plain(written), str) and (written.lower() in _SWITCH or bool(looks_numeric))


def boolean_hint(written: str) -> str | None:
    """What to write for a text that was meant as a boolean, None when it does not look like one."""
    meant = _SWITCH.get(written.lower(), _BOOLEAN.get(written))
    return None if meant is None else f"write {str(meant).lower()}, without quotes"


def number_hint(written: str) -> str | None:
    """What to write for a text that was meant as a number, None when it does not look like one."""
    if isinstance(read_plain(written), int | float):
        return f"write {written} without quotes"
    if suffixed := _SUFFIXED.fullmatch(written):
        return _suffix_hint(Decimal(suffixed[1]), _POWER[suffixed[2].lower()])
    if _GROUPED.fullmatch(written):
        return f"write {re.sub('[^0-9]', '', written)}"
    if _EXPONENT.fullmatch(written):
        return f"write {_decimal(written)}"
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", written):
        return f"write {int(written, 16)}"
    if _OCTAL.fullmatch(written):
        octal, decimal = int(written.replace("o", ""), 8), int(written.replace("o", ""))
        return f"write {decimal}, or {octal} if octal was meant"
    return None


def _suffix_hint(amount: Decimal, power: int) -> str:
    binary, metric = amount * 1024**power, amount * 1000**power
    return f"write {_plain(binary)} (x 1024) or {_plain(metric)} (x 1000)"


def _decimal(written: str) -> str:
    try:
        number = Decimal(written)
    except InvalidOperation:
        return "it in decimals"
    return _plain(number) if abs(number.adjusted()) <= 20 else f"{float(number):.1e}"


def _plain(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
