"""Values that a source leaves to somebody: a shell's variable or code, a page's `<your-model>`, three dots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell.quoting import PLACEHOLDER
from orchestrator.foreign.texts import shorten

WAITS = "waits for "
"""How a reader's note about such a word begins."""

OPEN = "what it stands for is not in the source: left out, write it under `flags`"
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*|[0-9])\b[^{}]*\}?|\$\(|`")
_TEMPLATE = re.compile(r"\{\{-?\s*[A-Za-z_.][\w.]*\s*-?\}\}")
_WHOLE = re.compile(r"\$\{[^{}]*\}|\$[A-Za-z_0-9@*]\w*|\$\(.*\)|`.*`", re.DOTALL)
_DOTS = re.compile(r"\.{3}|…|\[(?:\.{3}|…|[Oo]ptions?|OPTIONS?|[Ff]lags?|FLAGS?|[Aa]rgs?|ARGS?)\]")


def waits(text: str) -> bool:
    """True for a value that is not all there."""
    is_filled_in = PLACEHOLDER.fullmatch(text) is not None or _TEMPLATE.search(text) is not None
    return is_filled_in or is_gap(text) or _VARIABLE.search(text) is not None


def is_asked_for(flag: str, value: str) -> bool:
    """A flag's value that the source leaves to somebody; `PORT` and its like are no port."""
    return waits(value) or (flag == "--port" and re.fullmatch(r"[A-Z][A-Z0-9_]*", value) is not None)


def is_gap(text: str) -> bool:
    """True for what stands for words that are left out: `...`, `[OPTIONS]`."""
    return _DOTS.fullmatch(text) is not None


def is_named_gap(text: str) -> bool:
    """True for a model that a page leaves to its reader: `MODEL_PATH`, `/path/to/model`, `your-model`."""
    return re.fullmatch(r"[A-Z_]*MODEL[A-Z_]*|/?path/to/.*|your[-_/].*", text) is not None


def is_unset(text: str) -> bool:
    """True for a word that is one variable or piece of shell code and nothing else: a shell may make it vanish."""
    return _WHOLE.fullmatch(text) is not None


def open_words(words: Sequence[str], notes: Sequence[Note]) -> frozenset[str]:
    """Of the words those that may stand for any number of words, none too.

    Args:
        notes: The reader's: it knows which `$NAME` is a variable, and which is meant letter by letter.
    """
    read = [note.what for note in notes if note.why.startswith(WAITS)]
    unset = {word for word in words if is_unset(word) and any(what.endswith(word) for what in read)}
    return frozenset(unset | {word for word in words if is_gap(word)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Words and their places, and a note for each that was taken out."""

    words: tuple[str, ...]
    places: tuple[str, ...]
    notes: tuple[Note, ...]


def without_open(words: Sequence[str], places: Sequence[str], is_open: frozenset[str], *, may_be_model: bool) -> Told:
    """The words without the open ones behind a value: a flag that takes several would take them for its own.

    Args:
        is_open: As `open_words` tells.
        may_be_model: A word without a flag can be the model; where nothing else is, an open one is taken for it.
    """
    kept: list[int] = []
    notes: list[Note] = []
    names_model = bool(words) and (not words[0].startswith("-") or any(w.startswith("--model") for w in words))
    for index, word in enumerate(words):
        is_behind = index > 0 and not words[index - 1].startswith("-")
        if not is_behind or word not in is_open:
            kept.append(index)
        elif may_be_model and not names_model:
            names_model = True
            kept.append(index)
        else:
            where = places[index] if index < len(places) and places[index] else "the command"
            notes.append(Note(fate=Fate.PERSON, what=word, where=where, why=OPEN))
    return Told(
        words=tuple(words[index] for index in kept),
        places=tuple(places[index] for index in kept if index < len(places)),
        notes=tuple(notes),
    )


def awaited(texts: Sequence[str]) -> str:
    """What the values wait for, in words."""
    found: list[str] = []
    for text in texts:
        if not waits(text):
            continue
        found_in = [match[1] for match in _VARIABLE.finditer(text) if match[1]]
        names = [f"${name}" if name.isdigit() else name for name in found_in]
        is_code = "$(" in text or "`" in text
        found += [f"`{shorten(text, 60)}`"] if is_code or not names else names
    return ", ".join(dict.fromkeys(found))
