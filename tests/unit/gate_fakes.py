"""A server with known truth, in memory: every knob is one way in which a real server is right or wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Reply, TokenLogprob, ToolCall, Usage

LOOKS = 6
"""Readings of the metrics after which each gauge was surely read once while requests were in flight."""
GOOD_CALL = '{"city": "Paris", "unit": "celsius"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the fake server really does. One word is one token.

    Attributes:
        block: Hits are rounded down to it. late: how many repeats of a prompt still miss. is_per_lane: each lane of a
            concurrent batch has its own cache. whole_only: only identical prompts hit. cap: longest hit. lose_after:
            nothing hits any more after this many requests. cold_shows: cached tokens claimed for unseen prompts.
        counters: `usage`, `metrics`, `both`, `quarrel` or `none`. skew: added to the computed tokens in `timings`.
        head: Tokens of the template before the user's words.
        drift: Nats by which a hit moves the logprobs. jitter: nats by which every second answer moves.
        flips: `never`, `hit`, `alternate`: when the first word changes. tie: nats between the two first words.
        fact: `both`, `cold`, `none`: where the planted fact is found.
        tools: see `_tool_reply`. wrong: `never`, `alone`, `together`: when trivial questions are answered wrongly.
        thinks: Words of reasoning before each answer.
        runs_at_once: Real slots. hides: `gauges`, `streams`, `both`: what shows no concurrency.
        refuses_from: Prompt length from which it answers 400. cuts_at: length at which it cuts silently.
        breaks: Every chat fails: an HTTP status, or 0 for no answer.
        drafts, accepts: Drafts (of two tokens) that each request makes, and tokens of them that are accepted; None: it
            counts no such thing. looks_up: Prompt tokens looked up in the cache by each request; None: not counted.
    """

    block: int = 16
    late: int = 0
    is_caching: bool = True
    is_per_lane: bool = False
    whole_only: bool = False
    cap: int | None = None
    lose_after: int | None = None
    cold_shows: int = 0
    counters: str = "usage"
    skew: int | None = None
    head: int = 12
    has_logprobs: bool = True
    drift: float = 0.0
    jitter: float = 0.0
    flips: str = "never"
    tie: float = 0.01
    fact: str = "both"
    tools: str = "good"
    wrong: str = "never"
    thinks: int = 0
    runs_at_once: int = 8
    hides: str = ""
    refuses_from: int | None = None
    cuts_at: int | None = None
    breaks: int | None = None
    can_count: bool = True
    listed_len: int | None = 32768
    block_label: int | None = None
    refuses_fields: tuple[str, ...] = ()
    flush_status: int = 200
    drafts: int | None = None
    accepts: int | None = None
    looks_up: int | None = None


@dataclass(slots=True)
class _Seen:
    words: tuple[str, ...]
    salt: str
    lane: int
    count: int = 1


class FakeTarget:
    """Implements `wire.chat.Target` over a `Truth`; `bodies` keeps what was sent.

    `is_watched`: requests at once stay in flight until somebody has looked at the gauges.
    """

    def __init__(self, truth: Truth | None = None, claims: Claims | None = None, *, is_watched: bool = False) -> None:
        self.truth = truth or Truth()
        self._claims = claims or default_claims()
        self.bodies: list[Mapping[str, Json]] = []
        self._cache: list[_Seen] = []
        self._hits_tok = 0.0
        self._gauges = {"running": 0.0, "waiting": 0.0}
        self._is_watched = is_watched
        self._looks = 0
        self._was_seen = threading.Event()
        self.is_closed = False

    @property
    def base_url(self) -> str:
        return "http://fake:8000/v1"

    @property
    def model(self) -> str:
        return "fake"

    @property
    def claims(self) -> Claims:
        return self._claims

    def chat(self, body: Mapping[str, Json], *, stream: bool = False, timeout_s: float = 600.0) -> Reply:
        return self._answer(body, stream=stream, lane=0, together=False)

    def chat_many(
        self, bodies: Sequence[Mapping[str, Json]], *, stream: bool = True, timeout_s: float = 600.0
    ) -> tuple[Reply, ...]:
        slots = self.truth.runs_at_once
        if "gauges" not in self.truth.hides and "both" not in self.truth.hides:
            self._gauges = {"running": float(min(len(bodies), slots)), "waiting": float(max(0, len(bodies) - slots))}
            self._looks = 0
            self._was_seen.clear()
            if self._is_watched and self.truth.breaks is None:
                assert self._was_seen.wait(10.0), "nobody looked at the gauges"
        lanes = [self._answer(b, stream=stream, lane=i, together=True) for i, b in enumerate(bodies)]
        self._gauges = {"running": 0.0, "waiting": 0.0}
        if self.truth.hides in ("streams", "both"):
            return tuple(replace(r, first_token_s=None) for r in lanes)
        return tuple(replace(r, first_token_s=i // slots + 0.1, total_s=i // slots + 1.0) for i, r in enumerate(lanes))

    def get_json(self, path: str, *, timeout_s: float = 10.0) -> Json:
        if path != "/v1/models":
            return None
        entry: dict[str, Json] = {"id": "fake", "owned_by": "vllm"}
        if self.truth.listed_len is not None:
            entry["max_model_len"] = self.truth.listed_len
        return {"data": [entry]}

    def post(self, path: str, *, timeout_s: float = 30.0) -> int:
        if self._claims.flush is None or path != self._claims.flush[1]:
            return 404
        if self.truth.flush_status == 200:
            self._cache.clear()
        return self.truth.flush_status

    def metrics(self) -> Mapping[str, float] | None:
        self._looks += 1
        if self._looks >= LOOKS:
            self._was_seen.set()
        if self.truth.hides == "both" and self.truth.counters in ("usage", "none"):
            return None
        found = {f"fake:{name}": value for name, value in self._gauges.items()}
        if "gauges" in self.truth.hides or "both" in self.truth.hides:
            found = {}
        if self.truth.counters in ("metrics", "both", "quarrel"):
            found["fake:hits"] = self._hits_tok
        told = {"drafts": self.truth.drafts, "accepted": self.truth.accepts, "queries": self.truth.looks_up}
        return found | {f"fake:{k}": float(v * len(self.bodies)) for k, v in told.items() if v is not None}

    def metric_labels(self, name: str) -> tuple[Mapping[str, str], ...]:
        if name != "vllm:cache_config_info" or self.truth.block_label is None:
            return ()
        return ({"block_size": str(self.truth.block_label)},)

    def count_tokens(self, text: str) -> int | None:
        return len(text.split()) if self.truth.can_count else None

    def close(self) -> None:
        self.is_closed = True

    def _answer(self, body: Mapping[str, Json], *, stream: bool, lane: int, together: bool) -> Reply:
        body = {name: value for name, value in body.items() if name not in self._claims.refused}
        self.bodies.append(body)
        truth, text = self.truth, _text(body)
        if truth.breaks is not None:
            return Reply(http_status=truth.breaks, error="broken on purpose")
        if refused := [f for f in truth.refuses_fields if f in body]:
            return Reply(http_status=400, error=f"{refused[0]} is not taken here")
        words = (*("<t>" for _ in range(truth.head)), *text.split())
        if truth.cuts_at is not None:
            words = words[: truth.cuts_at]
        if truth.refuses_from is not None and len(words) >= truth.refuses_from:
            return Reply(http_status=400, error=f"{len(words)} tokens are too many, {truth.refuses_from - 1} at most")
        cached = self._cached(words, str(body.get("cache_salt", "")), lane if truth.is_per_lane else 0)
        self._hits_tok += 0 if truth.counters == "quarrel" else cached
        if "tools" in body:
            return self._counted(_tool_reply(truth, body, stream=stream), len(words), cached, stream)
        reply = self._words(body, text, is_hit=cached > truth.head + truth.block, together=together)
        return self._counted(reply, len(words), cached, stream)

    def _counted(self, reply: Reply, prompt_tok: int, cached: int, stream: bool) -> Reply:
        if not reply.is_ok:
            return reply
        truth = self.truth
        tells = truth.counters in ("usage", "both", "quarrel")
        timings: dict[str, Json] = {}
        if truth.skew is not None:
            timings = {"cache_n": cached, "prompt_n": prompt_tok - cached + truth.skew}
        usage = Usage(
            prompt_tok=prompt_tok,
            output_tok=max(1, len(reply.text.split())),
            cached_tok=cached if tells else None,
        )
        return replace(reply, usage=usage, timings=timings, events=3 if stream else 0, total_s=1.0)

    def _cached(self, words: tuple[str, ...], salt: str, lane: int) -> int:
        """The hit of this prompt, before it is stored itself."""
        truth = self.truth
        same = next((s for s in self._cache if s.words == words and s.salt == salt and s.lane == lane), None)
        usable = [s for s in self._cache if s.salt == salt and s.lane == lane and s.count > truth.late]
        if truth.whole_only:
            usable = [s for s in usable if s.words == words]
        longest = max((_common(s.words, words) for s in usable), default=0)
        if same is not None:
            same.count += 1
        else:
            self._cache.append(_Seen(words=words, salt=salt, lane=lane))
        if not truth.is_caching or (truth.lose_after is not None and len(self.bodies) > truth.lose_after):
            return 0
        cached = min(longest, len(words) - 1) // truth.block * truth.block
        cached = min(cached, truth.cap) if truth.cap is not None else cached
        return max(cached, truth.cold_shows)

    def _words(self, body: Mapping[str, Json], text: str, *, is_hit: bool, together: bool) -> Reply:
        truth = self.truth
        answer = self._known(text, is_hit=is_hit, together=together)
        is_odd = len(self.bodies) % 2 == 1
        is_flipped = (truth.flips == "alternate" and is_odd) or (truth.flips == "hit" and is_hit)
        first, other = ("So", "It") if is_flipped else ("It", "So")
        spoken = [first, "is", *answer.split()]
        reasoning = "hm " * truth.thinks
        room = body.get("max_tokens")
        assert isinstance(room, int)
        if truth.thinks >= room:
            return Reply(http_status=200, reasoning="hm " * room, finish_reason="length", model="fake")
        moved = (truth.drift if is_hit else 0.0) + (truth.jitter if is_odd else 0.0)
        wants = bool(body.get("logprobs")) and truth.has_logprobs
        tokens = [_ranked(first, other, truth.tie, moved), *(_ranked(w, "the", 2.0, moved) for w in spoken[1:])]
        return Reply(
            http_status=200,
            text=" ".join(spoken),
            reasoning=reasoning,
            finish_reason="stop",
            logprobs=tuple(tokens) if wants else (),
            model="fake",
        )

    def _known(self, text: str, *, is_hit: bool, together: bool) -> str:
        """The answer to a question that the gates ask."""
        truth = self.truth
        if "blue door?" in text:
            knows = truth.fact == "both" or (truth.fact == "cold" and not is_hit)
            return (
                text.split("blue door is ")[1].split(".", maxsplit=1)[0]
                if knows and "blue door is " in text
                else "unknown"
            )
        if truth.wrong == "alone" or (truth.wrong == "together" and together):
            return "!!!!"
        pairs = {"2+2": "4", "France": "Paris", "planet": "Earth"}
        return next((answer for word, answer in pairs.items() if word in text), "nothing of note")


def default_claims(**changes: Any) -> Claims:
    """Claims of an engine that can do everything, with changes."""
    metrics = {"running": "fake:running", "waiting": "fake:waiting", "cache_hits_tok": "fake:hits"}
    metrics |= {"spec_drafts": "fake:drafts", "spec_accepted_tok": "fake:accepted", "cache_queries_tok": "fake:queries"}
    base = Claims(
        engine="vllm",
        prefix_caching=True,
        tools=True,
        max_model_len=32768,
        slots=8,
        cold_fields={"cache_salt": "{nonce}"},
        metrics=metrics,
    )
    return replace(base, **changes)


@dataclass(slots=True)
class Counter:
    """A nonce factory that counts: the same run gives the same prompts."""

    count: int = field(default=0)

    def __call__(self) -> str:
        self.count += 1
        return f"nonce{self.count}"


def _tool_reply(truth: Truth, body: Mapping[str, Json], *, stream: bool) -> Reply:
    """How tools are answered: `good`, or the named way of being wrong."""
    messages = body["messages"]
    assert isinstance(messages, list)
    kind, choice = truth.tools, body.get("tool_choice", "auto")
    if any(m["role"] == "tool" for m in messages):
        if kind == "no replay":
            return Reply(http_status=400, error="unexpected role: tool")
        return Reply(http_status=200, text="" if kind == "empty replay" else "21 degrees", finish_reason="stop")
    is_auto, is_named = choice == "auto", isinstance(choice, Mapping)
    if kind == "refused" or (kind == "named refused" and is_named):
        return Reply(http_status=400, error="tools need a parser")
    if kind == "crash":
        return Reply(http_status=500, error="parser failed")
    room = body["max_tokens"]
    assert isinstance(room, int)
    if kind == "endless" or (kind == "thinks first" and room < 2000):
        return Reply(http_status=200, reasoning="hm", finish_reason="length")
    no_call = Reply(http_status=200, text="I would look outside.", finish_reason="stop")
    if kind == "no call" or (kind == "auto silent" and is_auto) or (kind == "auto streams none" and is_auto and stream):
        return no_call
    arguments = {
        "not json": '{"city": "Par',
        "open schema": '{"city": "Paris", "unit": "celsius", "extra": 1}',
        "wrong type": "true",
    }.get(kind, GOOD_CALL)
    if (kind == "stream drops" and stream) or (kind == "auto stream drops" and stream and is_auto):
        arguments = '{"city": "Paris"}'
    if kind == "auto invalid" and is_auto:
        arguments = '{"town": 1}'
    name = "get_wether" if kind == "wrong name" else "get_weather"
    call = ToolCall(id="c1", name=name, arguments=arguments)
    return Reply(http_status=200, tool_calls=(call,), finish_reason="tool_calls")


def _text(body: Mapping[str, Json]) -> str:
    messages = body["messages"]
    assert isinstance(messages, list)
    return " ".join(str(m["content"]) for m in messages)


def _ranked(word: str, other: str, gap: float, moved: float) -> TokenLogprob:
    top = ((word, -0.1), (other, -0.1 - gap + moved), ("a", -3.0 + moved), ("b", -9.0 + moved), ("c", -9.5))
    return TokenLogprob(token=word, logprob=-0.1, top=top)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def shown(value: object) -> str:
    """Any value as text, for finding words in evidence."""
    return json.dumps(value, default=str)
