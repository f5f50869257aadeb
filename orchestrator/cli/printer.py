"""The only module that prints. stdout is the answer, stderr is progress; off a terminal no bars and no colour.

`NO_COLOR` is honoured by rich. Text that came from outside (names, answers, log lines) is never read as markup, and
reaches the terminal without what would steer it: a server's log has colours, and may have worse.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.values import printable

PIPE_WIDTH = 200
STYLES = {
    "pass": "green",
    "passed": "green",
    "fail": "bold red",
    "failed": "bold red",
    "error": "red",
    "unstable": "yellow",
    "skip": "dim",
    "skipped": "dim",
    "interrupted": "yellow",
    "contradicted": "bold red",
    "ignored": "bold red",
    "changed by the engine": "yellow",
    "not confirmable": "dim",
    "same": "green",
}
"""Colours of the verdict words; the word itself always stands there too."""


class Printer:
    """Writes for a person, or one JSON document for a program.

    Args:
        is_json: Progress still goes to stderr, the answer is one JSON document on stdout.
        is_quiet: No progress at all.
    """

    def __init__(
        self,
        *,
        is_json: bool = False,
        is_quiet: bool = False,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self.is_json = is_json
        self.is_quiet = is_quiet
        self.out = _console(stdout or sys.stdout)
        self.err = _console(stderr or sys.stderr)

    @property
    def is_live(self) -> bool:
        """stderr is a terminal that can redraw a line."""
        return self.err.is_terminal and not self.is_quiet

    def answer(self, text: str) -> None:
        """A line of the answer."""
        if not self.is_json:
            self.out.print(printable(text))

    def document(self, value: Any) -> None:
        """The answer as JSON, when asked for."""
        if self.is_json:
            self.out.file.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
        """A table of the answer; columns in `right` are numbers."""
        if self.is_json:
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for index, name in enumerate(head):
            justify: Literal["left", "right"] = "right" if index in right else "left"
            table.add_column(name, justify=justify, no_wrap=index in right, overflow="fold")
        for row in rows:
            table.add_row(*(styled(cell) for cell in row))
        self.out.print(table)

    def progress(self, text: str, *, status: str | None = None) -> None:
        """A line of progress."""
        if not self.is_quiet:
            line = Text(printable(text))
            if status:
                line = Text.assemble((f"{status:<11}", STYLES.get(status, "")), " ", printable(text))
            self.err.print(line)

    def progress_table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table beside the answer."""
        if self.is_quiet:
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in head:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*(styled(cell) for cell in row))
        self.err.print(table)

    def warning(self, text: str) -> None:
        self.err.print(Text.assemble(("warning: ", "yellow"), printable(text)))

    def error(self, text: str, hint: str | None = None) -> None:
        """What went wrong, and on its own line what to do."""
        first, *rest = printable(text).splitlines() or [""]
        self.err.print(Text.assemble(("error: ", "bold red"), first))
        for line in rest:
            self.err.print(Text(f"  {line}"))
        if hint:
            self.err.print(Text.assemble(("hint: ", "cyan"), printable(hint)))


class _Console(Console):
    """A console whose reader may go away (`| head`, a closed terminal): from then on it is silent, the work goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError:
            self.quiet = True


def _console(file: TextIO) -> Console:
    """A console on the file; where nobody looks at a terminal, lines are as long as they are."""
    width = None if file.isatty() else PIPE_WIDTH
    return _Console(file=file, highlight=False, soft_wrap=True, emoji=False, markup=False, width=width)


def styled(cell: str) -> Text:
    """A verdict word in its colour, anything else as it is."""
    return Text(printable(cell), style=STYLES.get(cell, ""))
