"""Shell text cut into words and operators, as bash cuts it, and as people mean it where bash would not.

Theory of operation. One pass over the characters. Quotes and escapes are resolved at once; `$NAME` and its like become
pieces that `expanding` fills in later. What published commands get wrong and their readers put right without noticing
is put right here too, each with a remark: a backslash followed by spaces or a comment, a comment or an empty line
between continued lines, a lost backslash before a line that begins with `-`, PowerShell's and cmd's line ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.errors import InputError
from orchestrator.foreign.shell.pieces import Operator, Piece, RawWord, Substitution, Text, Token
from orchestrator.foreign.shell.quoting import PLACEHOLDER, Characters, joined

MAX_CHARACTERS = 300_000

_OPERATORS = (
    *("&>>", "<<<", "<<-", ";;&"),
    *("&&", "||", ";;", ";&", "|&", "&>", ">&", "<&", "<<", ">>", ">|", "<>"),
    *(";", "&", "|", "<", ">", "(", ")"),
)
REDIRECTIONS = frozenset({"&>>", "<<<", "<<-", "&>", ">&", "<&", "<<", ">>", ">|", "<>", "<", ">"})
_CONTINUED = re.compile(r"\\[ \t]*(#[^\n]*)?\n")
_GAP = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*(?P<next>[^\n]?[^\n]?)")
_DESCRIPTOR = re.compile(r"[0-9]+(?=[<>])")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that was put right, on its line."""

    line: int
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What was cut, and what had to be put right for it."""

    tokens: tuple[Token, ...]
    remarks: tuple[Remark, ...] = ()


def cut(text: str, *, line: int = 1, is_script: bool = True) -> Tokens:
    """Cut shell text.

    Args:
        line: The line on which the text begins, for messages.
        is_script: False: a line end is a blank like any other, and `;`, `|`, `#` and their like are letters, as for
            `shlex.split` (a compose file's command).

    Raises:
        InputError: A quote or a bracket is never closed (with its line), or the text is too large.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"too large for a command: {len(text)} characters, at most {MAX_CHARACTERS}")
    chars = Characters(text=text.replace("\r\n", "\n"), first_line=line, is_script=is_script)
    lexer = _Lexer(chars=chars)
    return Tokens(tokens=tuple(lexer.tokens()), remarks=tuple(lexer.remarks))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Awaited:
    """A here-document whose text begins on the next line: where its operator stands."""

    tokens: list[Token]
    at: int
    ends_with: str

    @property
    def opened(self) -> Operator | None:
        token = self.tokens[self.at]
        return token if isinstance(token, Operator) else None


@dataclass(slots=True, kw_only=True)
class _Lexer:
    chars: Characters
    remarks: list[Remark] = field(default_factory=list)
    found: list[Token] = field(default_factory=list)
    heredocs: list[_Awaited] = field(default_factory=list)
    in_array: bool = False

    def tokens(self) -> Sequence[Token]:
        while self.chars.at < len(self.chars.text):
            self._step()
        self._take_heredocs()
        return self.found

    def _step(self) -> None:
        char = self.chars.text[self.chars.at]
        if char in " \t" or (char == "\n" and not self.chars.is_script):
            self.chars.at += 1
        elif (continued := _CONTINUED.match(self.chars.text, self.chars.at)) is not None:
            self._continue(continued)
        elif char == "\n":
            self._end_line()
        elif char == "#" and self.chars.is_script:
            self._comment()
        elif (operator := self._operator()) is not None:
            self.found.append(Operator(text=operator, line=self.chars.line))
            self.chars.at += len(operator)
        else:
            self._word_or_descriptor()

    def _operator(self) -> str | None:
        if not self.chars.is_script or self.chars.text.startswith(("<(", ">("), self.chars.at):
            return None
        before = self.found[-1] if self.found else None
        if isinstance(before, RawWord) and before.plain == "=~" and self.chars.text[self.chars.at] in "()|<>":
            return None  # a pattern's brackets are letters of it
        if PLACEHOLDER.match(self.chars.text, self.chars.at) is not None:
            return None
        return next((op for op in _OPERATORS if self.chars.text.startswith(op, self.chars.at)), None)

    def _continue(self, continued: re.Match[str]) -> None:
        line = self.chars.line
        self.chars.at = continued.end()
        if continued[0] != "\\\n":
            self._remark(
                line, "`\\` before the end of the line", "spaces or a comment follow it; read as a line goes on"
            )
        # Comments and empty lines between continued lines: a shell would end the command there.
        gap = _GAP.match(self.chars.text, self.chars.at)
        if self.chars.is_script and gap is not None and "\n" in gap[0] and _is_flag(gap["next"]):
            self._remark(
                self.chars.line, "a comment or an empty line between continued lines", "a shell ends there; read on"
            )
            self.chars.at = gap.start("next")

    def _end_line(self) -> None:
        line = self.chars.line
        self.chars.at += 1
        if self.in_array:
            return
        if self.heredocs:
            self._take_heredocs()
        elif self._goes_on():
            gap = _GAP.match(self.chars.text, self.chars.at)
            self._remark(line, "a line that ends without `\\`", "the next one begins with a flag; read as one command")
            self.chars.at = gap.start("next") if gap is not None else self.chars.at
            return
        self.found.append(Operator(text="\n", line=line))

    def _goes_on(self) -> bool:
        before = self.found[-1] if self.found else None
        if not isinstance(before, RawWord) or before.plain in {"in", "then", "do", "else"}:
            return False
        gap = _GAP.match(self.chars.text, self.chars.at)
        return gap is not None and _is_flag(gap["next"])

    def _comment(self) -> None:
        end = self.chars.text.find("\n", self.chars.at)
        end = len(self.chars.text) if end < 0 else end
        comment = self.chars.text[self.chars.at : end].rstrip()
        if comment.endswith("\\") and self.found and isinstance(self.found[-1], RawWord):
            self._remark(self.chars.line, "a comment that ends with `\\`", "a shell ends the command there; read on")
            end = min(end + 1, len(self.chars.text))
        self.chars.at = end

    def _word_or_descriptor(self) -> None:
        descriptor = _DESCRIPTOR.match(self.chars.text, self.chars.at)
        if descriptor is not None and self.chars.is_script:
            self.chars.at = descriptor.end()
            return
        line = self.chars.line
        pieces = self._pieces()
        # A comment in backticks stands between arguments and comes to nothing.
        if pieces and all(isinstance(p, Substitution) and _is_comment(p.source) and not p.is_quoted for p in pieces):
            return
        word = RawWord(pieces=pieces, line=line)
        opens = self.chars.is_script and self.chars.text.startswith("(", self.chars.at)
        if opens and _ARRAY.fullmatch(word.plain or ""):
            word = RawWord(pieces=pieces, line=line, items=self._array(line))
        self._await_heredoc(word)
        self.found.append(word)

    def _array(self, line: int) -> tuple[RawWord, ...]:
        self.chars.at += 1
        outer, self.found, self.chars.depth, self.in_array = self.found, [], self.chars.deeper(), True
        while self.chars.at < len(self.chars.text) and self.chars.text[self.chars.at] != ")":
            self._step()
        items, self.found, self.chars.depth, self.in_array = self.found, outer, self.chars.depth - 1, False
        if self.chars.at >= len(self.chars.text):
            raise self.chars.never_closed("(", line)
        self.chars.at += 1
        return tuple(item for item in items if isinstance(item, RawWord))

    def _await_heredoc(self, word: RawWord) -> None:
        before = self.found[-1] if self.found else None
        if isinstance(before, Operator) and before.text in {"<<", "<<-"}:
            ends_with = "".join(piece.text for piece in word.pieces if isinstance(piece, Text))
            self.heredocs.append(_Awaited(tokens=self.found, at=len(self.found) - 1, ends_with=ends_with))

    def _take_heredocs(self) -> None:
        for awaited in self.heredocs:
            opened = awaited.opened
            if opened is None:
                continue
            body: list[str] = []
            # Pasted from an indented page, the end is indented too.
            is_indented = not re.search(
                rf"^{re.escape(awaited.ends_with)}$", self.chars.text[self.chars.at :], re.MULTILINE
            )
            while self.chars.at < len(self.chars.text):
                row = self._row()
                stripped = row.strip() if is_indented else row.lstrip("\t") if opened.text == "<<-" else row
                if stripped == awaited.ends_with:
                    break
                body.append(row)
            awaited.tokens[awaited.at] = Operator(text=opened.text, line=opened.line, body="\n".join(body))
        self.heredocs = []

    def _row(self) -> str:
        """The rest of the line, which is then read."""
        begin = self.chars.at
        end = self.chars.text.find("\n", begin)
        end = len(self.chars.text) if end < 0 else end
        self.chars.at = min(end + 1, len(self.chars.text))
        return self.chars.text[begin:end]

    def _pieces(self) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        while self.chars.at < len(self.chars.text) and not self._ends_word(bool(pieces)):
            pieces.extend(self.chars.piece())
        return joined(pieces)

    def _ends_word(self, has_begun: bool) -> bool:
        char = self.chars.text[self.chars.at]
        if char in " \t\n" or (self._operator() is not None):
            return True
        if has_begun and (continued := _CONTINUED.match(self.chars.text, self.chars.at)) is not None:
            after = self.chars.text[continued.end() : continued.end() + 2]
            if _is_flag(after):
                self._remark(
                    self.chars.line,
                    "no space before `\\`",
                    "a shell joins the next flag to this word; read as two words",
                )
                return True
            return after[:1] in {" ", "\t"} or continued[0] != "\\\n"
        return False

    def _remark(self, line: int, what: str, why: str) -> None:
        self.remarks.append(Remark(line=line, what=what, why=why))


def _is_flag(two: str) -> bool:
    return len(two) == 2 and two[0] == "-" and (two[1] == "-" or two[1].isalpha())


def _is_comment(source: str) -> bool:
    return source.startswith("`") and source[1:-1].lstrip().startswith("#")
