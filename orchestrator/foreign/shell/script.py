"""A script read from top to bottom without running it: its commands, each with the environment it would get."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.foreign.hiding import MASK, hidden, is_secret
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell.cleaning import cleaned
from orchestrator.foreign.shell.commands import Command, Script
from orchestrator.foreign.shell.deciding import TESTS, decide, matches
from orchestrator.foreign.shell.expanding import Variables, Word, expand, join
from orchestrator.foreign.shell.given import assumed, document, read_into, shown
from orchestrator.foreign.shell.lexing import cut
from orchestrator.foreign.shell.parsing import (
    Case,
    Group,
    If,
    Loop,
    Simple,
    Statement,
    assigned_name,
    parse,
)
from orchestrator.foreign.shell.pieces import RawWord, Reference, Text
from orchestrator.foreign.shell.using import Uses

MAX_COMMANDS = 2_000
MAX_CALLS = 8
ReadFile = Callable[[str], str | None]
"""The text of a file that the source names, None when it is not to be had."""

_DECLARES = frozenset({"export", "declare", "typeset", "local", "readonly"})
_SETS_VARIABLES = frozenset({"read", "readarray", "mapfile", "getopts"})


def read_script(
    text: str,
    *,
    line: int = 1,
    values: Mapping[str, str] | None = None,
    arguments: Sequence[str] | None = None,
    read_file: ReadFile | None = None,
) -> Script:
    """Read shell text: commands with their words, variables filled in where the text or `values` set them.

    Args:
        line: The line on which the text begins.
        values: Variables that are set before it begins.
        arguments: `$1` and on; None: not known.
        read_file: Gives the text of sourced files.

    Raises:
        InputError: A quote or bracket is never closed, or it is nested too deep.
    """
    run = _Run(read_file=read_file)
    variables = Variables(
        values={name: (_given(name, value, line),) for name, value in (values or {}).items()},
        positional=None if arguments is None else tuple(Word(text=a, line=line) for a in arguments),
    )
    run.text(text, variables, line=line)
    run.uncalled(variables)
    run.say_variables(variables, line)
    known = {name: words[0] for name, words in variables.values.items() if len(words) == 1}
    exported = {name: known[name] for name in variables.exported if name in known}
    return Script(
        commands=tuple(run.commands),
        values=known,
        exported=exported,
        unset=frozenset(variables.unset),
        notes=tuple(run.notes),
    )


def _given(name: str, value: str, line: int) -> Word:
    """A given variable; a secret's value goes nowhere, so what would hold it waits for it."""
    if is_secret(name, value):
        return Word(text=f"${{{name}}}", line=line, missing=(name,))
    return Word(text=value, line=line)


def split_words(text: str, *, line: int = 1) -> tuple[Word, ...]:
    """Words of a text that no shell reads (a compose file's `command`): quotes count, nothing else does.

    Raises:
        InputError: A quote is never closed.
    """
    tokens = cut(text, line=line, is_script=False).tokens
    return tuple(word for token in tokens if isinstance(token, RawWord) for word in expand(token, Variables()))


@dataclass(slots=True, kw_only=True)
class _Run:
    read_file: ReadFile | None
    commands: list[Command] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    functions: dict[str, Group] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    choices: list[tuple[tuple[str, ...], str, int]] = field(default_factory=list)
    """Variables that code sets of which only running it tells whether it runs: names, block, line."""
    uses: Uses = field(default_factory=Uses)
    exports_all: bool = False
    depth: int = 0

    def text(self, text: str, variables: Variables, *, line: int, block: str | None = None) -> None:
        clean = cleaned(text)
        if clean.line_end is not None:
            what = f"`{clean.line_end}` at the end of a line"
            self.note(Fate.TRANSLATED, what, line, "read as a line that goes on")
        if clean.plainer is not None:
            self.note(Fate.TRANSLATED, "‘’ “” –", line + clean.plainer, "read as the quotes and dashes of a keyboard")
        tokens = cut(clean.text, line=line)
        for remark in tokens.remarks:
            self.note(Fate.TRANSLATED, remark.what, remark.line, remark.why)
        self.statements(parse(tokens.tokens), variables, block=block)

    def statements(self, statements: Sequence[Statement], variables: Variables, *, block: str | None) -> bool | None:
        """Go through statements; what the last one came to: True (or taken to succeed), False, None (not known)."""
        status: bool | None = True
        before = ";"
        for statement in statements:
            runs: bool | None = True
            if before == "&&":
                runs = status
            elif before == "||":
                runs = None if status is None else not status
            piped = before in {"|", "|&"}
            before = statement.after
            if runs is True:
                status = self.statement(statement, variables, block=block, piped=piped)
            elif runs is None:
                self.maybe((statement,), variables, block=block or "a condition", line=statement.line)
        return status

    def statement(self, statement: Statement, variables: Variables, *, block: str | None, piped: bool) -> bool | None:
        if len(self.commands) > MAX_COMMANDS:
            return True
        match statement:
            case Simple():
                return self.simple(statement, variables, block=block, piped=piped)
            case If():
                return self.branches(statement, variables, block=block)
            case Case():
                return self.case(statement, variables, block=block)
            case Loop():
                copied = variables.copy()
                if statement.variable is not None:
                    copied.values.pop(statement.variable, None)
                    variables.uncertain.add(statement.variable)
                self.maybe(statement.body, copied, block=statement.kind, line=statement.line, outer=variables)
            case Group() if statement.name is not None:
                self.functions[statement.name] = statement
            case Group():
                inner = variables.copy() if statement.is_subshell else variables
                return self.statements(statement.body, inner, block=block)
        return True

    def maybe(
        self,
        statements: Sequence[Statement],
        variables: Variables,
        *,
        block: str,
        line: int,
        outer: Variables | None = None,
    ) -> None:
        """Statements that may or may not run: their commands are marked, their variables not taken."""
        kept = outer or variables
        inner = variables.copy()
        self.statements(statements, inner, block=block)
        changed = sorted(name for name, value in inner.values.items() if kept.values.get(name) != value)
        variables.uncertain.update(changed)
        if changed:
            self.choices.append((tuple(changed), block, line))

    def branches(self, statement: If, variables: Variables, *, block: str | None) -> bool | None:
        for index, branch in enumerate(statement.branches):
            holds = self.statements(branch.condition, variables, block=block) if branch.condition else True
            if holds is True and self._is_decidable(branch.condition):
                return self.statements(branch.body, variables, block=block)
            if holds is not False:
                for rest in statement.branches[index:]:
                    self.maybe(rest.body, variables, block="if", line=statement.line)
                return None
        return True

    def _is_decidable(self, condition: Sequence[Statement]) -> bool:
        """False where a command was only taken to succeed."""
        last = condition[-1] if condition else None
        if last is None:
            return True
        first = last.words[0].plain if isinstance(last, Simple) and last.words else None
        return first in {*TESTS, "!", "true", ":"}

    def case(self, statement: Case, variables: Variables, *, block: str | None) -> bool | None:
        subject = join(statement.subject.pieces, variables, line=statement.line)
        for choice in statement.choices:
            patterns = [join(pattern.pieces, variables, line=pattern.line).text for pattern in choice.patterns]
            if not subject.is_known:
                self.maybe(choice.body, variables, block="case", line=statement.line)
            elif any(matches(subject.text, pattern) for pattern in patterns):
                return self.statements(choice.body, variables, block=block)
        return True if subject.is_known else None

    def simple(self, statement: Simple, variables: Variables, *, block: str | None, piped: bool) -> bool | None:
        if not statement.words:
            for assignment in statement.assignments:
                self.assign(assignment, variables, exports=self.exports_all)
            return True
        self.uses.command(statement)
        first = statement.words[0].plain
        if first in _DECLARES:
            self.declare(statement, variables)
            return True
        words = tuple(word for raw in statement.words for word in expand(raw, variables))
        if not words or words[0].text in {*TESTS, "!", "true", "false", ":"}:
            is_test = words and words[0].text in {*TESTS, "!"}
            told = tuple(assumed(word, variables) for word in words) if is_test else words
            return decide(told) if told else True
        if words[0].text == "eval" and self.depth < MAX_CALLS:
            self.depth += 1
            self.text(" ".join(word.text for word in words[1:]), variables, line=statement.line, block=block)
            self.depth -= 1
            return True
        if self.builtin(words, statement, variables):
            return True
        function = self.functions.get(words[0].text)
        if function is not None and self.depth < MAX_CALLS:
            self.call(function, words, variables, block=block)
            return True
        self.command(statement, words, variables, block=block, piped=piped)
        return True

    def command(
        self, statement: Simple, words: tuple[Word, ...], variables: Variables, *, block: str | None, piped: bool
    ) -> None:
        before = variables.copy()
        before.exported = set()
        for assignment in statement.assignments:
            self.assign(assignment, before, exports=True)
        names = [*sorted(variables.exported), *sorted(before.exported)]
        env = {name: _value(before, name, statement.line) for name in names}
        self.commands.append(
            Command(
                words=words,
                env=env,
                line=statement.line,
                after=statement.after,
                piped=piped,
                block=block,
                redirections=tuple(shown(r, variables) for r in statement.redirections if r.body is None),
                stdin=next((given for r in statement.redirections if (given := document(r, variables))), None),
            )
        )

    def call(self, function: Group, words: tuple[Word, ...], variables: Variables, *, block: str | None) -> None:
        self.called.add(function.name or "")
        outer = variables.positional
        variables.positional = words[1:]
        self.depth += 1
        self.statements(function.body, variables, block=block)
        self.depth -= 1
        variables.positional = outer

    def uncalled(self, variables: Variables) -> None:
        """Functions that nothing calls by name: what they hold might run."""
        for name, function in list(self.functions.items()):
            if name not in self.called:
                self.statements(function.body, variables.copy(), block=f"function {name}")

    def declare(self, statement: Simple, variables: Variables) -> None:
        keyword, *rest = statement.words
        options = [word.plain or "" for word in rest if (word.plain or "").startswith("-")]
        exports = keyword.plain == "export" or any("x" in option for option in options) or self.exports_all
        for raw in rest:
            if assigned_name(raw) is not None:
                self.assign(raw, variables, exports=exports)
            elif exports and raw.plain is not None and raw.plain.isidentifier():
                variables.exported.add(raw.plain)

    def assign(self, raw: RawWord, variables: Variables, *, exports: bool) -> None:
        name = assigned_name(raw)
        head = raw.pieces[0]
        if name is None or not isinstance(head, Text):
            return
        self.uses.assignment(name, raw)
        written, _, rest = head.text.partition("=")
        value = (replace(head, text=rest), *raw.pieces[1:])
        if raw.items is not None:
            items = tuple(word for item in raw.items for word in expand(item, variables))
            before = variables.values.get(name, ()) if written.endswith("+") else ()
            variables.values[name] = (*before, *items)
            variables.arrays.add(name)
            return
        if self._extends_unknown(name, value, variables):
            self.note(Fate.PERSON, f"{name}=…", raw.line, f"adds to the {name} that the image sets itself: not carried")
            return
        word = join(value, variables, line=raw.line)
        if written.endswith("+") and (earlier := variables.values.get(name)):
            word = replace(word, text=earlier[0].text + word.text)
        if word.is_known and is_secret(name, word.text):
            why = f"a secret in plain text: not carried; put it into the environment or the secrets file as {name}"
            self.note(Fate.PERSON, f"{name}={MASK}", raw.line, why)
            word = Word(text=f"${{{name}}}", line=raw.line, missing=(name,))
        variables.values[name] = (word,)
        if exports:
            variables.exported.add(name)

    def _extends_unknown(self, name: str, value: Sequence[object], variables: Variables) -> bool:
        named = [piece for piece in value if isinstance(piece, Reference) and piece.name == name]
        others = [piece for piece in value if not (isinstance(piece, Text) and not piece.text) and piece not in named]
        return bool(named and others) and name not in variables.values

    def builtin(self, words: tuple[Word, ...], statement: Simple, variables: Variables) -> bool:
        """Commands that change what the shell knows; False for all others."""
        texts = [word.text for word in words]
        match texts:
            case ["unset", *names]:
                for name in names:
                    variables.values.pop(name, None)
                    variables.exported.discard(name)
                    variables.unset.add(name)
            case ["set", "--", *_]:
                variables.positional = words[2:]
            case ["set", *options]:
                self.exports_all = self._all_exported(options)
            case ["shift", *_]:
                if variables.positional:
                    variables.positional = variables.positional[1:]
            case ["read", *_] if read_into(texts, statement, variables):
                pass
            case [name, *names] if name in _SETS_VARIABLES:
                for each in names:
                    variables.values.pop(each, None)
                variables.uncertain.update(names)
                self.note(Fate.PERSON, " ".join(texts), words[0].line, "reads values that only running it tells")
            case ["source" | ".", path, *_]:
                self.source(path, words[0].line, variables)
            case ["alias", *definitions]:
                for name, _, text in (definition.partition("=") for definition in definitions):
                    body = parse(cut(text, line=words[0].line).tokens)
                    self.functions[name] = Group(body=body, line=words[0].line, name=name)
            case ["shopt" | "trap" | "exit" | "return" | "break" | "continue" | "wait" | "hash", *_]:
                pass
            case _:
                return False
        return True

    def _all_exported(self, options: Sequence[str]) -> bool:
        for index, option in enumerate(options):
            follows = options[index + 1] if index + 1 < len(options) else ""
            if re.fullmatch(r"[-+][a-zA-Z]+", option) and ("a" in option or follows == "allexport"):
                return option.startswith("-")
        return self.exports_all

    def source(self, path: str, line: int, variables: Variables) -> None:
        text = self.read_file(path) if self.read_file is not None and self.depth < MAX_CALLS else None
        if text is None:
            if "/activate" not in path:
                self.note(Fate.PERSON, f"source {path}", line, "the file is not at hand: what it sets is not known")
            return
        self.depth += 1
        self.text(text, variables, line=1)
        self.depth -= 1
        self.note(Fate.TRANSLATED, f"source {path}", line, "read, and what it sets was filled in")

    def say_variables(self, variables: Variables, line: int) -> None:
        for names, block, at in self.choices:
            if used := [name for name in names if self.uses.reach(name)]:
                why = f"set in `{block} …`, which only running it tells: not taken"
                self.note(Fate.PERSON, ", ".join(used), at, why)
        if variables.defaults:
            shown = ", ".join(f"{name}={_masked(name, value)}" for name, value in variables.defaults.items())
            self.note(Fate.TRANSLATED, shown, line, "defaults, taken because nothing sets these variables")
        if variables.assumed_unset:
            shown = ", ".join(sorted(variables.assumed_unset))
            self.note(Fate.TRANSLATED, shown, line, "taken as not set, because nothing sets these variables")
        for name, words in variables.left_out.items():
            self.note(Fate.DROPPED, f"${{{name}:+{words}}}", line, f"given only where {name} is set, and it is not")
        for name, message in variables.required.items():
            why = f"must be set by whoever starts it{f': {message}' if message else ''}"
            self.note(Fate.PERSON, f"${{{name}:?}}", line, why)

    def note(self, fate: Fate, what: str, line: int, why: str) -> None:
        note = Note(fate=fate, what=hidden(what), where=f"line {line}", why=why)
        if note not in self.notes[-50:]:
            self.notes.append(note)


def _value(variables: Variables, name: str, line: int) -> Word:
    known = variables.values.get(name)
    return known[0] if known else Word(text=f"${{{name}}}", line=line, missing=(name,))


def _masked(name: str, value: str) -> str:
    return MASK if is_secret(name, value) else value
