"""What a command is given beside its words: here-documents, here-strings, and variables that nothing sets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.foreign.hiding import is_secret_name
from orchestrator.foreign.shell.expanding import Variables, Word, join, split
from orchestrator.foreign.shell.parsing import Redirection, Simple, assigned_name
from orchestrator.foreign.shell.pieces import RawWord, Text
from orchestrator.foreign.shell.quoting import Characters

_SHELLS_OWN = frozenset(
    {
        *("HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "HOSTNAME", "PATH", "SHELL", "UID", "EUID", "RANDOM"),
        *("BASH_SOURCE", "BASH_VERSION", "LANG", "TMPDIR"),
    }
)
"""Set wherever a shell runs."""


def assumed(word: Word, variables: Variables) -> Word:
    """A test's word; a variable that nothing sets as one that is not set: the defaults beside it are taken so too."""
    name = word.reference
    if name is None or name in variables.uncertain or name in _SHELLS_OWN or is_secret_name(name):
        return word
    if not name.isdigit():
        variables.assumed_unset.add(name)
    return Word(text="", line=word.line)


def read_into(texts: Sequence[str], statement: Simple, variables: Variables) -> bool:
    """`read -ra NAME <<< "$TEXT"`, `read -r -d '' NAME <<EOF`: True when what they read stands in the text."""
    names = [text for text in texts[1:] if text.isidentifier()]
    given = next((g for r in statement.redirections if (g := _given_text(r, variables)) is not None), None)
    if given is None or len(names) != 1 or any(_splits_oddly(a, variables) for a in statement.assignments):
        return False
    is_array = any(text.startswith("-") and "a" in text for text in texts[1:])
    variables.values[names[0]] = split(given) if is_array else (given,)
    if is_array:
        variables.arrays.add(names[0])
    return True


def _splits_oddly(assignment: RawWord, variables: Variables) -> bool:
    """`IFS=,` before a `read`."""
    if assigned_name(assignment) != "IFS":
        return False
    return join(assignment.pieces, variables, line=0).text.strip() != "IFS="


def shown(redirection: Redirection, variables: Variables) -> str:
    target = redirection.target
    if target is None:
        return redirection.operator
    return f"{redirection.operator} {join(target.pieces, variables, line=redirection.line).text}"


def document(redirection: Redirection, variables: Variables) -> Word | None:
    """A here-document as the command reads it: filled in, unless its end is written in quotes."""
    if redirection.body is None or redirection.target is None:
        return None
    line = redirection.line + 1
    body = re.sub(r"(?m)^\t+", "", redirection.body) if redirection.operator == "<<-" else redirection.body
    if any(isinstance(piece, Text) and piece.is_quoted for piece in redirection.target.pieces):
        return Word(text=body, line=line)
    return join(Characters(text=body, first_line=line, is_script=True).quoted_pieces(), variables, line=line)


def _given_text(redirection: Redirection, variables: Variables) -> Word | None:
    if redirection.operator == "<<<" and redirection.target is not None:
        return join(redirection.target.pieces, variables, line=redirection.line)
    return document(redirection, variables)
