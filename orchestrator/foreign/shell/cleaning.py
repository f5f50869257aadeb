"""What pasting leaves in a command: fences, prompts, other shells' line ends. Lines keep their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.foreign.seeming import is_page

_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_FOREIGN_END = re.compile(r"(?<=[ \t])([`^])[ \t]*$", re.MULTILINE)
_PROMPT = re.compile(r"^[ \t]*(?:\$|PS [A-Z]:[^>\n]*>)[ \t]+(?=\S)", re.MULTILINE)
_OWN_END = re.compile(r"\\[ \t]*$", re.MULTILINE)

_SHELL_LANGUAGES = frozenset(
    {"", "bash", "sh", "shell", "zsh", "console", "shell-session", "terminal", "powershell", "ps1", "cmd", "bat"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Text for a POSIX shell. `line_end`: the other shell's sign that was replaced (`^`, a backtick), or None."""

    text: str
    line_end: str | None = None


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


def cleaned(text: str) -> Cleaned:
    """The text without fences and prompts; lines that PowerShell or cmd continue are continued with `\\`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _PROMPT.sub(
        "", _FENCE.sub("", _of_page(text) if _FENCE.search(text) is not None and is_page(text) else text)
    )
    ends = _FOREIGN_END.findall(text)
    if not ends or _OWN_END.search(text) is not None:
        return Cleaned(text=text)
    rows = [row for row in text.split("\n") if _FOREIGN_END.search(row)]
    if not all(row.count("`") % 2 == 1 or row.rstrip().endswith("^") for row in rows):
        return Cleaned(text=text)
    return Cleaned(text=_FOREIGN_END.sub(r"\\", text), line_end=ends[0])
