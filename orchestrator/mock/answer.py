"""What the mock says, as bytes: pure functions from a request to the events of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from orchestrator.mock.settings import Fault, Flavour, MockSettings

TEXT = (
    "the river turns slowly under an old bridge where two boats wait for morning and a grey heron stands still "
    "while wind moves through tall reeds beside the mill until bells sound across quiet fields"
)
WORDS = tuple(TEXT.split())
STAMP_DIGITS = 19
STAMP_MARK = b"9" * STAMP_DIGITS
DEFAULT_OUTPUT_TOK = 16


class Refused(Exception):
    """The request is answered with an error status instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request, checked. `prompt` is its tokens, template included."""

    is_chat: bool
    is_streamed: bool
    prompt: tuple[str, ...]
    output_tok: int
    has_usage: bool
    has_running_usage: bool
    has_token_ids: bool
    tool: str | None
    cache_salt: str
    uses_cache: bool


def read_ask(path: str, body: bytes, settings: MockSettings) -> Ask:
    """Check a body.

    Raises:
        Refused: As the flavour's engine would.
    """
    try:
        raw = orjson.loads(body)
    except ValueError:
        status = 500 if settings.flavour is Flavour.LLAMACPP else 400
        raise Refused(status, "the body is not JSON") from None
    if not isinstance(raw, dict):
        raise Refused(400, "the body is not an object")
    for name in settings.refused_fields:
        if name in raw or name in (raw.get("stream_options") or {}):
            raise Refused(400, f"field {name} is not supported")
    is_streamed, is_chat = bool(raw.get("stream")), path.endswith("/chat/completions")
    if settings.flavour is Flavour.SGLANG and is_chat and is_streamed and raw.get("return_token_ids"):
        raise Refused(400, "return_token_ids is not supported with streaming chat")
    if settings.flavour is not Flavour.LLAMACPP and raw.get("model") not in {None, settings.model}:
        raise Refused(404, f"The model `{raw.get('model')}` does not exist")
    prompt = _chat_prompt(raw, settings) if is_chat else tuple(str(raw.get("prompt", "")).split())
    if len(prompt) >= settings.max_model_len:
        raise Refused(400, f"the prompt has {len(prompt)} tokens, the context {settings.max_model_len}")
    asked = raw.get("max_tokens") or raw.get("max_completion_tokens") or DEFAULT_OUTPUT_TOK
    options = raw.get("stream_options") or {}
    return Ask(
        is_chat=is_chat,
        is_streamed=is_streamed,
        prompt=prompt,
        output_tok=max(1, min(int(asked), settings.max_model_len - len(prompt)) - settings.short_by_tok),
        has_usage=settings.reports_usage and (not is_streamed or bool(options.get("include_usage"))),
        has_running_usage=settings.reports_usage and bool(options.get("continuous_usage_stats")),
        has_token_ids=bool(raw.get("return_token_ids")) and settings.flavour is Flavour.VLLM,
        tool=_tool_name(raw) if settings.calls_tools else None,
        cache_salt=str(raw.get("cache_salt") or raw.get("extra_key") or ""),
        uses_cache=raw.get("cache_prompt") is not False,
    )


def _chat_prompt(raw: Mapping[str, Any], settings: MockSettings) -> tuple[str, ...]:
    messages = raw.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused(400, "messages is missing or empty")
    words: list[str] = [f"<head{i}>" for i in range(settings.template_head_tok)]
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        words.extend(word for part in parts for word in str(part.get("text", "")).split())
    words.extend(f"<tail{i}>" for i in range(settings.template_tail_tok))
    return tuple(words)


def _tool_name(raw: Mapping[str, Any]) -> str | None:
    tools = raw.get("tools")
    if not tools or raw.get("tool_choice") == "none":
        return None
    return str(tools[0]["function"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One write of a stream: framed bytes, and where in them the server's stamp goes (-1: nowhere)."""

    frame: bytes
    stamp_at: int = -1


def frame(payload: bytes, settings: MockSettings, *, comment: bool = False) -> Event:
    """An SSE event in its own HTTP chunk."""
    line_end = b"\r\n" if settings.is_crlf else b"\n"
    text = (b": " if comment else b"data: ") + payload + line_end + line_end
    framed = b"%x\r\n%s\r\n" % (len(text), text)
    return Event(frame=framed, stamp_at=framed.find(STAMP_MARK) if settings.has_stamps else -1)


Shape = tuple[bool, int, bool, str | None]
"""`(is_chat, output_tok, has_token_ids, tool)`: answers of one shape are the same bytes."""


@lru_cache(maxsize=64)
def token_events(ask_shape: Shape, settings: MockSettings) -> tuple[Event, ...]:
    """The token events of every answer with this shape."""
    return tuple(frame(_dump(chunk), settings) for chunk, _ in _token_chunks(ask_shape, settings))


def _token_chunks(ask_shape: Shape, settings: MockSettings) -> list[tuple[dict[str, Any], int]]:
    """Each token chunk as JSON, with the tokens sent so far."""
    is_chat, output_tok, has_ids, tool = ask_shape
    chunks: list[tuple[dict[str, Any], int]] = []
    held = ""
    for number, start in enumerate(range(0, output_tok, settings.tokens_per_event)):
        stop = min(start + settings.tokens_per_event, output_tok)
        held += "".join(f"{WORDS[i % len(WORDS)]} " for i in range(start, stop))
        is_withheld = settings.withheld_every > 0 and number % settings.withheld_every == settings.withheld_every - 1
        text, held = ("", held) if is_withheld and stop < output_tok else (held, "")
        if tool is not None:
            choice = _tool_choice(text, tool, is_first=start == 0, is_last=stop == output_tok)
        else:
            choice = _choice(text, start, is_chat=is_chat, settings=settings)
        if has_ids:
            choice["token_ids"] = [1000 + i % len(WORDS) for i in range(start, stop)]
        chunks.append((_chunk(is_chat, [choice], settings), stop))
    return chunks


def _choice(text: str, start: int, *, is_chat: bool, settings: MockSettings) -> dict[str, Any]:
    if not is_chat:
        return {"index": 0, "text": text, "finish_reason": None}
    if start < settings.reasoning_tok:
        field = "reasoning" if settings.flavour is Flavour.VLLM else "reasoning_content"
        return {"index": 0, "delta": {field: text} if text else {}, "finish_reason": None}
    return {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": None}


def _tool_choice(text: str, tool: str, *, is_first: bool, is_last: bool) -> dict[str, Any]:
    """A piece of a call whose arguments, joined, are the JSON object `{"note": "<the words>"}`."""
    call: dict[str, Any] = {"index": 0, "function": {"arguments": text}}
    if is_first:
        call |= {"id": "call_0", "type": "function"}
        call["function"] = {"name": tool, "arguments": '{"note": "' + text}
    if is_last:
        call["function"]["arguments"] += '"}'
    return {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}


def _chunk(is_chat: bool, choices: Sequence[Mapping[str, Any]], settings: MockSettings) -> dict[str, Any]:
    chunk: dict[str, Any] = {
        "id": "chatcmpl-00000000000000000000000000000000",
        "object": "chat.completion.chunk" if is_chat else "text_completion",
        "created": 1700000000,
        "model": settings.model,
        "choices": choices,
    }
    if settings.has_stamps:
        chunk["mock_ns"] = STAMP_MARK.decode()
    return chunk


def _dump(chunk: Mapping[str, Any]) -> bytes:
    return orjson.dumps(chunk)


def usage_json(ask: Ask, output_tok: int, cached_tok: int, settings: MockSettings) -> dict[str, Any]:
    """The usage object after `output_tok` tokens."""
    usage: dict[str, Any] = {
        "prompt_tokens": len(ask.prompt),
        "completion_tokens": output_tok,
        "total_tokens": len(ask.prompt) + output_tok,
    }
    if settings.reports_cached_tok:
        usage["prompt_tokens_details"] = {"cached_tokens": cached_tok}
    if settings.reasoning_tok:
        reasoned = min(settings.reasoning_tok, output_tok)
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoned}
    return usage


def opening_events(ask: Ask, settings: MockSettings) -> tuple[Event, ...]:
    """What comes with the first token but carries none: keep-alive comment, role chunk."""
    events = []
    if settings.has_keepalives:
        events.append(frame(b"keep-alive", settings, comment=True))
    if ask.is_chat and settings.has_role_chunk:
        content = None if settings.flavour is Flavour.LLAMACPP else ""
        choice = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
        events.append(frame(_dump(_chunk(True, [choice], settings)), settings))
    return tuple(events)


def stream_events(ask: Ask, cached_tok: int, settings: MockSettings, fault: Fault | None) -> tuple[Event, ...]:
    """The token events, one per step. With running usage they are the request's own, else shared."""
    if fault is Fault.NO_TOKENS:
        return ()
    shape = (ask.is_chat, ask.output_tok, ask.has_token_ids, ask.tool)
    if not ask.has_running_usage:
        return token_events(shape, settings)
    return tuple(
        frame(_dump({**chunk, "usage": usage_json(ask, sent, cached_tok, settings)}), settings)
        for chunk, sent in _token_chunks(shape, settings)
    )


def closing_events(ask: Ask, cached_tok: int, settings: MockSettings, fault: Fault | None) -> tuple[Event, ...]:
    """Finish chunk, usage chunk, `[DONE]`."""
    reason = "tool_calls" if ask.tool is not None else "length"
    choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
    choice["delta" if ask.is_chat else "text"] = {} if ask.is_chat else ""
    finish = _chunk(ask.is_chat, [choice], settings)
    sent = 0 if fault is Fault.NO_TOKENS else ask.output_tok
    if settings.flavour is Flavour.LLAMACPP:
        finish["timings"] = timings_json(ask, sent, cached_tok, settings)
    events = [frame(_dump(finish), settings)]
    if ask.has_usage:
        usage = {**_chunk(ask.is_chat, [], settings), "usage": usage_json(ask, sent, cached_tok, settings)}
        events.append(frame(_dump(usage), settings))
    if fault is not Fault.NO_DONE:
        events.append(frame(b"[DONE]", settings))
    return tuple(events)


def timings_json(ask: Ask, output_tok: int, cached_tok: int, settings: MockSettings) -> dict[str, Any]:
    """llama-server's `timings`, from the settings."""
    fresh = len(ask.prompt) - cached_tok
    return {
        "cache_n": cached_tok,
        "prompt_n": fresh,
        "prompt_ms": settings.ttft_s * 1000,
        "predicted_n": output_tok,
        "predicted_ms": output_tok / settings.tokens_per_event * settings.step_s * 1000,
    }


def error_json(status: int, message: str, settings: MockSettings) -> bytes:
    """An error body in the flavour's shape."""
    if status == 401 and settings.flavour is Flavour.VLLM:
        return b'{"error":"Unauthorized"}'
    kind = "exceed_context_size_error" if settings.flavour is Flavour.LLAMACPP else "BadRequestError"
    return _dump({"error": {"message": message, "type": kind, "param": None, "code": status}})


def whole_reply(ask: Ask, cached_tok: int, settings: MockSettings) -> bytes:
    """The answer to a request that was not streamed."""
    text = "".join(f"{WORDS[i % len(WORDS)]} " for i in range(ask.output_tok))
    choice: dict[str, Any] = {"index": 0, "finish_reason": "length", "logprobs": None}
    if not ask.is_chat:
        choice["text"] = text
    elif ask.tool is not None:
        call = {
            "id": "call_0",
            "type": "function",
            "function": {"name": ask.tool, "arguments": '{"note": "' + text + '"}'},
        }
        choice["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice["finish_reason"] = "tool_calls"
    else:
        choice["message"] = {"role": "assistant", "content": text}
    reply = _chunk(ask.is_chat, [choice], settings)
    reply["object"] = "chat.completion" if ask.is_chat else "text_completion"
    if ask.has_usage:
        reply["usage"] = usage_json(ask, ask.output_tok, cached_tok, settings)
    if settings.flavour is Flavour.LLAMACPP:
        reply["timings"] = timings_json(ask, ask.output_tok, cached_tok, settings)
    return _dump(reply)
