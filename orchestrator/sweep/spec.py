"""The server under load, and the talk with the load process: one JSON object a line, both ways.

parent -> child   the spec, one line; later `cancel`; end of input means: the parent is gone, exit
child -> parent   {"progress": …} five times a second, {"request": …} each, {"phase": …} each, {"done": …} once

A spec is a script: phases one after the other, lanes side by side in each, tracks in each lane, and in each track jobs
one after the other. A track is one user's, agent's or session's way; a job is one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import orjson

from orchestrator.values import Json, Secret

CANCEL = b"cancel\n"
API_KEY_NAME = "api_key"
MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    """The server under load. As probing found it, or as a caller declares it.

    Attributes:
        stream_fields, length_fields: Body fields that this server accepts (`sweep.body.BodyShape`).
        slots: Requests that run at once; None unknown. slots_source: `server`, `declared` or `unknown`.
        vantage: Where this process stands: `local`, `lan`, `tailnet`, `tunnel`.
        template_overhead_tok: Prompt tokens around the user's text; those before the nonce may come from the cache.
        cache_unit_tok: The prefix cache's granularity.
        hit_unit_tok: The granularity that hits were seen to have (Gate 0), where that is known.
        shares_cache: A prefix that one request loaded serves those beside it; False: each slot has a cache of its own.
        kv_tok: Tokens that fit into the KV cache, as the server tells; None: it does not.
        engine: Its name, `unknown` for one that nobody knows.
        metrics: The engine's metric names by ours (`deploy` traits).
        is_speculative: It drafts tokens: an event may carry several. None: nobody knows.
        accepts_priority: It takes a request's `priority`.
        tool_choice: With which word tools stand in this server's prompts (`sweep.body.BodyShape`).
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
    hit_unit_tok: int | None = None
    shares_cache: bool = True
    is_ungated: bool = False
    kv_tok: int | None = None
    engine: str = "unknown"
    metrics: Mapping[str, str] = field(default_factory=dict)
    is_speculative: bool | None = None
    accepts_priority: bool = False
    tool_choice: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a prompt.

    Attributes:
        parts: Joined with one space: a number is a text of the spec's table, a string stands for itself.
        answer_of: The content is the model's own answer to this turn of the track instead.
    """

    role: str = "user"
    parts: tuple[int | str, ...] = ()
    answer_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request. `think_s`: wait so long after the track's last answer before it is due.

    The expectations are `sweep.timing.Expected`'s.
    """

    messages: tuple[Message, ...]
    output_tok: int
    think_s: float = 0.0
    expected_prompt_tok: int | None = None
    expected_cached_tok: int | None = None
    shared_tok: int | None = None
    nonce: str | None = None

    @property
    def needs_answers(self) -> bool:
        """It cannot be made ready before an earlier turn was answered."""
        return any(m.answer_of is not None for m in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Jobs one after the other. `at_s`: due so long after the phase began; None: when a user is free for it.

    `number` is what the records call it: a session, an agent, a place in the order.
    """

    jobs: tuple[Job, ...]
    at_s: float | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Tracks under one discipline.

    Attributes:
        body: Fields of `sweep.body.BodyShape`.
        users: So many go through the tracks, each one at a time; None: each track starts at its own `at_s`.
        cap: At most so many requests in flight; the others wait in the order they were due.
        duration_s: No request becomes due later than this after the phase began; None: until all tracks are done.
    """

    tracks: tuple[Track, ...]
    body: Mapping[str, Json]
    name: str = ""
    users: int | None = None
    cap: int | None = None
    duration_s: float | None = None

    @property
    def requests(self) -> int:
        return sum(len(t.jobs) for t in self.tracks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Lanes side by side, to the end of the last. `pause_s`: wait before it."""

    lanes: tuple[Lane, ...]
    name: str = MAIN
    is_recorded: bool = True
    pause_s: float = 0.0

    @property
    def requests(self) -> int:
        return sum(lane.requests for lane in self.lanes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One repeat of a cell for the load process. The API key travels in here, on a pipe, and nowhere else.

    Attributes:
        texts: What messages refer to by number: passages and prefixes, each said once.
        is_length_fixed, must_finish: How a finish reason `length` is judged (`sweep.timing`).
        audit: Every how many connections one reads the kernel's receive stamps; 0: none.
        backend: `own` or `aiohttp`.
    """

    base_url: str
    api_key: Secret | None
    phases: tuple[Phase, ...]
    texts: tuple[str, ...] = ()
    repeat: int = 0
    request_timeout_s: float = 600.0
    is_length_fixed: bool = True
    must_finish: bool = False
    audit: int = 8
    backend: str = "own"

    def to_line(self) -> bytes:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "api_key"}
        plain["api_key"] = None if self.api_key is None else self.api_key.value
        return orjson.dumps(plain, option=orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        raw: dict[str, Any] = orjson.loads(line)
        key = raw.pop("api_key")
        raw["texts"] = tuple(raw["texts"])
        raw["phases"] = tuple(_phase(p) for p in raw["phases"])
        return cls(api_key=None if key is None else Secret(API_KEY_NAME, key), **raw)


def _phase(raw: dict[str, Any]) -> Phase:
    return Phase(**raw | {"lanes": tuple(_lane(r) for r in raw["lanes"])})


def _lane(raw: dict[str, Any]) -> Lane:
    return Lane(**raw | {"tracks": tuple(_track(r) for r in raw["tracks"])})


def _track(raw: dict[str, Any]) -> Track:
    return Track(**raw | {"jobs": tuple(_job(r) for r in raw["jobs"])})


def _job(raw: dict[str, Any]) -> Job:
    messages = (Message(**m | {"parts": tuple(m["parts"])}) for m in raw["messages"])
    return Job(**raw | {"messages": tuple(messages)})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgress:
    """How far a repeat is. `events` is about the tokens so far (one event, one token, without speculation).

    Attributes:
        phase: `warmup`, `main`, …
        total: Requests of all recorded phases; where a lane ends by the clock, as many as are ready for it.
        share_of_time: Where the clock ends it: how much of its time is over, else None.
    """

    repeat: int
    phase: str
    done: int
    total: int
    in_flight: int
    failed: int
    events: int
    elapsed_s: float
    share_of_time: float | None = None

    @property
    def share(self) -> float:
        """Done of all, 0 to 1."""
        if self.share_of_time is not None:
            return self.share_of_time
        return self.done / self.total if self.total else 0.0

    @property
    def text(self) -> str:
        """For a progress line."""
        if self.phase == "warmup":
            return "warming up"
        rate = f", {self.events / self.elapsed_s:.0f} tok/s" if self.elapsed_s > 0.5 else ""
        failed = f", {self.failed} failed" if self.failed else ""
        phase = "" if self.phase == MAIN else f"{self.phase}: "
        of = "" if self.share_of_time is not None else f"/{self.total}"
        return f"{phase}{self.done}{of} answers, {self.in_flight} in flight, {self.events} tokens{rate}{failed}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
