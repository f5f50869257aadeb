"""Values that a source leaves to somebody: a shell's variable or code, a page's `<your-model>`, three dots."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.foreign.shell.quoting import PLACEHOLDER
from orchestrator.foreign.texts import shorten

WAITS = "waits for "
"""How a reader's note about such a word begins."""

_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*|[0-9])\b[^{}]*\}?|\$\(|`")
_WHOLE = re.compile(r"\$\{[^{}]*\}|\$[A-Za-z_0-9@*]\w*|\$\(.*\)|`.*`", re.DOTALL)
_DOTS = re.compile(r"\.{3}|…|\[(?:\.{3}|…|[A-Za-z][A-Za-z _-]*)\]")


def waits(text: str) -> bool:
    """True for a value that is not all there."""
    return is_gap(text) or _VARIABLE.search(text) is not None or PLACEHOLDER.fullmatch(text) is not None


def is_gap(text: str) -> bool:
    """True for what stands for words that are left out: `...`, `[OPTIONS]`."""
    return _DOTS.fullmatch(text) is not None


def is_unset(text: str) -> bool:
    """True for a word that is one variable or piece of shell code and nothing else: a shell may make it vanish."""
    return _WHOLE.fullmatch(text) is not None


def awaited(texts: Sequence[str]) -> str:
    """What the values wait for, in words."""
    found: list[str] = []
    for text in texts:
        if not waits(text):
            continue
        names = [match[1] for match in _VARIABLE.finditer(text) if match[1]]
        is_code = "$(" in text or "`" in text
        found += [f"`{shorten(text, 60)}`"] if is_code or not names else names
    return ", ".join(dict.fromkeys(found))
