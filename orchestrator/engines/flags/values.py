"""One value of one flag: kind, choices, known values, bounds; and the keys of a JSON value.

A `Fault` says what is wrong with a value without saying where it was declared; checking.py makes findings of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engines.flags.history import load_history
from orchestrator.engines.flags.model import Catalogue, Flag, Severity, ValueKind
from orchestrator.engines.flags.nearest import is_slip_of, listed, nearest, nearest_value, versions_that
from orchestrator.engines.flags.reading import spellings
from orchestrator.values import Json, read_json

HUMAN_INT = re.compile(r"\s*(\d+(?:\.\d+)?)([kKmMgGtT])\s*$")
FACTORS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
TRUTHS = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0", "t", "f", "y", "n"})
BOUNDS = {"gt": "above {:g}", "ge": "at least {:g}", "lt": "below {:g}", "le": "at most {:g}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with a value.

    Attributes:
        is_list_bound: The list lacks it, so the list of what really runs could say otherwise.
        is_elsewhere: The list of another version has it.
        is_slip: The list has a name that differs from it in a letter or two.
        key: Dotted name of the key of a JSON value that it is about; None: it is about the flag's own value.
    """

    code: str
    message: str
    hint: str | None = None
    severity: Severity = Severity.ERROR
    is_list_bound: bool = False
    is_elsewhere: bool = False
    is_slip: bool = False
    key: str | None = None


def value_faults(catalogue: Catalogue, flag: Flag, word: str) -> Iterator[Fault]:
    """What is wrong with one word as a value of a flag; nothing when the engine takes it."""
    if word in flag.also or (flag.is_nullable and word in ("", catalogue.conventions.null_word)):
        return
    if flag.kind is ValueKind.JSON or (flag.kind is ValueKind.JSON_OR_STR and word.lstrip().startswith(("{", "["))):
        yield from _json_text_faults(catalogue, flag, word)
    elif flag.kind is ValueKind.LIST and flag.nargs is None:
        for item in word.split(","):
            yield from _plain_faults(catalogue, flag, flag.item or ValueKind.STR, item.strip())
    else:
        kind = (flag.item or ValueKind.STR) if flag.kind is ValueKind.LIST else flag.kind
        yield from _plain_faults(catalogue, flag, kind, word)


def key_faults(catalogue: Catalogue, flag: Flag, keys: str, word: str, *, is_added: bool) -> Iterator[Fault]:
    """The same for one key of a JSON flag, given by its dotted name: `pass_config.fuse_x`."""
    if flag.kind not in {ValueKind.JSON, ValueKind.JSON_OR_STR}:
        yield Fault(
            code="json_key",
            message=f"takes one value, not keys such as `{keys}`",
            hint=f"write `{flag.name} {word}`",
        )
        return
    value = dotted_value(word, is_added=is_added)
    for key in reversed(keys.split(".")):
        value = {key: value}
    yield from _mapping_faults(catalogue, flag.json_class, value, "")


def dotted_value(word: str, *, is_added: bool = False) -> Json:
    """What vLLM makes of the word after a dotted name: JSON, else a human number, else the word; `+`: a list."""
    if is_added:
        return list(word.split(","))
    try:
        return read_json(word)
    except ValueError:
        number = human_int(word)
        return word if number is None else number


def human_int(word: str) -> int | None:
    """`8k` -> 8000, `8K` -> 8192, `1.5k` -> 1500; None for anything else, `1.5K` too."""
    found = HUMAN_INT.match(word)
    if found is None or ("." in found[1] and found[2].isupper()):
        return None
    return int(float(found[1]) * FACTORS[found[2]])


def _json_text_faults(catalogue: Catalogue, flag: Flag, word: str) -> Iterator[Fault]:
    try:
        value = read_json(word)
    except ValueError as exc:
        place = exc.pos + 1 if isinstance(exc, json.JSONDecodeError) else 1
        why = exc.msg if isinstance(exc, json.JSONDecodeError) else str(exc)
        hint = "JSON puts names and texts in double quotes" if "'" in word else "it is one word of JSON: '{\"key\": 1}'"
        yield Fault(
            code="json_syntax",
            message=f"`{_cut(word)}` is no JSON: {why[0].lower()}{why[1:]} at character {place}",
            hint=hint,
        )
        return
    yield from _mapping_faults(catalogue, flag.json_class, value, "")


def _mapping_faults(catalogue: Catalogue, json_class: str | None, value: Json, path: str) -> Iterator[Fault]:
    """Keys of a class whose keys are known, and their values."""
    if value is None or json_class is None or json_class not in catalogue.json_classes:
        return
    if not isinstance(value, Mapping):
        yield Fault(
            code="flag_value", message=f"{_at(path)}`{_cut(json.dumps(value))}` is no mapping of keys to values"
        )
        return
    known = catalogue.json_classes[json_class]
    for key, inner in value.items():
        there = f"{path}{key}"
        if key in known:
            yield from _json_value_faults(catalogue, known[key], inner, there)
        elif known:
            yield _unknown_key(catalogue, json_class, key, there)


def _unknown_key(catalogue: Catalogue, json_class: str, key: str, there: str) -> Fault:
    known = catalogue.json_classes[json_class]
    near = nearest(key, known)
    elsewhere = versions_that(catalogue.engine, lambda one: key in one.json_classes.get(json_class, {}))
    hints = [
        *([f"did you mean `{near}`?"] if near else []),
        *([f"`{key}` exists {elsewhere}"] if elsewhere else []),
        *([f"its keys are {listed(sorted(known))}"] if not near and not elsewhere else []),
    ]
    return Fault(
        code="json_key",
        message=f"has no key `{there}`",
        hint="; ".join(hints),
        is_list_bound=True,
        is_elsewhere=bool(elsewhere),
        is_slip=is_slip_of(key, known),
        key=there,
    )


def _json_value_faults(catalogue: Catalogue, key: Flag, value: Json, path: str) -> Iterator[Fault]:
    if value is None:
        return
    if key.kind is ValueKind.JSON:
        if isinstance(value, Mapping):
            yield from _mapping_faults(catalogue, key.json_class, value, f"{path}.")
        return
    if key.kind is ValueKind.LIST:
        yield from _json_list_faults(catalogue, key, value, path)
        return
    if key.is_any_case and isinstance(value, int):
        return
    yield from _json_scalar_faults(catalogue, key, key.kind, value, path)


def _json_list_faults(catalogue: Catalogue, key: Flag, value: Json, path: str) -> Iterator[Fault]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        yield Fault(
            code="flag_value",
            message=f"{_at(path)}`{_cut(json.dumps(value))}` is no list",
            hint=f"write `[{json.dumps(value)}]`",
            severity=Severity.WARNING,
        )
        return
    if key.item in {ValueKind.INT, ValueKind.FLOAT} or key.choices:
        for item in value:
            yield from _json_scalar_faults(catalogue, key, key.item or ValueKind.STR, item, path)


def _json_scalar_faults(catalogue: Catalogue, key: Flag, kind: ValueKind, value: Json, path: str) -> Iterator[Fault]:
    """JSON's own kinds where pydantic is strict, texts where it converts them."""
    shown = json.dumps(value)
    if kind is ValueKind.BOOL:
        text = value.lower() if isinstance(value, str) else shown
        if text not in TRUTHS:
            yield Fault(code="flag_value", message=f"{_at(path)}`{_cut(shown)}` is neither true nor false")
        return
    if isinstance(value, Mapping | list) and kind in {ValueKind.INT, ValueKind.FLOAT}:
        yield Fault(code="flag_value", message=f"{_at(path)}`{_cut(shown)}` is no number")
        return
    if isinstance(value, Mapping | list) or (kind is ValueKind.STR and not isinstance(value, str) and not key.choices):
        return
    if isinstance(value, bool) and kind in {ValueKind.INT, ValueKind.FLOAT}:
        return
    if isinstance(value, float) and kind is ValueKind.INT and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else json.dumps(value)
    if text in key.also:
        return
    yield from _plain_faults(catalogue, key, kind, text, path)


def _plain_faults(catalogue: Catalogue, flag: Flag, kind: ValueKind, word: str, path: str = "") -> Iterator[Fault]:
    number: float | None = None
    if kind is ValueKind.INT:
        number = _as_int(flag, word)
        if number is None:
            yield _no_integer(catalogue, flag, word, path)
            return
    elif kind is ValueKind.FLOAT:
        number = _as_float(word)
        if number is None:
            yield Fault(code="flag_value", message=f"{_at(path)}`{_cut(word)}` is no number")
            return
    if flag.choices and word != flag.default and not _is_among(word, flag.choices, is_any_case=flag.is_any_case):
        yield _no_choice(catalogue, flag, word, path)
    elif flag.known and not _is_among(word, flag.known, is_any_case=flag.is_any_case):
        yield from _unknown_value(catalogue, flag, word, path)
    if number is not None:
        yield from _out_of_bounds(flag, number, word, path)


def _as_int(flag: Flag, word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return human_int(word) if flag.is_human_int else None


def _as_float(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _no_integer(catalogue: Catalogue, flag: Flag, word: str, path: str) -> Fault:
    human = human_int(word)
    tail = ""
    if catalogue.engine == "llamacpp" and (leading := re.match(r"[-+]?\d+", word)):
        tail = f"; llama-server reads {leading[0]} and drops the rest"
    hint = f"write {human}" if human is not None else f"or one of {listed(flag.also)}" if flag.also else None
    return Fault(code="flag_value", message=f"{_at(path)}`{_cut(word)}` is no whole number{tail}", hint=hint)


def _no_choice(catalogue: Catalogue, flag: Flag, word: str, path: str) -> Fault:
    near = nearest_value(word, flag.choices)
    elsewhere = None
    if not path:
        elsewhere = _when_taken(catalogue, flag, word)
    hints = [
        *([f"did you mean `{near}`?"] if near else []),
        *([f"`{word}` is a choice {elsewhere}"] if elsewhere else []),
        f"one of {listed(flag.choices)}",
    ]
    return Fault(
        code="flag_choice",
        message=f"{_at(path)}`{_cut(word)}` is not among its choices",
        hint="; ".join(hints),
        is_list_bound=True,
        is_elsewhere=bool(elsewhere),
        is_slip=is_slip_of(word, flag.choices),
        key=path or None,
    )


def _when_taken(catalogue: Catalogue, flag: Flag, word: str) -> str | None:
    """In words which versions have the value; a list that was put together has the history to ask first."""
    span = load_history(catalogue.engine).flags.get(flag.name)
    came = [change.version for change in (span.changes if span else ()) if word in change.added]
    if catalogue.is_partial and came:
        return f"since {came[-1]}"
    return versions_that(catalogue.engine, lambda one: _takes(one, flag.name, word))


def _takes(catalogue: Catalogue, name: str, word: str) -> bool:
    found = spellings(catalogue).get(name)
    return found is not None and word in (*found.flag.choices, *found.flag.known)


def _unknown_value(catalogue: Catalogue, flag: Flag, word: str, path: str) -> Iterator[Fault]:
    if not word or re.search(r"[/.:{]", word):
        return  # a file, a class or a template: plugins bring values of their own
    near = nearest_value(word, flag.known)
    hint = f"did you mean `{near}`?" if near else f"known: {listed(flag.known)}"
    yield Fault(
        code="flag_choice",
        message=f"{_at(path)}`{_cut(word)}` is no value that is known to work",
        hint=hint,
        severity=Severity.WARNING,
        is_list_bound=True,
        key=path or None,
    )


def _out_of_bounds(flag: Flag, number: float, word: str, path: str) -> Iterator[Fault]:
    fits = {
        "gt": lambda limit: number > limit,
        "ge": lambda limit: number >= limit,
        "lt": lambda limit: number < limit,
        "le": lambda limit: number <= limit,
    }
    if all(fits[name](limit) for name, limit in flag.bounds.items()):
        return
    wanted = " and ".join(BOUNDS[name].format(limit) for name, limit in flag.bounds.items())
    yield Fault(code="flag_range", message=f"{_at(path)}`{_cut(word)}` is out of its range", hint=f"it is {wanted}")


def _is_among(word: str, values: Sequence[str], *, is_any_case: bool) -> bool:
    return word in values or (is_any_case and _folded(word) in {_folded(value) for value in values})


def _folded(word: str) -> str:
    return word.lower().replace("-", "_")


def _at(path: str) -> str:
    return f"`{path}`: " if path else ""


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
