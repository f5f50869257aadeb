"""The mock's engine: slots, a queue before them, and one step clock that gives every running stream its token.

Theory of operation. A request waits for a slot, then for its prefill (one after the other where prefills are serial),
then gets one event each step until its script is done. The schedule of steps is absolute: a late step does not delay
those after it, a missed one is not made up for. Bytes leave inside the step; a stream's stamp is taken just before.

Sockets are read between two answers and after every few streams of a step: a request that comes during a step would
else be stamped when the step is over, with 128 streams 4 ms late, and its sender would be blamed for that time.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic_ns

from orchestrator.mock.answer import (
    answer_words,
    closing_events,
    event_sizes,
    finish_reason,
    opening_events,
    stream_script,
    whole_reply,
)
from orchestrator.mock.ask import Ask
from orchestrator.mock.cache import PrefixCache
from orchestrator.mock.counters import Counters, Truth
from orchestrator.mock.frames import Event, comment, frame, stamped, stream_ending
from orchestrator.mock.settings import Fault, Flavour, Framing, MockSettings
from orchestrator.mock.stream import Stream, Wire
from orchestrator.mock.told import NO_TIMES, drafts_tok, error_json

ENDED = object()
TRUTHS_KEPT = 100_000
SLICE = 8
"""Streams stepped between two looks at the sockets."""


class StepEngine:
    """Admits up to `slots` requests and steps them together.

    Attributes:
        arrived: Requests since the process began: a restart does not make this 0.
        born_s: Wall clock of the (re)start.
    """

    def __init__(self, settings: MockSettings) -> None:
        self.settings = settings
        self.arrived = 0
        self.running: list[Stream] = []
        self.waiting: deque[Stream] = deque()
        self.truths: deque[Truth] = deque(maxlen=TRUTHS_KEPT)
        self.born_s = 0.0
        self._drafted = drafts_tok(settings)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._asked: deque[Callable[[], None]] = deque()
        self._due_s = 0.0
        self.restart()

    def restart(self) -> None:
        """Forget what a new process would not know. Who talks to the connections must drop them."""
        self.stop()
        for stream in (*self.running, *self.waiting):
            stream.is_gone = True
        self.running.clear()
        self.waiting.clear()
        self.counters = Counters()
        self.cache = PrefixCache(self.settings.block_tok, capacity=self.settings.cache_blocks)
        self.born_s = max(time.time(), self.born_s + 0.01)
        self._loading_left = self.settings.loading_requests
        self._loaded_ns = monotonic_ns() + int(self.settings.loading_s * 1e9)
        self._prefill_free_ns = 0

    def is_loading(self) -> bool:
        """Asked once for each request that a loading server turns away."""
        if self._loading_left > 0:
            self._loading_left -= 1
            return True
        return monotonic_ns() < self._loaded_ns

    @property
    def is_full(self) -> bool:
        beyond = self.settings.sheds_beyond
        return beyond is not None and len(self.running) >= self.settings.slots and len(self.waiting) >= beyond

    def submit(self, ask: Ask, wire: Wire, *, received_ns: int) -> Stream:
        self.counters.requests += 1
        strikes = self.settings.fault is not None and self.counters.requests % self.settings.fault_every == 0
        fault = self.settings.fault if strikes else None
        return Stream(ask=ask, wire=wire, fault=fault, number=self.arrived, received_ns=received_ns)

    def queue(self, stream: Stream) -> None:
        self.waiting.append(stream)
        self._admit()

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
            self._timer = None

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.settings.slots:
            stream = self.waiting.popleft()
            if stream.is_gone:
                continue
            self._look_up(stream)
            self._schedule_prefill(stream)
            self.running.append(stream)
            stream.steps = self._streamed(stream) if stream.ask.is_streamed else self._unstreamed(stream)
        self.counters.most_running = max(self.counters.most_running, len(self.running))
        if self.running and self._timer is None:
            self._due_s = self._loop.time() + self.settings.step_s
            self._timer = self._loop.call_at(self._due_s, self._step)

    def _look_up(self, stream: Stream) -> None:
        ask, settings = stream.ask, self.settings
        if settings.prefix_caching and ask.uses_cache:
            stream.keys = self.cache.keys(ask.prompt, ask.cache_salt)
            stream.cached_tok = self.cache.find_keys(stream.keys, len(ask.prompt)) * settings.word_tok
            self.counters.queries += ask.prompt_tok
            if settings.shares_in_flight:
                self.cache.add_keys(stream.keys)
        self.counters.prompt += ask.prompt_tok
        self.counters.cached += stream.cached_tok

    def _schedule_prefill(self, stream: Stream) -> None:
        settings, fresh_tok = self.settings, stream.ask.prompt_tok - stream.cached_tok
        prefill_s = settings.ttft_s
        if settings.prefill_tok_per_s:
            prefill_s += fresh_tok / settings.prefill_tok_per_s
        if stream.number <= settings.slow_first:
            prefill_s += settings.slow_extra_s
        now = monotonic_ns()
        stream.started_ns = max(now, self._prefill_free_ns) if settings.prefill_is_serial else now
        stream.ready_ns = self._prefill_free_ns = stream.started_ns + int(prefill_s * 1e9)
        chunks = -(-fresh_tok // settings.prefill_chunk_tok) if settings.prefill_chunk_tok else 1
        stream.role_ns = stream.started_ns + int(prefill_s * 1e9 / max(1, chunks))
        stream.ping_ns = stream.ping_ns or now + int(settings.keepalive_s * 1e9)

    def _step(self) -> None:
        now = monotonic_ns()
        is_stalled = self.settings.prefill_stalls and any(s.started_ns <= now < s.ready_ns for s in self.running)
        self._step_from(0, now, [], is_stalled)

    def _step_from(self, start: int, now: int, running: list[Stream], is_stalled: bool) -> None:
        for stream in self.running[start : start + SLICE]:
            if stream.is_gone:
                continue
            if stream.ready_ns > now:
                self._while_prefilling(stream, now)
            elif not is_stalled and next(stream.steps, ENDED) is ENDED:
                continue
            running.append(stream)
        if start + SLICE < len(self.running):
            self._timer = self._loop.call_soon(self._step_from, start + SLICE, now, running, is_stalled)
            return
        self._timer = None
        self.running = running
        self.counters.steps += 1
        self.counters.busy += len(running)
        if self.settings.keepalive_s and self.settings.framing is not Framing.LENGTH:
            for stream in self.waiting:
                self._ping(stream, now)
        self._admit()
        if self.running and self._timer is None:
            self._due_s = max(self._due_s + self.settings.step_s, self._loop.time())
            self._timer = self._loop.call_at(self._due_s, self._step)

    def _while_prefilling(self, stream: Stream, now: int) -> None:
        if not stream.ask.is_streamed or self.settings.framing is Framing.LENGTH:
            return
        if self.settings.keepalive_s:
            self._ping(stream, now)
        if self.settings.prefill_chunk_tok and stream.role_ns <= now:
            self._open(stream)

    def _ping(self, stream: Stream, now: int) -> None:
        if stream.ask.is_streamed and not stream.is_gone and stream.ping_ns <= now:
            if stream.ping_ns:
                stream.wire.write(comment(self.settings).frame)
            stream.ping_ns = now + int(self.settings.keepalive_s * 1e9)

    def _open(self, stream: Stream) -> None:
        if not stream.is_open:
            stream.is_open = True
            for opening in opening_events(stream.ask, self.settings):
                stream.wire.write(stamped(opening, monotonic_ns()))

    def _streamed(self, stream: Stream) -> Iterator[None]:
        """One event a step; returning ends the request."""
        ask, settings, fault = stream.ask, self.settings, stream.fault
        self._learn(stream)
        script = stream_script(ask, settings, fault)
        if settings.framing is Framing.LENGTH:
            stream.wire.begin(self._body_bytes(stream, script.events))
        self._open(stream)
        strike_at = len(script.events) // 2 if settings.fault_after_events is None else settings.fault_after_events
        held: list[Event] = []
        for number, (event, tokens) in enumerate(zip(script.events, script.sizes, strict=True)):
            if number == strike_at and fault is not None:
                self._flush(stream, held)
                if self._strike(stream):
                    return
            held.append(event)
            self._count(stream, tokens)
            if number + 1 < len(script.events):
                if len(held) == settings.events_per_write:
                    self._flush(stream, held)
                yield
        is_struck_last = fault is not None and strike_at >= len(script.events)
        if settings.events_per_write == 1 or is_struck_last:
            self._flush(stream, held)
        if is_struck_last and self._strike(stream):
            return
        self._flush(stream, held, closing=True)
        self._end(stream, script.sizes)

    def _flush(self, stream: Stream, held: list[Event], *, closing: bool = False) -> None:
        """One write of all that is held, and with `closing` of the stream's end; singly where nothing is coalesced."""
        pieces = []
        if held:
            now = stream.last_ns = monotonic_ns()
            stream.first_ns = stream.first_ns or now
            pieces = [stamped(event, now) for event in held]
            held.clear()
        if closing:
            pieces += self._closing(stream)
        if self.settings.events_per_write > 1:
            stream.wire.write(b"".join(pieces))
        else:
            for piece in pieces:
                stream.wire.write(piece)

    def _closing(self, stream: Stream) -> list[bytes]:
        events = closing_events(stream.ask, stream.cached_tok, stream.times, self.settings, stream.fault)
        return [*(stamped(e, monotonic_ns()) for e in events), stream_ending(self.settings)]

    def _body_bytes(self, stream: Stream, events: Sequence[Event]) -> int:
        """Of a whole stream: what is not known yet has room of a fixed size."""
        closing = closing_events(stream.ask, stream.cached_tok, NO_TIMES, self.settings, stream.fault)
        return sum(len(e.frame) for e in (*opening_events(stream.ask, self.settings), *events, *closing))

    def _count(self, stream: Stream, tokens: int) -> None:
        self.counters.took(tokens, self._drafted)
        stream.events += 1
        stream.draft_tok += self._drafted
        stream.accepted_tok += tokens - 1

    def _learn(self, stream: Stream) -> None:
        if stream.keys and not self.settings.shares_in_flight:
            self.cache.add_keys(stream.keys)

    def _learn_answer(self, stream: Stream) -> None:
        ask = stream.ask
        if self.settings.prefix_caching and ask.uses_cache and self.settings.caches_answers:
            rest = ask.prompt[len(stream.keys) * self.settings.block_tok :] + answer_words(ask.output_tok)
            self.cache.add_keys(self.cache.extended(stream.keys, rest, ask.cache_salt))

    def _end(self, stream: Stream, sizes: Sequence[int]) -> None:
        if sizes:
            self._note(stream, sizes)
        self._learn_answer(stream)
        self.counters.finished[finish_reason(stream.ask, self.settings) or "none"] += 1
        stream.wire.finish()

    def _note(self, stream: Stream, sizes: Sequence[int]) -> None:
        """What was true of the stream; one that broke off before its first token has no truth to tell."""
        times, counters = stream.times, self.counters
        self.truths.append(
            Truth(
                received_ns=times.received_ns,
                first_ns=times.first_ns,
                last_ns=times.last_ns,
                events=times.events,
                output_tok=sum(sizes[: times.events]),
                first_tok=sum(sizes[: min(self.settings.events_per_write, times.events)]),
                started_ns=times.started_ns,
                prompt_tok=stream.ask.prompt_tok,
                cached_tok=stream.cached_tok,
            )
        )
        counters.timed += 1
        counters.queue_s += times.queue_ms / 1000
        counters.prefill_s += times.prefill_ms / 1000
        counters.ttft_s += (times.first_ns - times.received_ns) / 1e9
        counters.decode_s += times.decode_ms / 1000

    def _unstreamed(self, stream: Stream) -> Iterator[None]:
        ask = stream.ask
        self._learn(stream)
        sizes = event_sizes(ask.output_tok, self.settings)
        for number, tokens in enumerate(sizes):
            stream.last_ns = monotonic_ns()
            stream.first_ns = stream.first_ns or stream.last_ns
            self._count(stream, tokens)
            if number + 1 < len(sizes):
                yield
        stream.wire.reply_json(200, whole_reply(ask, stream.cached_tok, stream.times, self.settings))
        self._learn_answer(stream)
        self.counters.finished[finish_reason(ask, self.settings) or "none"] += 1
        stream.wire.finish()

    def _strike(self, stream: Stream) -> bool:
        """Do what the fault says in the middle of a stream; True when that ended it."""
        settings, wire, fault = self.settings, stream.wire, stream.fault
        if fault in {Fault.STREAM_ERROR, Fault.ERROR_EVENT}:
            wire.write(_error_frame(settings, is_named=fault is Fault.ERROR_EVENT))
            if settings.flavour is not Flavour.LLAMACPP:
                wire.write(frame(b"[DONE]", settings, is_last=True).frame)
            wire.write(stream_ending(settings))
            # A promised length that will not come: nothing but a close can end it.
            wire.drop() if settings.framing is Framing.LENGTH else wire.finish()
        elif fault is Fault.CLOSE_EARLY:
            wire.drop()
        elif fault is Fault.RESET:
            wire.drop(is_reset=True)
        elif fault is Fault.NOT_HTTP:
            wire.write(b"zz not a chunk size\r\n")
            wire.drop()
        elif fault is Fault.MALFORMED:
            wire.write(frame(b'{"choices": [', settings).frame)
            return False
        elif fault is not Fault.HANG:
            return False
        if stream.events:
            self._note(stream, event_sizes(stream.ask.output_tok, settings))
        self.counters.finished["error"] += 1
        return True


def _error_frame(settings: MockSettings, *, is_named: bool) -> bytes:
    """An error in the stream: an object with `error`, or an event whose name alone says so."""
    if is_named:
        return frame(b'{"message":"the engine died","code":500}', settings, name="error").frame
    return frame(error_json(500, "the engine died", settings), settings).frame
