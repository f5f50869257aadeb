"""JSON of an OpenAI-compatible server, read into values: one chunk, one body, one whole stream.

Nothing here raises for what a server may send: a value of the wrong type reads as absent, a body that is not JSON as
an error text. What differs between servers and is evened out here: reasoning under `reasoning` or
`reasoning_content`, `error` as a string or an object, cached tokens under three names, llama-server's `timings` where
`usage` is missing, tool-call fragments without an index.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from orchestrator.values import Json
from orchestrator.wire.chat import Reply, TokenLogprob, ToolCall, Usage
from orchestrator.wire.sse import SseEvent

DONE = b"[DONE]"
ERROR_EVENT = "error"
"""The name of an event that says by itself that something went wrong."""
REASONING_FIELDS = ("reasoning", "reasoning_content")
LEAST_LOGPROB = -9999.0
"""What stands for minus infinity, which JSON cannot say."""
ERROR_CHARS = 1000
_CACHED_FIELDS = ("cached_tokens", "prompt_cache_hit_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFragment:
    """A piece of a tool call. `index` None: the server numbers none."""

    index: int | None
    id: str | None
    name: str | None
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What one event adds to the answer (its first choice), and what it says beside it.

    `token_ids` None: the event carries no such field. `usage` None likewise; a running usage stands on each event.
    """

    content: str = ""
    reasoning: str = ""
    tools: tuple[ToolFragment, ...] = ()
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    timings: Mapping[str, Json] = field(default_factory=dict)
    model: str | None = None
    fingerprint: str | None = None
    error: str | None = None

    @property
    def has_token(self) -> bool:
        """True when generated tokens arrived here: text, reasoning, a tool call's piece, or ids of withheld ones."""
        return bool(self.content or self.reasoning or self.tools or self.token_ids)


EMPTY = Delta()


def load_json(raw: bytes | str) -> Json:
    """Parse JSON, also the kinds that only lenient servers write (NaN, lone surrogates).

    Raises:
        ValueError: Not JSON.
    """
    try:
        return orjson.loads(raw)  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        return json.loads(raw)  # type: ignore[no-any-return]


def read_chunk(chunk: Json) -> Delta:
    """Read one parsed event of a stream, chat or text completion."""
    if not isinstance(chunk, Mapping):
        return EMPTY
    choice = _first_choice(chunk)
    delta = choice.get("delta")
    return _read_answer(chunk, choice, delta if isinstance(delta, Mapping) else {})


def read_event(event: SseEvent) -> Delta:
    """Read one event's bytes; `[DONE]` is empty, broken JSON and an event named `error` are an `error`."""
    if event.data == DONE:
        return EMPTY
    if event.event == ERROR_EVENT:
        return Delta(error=error_text(event.data))
    try:
        return read_chunk(load_json(event.data))
    except ValueError:
        return Delta(error=f"event is not JSON: {_shorten(event.data.decode(errors='replace'))}")


def read_stream(events: Iterable[SseEvent], *, http_status: int = 200) -> Reply:
    """Assemble the answer of a finished stream.

    A stream without `[DONE]` is not ended properly; it is an error when it also has neither a finish reason nor usage.
    """
    kept = list(events)
    reply = assemble([read_event(e) for e in kept], http_status=http_status)
    is_done = any(e.data == DONE for e in kept)
    error = reply.error
    if error is None and not is_done and reply.finish_reason is None and reply.usage.output_tok is None:
        error = f"stream ended after {len(kept)} events without a finish reason or [DONE]"
    raw = tuple(_raw(e.data) for e in kept)
    return replace(reply, events=len(kept), ended_properly=is_done, error=error, raw=raw)


def assemble(deltas: Sequence[Delta], *, http_status: int = 200) -> Reply:
    """Put the pieces of one answer together."""
    usage = Usage()
    timings: dict[str, Json] = {}
    ids: list[int] = []
    calls = _ToolCalls()
    for d in deltas:
        usage = usage if d.usage is None else _newer(usage, d.usage)
        timings = dict(d.timings) or timings
        ids += d.token_ids or ()
        calls.add(d.tools)
    return Reply(
        http_status=http_status,
        text="".join(d.content for d in deltas),
        reasoning="".join(d.reasoning for d in deltas),
        tool_calls=calls.finished(),
        finish_reason=_last(d.finish_reason for d in deltas),
        usage=_newer(_usage_of_timings(timings), usage),
        logprobs=tuple(t for d in deltas for t in d.logprobs),
        token_ids=tuple(ids) if any(d.token_ids is not None for d in deltas) else None,
        model=_last(d.model for d in deltas),
        fingerprint=_last(d.fingerprint for d in deltas),
        error=next((d.error for d in deltas if d.error is not None), None),
        timings=timings,
    )


def read_body(raw: bytes, *, http_status: int) -> Reply:
    """Read a whole body: an answer, or the server's words when it refused."""
    if http_status != 200:
        return Reply(http_status=http_status, error=error_text(raw), raw=_raw(raw))
    try:
        body = load_json(raw)
    except ValueError:
        return Reply(http_status=200, error=f"body is not JSON: {_shorten(raw.decode(errors='replace'))}")
    if not isinstance(body, Mapping):
        return Reply(http_status=200, error=f"body is not an object: {_shorten(str(body))}", raw=body)
    choice = _first_choice(body)
    message = choice.get("message")
    answer = _read_answer(body, choice, message if isinstance(message, Mapping) else {})
    reply = replace(assemble([answer]), raw=body)
    if reply.error is None and not choice:
        return replace(reply, error=f"body has no choices: {_shorten(raw.decode(errors='replace'))}")
    return reply


def error_text(raw: bytes) -> str:
    """The server's words in an error body: under `error`, `detail` or `message`, or plain text."""
    try:
        body = load_json(raw)
    except ValueError:
        return _shorten(raw.decode(errors="replace").strip()) or "(empty body)"
    if not isinstance(body, Mapping):
        return _shorten(str(body))
    words = _error_of(body) or _text(body.get("message")) or raw.decode(errors="replace")
    return _shorten(words)


def _error_of(body: Mapping[str, Json]) -> str | None:
    error = body.get("error")
    if isinstance(error, Mapping):
        words = _text(error.get("message")) or json.dumps(error)
        kind = _text(error.get("type")) or _text(error.get("code"))
        return _shorten(f"{words} ({kind})" if kind else words)
    if error:
        return _shorten(str(error))
    if body.get("object") == "error":
        return _shorten(_text(body.get("message")) or json.dumps(body))
    detail = body.get("detail")
    return _shorten(detail if isinstance(detail, str) else json.dumps(detail)) if detail else None


def _read_answer(body: Mapping[str, Json], choice: Mapping[str, Json], answer: Mapping[str, Json]) -> Delta:
    usage, timings = body.get("usage"), body.get("timings")
    return Delta(
        content=_text(answer.get("content")) or _text(choice.get("text")) or "",
        reasoning=next((text for name in REASONING_FIELDS if (text := _text(answer.get(name)))), ""),
        tools=_fragments(answer.get("tool_calls")),
        token_ids=_ids(choice.get("token_ids")),
        logprobs=_logprobs(choice.get("logprobs")),
        finish_reason=_text(choice.get("finish_reason")),
        usage=_usage(usage) if isinstance(usage, Mapping) else None,
        timings=timings if isinstance(timings, Mapping) else {},
        model=_text(body.get("model")),
        fingerprint=_text(body.get("system_fingerprint")),
        error=_error_of(body) if body.get("error") or body.get("object") == "error" else None,
    )


def _first_choice(body: Mapping[str, Json]) -> Mapping[str, Json]:
    """The choice with index 0: gate0 never asks for more, and another one's text must not be mixed in."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return {}
    return next((c for c in choices if isinstance(c, Mapping) and c.get("index", 0) in (0, None)), {})


def _fragments(calls: Json) -> tuple[ToolFragment, ...]:
    if not isinstance(calls, list):
        return ()
    return tuple(_fragment(c) for c in calls if isinstance(c, Mapping))


def _fragment(call: Mapping[str, Json]) -> ToolFragment:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        # Some servers send the parsed object instead of its text.
        arguments = json.dumps(arguments)
    return ToolFragment(
        index=_count(call.get("index")),
        id=_text(call.get("id")),
        name=_text(function.get("name")),
        arguments=arguments or "",
    )


class _ToolCalls:
    """Tool calls put together from fragments."""

    def __init__(self) -> None:
        self._calls: dict[int, ToolCall] = {}

    def add(self, fragments: Sequence[ToolFragment]) -> None:
        for f in fragments:
            index = f.index if f.index is not None else self._index_of(f)
            before = self._calls.get(index, ToolCall(id=None, name=None, arguments=""))
            self._calls[index] = ToolCall(
                id=before.id or f.id, name=before.name or f.name, arguments=before.arguments + f.arguments
            )

    def finished(self) -> tuple[ToolCall, ...]:
        return tuple(self._calls[i] for i in sorted(self._calls))

    def _index_of(self, f: ToolFragment) -> int:
        """Without an index a new id or a new name starts a new call; the rest continues the last one."""
        if not self._calls:
            return 0
        last = max(self._calls)
        is_new = (f.id is not None and f.id != self._calls[last].id) or (f.id is None and f.name is not None)
        return last + 1 if is_new else last


def _usage(raw: Mapping[str, Json]) -> Usage:
    prompt, output = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    prompt = prompt if isinstance(prompt, Mapping) else {}
    output = output if isinstance(output, Mapping) else {}
    return Usage(
        prompt_tok=_count(raw.get("prompt_tokens")),
        output_tok=_count(raw.get("completion_tokens")),
        cached_tok=_first_count(
            prompt.get("cached_tokens"), raw.get("cached_tokens"), raw.get("prompt_cache_hit_tokens")
        ),
        reasoning_tok=_first_count(output.get("reasoning_tokens"), raw.get("reasoning_tokens")),
    )


def _usage_of_timings(timings: Mapping[str, Json]) -> Usage:
    cached, computed = _count(timings.get("cache_n")), _count(timings.get("prompt_n"))
    return Usage(
        prompt_tok=None if cached is None or computed is None else cached + computed,
        output_tok=_count(timings.get("predicted_n")),
        cached_tok=cached,
    )


def _newer(old: Usage, new: Usage) -> Usage:
    """`new` over `old`: what a later usage leaves out (running usage has no cached tokens) stays known."""
    return Usage(
        prompt_tok=_first_count(new.prompt_tok, old.prompt_tok),
        output_tok=_first_count(new.output_tok, old.output_tok),
        cached_tok=_first_count(new.cached_tok, old.cached_tok),
        reasoning_tok=_first_count(new.reasoning_tok, old.reasoning_tok),
    )


def _logprobs(raw: Json) -> tuple[TokenLogprob, ...]:
    if not isinstance(raw, Mapping):
        return ()
    content = raw.get("content")
    if isinstance(content, list):
        return tuple(_token_logprob(t) for t in content if isinstance(t, Mapping))
    tokens, values, tops = raw.get("tokens"), raw.get("token_logprobs"), raw.get("top_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        return ()
    tops = tops if isinstance(tops, list) else [None] * len(tokens)
    return tuple(
        TokenLogprob(token=str(t), logprob=_logprob(v), top=_ranked(top.items()) if isinstance(top, Mapping) else ())
        for t, v, top in zip(tokens, values, tops, strict=False)
    )


def _token_logprob(raw: Mapping[str, Json]) -> TokenLogprob:
    top = raw.get("top_logprobs")
    pairs = [(t.get("token"), t.get("logprob")) for t in top if isinstance(t, Mapping)] if isinstance(top, list) else []
    return TokenLogprob(token=_text(raw.get("token")) or "", logprob=_logprob(raw.get("logprob")), top=_ranked(pairs))


def _ranked(pairs: Iterable[tuple[Json, Json]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(((str(t), _logprob(v)) for t, v in pairs), key=lambda pair: -pair[1]))


def _logprob(value: Json) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return max(float(value), LEAST_LOGPROB)
    return LEAST_LOGPROB


def _ids(value: Json) -> tuple[int, ...] | None:
    return tuple(i for i in value if isinstance(i, int)) if isinstance(value, list) else None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _first_count(*values: Json) -> int | None:
    return next((c for v in values if (c := _count(v)) is not None), None)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _last(values: Iterable[str | None]) -> str | None:
    return next((v for v in reversed(list(values)) if v), None)


def _raw(data: bytes) -> Json:
    try:
        return load_json(data)
    except ValueError:
        return data.decode(errors="replace")


def _shorten(text: str) -> str:
    return text if len(text) <= ERROR_CHARS else f"{text[:ERROR_CHARS]}… ({len(text)} characters)"
