"""What a gate was shown, small enough to keep with every record and full enough to judge again by eye."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from orchestrator.values import Json
from orchestrator.wire.chat import Reply

WHOLE_CHARS = 1200
HEAD_CHARS = 400
TAIL_CHARS = 300
LOGPROB_TOKENS = 16


def excerpt(text: str) -> Json:
    """The text itself when short, else its digest, length, head and tail."""
    if len(text) <= WHOLE_CHARS:
        return text
    return {
        "sha256": hashlib.sha256(text.encode(errors="replace")).hexdigest(),
        "chars": len(text),
        "head": text[:HEAD_CHARS],
        "tail": text[-TAIL_CHARS:],
    }


def bounded(value: Json) -> Json:
    """The same JSON with every long text as its excerpt."""
    if isinstance(value, str):
        return excerpt(value)
    if isinstance(value, Mapping):
        return {k: bounded(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [bounded(v) for v in value]
    return value


def shown_reply(reply: Reply) -> dict[str, Json]:
    """A reply as evidence: words, tool calls, counts, times, and the first tokens' logprobs; absent parts left out."""
    shown: dict[str, Json] = {
        "http_status": reply.http_status,
        "error": reply.error,
        "text": excerpt(reply.text),
        "reasoning": excerpt(reply.reasoning) if reply.reasoning else None,
        "tool_calls": [asdict(c) for c in reply.tool_calls] or None,
        "finish_reason": reply.finish_reason,
        "usage": {k: v for k, v in asdict(reply.usage).items() if v is not None},
        "timings": dict(reply.timings) or None,
        "events": reply.events or None,
        "ended_properly": None if reply.ended_properly else False,
        "first_token_s": _rounded(reply.first_token_s),
        "total_s": _rounded(reply.total_s),
        "logprobs": [
            {"token": t.token, "logprob": t.logprob, "top": [list(pair) for pair in t.top]}
            for t in reply.logprobs[:LOGPROB_TOKENS]
        ]
        or None,
    }
    return {k: v for k, v in shown.items() if v is not None}


def exchange(label: str, body: Mapping[str, Json], reply: Reply, **notes: Json) -> dict[str, Json]:
    """One request and its answer, under a label (`cold`, `repeat 1`)."""
    return {"label": label, **notes, "request": bounded(body), "reply": shown_reply(reply)}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
