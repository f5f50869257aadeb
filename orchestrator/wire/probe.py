"""What a server can do, found by asking it once: who it is, how long a request may be, which fields it takes.

A field is sent to a server only after it was seen to be taken: an unknown one is ignored by some, refused by others.
Each optional field is tried alone on one tiny request, so that one refusal says nothing about another field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Protocol

from orchestrator.values import Json
from orchestrator.wire.capacity import Capacity, read_capacity
from orchestrator.wire.chat import Reply, Target
from orchestrator.wire.listing import find_listed, read_listing
from orchestrator.wire.paths import dig

OUTPUT_TOK = 16
TIMEOUT_S = 600.0
"""For each request: the first one may compile kernels."""
NONCE = "gate0-probe"


class Support(StrEnum):
    """How a server takes a field.

    WORKS: its effect was seen. ACCEPTED: no refusal, no effect seen (many servers ignore what they don't know).
    REFUSED: the request was refused because of it. UNKNOWN: could not be tried.
    """

    WORKS = "works"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class ProbeTraits(Protocol):
    """What the probe needs of an engine's traits."""

    @property
    def slot_paths(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def stream_fields(self) -> Mapping[str, Json]: ...

    @property
    def length_fields(self) -> Mapping[str, Json]: ...

    @property
    def cold_fields(self) -> Mapping[str, Json]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTraits:
    """For a server of which nothing is known: the usual fields are tried, slots looked for where llama.cpp has them."""

    slot_paths: tuple[tuple[str, str], ...] = (("/props", "total_slots"),)
    stream_fields: Mapping[str, Json] = field(default_factory=lambda: {"return_token_ids": True})
    length_fields: Mapping[str, Json] = field(default_factory=lambda: {"ignore_eos": True, "min_tokens": OUTPUT_TOK})
    cold_fields: Mapping[str, Json] = field(default_factory=lambda: {"cache_salt": "{nonce}", "cache_prompt": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one server said and took.

    Attributes:
        engine: `vllm`, `sglang`, `llamacpp`, or `unknown`.
        slots: Requests that run at once, as the server tells; None: it does not.
        max_model_len: Tokens of one request, as the server lists them.
        support: By field or feature: `include_usage`, `continuous_usage_stats`, `cached_tokens`, `timings`,
            `logprobs`, `top_logprobs`, and each of the traits' stream, length and cold fields.
        capacity: Its KV cache, and whether it drafts, as it tells.
        problem: The server's words when even the plain request failed; nothing could be tried then.
    """

    engine: str
    version: str | None = None
    models: tuple[str, ...] = ()
    max_model_len: int | None = None
    slots: int | None = None
    has_metrics: bool = False
    can_count_tokens: bool = False
    support: Mapping[str, Support] = field(default_factory=dict)
    capacity: Capacity = field(default_factory=Capacity)
    problem: str | None = None

    @property
    def accepted(self) -> dict[str, bool]:
        """By field: whether it may be sent."""
        return {name: s in (Support.WORKS, Support.ACCEPTED) for name, s in self.support.items()}

    @property
    def refused(self) -> frozenset[str]:
        """Fields that may never be sent again."""
        return frozenset(name for name, s in self.support.items() if s is Support.REFUSED)

    def as_json(self) -> dict[str, Json]:
        """For the record."""
        plain: dict[str, Json] = asdict(self)
        plain["models"] = list(self.models)
        plain["support"] = {name: s.value for name, s in self.support.items()}
        return plain


def listed_models(target: Target) -> tuple[str, ...] | None:
    """Names of the served models, None when the server does not answer `/v1/models`."""
    found = target.get_json("/v1/models")
    return None if found is None else tuple(m.name for m in read_listing(found))


def probe(target: Target, traits: ProbeTraits | None = None, *, earlier: Capabilities | None = None) -> Capabilities:
    """Ask the server what it is and what it takes, with about ten tiny requests.

    Args:
        earlier: What was found with other traits: what was refused then is not asked again.

    Raises nothing for what a server answers; see `Capabilities.problem`.
    """
    known = traits or NoTraits()
    models = target.get_json("/v1/models")
    listed = find_listed(models, target.model)
    engine = _engine(target, listed.engine if listed else None)
    problem: str | None = None
    support: dict[str, Support] = {}
    if target.claims.task == "generate":
        plain = target.chat(_body(), stream=True, timeout_s=TIMEOUT_S)
        problem = None if plain.is_ok else f"HTTP {plain.http_status}: {plain.error}"
        support = {} if problem else _support(target, plain, known, earlier.refused if earlier else frozenset())
    return Capabilities(
        engine=engine,
        version=_version(target, engine),
        models=tuple(m.name for m in read_listing(models)),
        max_model_len=listed.max_model_len if listed else None,
        slots=_slots(target, known.slot_paths),
        has_metrics=target.metrics() is not None,
        can_count_tokens=bool(target.count_tokens("one two three")),
        support=support,
        capacity=read_capacity(target, engine),
        problem=problem,
    )


def _support(target: Target, plain: Reply, traits: ProbeTraits, refused: frozenset[str]) -> dict[str, Support]:
    support = {"include_usage": Support.WORKS if plain.usage.output_tok is not None else Support.ACCEPTED}
    replies = [plain]

    def ask(fields: Mapping[str, Json], *, stream: bool = True) -> Reply:
        replies.append(target.chat({**_body(), **fields}, stream=stream, timeout_s=TIMEOUT_S))
        return replies[-1]

    support |= dict.fromkeys(refused, Support.REFUSED)
    if "continuous_usage_stats" not in refused:
        running = ask({"stream_options": {"include_usage": True, "continuous_usage_stats": True}})
        support["continuous_usage_stats"] = _taken(running, _events_with_usage(running) > 1)
    for name, value in _unrefused(traits.stream_fields, refused):
        reply = ask({name: value})
        support[name] = _taken(reply, bool(reply.token_ids) if "token_ids" in name else None)
    for name, value in _unrefused(traits.length_fields, refused):
        reply = ask({name: value})
        support[name] = _taken(reply, _is_stretched(plain, reply))
    for name, value in _unrefused(traits.cold_fields, refused):
        support[name] = _taken(ask({name: NONCE if value == "{nonce}" else value}), None)
    if "logprobs" not in refused:
        ranked = ask({"logprobs": True, "top_logprobs": 5}, stream=False)
        support["logprobs"] = _taken(ranked, bool(ranked.logprobs))
        support["top_logprobs"] = _taken(ranked, any(len(t.top) > 1 for t in ranked.logprobs))
    # These two are told, not asked for: absent from a dozen replies is no proof of absence.
    support["cached_tokens"] = _told(r.usage.cached_tok is not None for r in replies)
    support["timings"] = _told(bool(r.timings) for r in replies)
    return support


def _unrefused(fields: Mapping[str, Json], refused: frozenset[str]) -> list[tuple[str, Json]]:
    return [(name, value) for name, value in fields.items() if name not in refused]


def _body() -> dict[str, Json]:
    return {"messages": [{"role": "user", "content": "What is 2+2? Answer with a number."}], "max_tokens": OUTPUT_TOK}


def _taken(reply: Reply, is_effective: bool | None) -> Support:
    """How one field was taken. Only a refusal of the request speaks against it; a broken connection says nothing."""
    if reply.is_ok:
        return Support.WORKS if is_effective else Support.ACCEPTED
    return Support.REFUSED if reply.http_status in range(400, 500) else Support.UNKNOWN


def _told(signs: Iterable[bool]) -> Support:
    return Support.WORKS if any(signs) else Support.UNKNOWN


def _is_stretched(plain: Reply, reply: Reply) -> bool:
    """True when an answer that ends by itself ran to the limit."""
    return plain.finish_reason == "stop" and reply.usage.output_tok == OUTPUT_TOK


def _events_with_usage(reply: Reply) -> int:
    events = reply.raw if isinstance(reply.raw, Sequence) and not isinstance(reply.raw, str) else ()
    return sum(isinstance(e, Mapping) and isinstance(e.get("usage"), Mapping) for e in events)


def _engine(target: Target, listed: str | None) -> str:
    if listed is not None:
        return listed
    if dig(target.get_json("/props"), "total_slots") is not None:
        return "llamacpp"
    if dig(target.get_json("/server_info"), "internal_states") is not None:
        return "sglang"
    return "vllm" if dig(target.get_json("/version"), "version") is not None else "unknown"


def _version(target: Target, engine: str) -> str | None:
    places = {
        "vllm": ("/version", "version"),
        "sglang": ("/server_info", "version"),
        "llamacpp": ("/props", "build_info"),
    }
    if engine not in places:
        return None
    path, key = places[engine]
    found = dig(target.get_json(path), key)
    return found if isinstance(found, str) else None


def _slots(target: Target, paths: tuple[tuple[str, str], ...]) -> int | None:
    for path, key in paths:
        found = dig(target.get_json(path), key)
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None
