"""From raw reads to a request's record: which byte was the first token, how many tokens came when, what went wrong.

Theory of operation. Four things that other tools call "first token" are kept apart: the headers (vLLM sends them
while the request still waits in its queue), the first event (a role-only chunk can leave after the first *prefill*
chunk), the first token (text, reasoning, a tool call, or the ids of a token whose text is withheld), the first answer
(the same without reasoning). A comment line is a sign of life, never a token.

Tokens of an event come from the best source that proves itself against the server's total: token ids, then a running
usage, then "as many events as tokens". If none does, an event's tokens are None and nothing is divided by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.records.record import Failure, RequestRecord, TokenSource
from orchestrator.values import Json
from orchestrator.wire.chat import Reply
from orchestrator.wire.parse import DONE, ERROR_EVENT, Delta, assemble, error_text, load_json, read_chunk, read_event
from orchestrator.wire.sse import SseEvent, SseParser

ERROR_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One exchange without its framing. Times: integer ns of one clock.

    Attributes:
        transport_failure: What the connection says went wrong (CONNECT, TIMEOUT, CANCELLED, MALFORMED for bytes that
            are not HTTP); None when the exchange ended by itself.
        pieces: Body bytes with the stamp of the read that brought them.
        is_whole: The framing says that nothing is missing.
        content_type: As the server named it, lower case.
        phase, lane, track, turn: Whose request it was (`records.record.RequestRecord`).
        ready_ns: When it could be sent; None: as soon as it was due.
        read_lags_ns: User-space stamp minus the kernel's receive stamp, by the user-space stamp of the read (as in
            `pieces`); empty without kernel stamps. The record keeps that of the read with the first token.
        stamp_lag_ns: The same, for whoever knows it already.
    """

    repeat: int
    index: int
    scheduled_ns: int
    sent_ns: int | None = None
    headers_ns: int | None = None
    end_ns: int | None = None
    status: int = 0
    content_type: str = ""
    pieces: Sequence[tuple[int, bytes]] = ()
    is_whole: bool = False
    transport_failure: Failure | None = None
    transport_error: str | None = None
    phase: str = "main"
    lane: str = ""
    track: int | None = None
    turn: int = 0
    ready_ns: int | None = None
    read_lags_ns: Mapping[int, int] = field(default_factory=dict)
    stamp_lag_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the workload expects of one request, to be judged here (`must_finish`) and by `sweep.guards`.

    Attributes:
        asked_output_tok: The limit it was sent with.
        shared_tok: Tokens at its head that other requests of the cell have too.
        is_length_fixed: The answer shall end at that limit: a finish reason `length` is then no failure.
        must_finish: An answer that the limit cut is a failure.
    """

    prompt_tok: int | None = None
    cached_tok: int | None = None
    nonce: str | None = None
    asked_output_tok: int | None = None
    shared_tok: int | None = None
    is_length_fixed: bool = True
    must_finish: bool = False


NOTHING_EXPECTED = Expected()


def request_record(answer: Answer, expected: Expected = NOTHING_EXPECTED) -> RequestRecord:
    """Read one answer; never raises for what a server may send."""
    stream = _read_stream(answer)
    reply = assemble(stream.deltas, http_status=answer.status)
    failure, error = _failure(answer, stream, reply)
    if failure is None:
        failure, error = _cut(reply, expected)
    source, tokens = _count_tokens(stream, reply)
    carrying = [(t, n) for (t, d), n in zip(stream.timed, tokens, strict=True) if (d.has_token if n is None else n)]
    first_answer_ns = next((t for t, d in stream.timed if d.content or d.tools), None)
    first_token_ns = carrying[0][0] if carrying else None
    stamp_lag_ns = answer.stamp_lag_ns
    if stamp_lag_ns is None and first_token_ns is not None:
        stamp_lag_ns = answer.read_lags_ns.get(first_token_ns)
    return RequestRecord(
        repeat=answer.repeat,
        index=answer.index,
        scheduled_ns=answer.scheduled_ns,
        sent_ns=answer.sent_ns,
        headers_ns=answer.headers_ns,
        first_event_ns=stream.timed[0][0] if stream.timed else None,
        first_token_ns=first_token_ns,
        first_answer_ns=first_answer_ns,
        last_token_ns=carrying[-1][0] if carrying else None,
        end_ns=answer.end_ns,
        events=tuple(carrying),
        http_status=answer.status,
        failure=None if failure is None else failure.value,
        error=None if error is None else error[:ERROR_CHARS],
        prompt_tok=reply.usage.prompt_tok,
        output_tok=_output_tok(reply, source),
        cached_tok=reply.usage.cached_tok,
        reasoning_tok=reply.usage.reasoning_tok,
        expected_cached_tok=expected.cached_tok,
        expected_prompt_tok=expected.prompt_tok,
        asked_output_tok=expected.asked_output_tok,
        shared_tok=expected.shared_tok,
        token_source=source.value,
        finish_reason=reply.finish_reason,
        nonce=expected.nonce,
        keepalives=stream.keepalives,
        server=_server_timings(stream, reply),
        phase=answer.phase,
        lane=answer.lane,
        track=answer.track,
        turn=answer.turn,
        ready_ns=answer.ready_ns,
        stamp_lag_ns=stamp_lag_ns,
    )


@dataclass(slots=True)
class _Stream:
    timed: list[tuple[int, Delta]] = field(default_factory=list)
    keepalives: int = 0
    is_done: bool = False
    malformed: str | None = None
    metrics: Mapping[str, Json] = field(default_factory=dict)

    @property
    def deltas(self) -> list[Delta]:
        return [delta for _, delta in self.timed]


def _read_stream(answer: Answer) -> _Stream:
    """Events of a good stream; an event's time is that of the read that brought its last byte."""
    stream = _Stream()
    if not _is_good(answer.status) or answer.content_type.startswith("application/json"):
        return stream
    parser = SseParser()
    for t_ns, piece in answer.pieces:
        for event in parser.feed(piece):
            _take(stream, t_ns, event)
    for event in parser.close():
        _take(stream, answer.pieces[-1][0] if answer.pieces else 0, event)
    stream.keepalives = parser.comments
    return stream


def _take(stream: _Stream, t_ns: int, event: SseEvent) -> None:
    if event.data == DONE:
        stream.is_done = True
        return
    if event.event == ERROR_EVENT:
        stream.timed.append((t_ns, read_event(event)))
        return
    try:
        chunk = load_json(event.data)
    except ValueError:
        # A stream cut in mid-event is CLOSED_EARLY, not malformed: only whole events are judged.
        if event.is_complete:
            stream.malformed = f"event is not JSON: {event.data[:200].decode(errors='replace')}"
        return
    if isinstance(chunk, Mapping) and isinstance(metrics := chunk.get("metrics"), Mapping):
        stream.metrics = metrics
    stream.timed.append((t_ns, read_chunk(chunk)))


def _failure(answer: Answer, stream: _Stream, reply: Reply) -> tuple[Failure | None, str | None]:
    """The first that applies, in the order of what explains the others."""
    if answer.transport_failure is not None:
        return answer.transport_failure, answer.transport_error
    if answer.status == 0:
        return Failure.CLOSED_EARLY, answer.transport_error or "the server closed the connection without an answer"
    if not _is_good(answer.status):
        return _refused(answer.status), error_text(b"".join(piece for _, piece in answer.pieces))
    if reply.error is not None:
        return Failure.STREAM_ERROR, reply.error
    if stream.malformed is not None:
        return Failure.MALFORMED, stream.malformed
    if answer.content_type.startswith("application/json"):
        return Failure.MALFORMED, f"a stream was asked for, the answer is {answer.content_type}"
    if not answer.is_whole:
        return Failure.CLOSED_EARLY, answer.transport_error or f"the stream broke off after {len(stream.timed)} events"
    if not stream.is_done:
        return Failure.NO_DONE, f"the stream ended after {len(stream.timed)} events without [DONE]"
    if not any(delta.has_token for delta in stream.deltas) and not reply.usage.output_tok:
        return Failure.NO_TOKENS, "the stream ended properly without a single token"
    return None, None


def _cut(reply: Reply, expected: Expected) -> tuple[Failure | None, str | None]:
    """An answer that the limit ended, where the workload does not want it to."""
    if expected.is_length_fixed or reply.finish_reason != "length":
        return None, None
    limit = "its limit" if expected.asked_output_tok is None else f"{expected.asked_output_tok} tokens"
    if reply.reasoning and not reply.text and not reply.tool_calls:
        return Failure.CUT_REASONING, f"still reasoning at {limit}: there is no answer"
    return (Failure.CUT, f"the answer was cut at {limit}") if expected.must_finish else (None, None)


def _is_good(status: int) -> bool:
    """Any 2xx: a proxy may answer 201 or 206 to a stream."""
    return 200 <= status < 300


def _refused(status: int) -> Failure:
    if status == 400:
        return Failure.HTTP_400
    if 400 < status < 500:
        return Failure.HTTP_4XX
    return Failure.HTTP_5XX if status >= 500 else Failure.MALFORMED


def _count_tokens(stream: _Stream, reply: Reply) -> tuple[TokenSource, list[int | None]]:
    """Tokens of each event, and the best source that adds up to the server's total."""
    deltas, total = stream.deltas, reply.usage.output_tok
    if reply.token_ids:
        by_ids = [len(d.token_ids or ()) for d in deltas]
        if total in {None, sum(by_ids)}:
            return TokenSource.TOKEN_IDS, [*by_ids]
    unknown: list[int | None] = [None] * len(deltas)
    if total is None:
        return TokenSource.UNKNOWN, unknown
    running = _running(deltas)
    if running is not None and sum(running) == total:
        return TokenSource.CUMULATIVE_USAGE, [*running]
    carrying = [d.has_token for d in deltas]
    if sum(carrying) == total:
        return TokenSource.ONE_PER_EVENT, [int(c) for c in carrying]
    return TokenSource.USAGE_TOTAL, unknown


def _running(deltas: Sequence[Delta]) -> list[int] | None:
    """Tokens of each event by a usage that grows along the stream; None when it stands at the end only."""
    counted = [(i, d.usage.output_tok) for i, d in enumerate(deltas) if d.usage and d.usage.output_tok is not None]
    if len(counted) < 2:
        return None
    # The one event with tokens but without a running usage would give its tokens to the next: no proof then.
    if any(d.has_token and (d.usage is None or d.usage.output_tok is None) for d in deltas):
        return None
    tokens, before = [0] * len(deltas), 0
    for i, count in counted:
        if count < before:
            return None
        tokens[i], before = count - before, count
    return tokens


def _output_tok(reply: Reply, source: TokenSource) -> int | None:
    if reply.usage.output_tok is not None:
        return reply.usage.output_tok
    return len(reply.token_ids or ()) if source is TokenSource.TOKEN_IDS else None


def _server_timings(stream: _Stream, reply: Reply) -> Mapping[str, Json]:
    """The server's own times: llama-server's `timings`, vLLM's per-request `metrics`."""
    return {**reply.timings, **stream.metrics}
