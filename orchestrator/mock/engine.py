"""The mock's engine: slots, a queue before them, and one step clock that gives every running stream its token."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Protocol

from orchestrator.mock.answer import (
    STAMP_DIGITS,
    Ask,
    Event,
    closing_events,
    error_json,
    frame,
    opening_events,
    stream_events,
    whole_reply,
)
from orchestrator.mock.cache import PrefixCache
from orchestrator.mock.settings import Fault, Flavour, MockSettings

LAST_CHUNK = b"0\r\n\r\n"
ENDED = object()
TRUTHS_KEPT = 100_000
SLICE = 8
"""Streams stepped between two looks at the sockets: who sends during a step is stamped then, not after it."""


class Wire(Protocol):
    """The connection an answer goes to."""

    def write(self, piece: bytes) -> None: ...

    def reply_json(self, status: int, body: bytes) -> None: ...

    def finish(self) -> None:
        """The answer is complete."""
        ...

    def drop(self) -> None:
        """Hang up."""
        ...


@dataclass(slots=True, eq=False)
class Stream:
    """One running request."""

    ask: Ask
    wire: Wire
    fault: Fault | None
    received_ns: int = 0
    ready_ns: int = 0
    cached_tok: int = 0
    is_gone: bool = False
    steps: Iterator[None] = field(default_factory=lambda: iter(()))


@dataclass(slots=True)
class Counters:
    """What /metrics tells; tokens unless named otherwise."""

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    queries: int = 0
    output: int = 0
    most_running: int = 0


@dataclass(frozen=True, slots=True)
class Truth:
    """A streamed answer as it was. Monotonic ns: the whole request in hand, just before the first and the last event
    with tokens. `first_tok` tokens came with the first event."""

    received_ns: int
    first_ns: int
    last_ns: int
    events: int
    output_tok: int
    first_tok: int


class StepEngine:
    """Admits up to `slots` requests and steps them together."""

    def __init__(self, settings: MockSettings) -> None:
        self.settings = settings
        self.counters = Counters()
        self.cache = PrefixCache(settings.block_tok)
        self.running: list[Stream] = []
        self.waiting: deque[Stream] = deque()
        self.truths: deque[Truth] = deque(maxlen=TRUTHS_KEPT)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._due_s = 0.0
        self._asked: deque[Callable[[], None]] = deque()

    def submit(self, ask: Ask, wire: Wire) -> Stream:
        self.counters.requests += 1
        strikes = self.settings.fault is not None and self.counters.requests % self.settings.fault_every == 0
        stream = Stream(ask=ask, wire=wire, fault=self.settings.fault if strikes else None)
        self.waiting.append(stream)
        self._admit()
        return stream

    def soon(self, answer: Callable[[], None]) -> None:
        """Call it after those before it, with a look at the sockets in between."""
        self._asked.append(answer)
        if len(self._asked) == 1:
            self._loop.call_soon(self._answer_one)

    def _answer_one(self) -> None:
        answer = self._asked.popleft()
        if self._asked:
            self._loop.call_soon(self._answer_one)
        answer()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.settings.slots:
            stream = self.waiting.popleft()
            if stream.is_gone:
                continue
            self._look_up(stream)
            self.running.append(stream)
            stream.steps = self._streamed(stream) if stream.ask.is_streamed else self._unstreamed(stream)
        self.counters.most_running = max(self.counters.most_running, len(self.running))
        if self.running and self._timer is None:
            self._due_s = self._loop.time() + self.settings.step_s
            self._timer = self._loop.call_at(self._due_s, self._step)

    def _look_up(self, stream: Stream) -> None:
        ask, settings = stream.ask, self.settings
        if settings.prefix_caching and ask.uses_cache:
            stream.cached_tok = self.cache.find(ask.prompt, ask.cache_salt)
            self.cache.add(ask.prompt, ask.cache_salt)
            self.counters.queries += len(ask.prompt)
        prefill_s = settings.ttft_s
        if settings.prefill_tok_per_s is not None:
            prefill_s += (len(ask.prompt) - stream.cached_tok) / settings.prefill_tok_per_s
        stream.ready_ns = monotonic_ns() + int(prefill_s * 1e9)
        self.counters.prompt += len(ask.prompt)
        self.counters.cached += stream.cached_tok

    def _step(self) -> None:
        self._step_from(0, monotonic_ns(), [])

    def _step_from(self, start: int, now: int, going: list[Stream]) -> None:
        for stream in self.running[start : start + SLICE]:
            if stream.is_gone:
                continue
            if stream.ready_ns > now or next(stream.steps, ENDED) is not ENDED:
                going.append(stream)
        if start + SLICE < len(self.running):
            self._timer = self._loop.call_soon(self._step_from, start + SLICE, now, going)
            return
        self._timer = None
        self.running = going
        self._admit()
        if self.running and self._timer is None:
            # The schedule is absolute: a late step does not delay the ones after it, a missed one is not made up for.
            self._due_s = max(self._due_s + self.settings.step_s, self._loop.time())
            self._timer = self._loop.call_at(self._due_s, self._step)

    def _streamed(self, stream: Stream) -> Iterator[None]:
        """One event a step; returning ends the request."""
        ask, settings, fault, write = stream.ask, self.settings, stream.fault, stream.wire.write
        events = stream_events(ask, stream.cached_tok, settings, fault)
        first_ns = last_ns = 0
        for opening in opening_events(ask, settings):
            write(stamped(opening))
        for number, event in enumerate(events):
            if number == len(events) // 2 and self._strike(stream):
                return
            last_ns = monotonic_ns()
            first_ns = first_ns or last_ns
            write(stamped(event))
            self.counters.output += settings.tokens_per_event
            if number + 1 < len(events):
                yield
        for closing in closing_events(ask, stream.cached_tok, settings, fault):
            write(stamped(closing))
        write(LAST_CHUNK)
        if events:
            first_tok = min(settings.tokens_per_event, ask.output_tok)
            seen = Truth(stream.received_ns, first_ns, last_ns, len(events), ask.output_tok, first_tok)
            self.truths.append(seen)
        stream.wire.finish()

    def _unstreamed(self, stream: Stream) -> Iterator[None]:
        for _ in range(-(-stream.ask.output_tok // self.settings.tokens_per_event) - 1):
            yield
        self.counters.output += stream.ask.output_tok
        stream.wire.reply_json(200, whole_reply(stream.ask, stream.cached_tok, self.settings))
        stream.wire.finish()

    def _strike(self, stream: Stream) -> bool:
        """Do what the fault says in the middle of a stream; True when that ended it."""
        settings, wire = self.settings, stream.wire
        if stream.fault is Fault.STREAM_ERROR:
            wire.write(frame(error_json(500, "the engine died", settings), settings).frame)
            if settings.flavour is not Flavour.LLAMACPP:
                wire.write(frame(b"[DONE]", settings).frame)
            wire.write(LAST_CHUNK)
            wire.finish()
        elif stream.fault is Fault.CLOSE_EARLY:
            wire.drop()
        elif stream.fault is Fault.NOT_HTTP:
            wire.write(b"zz not a chunk size\r\n")
            wire.drop()
        elif stream.fault is Fault.MALFORMED:
            wire.write(frame(b'{"choices": [', settings).frame)
            return False
        else:
            return stream.fault is Fault.HANG
        return True


def stamped(event: Event, *, clock: Callable[[], int] = monotonic_ns) -> bytes:
    """The event's bytes, with the time now where it has room for it."""
    if event.stamp_at < 0:
        return event.frame
    at = event.stamp_at
    return b"%s%0*d%s" % (event.frame[:at], STAMP_DIGITS, clock(), event.frame[at + STAMP_DIGITS :])
