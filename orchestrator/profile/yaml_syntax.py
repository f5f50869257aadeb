"""PyYAML's complaints in words that name the fix.

PyYAML gives its syntax errors no codes, so they are told apart by text; tests/cases/profile/malformed holds a case
for each.
"""

from __future__ import annotations

import re

import yaml

from orchestrator.errors import Problem

_WORDS = (
    ("'\\t' that cannot start", "a tab cannot indent: use spaces"),
    ("that cannot start any token", "text cannot start with this character: put it in quotes"),
    (
        "mapping values are not allowed",
        "a `:` that cannot be here: check the indentation and the line above, or quote text",
    ),
    ("expected <block end>", "the indentation does not match the lines above, or a `- ` is missing"),
    ("could not find expected ':'", "a line without `key: value`: is the colon (or the space after it) missing?"),
    ("found unexpected end of stream", "a quote is opened here and never closed"),
    ("expected ',' or ']'", "a `[` is opened here and never closed, or a comma is missing"),
    ("expected ',' or '}'", "a `{` is opened here and never closed, or a comma is missing"),
    (
        "found unknown escape character",
        "an unknown `\\` escape in double quotes: single quotes keep a backslash",
    ),
    ("found unexpected ':'", "a `:` inside `[]` or `{}`: put the text in quotes"),
    ("sequence entries are not allowed", "a `- ` that cannot be here: put the list on its own lines"),
    ("duplicate anchor", "this anchor is defined twice"),
)
_BEGINS_EARLIER = ("found unexpected end of stream", "expected ',' or")


def syntax_problem(exc: Exception, text: str, file: str) -> Problem:
    """What PyYAML found wrong in `text`, on its line, in our words."""
    if isinstance(exc, yaml.MarkedYAMLError):
        raw = exc.problem or exc.context or "unreadable"
        return Problem(file=file, line=_line(exc, raw), path="", message=_wording(raw))
    if isinstance(exc, yaml.reader.ReaderError):
        position = exc.position if isinstance(exc.position, int) else 0
        line = text.count("\n", 0, position) + 1
        message = f"a control character (U+{ord(text[position : position + 1] or chr(0)):04X}) is not text: remove it"
        return Problem(file=file, line=line, path="", message=message)
    escape = re.search(r"\\U[0-9A-Fa-f]{8}", text)
    where = None if escape is None else text.count("\n", 0, escape.start()) + 1
    return Problem(file=file, line=where, path="", message="not valid YAML: a number or escape is out of range")


def _line(exc: yaml.MarkedYAMLError, raw: str) -> int | None:
    begins_earlier = any(part in raw for part in _BEGINS_EARLIER)
    mark = exc.context_mark if begins_earlier and exc.context_mark is not None else exc.problem_mark
    return None if mark is None else mark.line + 1


def _wording(raw: str) -> str:
    return next((words for part, words in _WORDS if part in raw), f"not valid YAML: {raw}")
