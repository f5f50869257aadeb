"""The server under load, and the talk with the load process: one JSON object a line, both ways.

parent -> child   the spec, one line; later `cancel`; end of input means: the parent is gone, exit
child -> parent   {"progress": …} five times a second, {"request": …} each, {"repeat": …} each, {"done": …} once
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import orjson

from orchestrator.values import Json, Secret

CANCEL = b"cancel\n"
API_KEY_NAME = "api_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    """The server under load. As probing found it, or as a caller declares it.

    Attributes:
        stream_fields, length_fields: Body fields that this server accepts (`sweep.body.BodyShape`).
        slots: Requests that run at once; None unknown. slots_source: `server`, `declared` or `unknown`.
        vantage: Where this process stands: `local`, `lan`, `tailnet`, `tunnel`.
        template_overhead_tok: Prompt tokens around the user's text; those before the nonce may come from the cache.
        cache_unit_tok: The prefix cache's granularity.
    """

    base_url: str
    model: str
    api_key: Secret | None = None
    stream_fields: Mapping[str, Json] = field(default_factory=dict)
    length_fields: Mapping[str, Json] = field(default_factory=dict)
    slots: int | None = None
    slots_source: str = "unknown"
    vantage: str = "local"
    template_overhead_tok: int | None = None
    cache_unit_tok: int = 16
    is_ungated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One cell for the load process. The API key travels in here, on a pipe, and nowhere else.

    Attributes:
        warmup: How many of the prompts, the first ones, go unrecorded and ask for `warmup_output_tok` only.
        nonces: Of all requests in the order sent: warm-up, then repeat by repeat.
        body: Fields of `sweep.body.BodyShape`.
    """

    base_url: str
    api_key: Secret | None
    body: Mapping[str, Json]
    concurrency: int
    repeats: int
    requests_per_repeat: int
    request_timeout_s: float
    passages: tuple[str, ...]
    nonces: tuple[str, ...]
    warmup: int = 0
    warmup_output_tok: int = 16
    expected_prompt_tok: int | None = None
    expected_cached_tok: int | None = None

    def to_line(self) -> bytes:
        key = None if self.api_key is None else self.api_key.value
        return orjson.dumps({**_plain(self), "api_key": key}, option=orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        raw: dict[str, Any] = orjson.loads(line)
        key = raw.pop("api_key")
        raw["passages"], raw["nonces"] = tuple(raw["passages"]), tuple(raw["nonces"])
        return cls(api_key=None if key is None else Secret(API_KEY_NAME, key), **raw)


def _plain(spec: LoadSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in LoadSpec.__dataclass_fields__ if name != "api_key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgress:
    """How far a cell is. `events` is about the tokens so far (one event, one token, without speculation).

    Attributes:
        repeat: 0-based; -1 while warming up.
        total: Requests of the whole cell, warm-up left out.
    """

    repeat: int
    done: int
    total: int
    in_flight: int
    failed: int
    events: int
    elapsed_s: float

    @property
    def share(self) -> float:
        """Done of all, 0 to 1."""
        return self.done / self.total if self.total else 0.0

    @property
    def text(self) -> str:
        """For a progress line."""
        if self.repeat < 0:
            return "warming up"
        rate = f", {self.events / self.elapsed_s:.0f} tok/s" if self.elapsed_s > 0.5 else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done}/{self.total} answers, {self.in_flight} in flight, {self.events} tokens{rate}{failed}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
