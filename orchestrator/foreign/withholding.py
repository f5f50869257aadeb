"""Secrets of a command line: what the engine takes from a variable is named there, and the rest is left out.

A command line is read by everybody on the host, and a profile by everybody who has the repository: no secret's value
goes into either. `flags` cannot refer to one, only `serve.api_key` and `env` can.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.foreign.hiding import (
    MASK,
    MIN_SECRET,
    cleaned,
    hidden,
    is_literal,
    is_secret,
    is_secret_key,
    is_switch,
)
from orchestrator.foreign.items import MODEL, Item
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.values import Json

API_KEY = "--api-key"
BY_VARIABLE: Mapping[str, str] = {"--hf-token": "HF_TOKEN"}
"""Flags whose value the engine takes from this variable too: huggingface_hub reads it, and llama-server by itself."""

LEFT_OUT = "left out, a command line is no place for it"
OTHERWISE = "give it in a file that is mounted, or, if the server reads a variable, as `env: {NAME: {secret: NAME}}`"
_NEVER = frozenset({MODEL, "--model-path", "--hf-repo", "--served-model-name", "--alias"})
"""Names: what looks like a key in them is none, only a URL's userinfo is."""


@dataclass(slots=True, kw_only=True)
class Withheld:
    """A command line's items without secrets.

    Attributes:
        api_key: The secret's name for `serve.api_key`; None: no flag gives one, or there is no place for it.
        env: Variable to the secret's name.
        secrets: Values that must not be shown.
    """

    items: list[Item] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    api_key: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)


def withhold(items: Sequence[Item], engine: str, api_key_env: str | None) -> Withheld:
    """The items that a profile may have.

    Args:
        api_key_env: Variable through which the engine takes its API key; None: only from the command line.
    """
    found = Withheld()
    before: Item | None = None
    for item in items:
        name = item.dotted or item.name
        is_value, before = before is not None and _may_be_value(item, before), item
        values = [value for value in item.values if not is_switch(value)]
        if item.name == API_KEY:
            found.secrets += filter(is_literal, values)
            _key(found, item, engine, api_key_env)
        elif is_value:
            found.secrets += item.words
            found.notes.append(_note(Fate.PERSON, replace(item, words=(MASK,)), f"{LEFT_OUT}: {OTHERWISE}"))
        elif is_secret_key(name) and values:
            found.secrets += filter(is_literal, values)
            _secret(found, item)
        else:
            _clean(found, item)
    return found


def without_secrets(words: Sequence[str]) -> Withheld:
    """The words of a server that gate0 knows no flags of, each as an item: a secret's flag goes with its value."""
    found = Withheld()
    left = list(words)
    while left:
        word = left.pop(0)
        flag, equals, value = word.partition("=")
        if not word.startswith("-"):
            _clean(found, Item(name="", values=(word,), words=(word,)))
            continue
        has_value = not equals and bool(left) and not left[0].startswith("-")
        if has_value and (cleaned(left[0]).gone or (is_secret_key(flag) and not is_switch(left[0]))):
            value = left.pop(0)
            item = Item(name=flag, values=(value,), words=(flag, value))
        else:
            item = Item(name=flag, values=(value,) if equals else (), words=(word,))
        if is_secret_key(flag) and item.values and not is_switch(value):
            found.secrets += filter(is_literal, [value])
            _secret(found, item)
        else:
            _clean(found, item)
    return found


def refer(env: dict[str, Json], secrets: Sequence[str]) -> tuple[Note, ...]:
    """Variables with a plain name that hold what turned out to be a secret, as references; a note for each."""
    named = [name for name, value in env.items() if isinstance(value, str) and len(value) >= MIN_SECRET]
    notes: list[Note] = []
    for name in [name for name in named if env[name] in secrets]:
        env[name] = {"secret": name}
        why = f"a secret in plain text: not carried; put it into the environment or the secrets file as {name}"
        notes.append(Note(fate=Fate.PERSON, what=f"{name}={MASK}", where="env", why=why))
    return tuple(notes)


def has_secret(document: Mapping[str, Json]) -> bool:
    """True for a profile's document with a secret's value in it, and not only its name.

    `serve.api_key` takes no value.
    """
    serve = document.get("serve")
    rest = {key: value for key, value in serve.items() if key != "api_key"} if isinstance(serve, Mapping) else serve
    plain = _without_references({**document, "serve": rest})
    lists = [document.get(name) for name in ("args", "command")]
    words = [[str(word) for word in one] for one in lists if isinstance(one, list)]
    return bool(cleaned(json.dumps(plain)).secrets) or any(without_secrets(one).secrets for one in words)


def secret_values(launch: Launch) -> tuple[str, ...]:
    """What a launch's variables have in plain text and nobody may see."""
    given = [(name, value) for name, value in launch.env.items() if isinstance(value, str)]
    secret = [(name, value) for name, value in given if is_secret(name, value)]
    return tuple(text for _, value in secret for text in (value, *cleaned(value).secrets))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInEnv:
    """The engine's key where a variable gives it: what `serve.api_key` refers to, None when a flag says it already."""

    reference: Json = None
    notes: tuple[Note, ...] = ()


def key_in(env: dict[str, Json], variable: str | None, from_flag: str | None) -> KeyInEnv:
    """The engine's own variable for its key, taken out of `env`: gate0 has to know the key to send it.

    Args:
        from_flag: The secret's name that the command line gives. It wins: vLLM takes the variable only without the
            flag (entrypoints/serve/middleware/register.py, 0.33.0), and `serve.api_key` has one place.
    """
    if variable is None or variable not in env:
        return KeyInEnv()
    what = f"env.{variable}"
    if from_flag is not None:
        del env[variable]
        why = f"the command line gives a key too, and that is taken: serve.api_key: {{secret: {from_flag}}}"
        return KeyInEnv(notes=(Note(fate=Fate.DROPPED, what=what, where="env", why=why),))
    value = env[variable]
    if not isinstance(value, Mapping):
        return KeyInEnv()
    del env[variable]
    note = Note(fate=Fate.TRANSLATED, what=what, where="env", why="serve.api_key, so that gate0 sends it")
    return KeyInEnv(reference=value, notes=(note,))


def shown_item(item: Item) -> str:
    """The item for a report, on at most 160 characters, secrets as `***`."""
    is_named = is_secret_key(item.dotted or item.name) and any(map(is_literal, item.values))
    text = f"{hidden(item.words[0].partition('=')[0])} {MASK}" if is_named else hidden(item.shown)
    return text if len(text) <= 160 else f"{text[:159]}…"


def variable_in(values: Sequence[str]) -> str | None:
    """The variable's name when a value is nothing but one: `$KEY`, `${KEY}`."""
    if len(values) != 1 or not values[0].startswith("$"):
        return None
    name = values[0].removeprefix("$").removeprefix("{").removesuffix("}")
    return name if name.isidentifier() else None


def _may_be_value(item: Item, before: Item) -> bool:
    """A word like `-x9` behind a secret's flag that has no value: no flag of the engine's, so it may be the secret."""
    is_short = not item.is_known and item.name.startswith("-") and not item.name.startswith("--")
    return is_short and not before.values and is_secret_key(before.dotted or before.name)


def _key(found: Withheld, item: Item, engine: str, api_key_env: str | None) -> None:
    """A key on the command line is seen by all: it becomes a reference, and is not shown."""
    if api_key_env is None:
        why = f"{engine} takes its key on the command line only: left out, use `expose: loopback`"
        found.notes.append(_note(Fate.PERSON, item, why))
        return
    variable = variable_in(item.values)
    found.api_key = variable or api_key_env
    why = f"serve.api_key: {{secret: {found.api_key}}}: export {found.api_key}, or put it into gate0's secrets file"
    found.notes.append(_note(Fate.TRANSLATED if variable else Fate.PERSON, item, why))


def _secret(found: Withheld, item: Item) -> None:
    variable = BY_VARIABLE.get(item.name)
    if variable is None:
        found.notes.append(_note(Fate.PERSON, item, f"{LEFT_OUT}: {OTHERWISE}"))
        return
    name = variable_in(item.values) or variable
    found.env[variable] = name
    why = f"env: {{{variable}: {{secret: {name}}}}}: the server reads that variable, so the flag is left out; "
    why += f"export {name}, or put it into gate0's secrets file"
    found.notes.append(_note(Fate.PERSON if variable_in(item.values) is None else Fate.TRANSLATED, item, why))


def _clean(found: Withheld, item: Item) -> None:
    """The item without what is secret in its values; without any, it is left out."""
    values, words = list(item.values), list(item.words)
    gone: list[str] = []
    is_empty = False
    for index, value in enumerate(values):
        safe = cleaned(value)
        if not safe.gone or (safe.text is None and item.name in _NEVER):
            continue
        found.secrets += safe.secrets
        gone += safe.gone
        is_empty = is_empty or safe.text is None
        values[index] = safe.text or ""
        words = [word.removesuffix(value) + values[index] if word.endswith(value) else word for word in words]
    if not gone:
        found.items.append(item)
        return
    why = f"{', '.join(dict.fromkeys(gone))}: {LEFT_OUT}: {OTHERWISE}"
    found.notes.append(_note(Fate.PERSON, item, why))
    if not is_empty:
        found.items.append(replace(item, values=tuple(values), words=tuple(words)))


def _note(fate: Fate, item: Item, why: str) -> Note:
    return Note(fate=fate, what=shown_item(item), where=item.place or "the command", why=why)


def _without_references(value: Json) -> Json:
    """The value with null for each `{secret: NAME}`."""
    if isinstance(value, Mapping):
        is_reference = list(value) == ["secret"]
        return None if is_reference else {key: _without_references(inner) for key, inner in value.items()}
    return [_without_references(inner) for inner in value] if isinstance(value, list) else value
