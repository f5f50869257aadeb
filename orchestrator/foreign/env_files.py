"""Files of `NAME=value` lines, as docker, compose, systemd and a shell's `source` read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from orchestrator.foreign.shell import Word

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:=(.*))?", re.DOTALL)
_QUOTED = re.compile(r"\s*([\"'])((?:\\.|(?!\1).)*)\1\s*(?:#.*)?", re.DOTALL)


class Reads(StrEnum):
    """Whose rules hold.

    DOCKER: `--env-file`: the value is all that follows `=`, quotes included. COMPOSE: `.env` and `env_file:`: quotes
    are taken off, ` #` begins a remark. SYSTEMD: `EnvironmentFile=`: the same without expansions.
    """

    DOCKER = "docker"
    COMPOSE = "compose"
    SYSTEMD = "systemd"


def read_env(text: str, reads: Reads) -> Mapping[str, Word]:
    """Variables of a file, the last of a name counts. A name without `=` waits for the environment of who starts it."""
    found: dict[str, Word] = {}
    for number, row in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not row.strip() or row.lstrip()[0] in "#;":
            continue
        pair = _LINE.fullmatch(row)
        if pair is None:
            continue
        name, value = pair[1], pair[2]
        if value is None:
            found[name] = Word(text=f"${{{name}}}", line=number, missing=(name,))
        else:
            found[name] = Word(text=value if reads is Reads.DOCKER else _unquoted(value), line=number)
    return found


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    if quoted is None:
        return re.sub(r"(?:^|\s+)#.*$", "", value).strip()
    if quoted[1] == "'":
        return quoted[2]
    return re.sub(r"\\(.)", lambda escaped: {"n": "\n", "t": "\t"}.get(escaped[1], escaped[1]), quoted[2])
