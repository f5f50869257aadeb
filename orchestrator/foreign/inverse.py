"""From an engine's flags back to the portable settings.

Theory of operation. There is no table of flags here. An engine's own translation is asked what it writes for a setting
with a value that nobody uses; where that value appears is the flag to look for in the source. The source's value is
then tried: the setting is kept only when the engine's translation of it gives back exactly what the source says, flag
for flag. So the way back cannot drift from the way there, and a setting that an engine writes in another way stays
among its own flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import Engine, Placement
from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.vllm import METHODS
from orchestrator.foreign.items import Item, read_items, take_equal
from orchestrator.profile.building import build_profile
from orchestrator.values import Json, read_json

Document = dict[str, Json]
PROBE_MODEL = "zqx/zqx"
_INT, _FLOAT, _TEXT = 7919, 0.7919, "zqx"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A portable setting with one free value.

    Attributes:
        probes: Values that nobody uses, to find the flag with.
        read: The source's text as values to try.
        wrap: The value as the profile has it.
    """

    key: str
    probes: tuple[Json, ...]
    read: Callable[[str, Mapping[str, Json]], tuple[Json, ...]]
    wrap: Callable[[Json], Json] = lambda value: value


def _whole(text: str, serve: Mapping[str, Json]) -> tuple[Json, ...]:
    return (int(text),) if re.fullmatch(r"[0-9]{1,15}", text) else ()


def _length(text: str, serve: Mapping[str, Json]) -> tuple[Json, ...]:
    """A request's length; where an engine counts all slots together also the share of one."""
    slots = serve.get("max_num_seqs")
    whole = _whole(text, serve)
    shares = tuple(n // slots for n in whole if isinstance(n, int) and isinstance(slots, int) and slots > 0)
    return (*whole, *(n for n in shares if n))


def _fraction(text: str, serve: Mapping[str, Json]) -> tuple[Json, ...]:
    return (float(text),) if re.fullmatch(r"[0-9]?\.[0-9]{1,12}|1|1\.0+", text) and 0 < float(text) <= 1 else ()


def _text(text: str, serve: Mapping[str, Json]) -> tuple[Json, ...]:
    return (text,) if text else ()


SETTINGS = (
    Setting(key="max_num_seqs", probes=(_INT,), read=_whole),
    Setting(key="max_model_len", probes=(_INT,), read=_length),
    Setting(key="max_num_batched_tokens", probes=(_INT,), read=_whole),
    Setting(key="memory_fraction", probes=(_FLOAT,), read=_fraction),
    Setting(key="tensor_parallel", probes=(_INT,), read=_whole),
    Setting(key="quantization", probes=(_TEXT,), read=_text),
    Setting(key="kv_cache_dtype", probes=(_TEXT, "q8_0"), read=_text),
    Setting(key="tool_call_parser", probes=(_TEXT,), read=_text),
    Setting(key="reasoning_parser", probes=(_TEXT, "deepseek"), read=_text),
    Setting(key="chat_template", probes=(_TEXT, f"/{_TEXT}.jinja"), read=_text),
    Setting(key="thinking_budget", probes=(_INT,), read=_whole),
    Setting(key="max_output", probes=(_INT,), read=_whole),
    Setting(key="seed", probes=(_INT,), read=_whole),
    Setting(key="prefix_checkpoint", probes=(_INT,), read=_whole, wrap=lambda value: {"match_unit": value}),
)
SWITCHES = ("prefix_caching", "thinking")
DRAFT_WORDS = re.compile(r"spec|draft")
MAX_TRIES = 400


@dataclass(slots=True, kw_only=True)
class Inverse:
    """An engine's translation, asked backwards.

    Attributes:
        base: What the profile says beside `serve`: engine, image, entrypoint.
    """

    engine: Engine
    catalogue: Catalogue
    base: Document

    def rendered(self, document: Document, path: str) -> tuple[Item, ...] | None:
        """What the engine writes for one path of a document; None when it refuses the document."""
        profile = build_profile(document)
        if self.engine.problems(profile):
            return None
        command = self.engine.command(profile, Placement(nodes=profile.nodes))
        words = [w for w, origin in zip(command.argv, command.origins, strict=True) if origin == path]
        return read_items(self.engine.name, self.catalogue, words)

    def matched(self, document: Document, path: str, remaining: Sequence[Item]) -> tuple[Item, ...]:
        """The source's items that a path of the document says exactly; () when it does not, or says nothing."""
        wanted = self.rendered(document, path)
        return (take_equal(wanted, remaining) or ()) if wanted else ()

    def settings(self, remaining: Sequence[Item]) -> Iterator[tuple[str, Json, tuple[Item, ...]]]:
        """Each portable setting that the items say, its value, and the items that it stands for."""
        serve: dict[str, Json] = {}
        left = list(remaining)
        for key, value in self._candidates(left, serve):
            if key in serve:
                continue
            found = self.matched(self._with(serve, key, value), f"serve.{key}", left)
            if found:
                serve[key] = value
                left[:] = [item for item in left if not any(item is taken for taken in found)]
                yield key, value, found

    def _candidates(self, left: list[Item], serve: dict[str, Json]) -> Iterator[tuple[str, Json]]:
        """Settings to try; `left` and `serve` change while this runs."""
        for setting in SETTINGS:
            for text in self._texts(setting, left):
                for value in setting.read(text, serve):
                    yield setting.key, setting.wrap(value)
        for key in SWITCHES:
            yield key, True
            yield key, False
        for item in list(left):
            if len(item.values) == 1 and (limits := _limits(item.values[0])):
                yield "limit_mm", limits
        yield from _drafts(left)

    def _texts(self, setting: Setting, left: Sequence[Item]) -> tuple[str, ...]:
        """The source's values of the flag (or JSON key) under which the engine writes a setting."""
        found = []
        for probe in setting.probes:
            wanted = self.rendered(self._with({}, setting.key, setting.wrap(probe)), f"serve.{setting.key}") or ()
            for carrier, key in _carriers(wanted, str(probe)):
                found += [text for item in left if item.name == carrier and (text := _value(item, key)) is not None]
        return tuple(dict.fromkeys(found))

    def _with(self, serve: Mapping[str, Json], key: str, value: Json) -> Document:
        return {**self.base, "model": PROBE_MODEL, "serve": {**serve, key: value}}


def _carriers(items: Sequence[Item], probe: str) -> Iterator[tuple[str, str | None]]:
    for item in items:
        for value in item.values:
            if value == probe:
                yield item.name, None
            for key, inner in _object(value).items():
                if str(inner) == probe:
                    yield item.name, key


def _value(item: Item, key: str | None) -> str | None:
    if item.dotted is not None or len(item.values) != 1:
        return None
    if key is None:
        return item.plain_values[0]
    inner = _object(item.values[0]).get(key)
    return None if inner is None or isinstance(inner, bool) else str(inner)


def _object(text: str) -> Mapping[str, Json]:
    if not text.startswith("{"):
        return {}
    try:
        value = read_json(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _limits(text: str) -> dict[str, Json]:
    found = _object(text)
    is_counts = all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in found.values())
    return dict(found) if is_counts else {}


def _drafts(left: Sequence[Item]) -> Iterator[tuple[str, Json]]:
    """Ways to speculate that the drafting flags' values could come from."""
    texts = [v for item in left if DRAFT_WORDS.search(item.name) for value in item.values for v in _leaves(value)]
    if not texts:
        return
    counts = {n for text in texts if re.fullmatch(r"[0-9]{1,3}", text) for n in (int(text), int(text) - 1)}
    models = [None, *(text for text in dict.fromkeys(texts) if re.search(r"[/.]", text))]
    tries: list[Json] = [
        {"method": method, "num_tokens": count, **({"model": model} if model else {})}
        for model in models
        for count in sorted(counts)
        if 1 <= count <= 64
        for method in METHODS
    ]
    yield from (("speculative", spec) for spec in tries[:MAX_TRIES])


def _leaves(value: str) -> tuple[str, ...]:
    inner = _object(value)
    return tuple(str(v) for v in inner.values()) if inner else (value,)
