"""A flag list in words: the rows of `gate0 flags`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from orchestrator.engines.flags.comparing import Differences
from orchestrator.engines.flags.history import Change, History, Span, when_there
from orchestrator.engines.flags.model import Catalogue, Flag, ValueKind
from orchestrator.values import Json

SHOWN_CHOICES = 6
LONGEST_DEFAULT = 60
KINDS = {
    ValueKind.NONE: "switch",
    ValueKind.BOOL: "switch",
    ValueKind.INT: "whole number",
    ValueKind.FLOAT: "number",
    ValueKind.STR: "text",
    ValueKind.LIST: "list",
    ValueKind.JSON: "JSON",
    ValueKind.JSON_OR_STR: "JSON or text",
}
BOUNDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
PROGRAMS = {"llamacpp": "llama-server"}

Row = tuple[str, ...]


def release(catalogue: Catalogue) -> str:
    """`vllm 0.31.0`; of an own list `this image (vllm 0.31.0)`."""
    told = f"{PROGRAMS.get(catalogue.engine, catalogue.engine)} {catalogue.version}"
    return f"this image ({told})" if catalogue.is_own else told


def kind_words(flag: Flag, *, is_full: bool = False) -> str:
    """What the flag, or the key of a JSON flag, takes: `whole number, at least 1`, `one of auto, fp8 and 4 more`."""
    choices = flag.choices or flag.known
    if choices:
        shown = choices if is_full else choices[:SHOWN_CHOICES]
        more = f" and {len(choices) - len(shown)} more" if len(shown) < len(choices) else ""
        told = f"{'one of' if flag.choices else 'known:'} {', '.join(shown)}{more}"
        told = f"list, each {told}" if flag.kind is ValueKind.LIST else told
    else:
        is_key = not flag.name.startswith("-")
        told = "true or false" if is_key and flag.kind is ValueKind.BOOL else KINDS[flag.kind]
        if flag.kind is ValueKind.LIST and flag.item is not None:
            told = f"list, each {KINDS[flag.item]}"
        if flag.is_human_int:
            told += ", also 8k, 8K"
    told += "".join(f", {BOUNDS[name]} {value:g}" for name, value in flag.bounds.items())
    told += "".join(f", {word}" for word in flag.also)
    return f"{told}, None" if flag.is_nullable else told


def default_words(flag: Flag, *, is_full: bool = False) -> str:
    """The default as one would write it; empty: none, or computed."""
    if flag.default is None:
        return flag.default_text or ""
    told = flag.default if isinstance(flag.default, str) else json.dumps(flag.default)
    return told if is_full or len(told) <= LONGEST_DEFAULT else f"{told[:LONGEST_DEFAULT]}…"


def state_words(flag: Flag) -> str:
    """What is wrong with using it; empty: nothing."""
    if flag.is_removed:
        return "removed"
    return "no effect" if flag.is_inert else "deprecated" if flag.deprecated else ""


def list_rows(flags: Sequence[Flag]) -> Iterator[Row]:
    """Flag, what it takes, default, state; a row of its own before each group."""
    group: str | None = ""
    for flag in sorted(flags, key=lambda one: (one.group or "", one.name)):
        if flag.group != group:
            group = flag.group
            yield (f"{group or 'other'}:", "", "", "")
        names = ", ".join((flag.name, *(name for name in flag.aliases if len(name) <= 5)))
        yield (f"  {names}", kind_words(flag), default_words(flag), state_words(flag))


def matching(catalogue: Catalogue, word: str) -> list[Flag]:
    """Flags with the word in a spelling, a value or a variable, or of a group whose name has it as a whole word."""
    wanted = word.lower().replace("_", "-")
    in_group = re.compile(rf"\b{re.escape(wanted)}\b")
    return [flag for flag in catalogue.flags.values() if wanted in _text(flag) or in_group.search(_group_words(flag))]


def _text(flag: Flag) -> str:
    parts = (flag.name, *flag.aliases, *flag.negatives, *flag.choices, *flag.known, flag.env or "")
    return " ".join(parts).lower().replace("_", "-")


def _group_words(flag: Flag) -> str:
    """`CacheConfig` as it is and as `cache config`."""
    name = flag.group or ""
    return f"{name} {re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', name)}".lower()


def explain_rows(flag: Flag, catalogue: Catalogue, history: History) -> Iterator[Row]:
    """Everything that is known of one flag: what, and the words."""
    yield ("value", kind_words(flag, is_full=True))
    if default := default_words(flag, is_full=True):
        yield ("default", default)
    if flag.aliases:
        yield ("also", ", ".join(flag.aliases))
    if flag.negatives:
        yield ("off", ", ".join(flag.negatives))
    if flag.env:
        yield ("variable", flag.env)
    if flag.group:
        yield ("group", flag.group)
    if flag.is_repeatable:
        yield ("repeated", "each adds to the one before")
    yield from _state_rows(flag)
    span = history.flags.get(flag.name)
    if not catalogue.is_own and flag.name.startswith("-"):
        yield ("there", when_there(span, history) if span else "in all known versions")
    for change in span.changes if span else ():
        yield ("changed", change_words(change))
    for key, told in catalogue.json_classes.get(flag.json_class or "", {}).items():
        default = default_words(told)
        yield ("key", f"{key}: {kind_words(told)}" + (f", default {default}" if default else ""))


def _state_rows(flag: Flag) -> Iterator[Row]:
    if flag.is_removed:
        yield ("removed", "it is listed still, and ends the start")
    if flag.is_inert:
        yield ("no effect", "it is taken and does nothing")
    if flag.deprecated:
        yield ("deprecated", flag.deprecated)
    if flag.successor:
        yield ("instead", flag.successor)


def change_words(change: Change) -> str:
    """`0.32.0: default ["*"] -> []`, `0.24.0: choices +deepep_v2 -mori`."""
    if change.what == "default":
        return f"{change.version}: default {plain(change.before)} -> {plain(change.after)}"
    signs = (*(f"+{value}" for value in change.added), *(f"-{value}" for value in change.removed))
    return f"{change.version}: {change.what} {' '.join(signs)}"


def variable_rows(default: str | None, span: Span | None, history: History) -> Iterator[Row]:
    """As `explain_rows`, of an environment variable."""
    yield ("value", "environment variable")
    if default is not None:
        yield ("default", default)
    yield ("there", when_there(span, history) if span else f"in all versions from {history.whole[0]} on")


def difference_rows(found: Differences, before: Catalogue, after: Catalogue) -> Iterator[Row]:
    """What, flag, before, after."""
    for one in found.renamed:
        yield ("renamed", one.old, "", " or ".join(one.new))
    for name in found.added:
        yield ("added", name, "", kind_words(after.flags[name]))
    for name in found.removed:
        yield ("removed", name, kind_words(before.flags[name]), "")
    for flag in found.deprecated:
        yield (state_words(flag), flag.name, "", flag.successor or "")
    for changed in found.defaults:
        since = f" (since {changed.since})" if changed.since else ""
        yield ("default", changed.name, plain(changed.before), f"{plain(changed.after)}{since}")
    for choice in found.choices:
        yield ("choices", choice.name, _signed("-", choice.removed), _signed("+", choice.added))
    for key in found.keys_added:
        yield ("key added", key, "", "")
    for key in found.keys_removed:
        yield ("key removed", key, "", "")


def variable_difference_rows(found: Differences) -> Iterator[Row]:
    """The same of variables."""
    yield from (("variable added", name, "", "") for name in found.env_added)
    yield from (("variable removed", name, "", "") for name in found.env_removed)


def _signed(sign: str, values: Sequence[str]) -> str:
    return " ".join(f"{sign}{value}" for value in values)


def plain(value: Json) -> str:
    """A default in a table: text without quotes; `(none)` is no word of a flag's."""
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(value)


def own_lines(own: Catalogue, shipped: Catalogue, found: Differences) -> Iterator[str]:
    """How an image's list differs from the shipped one of its version (`found`: from that to this), in sentences."""
    more = (*found.added, *(name for one in found.renamed for name in one.new))
    less = (*found.removed, *(one.old for one in found.renamed))
    told = release(shipped)
    if more:
        yield f"this image has {_count(more)} that {told} lacks: {', '.join(more)}"
    if less:
        yield f"this image lacks {_count(less)} that {told} has: {', '.join(less)}"
    if not more and not less:
        yield f"this image has the flags of {told}, all {len(own.flags)}"


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} flag{'' if len(names) == 1 else 's'}"
