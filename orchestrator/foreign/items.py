"""A command line's flags as comparable items: two are equal when the engine would take them for the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.flags.reading import Given, Match, read_words
from orchestrator.engines.flags.values import human_int
from orchestrator.values import Json, canonical_json, read_json

MODEL = "--model"
STRAY = ""
_MODEL_TAG = {"vllm"}
"""Engines whose first word without a flag is the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One flag with its values, or one word without a flag.

    Attributes:
        name: Canonical, with dashes; `--model` for vLLM's model as a bare word; empty: it belongs to nothing.
        words: As written.
        is_known: The engine's list has it.
        is_human_int: Its flag takes `32k` for a number.
        is_plain: Neither dotted nor completed from an abbreviation nor glued to its value.
    """

    name: str
    values: tuple[str, ...]
    words: tuple[str, ...]
    place: str = ""
    is_negative: bool = False
    is_known: bool = True
    dotted: str | None = None
    is_added: bool = False
    takes: str | int | None = field(default=None, compare=False)
    is_spelled_out: bool = True
    is_human_int: bool = field(default=False, compare=False)

    @property
    def plain_values(self) -> tuple[str, ...]:
        """The values, of a flag that takes `32k` as a number in digits."""
        numbers = [human_int(value) if self.is_human_int else None for value in self.values]
        return tuple(v if n is None else str(n) for v, n in zip(self.values, numbers, strict=True))

    @property
    def meaning(self) -> tuple[object, ...]:
        """What it says, spelling left aside: numbers as numbers, JSON as its value."""
        return (self.name, self.dotted, self.is_added, self.is_negative, tuple(map(meaning, self.plain_values)))

    @property
    def shown(self) -> str:
        return " ".join(self.words)


def meaning(text: str) -> str:
    """A value as canonical text: `0.80` and `0.8` are one, and so is JSON with and without spaces."""
    try:
        value: Json = read_json(text)
        return canonical_json(_whole(value))
    except ValueError:
        return f"text:{text}"


def read_items(engine: str, catalogue: Catalogue, words: Sequence[str], places: Sequence[str] = ()) -> tuple[Item, ...]:
    """The words as items, in order.

    Args:
        places: Where each word stands; shorter than `words` when some are not known.
    """
    items: list[Item] = []
    for given in read_words(catalogue, words):
        place = places[given.index] if given.index < len(places) else ""
        taken = tuple(words[given.index : given.index + given.count])
        is_tag = engine in _MODEL_TAG and given.match is Match.POSITIONAL and not any(i.name == MODEL for i in items)
        items.append(_item(given, taken, place, is_tag=is_tag))
    return tuple(items)


def take_equal(wanted: Iterable[Item], remaining: Sequence[Item]) -> tuple[Item, ...] | None:
    """Of the remaining items those that say the same as the wanted ones, one each; None when one is not there."""
    left = list(remaining)
    found: list[Item] = []
    for item in wanted:
        match = next((other for other in left if other.meaning == item.meaning), None)
        if match is None:
            return None
        left = [other for other in left if other is not match]
        found.append(match)
    return tuple(found)


def worked_out(value: Json, found: Sequence[Item], slots: Json) -> str:
    """How a setting's number came about where the source writes another (`32k`, or the pool of all slots); or empty."""
    texts = [(item.values[0], item.plain_values[0]) for item in found if len(item.values) == 1]
    if not isinstance(value, int) or isinstance(value, bool) or len(texts) != 1 or texts[0][0] == str(value):
        return ""
    text, plain = texts[0]
    if isinstance(slots, int) and plain.isdecimal() and int(plain) == value * slots:
        return f": {text} / {slots} slots = {value} each"
    return f": {value}" if plain == str(value) else ""


def _item(given: Given, words: tuple[str, ...], place: str, *, is_tag: bool) -> Item:
    if given.match is Match.POSITIONAL:
        name = MODEL if is_tag else STRAY
        return Item(name=name, values=given.values, words=words, place=place, is_known=is_tag)
    flag = given.flag
    return Item(
        name=flag.name if flag is not None else given.spelling,
        values=given.values,
        words=words,
        place=place,
        is_negative=given.is_negative,
        is_known=flag is not None,
        dotted=given.dotted,
        is_added=given.is_added,
        takes=None if flag is None else flag.nargs,
        is_spelled_out=given.match is not Match.ABBREVIATION,
        is_human_int=flag is not None and flag.is_human_int,
    )


def _whole(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value
