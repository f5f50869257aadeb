"""What reading a script gives: its commands, and what is known when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.foreign.model import Note
from orchestrator.foreign.shell.expanding import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command that would run.

    Attributes:
        env: What is exported when it runs, and what is assigned before it.
        after: The operator that follows it: `;`, `&&`, `||`, `|`, `&`.
        piped: It reads from a command before it.
        block: What it stands in when it is not known whether it runs (`if`, `for`, `function start`), else None.
        redirections: As written, `> serve.log`, here-documents aside.
        stdin: The here-document that it reads.
    """

    words: tuple[Word, ...]
    env: Mapping[str, Word]
    line: int
    after: str = ";"
    piped: bool = False
    block: str | None = None
    redirections: tuple[str, ...] = ()
    stdin: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a script comes to.

    Attributes:
        values: Variables as they stand at its end.
        exported: Of these, what is exported.
        unset: Variables that `unset` took away.
        notes: What was put right, skipped or could not be told, in the order of the text.
    """

    commands: tuple[Command, ...]
    values: Mapping[str, Word]
    exported: Mapping[str, Word]
    unset: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()
