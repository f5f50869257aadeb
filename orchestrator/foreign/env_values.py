"""Environment variables as a profile says them: text, or the name of who must give the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.foreign.hiding import MASK, hidden, is_secret, is_secret_name, masked
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell.expanding import Word
from orchestrator.foreign.texts import shorten
from orchestrator.profile.model import EnvValue, SecretRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Variables for a profile's `env`, and what was changed on the way."""

    values: Mapping[str, EnvValue]
    notes: tuple[Note, ...] = ()
    secrets: tuple[str, ...] = ()
    """Literal values that must not be shown anywhere."""


def environment(words: Mapping[str, Word], *, where: str | None = None) -> Environment:
    """Variables from words.

    A secret's literal value becomes a reference to its name, never shown; a value that waits for somebody's environment
    (`$NAME`) becomes a reference to that variable.

    Args:
        where: Place in the source; None: each word's line.
    """
    values: dict[str, EnvValue] = {}
    notes: list[Note] = []
    for name, word in words.items():
        place = f"line {word.line}" if where is None else f"{where}.{name}"
        value, note = _value(name, word, place)
        if note is not None:
            notes.append(note)
        if value != "" or not is_secret_name(name):
            values[name] = value
    secrets = tuple(word.text for name, word in words.items() if word.is_known and is_secret(name, word.text))
    return Environment(values=values, notes=tuple(notes), secrets=secrets)


def say(notes: Sequence[Note], secrets: Sequence[str]) -> tuple[Note, ...]:
    """Notes with `***` for each of the values, and for what looks like one in what they show."""
    return tuple(
        replace(note, what=masked(hidden(note.what), secrets), why=masked(note.why, secrets)) for note in notes
    )


def _value(name: str, word: Word, where: str) -> tuple[EnvValue, Note | None]:
    if word.reference is not None:
        why = "" if word.reference == name else f"the value of {word.reference}, from the environment of who deploys"
        fate = Fate.KEPT if word.reference == name else Fate.TRANSLATED
        return SecretRef(name=word.reference), Note(fate=fate, what=f"{name}=${word.reference}", where=where, why=why)
    if is_secret(name, word.text):
        why = f"a secret in plain text: not carried; put it into the environment or the secrets file as {name}"
        return SecretRef(name=name), Note(fate=Fate.PERSON, what=f"{name}={MASK}", where=where, why=why)
    if word.text == "" and is_secret_name(name):
        why = f"empty, so left out; `env: {{{name}: {{secret: {name}}}}}` gives it"
        return "", Note(fate=Fate.DROPPED, what=f"{name}=", where=where, why=why)
    if not word.is_known:
        unknown = shorten(", ".join((*word.missing, *word.code)))
        why = f"waits for {unknown}: write the value"
        return word.text, Note(fate=Fate.PERSON, what=f"{name}={word.text}", where=where, why=why)
    return word.text, None
