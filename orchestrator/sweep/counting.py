"""How many tokens a prompt has, asked of the server itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.sweep.prompts import Counter
from orchestrator.values import Json
from orchestrator.wire.chat import Target

PROBE_TEXT = "Water finds the lowest place."
PROBE_TIMEOUT_S = 120.0
TOOL_CHOICES = ("none", "auto")
TOOL_FIELDS = frozenset({"tools", "tool_choice"})


def token_counter(
    target: Target,
    *,
    endpoint: str = "chat",
    fields: Mapping[str, Json] | None = None,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> Counter:
    """The cheapest way to learn a prompt's length from this server.

    With a tokenizer endpoint: its count, and the template's share measured once by a real request's usage. Without one:
    a request of one output token for each question. A server that tells no usage either makes every count None.

    Args:
        fields: Body fields that stand in every prompt of the load (tools, template arguments): counted with it.
        timeout_s: For a question that is a prefill.
    """
    tokenized = target.count_tokens(PROBE_TEXT)
    if endpoint != "chat":
        return Counter(count=target.count_tokens, is_cheap=tokenized is not None, overhead_tok=0)

    def ask(said: Sequence[tuple[str, str]]) -> int | None:
        return chat_tok(target, said, fields, timeout_s=timeout_s)

    used = usage_tok(target, PROBE_TEXT, fields, timeout_s=timeout_s)
    if used is None:
        return Counter(count=lambda _: None, is_cheap=False)
    if tokenized is None:
        # A one-letter prompt is one token, the rest is the template's.
        letter = usage_tok(target, "a", fields, timeout_s=timeout_s)
        overhead = None if letter is None else max(0, letter - 1)
        return Counter(count=lambda text: ask([("user", text)]), is_cheap=False, overhead_tok=overhead, ask=ask)
    template_tok = used - tokenized

    def count(text: str) -> int | None:
        tok = target.count_tokens(text)
        return None if tok is None else tok + template_tok

    return Counter(count=count, is_cheap=True, overhead_tok=max(0, template_tok), ask=ask)


def tool_choice(target: Target, fields: Mapping[str, Json]) -> str | None:
    """The word with which the tools of `fields` stand in the prompt, by the tokens that a short request is charged.

    SGLang leaves them out of it when the model is told not to call them. None: they are in no prompt, or it cannot be
    said.
    """
    bare = {name: value for name, value in fields.items() if name not in TOOL_FIELDS}
    without_tok = usage_tok(target, PROBE_TEXT, bare)
    for choice in TOOL_CHOICES:
        tok = usage_tok(target, PROBE_TEXT, {**fields, "tool_choice": choice})
        if tok is not None and without_tok is not None and tok > without_tok:
            return choice
    return None


def usage_tok(
    target: Target, text: str, fields: Mapping[str, Json] | None = None, *, timeout_s: float = PROBE_TIMEOUT_S
) -> int | None:
    """The prompt tokens that a real request with this text is charged."""
    return chat_tok(target, [("user", text)], fields, timeout_s=timeout_s)


def chat_tok(
    target: Target,
    said: Sequence[tuple[str, str]],
    fields: Mapping[str, Json] | None = None,
    *,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> int | None:
    """The prompt tokens that a real request with these messages (role, content) is charged."""
    messages: list[Json] = [{"role": role, "content": content} for role, content in said]
    body: dict[str, Json] = {"messages": messages, "max_tokens": 1, **(fields or {})}
    return target.chat(body, timeout_s=timeout_s).usage.prompt_tok
