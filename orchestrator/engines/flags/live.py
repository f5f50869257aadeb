"""An image's own flag list as a catalogue: from the table that `inside.py` prints, or from `--help` (see `help_text`).

The own list says what is there and how it is written. What only a person knows (a flag that does nothing, a value that
fails later) is in the shipped lists alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.engines.flags.help_text import parse_argparse_help, parse_llamacpp_help
from orchestrator.engines.flags.inside import MARK
from orchestrator.engines.flags.model import Catalogue, Conventions, Flag, ValueKind
from orchestrator.values import Json

ENGINES = ("vllm", "sglang", "llamacpp")
"""Engines whose images have a list that can be read."""

CONVENTIONS = {
    "vllm": Conventions(dotted=True, positional=("model_tag",), null_word="None"),
    "sglang": Conventions(underscores=False),
    "llamacpp": Conventions(abbreviations=False, equals=False),
}
ENV_PREFIXES = {"vllm": "VLLM_", "sglang": "SGLANG_"}
MIN_FLAGS = 50
"""Fewer than any version of the three has: then something else was read."""

_AUTO = ("auto", "-1")
_PLAIN = (None, "str", "int", "float")
_ADDING = ("_AppendAction", "_ExtendAction")
_HIDDEN_ALIASES = {"--optimization-level": ("-O",)}
"""Spellings that vLLM rewrites before its parser sees them."""
_WORDS = {"int": ValueKind.INT, "float": ValueKind.FLOAT}
_KINDS = {
    ("bool",): ValueKind.BOOL,
    ("float",): ValueKind.FLOAT,
    ("float", "int"): ValueKind.FLOAT,
    ("int",): ValueKind.INT,
    ("json",): ValueKind.JSON,
    ("list",): ValueKind.LIST,
    ("str",): ValueKind.STR,
}


def parse_argparse(text: str, engine: str) -> Catalogue:
    """The catalogue in what `inside.py` printed; lines before its own are passed over.

    Raises:
        ValueError: The table is not there, or is another engine's.
    """
    line = next((one for one in reversed(text.splitlines()) if one.startswith(MARK)), None)
    if line is None:
        raise ValueError("it printed no flag list")
    table = json.loads(line.removeprefix(MARK))
    if table.get("engine") != engine:
        raise ValueError(f"it printed the list of {table.get('engine')!r}")
    flags = [_registered(_flag(told), table.get("registered") or {}) for told in table["flags"]]
    classes = {name: {key: _key(key, spec) for key, spec in keys.items()} for name, keys in table["classes"].items()}
    return _checked(
        Catalogue(
            engine=engine,
            version=str(table["version"] or "of unknown version"),
            flags={flag.name: flag for flag in flags},
            conventions=CONVENTIONS[engine],
            json_classes=classes,
            env=dict(table["env"]),
            env_prefix=ENV_PREFIXES.get(engine),
            is_own=True,
        )
    )


def parse_help(text: str, engine: str, *, version: str = "of unknown version") -> Catalogue:
    """The catalogue in `llama-server --help`, or in `vllm serve --help=all`, which tells names and choices alone.

    Raises:
        ValueError: It is no help of that engine.
    """
    is_partial = engine != "llamacpp"
    flags = parse_argparse_help(text) if is_partial else parse_llamacpp_help(text)
    return _checked(
        Catalogue(
            engine=engine,
            version=version,
            flags={flag.name: flag for flag in flags},
            conventions=CONVENTIONS[engine],
            is_own=True,
            is_partial=is_partial,
        )
    )


def _checked(catalogue: Catalogue) -> Catalogue:
    if len(catalogue.flags) < MIN_FLAGS:
        raise ValueError(f"it lists {len(catalogue.flags)} flags, {catalogue.engine} has more than {MIN_FLAGS}")
    return catalogue


def _registered(flag: Flag, registered: Mapping[str, Sequence[str]]) -> Flag:
    """A name that is not registered ends the start: what argparse takes for any text has choices all the same."""
    names = tuple(registered.get(flag.name, ()))
    return replace(flag, choices=names, known=()) if names else flag


def _flag(told: Mapping[str, Any]) -> Flag:
    names, negatives = list(told["names"]), tuple(told["negatives"])
    said = [name for name in names if name not in negatives]
    name = next((one for one in said if one.startswith("--")), said[0])
    kind, item = _kind(told)
    choices = tuple(told["choices"])
    reader = told["type"]["word"]
    is_closed = reader in _PLAIN
    known = () if is_closed else choices
    if not choices and (braces := re.match(r"\{([^}]*)\}", told.get("metavar") or "")):
        known = tuple(braces[1].split(","))
    removed = told.get("removed")
    return Flag(
        name=name,
        kind=kind,
        aliases=(*(one for one in said if one != name), *_HIDDEN_ALIASES.get(name, ())),
        negatives=_with_hidden(name, negatives),
        item=item,
        nargs=told["nargs"] if told["nargs"] != 0 else None,
        choices=tuple(one for one in choices if one != "None") if is_closed else (),
        known=known,
        is_any_case=bool(choices) and not is_closed,
        also=_AUTO if str(reader).endswith("or_auto") else (),
        default=told.get("default"),
        default_text=told.get("default_text"),
        is_nullable=told["type"]["nullable"] or "None" in choices,
        is_repeatable=told["action"] in _ADDING,
        is_human_int="human" in str(reader),
        json_class=told["type"].get("class"),
        deprecated=_deprecated(removed or told["deprecated"]),
        is_removed=removed is not None,
        group=None if told.get("group") == "options" else told.get("group"),
    )


def _kind(told: Mapping[str, Any]) -> tuple[ValueKind, ValueKind | None]:
    """What follows the flag, and of a list its items'."""
    word = str(told["type"]["word"] or "str")
    if told["nargs"] == 0:
        return (ValueKind.BOOL if told["negatives"] else ValueKind.NONE), None
    kind = _WORDS.get(word, ValueKind.STR)
    if "human" in word and "int" in word:
        kind = ValueKind.INT
    elif word == "union_dict_and_str":
        kind = ValueKind.JSON_OR_STR
    elif word == "loads" or "json" in word or "class" in told["type"]:
        kind = ValueKind.JSON
    is_list = told["nargs"] in ("+", "*") and told["action"] in ("_StoreAction", *_ADDING)
    return (ValueKind.LIST, kind) if is_list else (kind, None)


def _with_hidden(name: str, negatives: Sequence[str]) -> tuple[str, ...]:
    """vLLM 0.33 shows `--disable-x` for `--enable-x` and takes `--no-enable-x` as before without listing it."""
    hidden = f"--no-{name.removeprefix('--')}"
    return tuple(dict.fromkeys((*negatives, hidden))) if negatives else ()


def _deprecated(told: Json) -> str | None:
    if not told:
        return None
    return told if isinstance(told, str) else "the engine calls it deprecated"


def _key(name: str, spec: Mapping[str, Any]) -> Flag:
    kinds = tuple(sorted(set(spec["kinds"])))
    return Flag(
        name=name,
        kind=_KINDS.get(kinds, ValueKind.JSON_OR_STR),
        choices=tuple(spec["choices"]) if kinds == ("str",) else (),
        default=spec.get("default"),
        default_text=spec.get("default_text"),
        is_nullable=spec["nullable"],
        bounds=dict(spec["bounds"]),
        json_class=spec.get("class"),
    )
