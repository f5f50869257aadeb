"""The JSON body of one load request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from orchestrator.values import Json

OUTPUT_TOK = "{output_tok}"
"""As the value of a length field: replaced by the number of tokens asked for (`min_tokens`)."""

PATHS = {"chat": "/chat/completions", "completions": "/completions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyShape:
    """What the bodies of a cell have in common.

    Attributes:
        endpoint: `chat` or `completions`.
        length_fields: Sent only when the output length is fixed (`ignore_eos`); see `OUTPUT_TOK`.
        stream_fields: What this server accepts for exact token counts, `stream_options` merged into ours.
        extra: The workload's own fields; they win.
    """

    endpoint: str
    model: str
    output_tok: int
    temperature: float = 0.0
    ignore_eos: bool = True
    length_fields: Mapping[str, Json] = field(default_factory=dict)
    stream_fields: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)


def body_bytes(shape: BodyShape, text: str) -> bytes:
    """The body for one prompt."""
    body: dict[str, Json] = {"model": shape.model}
    if shape.endpoint == "chat":
        body["messages"] = [{"role": "user", "content": text}]
    else:
        body["prompt"] = text
    body |= {"max_tokens": shape.output_tok, "temperature": shape.temperature, "stream": True}
    if shape.ignore_eos:
        body |= {k: shape.output_tok if v == OUTPUT_TOK else v for k, v in shape.length_fields.items()}
    body |= shape.stream_fields
    options = shape.stream_fields.get("stream_options")
    body["stream_options"] = {"include_usage": True, **(options if isinstance(options, Mapping) else {})}
    body |= shape.extra
    return orjson.dumps(body)
