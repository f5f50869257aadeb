"""What a script, a pasted command or a unit says, worked out a second time with nothing of the importer.

Plain text work: comments and line ends off, variables replaced where the text sets them plainly and once, shlex for the
words. Words that still hold a `$` or stand for something left out (`...`, `<your-model>`) become `OPEN`, which is not
compared; where an unquoted one may be any number of words, it is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PROGRAM = re.compile(
    r"(?:\S*/)?(?:vllm[ \t]+serve|sglang[ \t]+serve|llama[ \t]+serve"
    r"|python[\d.]*[ \t]+(?:-[a-zA-Z][ \t]+)*-m[ \t]+(?:vllm\.entrypoints\.openai\.api_server|sglang\.launch_server)"
    r"|llama-server(?=[ \t]+-))(?=\s|$)"
)
_ONLY_SPEAKS = re.compile(r"\s*(?:echo|printf|pkill|pgrep|grep|die|log|info|warn|cat|alias|which)\b")
_RUN = re.compile(r"(?:docker|podman)[ \t]+(?:container[ \t]+)?run(?=[ \t])")
_SWITCHES = frozenset({"-d", "--detach", "-i", "-t", "-it", "-ti", "-dit", "-itd", "--rm", "--init", "--privileged"})
_ENDS = frozenset("|&;<>\n")
OPEN = "zqx-open"
_GAP = re.compile(r"[$`]|^(?:\.{3}|…|<[^<>]+>|\[[\w .…-]+\]|PORT|MODEL(?:_\w+)?)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One `docker run`: its image, what follows it, the names of its variables."""

    image: str
    words: tuple[str, ...]
    env: frozenset[str] = field(default_factory=frozenset)


def commands(text: str) -> list[list[str]]:
    """The words after the program of each command that serves; those that only speak of one left out."""
    plain = _plain(text)
    values = _values(plain)
    found = [opened(_words(plain, match.start(), values)[len(match[0].split()) :]) for match in _spoken(PROGRAM, plain)]
    return [words for words in found if _serves(words)]


def _serves(words: Sequence[str]) -> bool:
    """Not prose that goes on behind the program's name, nor a question for its version."""
    is_asked = bool(words) and re.match(r"--(?:help|version|list-devices)\b", words[0]) is not None
    return not is_asked and any(word.startswith("-") or "/" in word for word in words)


def containers(text: str) -> Iterator[Container]:
    """Each `docker run` line, as far as shlex reads it."""
    plain = _plain(text)
    values = _values(plain)
    for match in _spoken(_RUN, plain):
        words = _words(plain, match.start(), values)[len(match[0].split()) :]
        at, env = 0, set()
        while at < len(words) and words[at].startswith("-"):
            name, equals, value = words[at].partition("=")
            at += 1 if equals or name in _SWITCHES else 2
            if name in {"-e", "--env"} and at <= len(words):
                env.add((value if equals else words[at - 1]).partition("=")[0])
        if at < len(words):
            yield Container(image=words[at], words=tuple(opened(words[at + 1 :])), env=frozenset(env))


def opened(words: Sequence[str]) -> list[str]:
    """The words with `OPEN` for those that are not all there."""
    return [OPEN if _GAP.search(word) else word for word in words]


def _spoken(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Matches in commands; not those that a command only prints, looks for or builds, nor those in prose."""
    for match in pattern.finditer(text):
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if _ONLY_SPEAKS.match(before) is None and before.count("`") % 2 == 0 and "--target" not in before:
            yield match


def unit_text(text: str) -> str:
    """A unit's `ExecStart=` lines as shell text."""
    whole = re.sub(r"\\[ \t]*\n(?:[ \t]*[#;].*\n)*", " ", text)
    return "\n".join(line.lstrip("-@:+!") for line in re.findall(r"(?m)^ExecStart[ \t]*=[ \t]*(.*)$", whole))


def _plain(text: str) -> str:
    text = re.sub(r"(?m)^[ \t]*(?:#|```).*\n", "", text.replace("\r\n", "\n") + "\n")
    text = re.sub(r"(?m)[ \t]+#[^\n\"']*$", "", text)
    return re.sub(r"\\[ \t]*\n", " ", text)


def _values(text: str) -> Mapping[str, str]:
    """Variables that are set plainly, and always to the same."""
    found: dict[str, set[str]] = {}
    pattern = r"(?m)^[ \t]*(?:export[ \t]+|readonly[ \t]+)?([A-Za-z_]\w*)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'()]*)[ \t]*$"
    for name, value in re.findall(pattern, text):
        found.setdefault(name, set()).add(value)
    once = {name: next(iter(values)) for name, values in found.items() if len(values) == 1}
    plain = {name: value.strip("\"'") for name, value in once.items()}
    return {name: text if once[name].startswith("'") else _filled(text, plain) for name, text in plain.items()}


def _filled(word: str, values: Mapping[str, str]) -> str:
    for _ in range(4):
        word = re.sub(r"\$\{(\w+):?-([^${}]*)\}", lambda m: values.get(m[1]) or m[2], word)
        word = re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda m: values.get(m[1] or m[2], m[0]), word)
    return word


def _words(text: str, begin: int, values: Mapping[str, str]) -> list[str]:
    """Words from a place to the end of its command; inside quotes (`bash -c "…"`) to where they close."""
    around = max(text.rfind("\n", 0, begin) + 1, *(text.rfind(tool, 0, begin) for tool in ("docker run", "podman run")))
    quote = _open_quote(text[around:begin])
    rest = text[begin:]
    if quote:
        end = 0
        while end < len(rest) and rest[end] != quote:
            end += 2 if quote == '"' and rest[end] == "\\" else 1
        rest = rest[:end]
        rest = re.sub(r"\\([\"\\$`])", r"\1", rest) if quote == '"' else rest
    # Unquoted variables fall into words, so the plain ones are filled in before the words are cut.
    plain = {name: value for name, value in values.items() if not re.search(r"[\"'\\$|&;<>]", value)}
    lexer = shlex.shlex(_filled(rest, plain), posix=True, punctuation_chars="|&;<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    found: list[str] = []
    try:
        for word in lexer:
            if word and set(word) <= _ENDS:
                break
            found.append(_filled(word, values))
    except ValueError:
        return []
    kept = [
        word
        for word in found
        if not re.fullmatch(r"\$\{?\w+(?:\[@\])?\}?|\.{3}|…", word) or _has_flag_before(found, word)
    ]
    return kept


def _has_flag_before(words: list[str], word: str) -> bool:
    at = words.index(word)
    return at > 0 and words[at - 1].startswith("-")


def _open_quote(text: str) -> str:
    quote, at = "", 0
    while at < len(text):
        if text[at] == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if text[at] == quote else quote
        elif text[at] in "\"'":
            quote = text[at]
        at += 1
    return quote
