"""Flags out of `--help`: llama-server's own layout, and argparse's.

llama-server (common/arg.cpp) writes the spellings into the first 40 columns and the words beside them, or below when
the spellings are longer:

    -kvo,  --kv-offload, -nkvo, --no-kv-offload
                                            whether to enable KV cache offloading (default: enabled)
                                            (env: LLAMA_ARG_KV_OFFLOAD)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.engines.flags.model import Flag, ValueKind
from orchestrator.values import Json

LLAMA_COLUMN = 40
_GROUP = re.compile(r"-{3,} (.+?) -{3,}")
_SPELLING = re.compile(r"(?:^|,\s*)(--?[A-Za-z][\w.-]*)")
_ENV = re.compile(r"\(env: (\w+)\)")
_DEFAULT = re.compile(r"[(,;] ?default: ?((?:'[^']*'|\"[^\"]*\"|[^()'\"]|\([^()]*\))*)\)")
_LOOSE_DEFAULT = re.compile(r", default: (\w+)(?: \(|$)")
_BULLET_DEFAULT = re.compile(r"^- ([\w+-]+) \(default\)", re.MULTILINE)
_CHOICES = re.compile(r"allowed values: ([\w,. +-]+?)(?:\n|\(|$)")
_BULLETS = re.compile(r"^- ([\w+-]+)(?: \(default\))?: ", re.MULTILINE)
_QUOTED = re.compile(r"'([a-z]+)'")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_SWITCHES = {"enabled": True, "true": True, "disabled": False, "false": False}
_NOT_FLAGS = {"--help", "--version", "--usage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One flag's part of the text."""

    spellings: tuple[str, ...]
    metavar: str
    words: str
    group: str | None


def parse_llamacpp_help(text: str) -> tuple[Flag, ...]:
    """Every flag of `llama-server --help`, in its order."""
    return tuple(_llama_flag(entry) for entry in _llama_entries(text) if not _NOT_FLAGS & set(entry.spellings))


def _llama_entries(text: str) -> Iterator[_Entry]:
    group: str | None = None
    left, words = "", list[str]()
    for line in [*text.splitlines(), "-----"]:
        if line.startswith("-"):
            if left:
                yield _entry(left, words, group)
            left, words = "", []
            if named := _GROUP.match(line):
                group = named[1]
            elif not line.startswith("---"):
                is_beside = len(line) > LLAMA_COLUMN and line[LLAMA_COLUMN - 1] == " "
                left = line[:LLAMA_COLUMN] if is_beside else line
                words = [line[LLAMA_COLUMN:]] if is_beside else []
        elif left:
            words.append(line.strip())


def _entry(left: str, words: Sequence[str], group: str | None) -> _Entry:
    found = list(_SPELLING.finditer(left.strip()))
    return _Entry(
        spellings=tuple(match[1] for match in found),
        metavar=left.strip()[found[-1].end() :].strip() if found else "",
        words="\n".join(words).strip(),
        group=group,
    )


def _llama_flag(entry: _Entry) -> Flag:
    said, negatives = _signs(entry)
    name = next((one for one in said if one.startswith("--")), said[0])
    words, flat = entry.words, " ".join(entry.words.split())
    told = _told_default(words)
    choices, kind = _llama_choices(entry, told), _llama_kind(entry, told, bool(negatives))
    is_removed = "argument has been removed" in flat
    is_old = is_removed or "deprecated" in flat.lower()
    env = _ENV.search(flat)
    default = told if told in choices else _value_of(told, kind)
    return Flag(
        name=name,
        kind=kind,
        aliases=tuple(one for one in said if one != name),
        negatives=negatives,
        item=ValueKind.STR if kind is ValueKind.LIST else None,
        nargs=2 if re.fullmatch(r"[A-Z]+ [A-Z]+", entry.metavar) else None,
        choices=choices,
        also=_also(flat, default) if kind in (ValueKind.INT, ValueKind.FLOAT) else (),
        default=default,
        default_text=told if told is not None and default is None else None,
        deprecated=_ENV.sub("", flat).strip()[:200] if is_old else None,
        is_removed=is_removed,
        env=env[1] if env else None,
        group=entry.group,
    )


def _signs(entry: _Entry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The spellings of a switch, and those that turn it off: they come last, a short one (`-nkvo`) first."""
    spellings = entry.spellings
    longs = [i for i, one in enumerate(spellings) if one.startswith("--") and not one.startswith("--no-")]
    if entry.metavar or not longs or not any(one.startswith("--no-") for one in spellings):
        return spellings, ()
    return spellings[: longs[-1] + 1], spellings[longs[-1] + 1 :]


def _llama_choices(entry: _Entry, told: str | None) -> tuple[str, ...]:
    if re.fullmatch(r"\[[\w|]+\]|<\w(\|\w)+>", entry.metavar):
        return tuple(entry.metavar[1:-1].split("|"))
    if re.fullmatch(r"\{[\w,-]+\}", entry.metavar):
        return tuple(entry.metavar[1:-1].split(","))
    if found := _CHOICES.search(entry.words):
        return tuple(word.strip() for word in found[1].split(","))
    if re.fullmatch(r"[a-z][\w-]*(,[a-z][\w-]*){2,}", entry.metavar):
        return tuple(entry.metavar.split(","))
    bullets = tuple(_BULLETS.findall(entry.words)) if entry.metavar in ("TYPE", "MODE", "FORMAT") else ()
    missing = () if told is None or told in bullets or not re.fullmatch(r"\w+", told) else (told,)
    return (*bullets, *missing) if len(bullets) > 1 else ()


def _llama_kind(entry: _Entry, told: str | None, has_negatives: bool) -> ValueKind:
    if not entry.metavar:
        return ValueKind.BOOL if has_negatives else ValueKind.NONE
    if re.fullmatch(r"[a-z][\w-]*(,[a-z][\w-]*){2,}", entry.metavar):
        return ValueKind.LIST
    is_number = entry.metavar in ("N", "P", "PORT", "SEED", "SIMILARITY", "INDEX") or entry.metavar.startswith("<0...")
    if not is_number:
        return ValueKind.JSON if entry.metavar == "JSON" else ValueKind.STR
    # Where neither a default nor the words tell whole numbers from others, the wider kind takes both.
    first = _NUMBER.match(told or "")
    is_whole = "." not in first[0] if first else bool(re.search(r"number of|first N", " ".join(entry.words.split())))
    return ValueKind.INT if is_whole or entry.metavar in ("PORT", "SEED", "INDEX") else ValueKind.FLOAT


def _told_default(words: str) -> str | None:
    flat = " ".join(words.split())
    if found := _DEFAULT.search(flat):
        return found[1].strip()
    found = _BULLET_DEFAULT.search(words) or _LOOSE_DEFAULT.search(flat)
    return found[1] if found else None


def _value_of(told: str | None, kind: ValueKind) -> Json:
    """The default as a value; None when it is in words only."""
    if told is None:
        return None
    if kind in (ValueKind.BOOL, ValueKind.NONE):
        return _SWITCHES.get(told)
    first = told.split(", ")[0].strip("'\"")
    if kind in (ValueKind.INT, ValueKind.FLOAT):
        if number := _NUMBER.match(first):
            return int(number[0]) if kind is ValueKind.INT else float(number[0])
        return first if re.fullmatch(r"[a-z]+", first) else None
    return first if re.fullmatch(r"\w[\w.;+-]*|-?\d+", first) and first not in ("none", "unused", "disabled") else None


def _also(flat: str, default: Json) -> tuple[str, ...]:
    """Words that a number's flag takes too: `either an exact number, 'auto', or 'all' (default: auto)`."""
    own = (default,) if isinstance(default, str) else ()
    return tuple(dict.fromkeys((*own, *_QUOTED.findall(flat))))


def parse_argparse_help(text: str) -> tuple[Flag, ...]:
    """Every flag of an argparse help: names, switches, choices. Kinds are told for JSON alone, all else is text."""
    found = [_argparse_flag(entry) for entry in _argparse_entries(text)]
    return tuple(flag for flag in found if flag is not None)


def _argparse_entries(text: str) -> Iterator[_Entry]:
    group: str | None = None
    left, words = "", list[str]()
    for line in [*text.splitlines(), "end:"]:
        is_new = line.startswith("  -") or (line != "" and not line.startswith(" "))
        if is_new and left:
            yield _entry(left, words, group)
        if is_new:
            left, words = "", []
        if line.startswith("  -"):
            left, _, beside = line.strip().partition("  ")
            words = [beside.strip()]
        elif is_new:
            group = line[:-1] if re.fullmatch(r"\w[\w ]*:", line) and line != "options:" else None
        elif left:
            words.append(line.strip())


def _argparse_flag(entry: _Entry) -> Flag | None:
    if _NOT_FLAGS & set(entry.spellings) or not entry.spellings:
        return None
    negatives = () if entry.metavar else tuple(one for one in entry.spellings if one.startswith("--no-"))
    said = [one for one in entry.spellings if one not in negatives] or list(entry.spellings)
    negatives = negatives if said[0] not in negatives else ()
    name = next((one for one in said if one.startswith("--")), said[0])
    flat = " ".join(entry.words.split())
    braces = re.match(r"\{([^}]*)\}", entry.metavar)
    is_list = entry.metavar.endswith("...]")
    kind = ValueKind.JSON if "valid JSON string" in flat else ValueKind.STR
    if not entry.metavar:
        kind = ValueKind.BOOL if negatives else ValueKind.NONE
    default = re.search(r"\(default: ([^()]*)\)$", flat)
    return Flag(
        name=name,
        kind=ValueKind.LIST if is_list else kind,
        aliases=tuple(one for one in said if one != name),
        negatives=negatives,
        item=ValueKind.STR if is_list else None,
        nargs="+" if is_list else "?" if entry.metavar.startswith("[") else None,
        known=tuple(braces[1].split(",")) if braces else (),
        default_text=default[1][:80] if default and default[1] != "None" else None,
        deprecated=flat[:200] if re.search(r"(?i)\bdeprecated\b", flat) else None,
        group=entry.group,
    )
