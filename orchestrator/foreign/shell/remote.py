"""`ssh host …`: what the other machine's shell is given to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.foreign.shell.expanding import Word
from orchestrator.foreign.shell.programs import SHELLS, base_name

_VALUED = frozenset(f"-{letter}" for letter in "bcDEeFIiJLlmOopQRSWw")
"""Options of ssh that take the word after (ssh(1))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """The host, and the text for its shell; empty: a shell that somebody types into."""

    host: str
    text: Word


def over_ssh(words: Sequence[Word], stdin: Word | None) -> Remote | None:
    """What a command that begins with `ssh` runs where; None when it names no host.

    Args:
        stdin: The here-document that it reads: the script of `ssh host bash -s <<EOF`.
    """
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        at += 2 if words[at].text in _VALUED else 1
    if at >= len(words):
        return None
    host, rest = words[at], words[at + 1 :]
    line = rest[0].line if rest else host.line
    text = " ".join(word.text for word in rest)
    if stdin is not None and (not rest or _reads_script(text.split())):
        return Remote(host=host.text, text=stdin)
    missing = tuple(dict.fromkeys(name for word in rest for name in word.missing))
    code = tuple(dict.fromkeys(code for word in rest for code in word.code))
    return Remote(host=host.text, text=Word(text=text, line=line, missing=missing, code=code))


def _reads_script(texts: Sequence[str]) -> bool:
    """A shell without a script of its own: `bash`, `bash -s`, `sudo bash -euo pipefail -s`."""
    named = [index for index, text in enumerate(texts) if base_name(text) in SHELLS]
    return bool(named) and not any("c" in text for text in texts[named[0] + 1 :] if text.startswith("-"))
