"""A request's body, checked as the flavour's engine would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.mock.settings import Flavour, MockSettings

DEFAULT_OUTPUT_TOK = 16
UNASKED_TOOL = "note"
FIRST_ID = 1000
"""The mock's token ids begin here."""


class Refused(Exception):
    """The request is answered with an error status instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request, checked.

    Attributes:
        prompt: Its tokens, template included: words, or the ids that were sent.
        prompt_tok: As the server counts them; not `len(prompt)` where the settings say so.
        output_tok: Tokens of the answer to come.
        is_natural_end: The model ends by itself, before the limit.
    """

    is_chat: bool
    is_streamed: bool
    prompt: tuple[str | int, ...]
    prompt_tok: int
    output_tok: int
    is_natural_end: bool
    has_usage: bool
    has_running_usage: bool
    has_token_ids: bool
    has_logprobs: bool
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
    is_streamed, is_chat = bool(raw.get("stream")), path.endswith("/chat/completions")
    options = raw.get("stream_options") or {}
    _refuse_fields(raw, options, settings, is_streamed_chat=is_streamed and is_chat)
    prompt = _chat_prompt(raw, settings) if is_chat else _text_prompt(raw)
    prompt_tok = len(prompt) * settings.word_tok + settings.prompt_extra_tok
    if prompt_tok >= settings.max_model_len:
        raise Refused(400, f"the prompt has {prompt_tok} tokens, the context {settings.max_model_len}")
    output_tok, is_natural_end = _output(raw, prompt_tok, settings)
    is_told = not is_streamed or settings.volunteers_usage or bool(options.get("include_usage"))
    return Ask(
        is_chat=is_chat,
        is_streamed=is_streamed,
        prompt=prompt,
        prompt_tok=prompt_tok,
        output_tok=output_tok,
        is_natural_end=is_natural_end,
        has_usage=settings.reports_usage and is_told,
        has_running_usage=settings.reports_usage and bool(options.get("continuous_usage_stats")),
        has_token_ids=bool(raw.get("return_token_ids")) and settings.flavour is Flavour.VLLM,
        has_logprobs=raw.get("logprobs") not in (None, False),
        tool=_tool_name(raw, settings),
        cache_salt=str(raw.get("cache_salt") or raw.get("extra_key") or ""),
        uses_cache=raw.get("cache_prompt") is not False,
    )


def _refuse_fields(
    raw: Mapping[str, Any], options: Mapping[str, Any], settings: MockSettings, *, is_streamed_chat: bool
) -> None:
    for name in settings.refused_fields:
        if name in raw or name in options:
            raise Refused(400, f"field {name} is not supported")
    if settings.flavour is Flavour.SGLANG and is_streamed_chat and raw.get("return_token_ids"):
        raise Refused(400, "return_token_ids is not supported with streaming chat")
    takes_any = settings.accepts_any_model or settings.flavour is Flavour.LLAMACPP
    if not takes_any and raw.get("model") not in {None, settings.model}:
        raise Refused(404, f"The model `{raw.get('model')}` does not exist")


def _output(raw: Mapping[str, Any], prompt_tok: int, settings: MockSettings) -> tuple[int, bool]:
    """Tokens of the answer, and whether the model ends it by itself."""
    asked = raw.get("max_tokens") or raw.get("max_completion_tokens") or DEFAULT_OUTPUT_TOK
    limit = min(int(asked), settings.max_model_len - prompt_tok)
    if settings.answer_tok is None or raw.get("ignore_eos"):
        return max(1, limit - settings.short_by_tok), False
    natural = max(settings.answer_tok, int(raw.get("min_tokens") or 0))
    return max(1, min(natural, limit) - settings.short_by_tok), natural < limit


def _text_prompt(raw: Mapping[str, Any]) -> tuple[str | int, ...]:
    prompt = raw.get("prompt", "")
    if isinstance(prompt, list) and all(isinstance(i, int) for i in prompt):
        return tuple(prompt)
    return tuple(str(prompt[0] if isinstance(prompt, list) else prompt).split())


def _chat_prompt(raw: Mapping[str, Any], settings: MockSettings) -> tuple[str, ...]:
    messages = raw.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused(400, "messages is missing or empty")
    tail = [f"<tail{i}>" for i in range(settings.template_tail_tok)]
    words: list[str] = [f"<head{i}>" for i in range(settings.template_head_tok)]
    # SGLang alone leaves the tools out of the prompt where the model may not call them.
    if settings.flavour is not Flavour.SGLANG or raw.get("tool_choice") != "none":
        words += [word for tool in raw.get("tools") or () for word in _tool_words(tool)]
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        if isinstance(message, dict) and message.get("role") == "assistant":
            words += tail
        words.extend(word for part in parts for word in str(part.get("text", "")).split())
    return tuple(words + tail)


def _tool_words(tool: Mapping[str, Any]) -> list[str]:
    function = tool.get("function") or {}
    return [str(function.get("name")), *str(function.get("description", "")).split()]


def _tool_name(raw: Mapping[str, Any], settings: MockSettings) -> str | None:
    tools = raw.get("tools")
    if not tools or not settings.calls_tools or raw.get("tool_choice") == "none":
        return UNASKED_TOOL if settings.always_calls else None
    return str(tools[0]["function"]["name"])
