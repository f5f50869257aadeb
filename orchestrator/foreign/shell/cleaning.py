"""What pasting leaves in a command: fences, prompts, other shells' line ends. Lines keep their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.foreign.seeming import is_page

_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_FOREIGN_END = re.compile(r"(?<=[ \t])([`^])[ \t]*$", re.MULTILINE)
_PROMPT = re.compile(
    r"^[ \t]*(?:(?:\([\w.-]+\)[ \t]*)?(?:\$|[\w.-]+@[\w.-]+(?::|[ \t])[^\s$#%>]*[$#%>]|\[[\w.-]+@[^\]\n]+\][$#]|❯|➜)"
    r"|PS [A-Z]:[^>\n]*>)[ \t]+(?=\S)"
    r"|^[ \t]*[0-9]{1,5}[ \t]{1,3}(?=(?:sudo |docker |podman |vllm |sglang |llama-server |python3? ))",
    re.MULTILINE,
)
"""Prompts, and the numbers of `history`."""

_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u200b": None, "\ufeff": None})
_DASHES = re.compile(r"(?<=[ \t])(?:[–—]|–-|-–)(?=[A-Za-z])")
_BETTER = re.compile(r"[‘’“”–—]")
_PLAIN = {"‘": "'", "’": "'", "“": '"', "”": '"'}
_WINDOWS = re.compile(r"\.exe\b|%[A-Z_]{3,}%")
_BACKSLASH = re.compile(r"\\(?=[\w.-])")
_PERCENT = re.compile(r"%([A-Z_][A-Z0-9_]{2,})%")
_POWERSHELL = re.compile(r"\$\{?env:([A-Za-z_]\w*)\}?")
_OWN_END = re.compile(r"\\[ \t]*$", re.MULTILINE)

_SHELL_LANGUAGES = frozenset(
    {"", "bash", "sh", "shell", "zsh", "console", "shell-session", "terminal", "powershell", "ps1", "cmd", "bat"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Text for a POSIX shell.

    Attributes:
        line_end: The other shell's sign that was replaced (`^`, a backtick), or None.
        plainer: The first line whose quotes or dashes were made those of a keyboard, counted from 0; None: no line's.
    """

    text: str
    line_end: str | None = None
    plainer: int | None = None


def _of_page(text: str) -> str:
    """A page's blocks of shell code alone; all else is blank."""
    rows: list[str] = []
    language: str | None = None
    for row in text.split("\n"):
        fence = _FENCE.fullmatch(row)
        if fence is not None:
            opened = row.strip().strip("`~").strip().split(" ")[0].lower()
            language = opened if language is None else None
            rows.append("")
        else:
            rows.append(row if language in _SHELL_LANGUAGES else "")
    return "\n".join(rows)


def _plain_signs(text: str) -> str:
    """Quotes and dashes as a keyboard has them, where a text program made better ones of them."""
    if _BETTER.search(text) is None:
        return text
    return "\n".join(_plain_row(row) if _BETTER.search(row) is not None else row for row in text.split("\n"))


def _plain_row(row: str) -> str:
    """One line; inside quotes of a keyboard the better ones are letters."""
    row = _DASHES.sub("--", row)
    if "'" in row:
        return row
    for pair in ("‘’", "“”") if '"' not in row else ("‘’",):
        row = re.sub(rf"(?<=[ \t=])[{pair}](?=\S)|(?<=\S)[{pair}](?=[ \t\\]|$)", lambda sign: _PLAIN[sign[0]], row)
    return row


def cleaned(text: str) -> Cleaned:
    """The text without fences and prompts; lines that PowerShell or cmd continue are continued with `\\`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_SPACES)
    written = _POWERSHELL.sub(r"${\1}", text)
    text = _plain_signs(written)
    pairs = enumerate(zip(written.split("\n"), text.split("\n"), strict=True))
    plainer = next((number for number, (before, after) in pairs if before != after), None)
    text = _PROMPT.sub(
        "", _FENCE.sub("", _of_page(text) if _FENCE.search(text) is not None and is_page(text) else text)
    )
    ends = _FOREIGN_END.findall(text)
    if _WINDOWS.search(text) is not None:
        text = _PERCENT.sub(r"${\1}", _BACKSLASH.sub(r"\\\\", text))
    if not ends or _OWN_END.search(text) is not None:
        return Cleaned(text=text, plainer=plainer)
    rows = [row for row in text.split("\n") if _FOREIGN_END.search(row)]
    if not all(row.count("`") % 2 == 1 or row.rstrip().endswith("^") for row in rows):
        return Cleaned(text=text, plainer=plainer)
    return Cleaned(text=_FOREIGN_END.sub(r"\\", text), line_end=ends[0], plainer=plainer)
