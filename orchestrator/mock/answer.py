"""What the mock says, as bytes: pure functions from a request to the events of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from orchestrator.mock.ask import FIRST_ID, Ask
from orchestrator.mock.frames import STAMP_MARK, Event, comment, frame, padded
from orchestrator.mock.settings import Fault, Flavour, MockSettings, Reasoning, UsageChoices
from orchestrator.mock.told import Times, metrics_json, timings_json, usage_json

TEXT = (
    "the river turns slowly under an old bridge where two boats wait for morning and a grey heron stands still "
    "while wind moves through tall reeds beside the mill until bells sound across quiet fields"
)
WORDS = tuple(TEXT.split())
NOT_JSON = b',"mock_score":NaN,"mock_bound":Infinity,"mock_least":-Infinity}'


@dataclass(frozen=True, slots=True)
class Shape:
    """Answers of one shape are the same bytes. `usage_prompt_tok` None: no running usage."""

    is_chat: bool
    output_tok: int
    has_ids: bool
    has_logprobs: bool
    tool: str | None
    usage_prompt_tok: int | None


@dataclass(frozen=True, slots=True)
class Script:
    """The events with tokens, one a step, and how many tokens each has."""

    events: tuple[Event, ...]
    sizes: tuple[int, ...]


NO_SCRIPT = Script((), ())


def stream_script(ask: Ask, settings: MockSettings, fault: Fault | None) -> Script:
    """The token events of a stream; those of one shape are made once."""
    if fault is Fault.NO_TOKENS:
        return NO_SCRIPT
    told_tok = ask.prompt_tok if ask.has_running_usage else None
    return _script(
        Shape(ask.is_chat, ask.output_tok, ask.has_token_ids, ask.has_logprobs, ask.tool, told_tok), settings
    )


def event_sizes(output_tok: int, settings: MockSettings) -> tuple[int, ...]:
    """Tokens of each event."""
    pattern = settings.tokens_pattern or (settings.tokens_per_event,)
    sizes: list[int] = []
    left = output_tok
    while left > 0:
        size = min(pattern[len(sizes) % len(pattern)], left)
        sizes.append(size)
        left -= size
    return tuple(sizes)


@lru_cache(maxsize=64)
def _script(shape: Shape, settings: MockSettings) -> Script:
    sizes = event_sizes(shape.output_tok, settings)
    events: list[Event] = []
    start = 0
    for size, text in zip(sizes, _texts(sizes, settings), strict=True):
        stop = start + size
        if shape.tool is not None:
            choice = _tool_choice(text, shape.tool, is_first=start == 0, is_last=stop == shape.output_tok)
        else:
            choice = _text_choice(text, shape.is_chat, settings)
        if shape.has_ids:
            choice["token_ids"] = [FIRST_ID + i % len(WORDS) for i in range(start, stop)]
        if shape.has_logprobs:
            choice["logprobs"] = _logprobs(start, stop, shape.is_chat)
        chunk = chunk_json(shape.is_chat, [choice], settings)
        if shape.usage_prompt_tok is not None:
            chunk["usage"] = usage_json(shape.usage_prompt_tok, stop, None, settings)
        events.append(frame(dump(chunk, settings), settings))
        start = stop
    return Script(tuple(events), sizes)


@dataclass(frozen=True, slots=True)
class _Text:
    """What one event shows. Both empty: a special token, which has no text."""

    thought: str = ""
    said: str = ""


def _texts(sizes: Sequence[int], settings: MockSettings) -> list[_Text | None]:
    """Of each event; None: its text is withheld and comes with the next."""
    texts: list[_Text | None] = []
    thought = said = ""
    start = 0
    for number, size in enumerate(sizes):
        stop, cut = start + size, min(max(settings.reasoning_tok, start), start + size)
        if number < settings.special_first or _is_nth(number, settings.special_every):
            texts.append(_Text())
        else:
            thought, said = thought + _words(start, cut, settings), said + _words(cut, stop, settings)
            if _is_nth(number, settings.withheld_every) and number + 1 < len(sizes):
                texts.append(None)
            else:
                texts.append(_Text(thought, said))
                thought = said = ""
        start = stop
    return texts


def _is_nth(number: int, every: int) -> bool:
    return every > 0 and number % every == every - 1


def _words(start: int, stop: int, settings: MockSettings) -> str:
    if settings.has_blank_text:
        return "  " * (stop - start)
    return "".join(f"{WORDS[i % len(WORDS)]} " for i in range(start, stop))


def answer_words(output_tok: int) -> tuple[str, ...]:
    """The answer's tokens, as a client that sends it back spells them."""
    return tuple(WORDS[i % len(WORDS)] for i in range(output_tok))


def _text_choice(text: _Text | None, is_chat: bool, settings: MockSettings) -> dict[str, Any]:
    if not is_chat:
        shown = "" if text is None else text.thought + text.said
        return {"index": 0, "text": shown, "finish_reason": None}
    delta: dict[str, Any] = {}
    if text is not None:
        delta = _reasoning_fields(text.thought, settings)
        if text.said or not text.thought:
            delta["content"] = text.said
    return {"index": 0, "delta": delta, "finish_reason": None}


def _reasoning_fields(thought: str, settings: MockSettings) -> dict[str, Any]:
    if not thought or settings.reasoning is Reasoning.HIDDEN:
        return {}
    of_flavour = Reasoning.REASONING if settings.flavour is Flavour.VLLM else Reasoning.REASONING_CONTENT
    where = of_flavour if settings.reasoning is Reasoning.FLAVOUR else settings.reasoning
    names = (Reasoning.REASONING, Reasoning.REASONING_CONTENT) if where is Reasoning.BOTH else (where,)
    return {name.value: thought for name in names}


def _tool_choice(text: _Text | None, tool: str, *, is_first: bool, is_last: bool) -> dict[str, Any]:
    """A piece of a call whose arguments, joined, are the JSON object `{"note": "<the words>"}`."""
    words = "" if text is None else text.thought + text.said
    call: dict[str, Any] = {"index": 0, "function": {"arguments": words}}
    if is_first:
        call |= {"id": "call_0", "type": "function"}
        call["function"] = {"name": tool, "arguments": '{"note": "' + words}
    if is_last:
        call["function"]["arguments"] += '"}'
    return {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}


def _logprobs(start: int, stop: int, is_chat: bool) -> dict[str, Any]:
    """Every token is as good as certain."""
    tokens = [WORDS[i % len(WORDS)] + " " for i in range(start, stop)]
    if not is_chat:
        return {"tokens": tokens, "token_logprobs": [-0.125] * len(tokens), "top_logprobs": None, "text_offset": []}
    return {"content": [{"token": t, "logprob": -0.125, "bytes": list(t.encode()), "top_logprobs": []} for t in tokens]}


def chunk_json(is_chat: bool, choices: Sequence[dict[str, Any]], settings: MockSettings) -> dict[str, Any]:
    chunk: dict[str, Any] = {
        "id": "chatcmpl-00000000000000000000000000000000",
        "object": "chat.completion.chunk" if is_chat else "text_completion",
        "created": 1700000000,
        "model": settings.echoes_model or settings.model,
        "choices": choices,
    }
    if settings.has_stamps:
        chunk["mock_ns"] = STAMP_MARK.decode()
    return chunk


def dump(chunk: dict[str, Any], settings: MockSettings) -> bytes:
    """JSON as this server writes it, which may be what JSON does not allow."""
    raw = orjson.dumps(chunk, option=orjson.OPT_INDENT_2 if settings.is_multiline else 0)
    return raw[:-1] + NOT_JSON if settings.has_nan else raw


def opening_events(ask: Ask, settings: MockSettings) -> tuple[Event, ...]:
    """What comes before the first token and carries none: keep-alive comment, role chunk."""
    events = [comment(settings)] if settings.has_keepalives else []
    if ask.is_chat and settings.has_role_chunk:
        content = None if settings.flavour is Flavour.LLAMACPP else ""
        choice = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
        events.append(frame(dump(chunk_json(True, [choice], settings), settings), settings))
    return tuple(events)


def closing_events(
    ask: Ask, cached_tok: int, times: Times, settings: MockSettings, fault: Fault | None
) -> tuple[Event, ...]:
    """Finish chunk, usage chunk, `[DONE]`."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason(ask, settings)}
    choice["delta" if ask.is_chat else "text"] = {} if ask.is_chat else ""
    finish = chunk_json(ask.is_chat, [choice], settings)
    sent = 0 if fault is Fault.NO_TOKENS else ask.output_tok
    if settings.flavour is Flavour.LLAMACPP:
        finish["timings"] = timings_json(ask, sent, cached_tok, times, settings)
    chunks = [finish]
    if ask.has_usage:
        told = {"usage": usage_json(ask.prompt_tok, sent, cached_tok, settings)}
        if settings.has_metrics:
            told["metrics"] = metrics_json(ask, times, settings)
        if settings.usage_choices is UsageChoices.FINISH:
            finish |= told
        else:
            chunks.append(_usage_chunk(ask, settings) | told)
    payloads = [padded(dump(c, settings), settings) for c in chunks]
    if fault is Fault.NO_DONE:
        return tuple(frame(p, settings) for p in payloads)
    return (*(frame(p, settings) for p in payloads), frame(b"[DONE]", settings, is_last=True))


def _usage_chunk(ask: Ask, settings: MockSettings) -> dict[str, Any]:
    chunk = chunk_json(ask.is_chat, [], settings)
    if settings.usage_choices is UsageChoices.MISSING:
        del chunk["choices"]
    elif settings.usage_choices is UsageChoices.NULL:
        chunk["choices"] = None
    return chunk


def finish_reason(ask: Ask, settings: MockSettings) -> str | None:
    """As the settings say, or the true one."""
    if settings.finish_reason is not None:
        return settings.finish_reason or None
    return "tool_calls" if ask.tool is not None else "stop" if ask.is_natural_end else "length"


def whole_reply(ask: Ask, cached_tok: int, times: Times, settings: MockSettings) -> bytes:
    """The answer to a request that was not streamed."""
    shown = [t for t in _texts(event_sizes(ask.output_tok, settings), settings) if t is not None]
    thought, said = "".join(t.thought for t in shown), "".join(t.said for t in shown)
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason(ask, settings), "logprobs": None}
    if ask.has_logprobs:
        choice["logprobs"] = _logprobs(0, ask.output_tok, ask.is_chat)
    if not ask.is_chat:
        choice["text"] = thought + said
    elif ask.tool is not None:
        arguments = '{"note": "' + thought + said + '"}'
        call = {"id": "call_0", "type": "function", "function": {"name": ask.tool, "arguments": arguments}}
        choice["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    else:
        choice["message"] = {"role": "assistant", "content": said, **_reasoning_fields(thought, settings)}
    reply = chunk_json(ask.is_chat, [choice], settings)
    reply["object"] = "chat.completion" if ask.is_chat else "text_completion"
    if ask.has_usage:
        reply["usage"] = usage_json(ask.prompt_tok, ask.output_tok, cached_tok, settings)
        if settings.has_metrics:
            reply["metrics"] = metrics_json(ask, times, settings)
    if settings.flavour is Flavour.LLAMACPP:
        reply["timings"] = timings_json(ask, ask.output_tok, cached_tok, times, settings)
    return dump(reply, settings)
