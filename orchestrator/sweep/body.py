"""The JSON body of one load request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from orchestrator.values import Json

OUTPUT_TOK = "{output_tok}"
"""As the value of a length field: replaced by the number of tokens asked for (`min_tokens`)."""

PATHS = {"chat": "/chat/completions", "completions": "/completions"}
TOOL_WORDS = ("find", "list", "count", "rename", "archive", "compare", "check", "move", "open", "describe")
TOOL_THINGS = ("ticket", "invoice", "machine", "shift", "parcel", "contract", "recipe", "sensor", "booking", "chart")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyShape:
    """What the bodies of a lane have in common.

    Attributes:
        endpoint: `chat` or `completions`.
        length_fields: Sent only when the output length is fixed (`ignore_eos`); see `OUTPUT_TOK`.
        stream_fields: What this server accepts for exact token counts, `stream_options` merged into ours.
        thinking: True or False is said to the chat template (`enable_thinking`); None: nothing is said.
        tools: So many tool definitions stand in the prompt.
        tool_choice: `none`: the model is told not to call them. `auto` where a server would leave them out then.
        priority: The engine's scheduling priority; None: not sent.
        extra: The workload's own fields; they win.
    """

    endpoint: str
    model: str
    temperature: float = 0.0
    ignore_eos: bool = True
    thinking: bool | None = None
    tools: int = 0
    tool_choice: str = "none"
    priority: int | None = None
    length_fields: Mapping[str, Json] = field(default_factory=dict)
    stream_fields: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)


def body_bytes(shape: BodyShape, messages: Sequence[tuple[str, str]], output_tok: int) -> bytes:
    """The body for one prompt: `(role, content)` pairs; for text completions the contents, one after the other."""
    body: dict[str, Json] = {"model": shape.model}
    if shape.endpoint == "chat":
        body["messages"] = [{"role": role, "content": content} for role, content in messages]
    else:
        body["prompt"] = "\n\n".join(content for _, content in messages)
    body |= {"max_tokens": output_tok, "temperature": shape.temperature, "stream": True}
    if shape.ignore_eos:
        body |= {k: output_tok if v == OUTPUT_TOK else v for k, v in shape.length_fields.items()}
    body |= shape.stream_fields
    options = shape.stream_fields.get("stream_options")
    body["stream_options"] = {"include_usage": True, **(options if isinstance(options, Mapping) else {})}
    body |= prompt_fields(shape)
    if shape.priority is not None:
        body["priority"] = shape.priority
    body |= shape.extra
    return orjson.dumps(body)


def prompt_fields(shape: BodyShape) -> dict[str, Json]:
    """The fields that change how many tokens a prompt has, the workload's own included."""
    fields: dict[str, Json] = {}
    if shape.endpoint == "chat" and shape.thinking is not None:
        fields["chat_template_kwargs"] = {"enable_thinking": shape.thinking}
    if shape.endpoint == "chat" and shape.tools:
        fields |= {"tools": [tool(i) for i in range(shape.tools)], "tool_choice": shape.tool_choice}
    return fields


def tool(index: int) -> dict[str, Json]:
    """The definition of tool number `index`: always the same one."""
    word = TOOL_WORDS[index % len(TOOL_WORDS)]
    thing = TOOL_THINGS[index // len(TOOL_WORDS) % len(TOOL_THINGS)]
    again = f"_{index // 100}" if index >= 100 else ""
    return {
        "type": "function",
        "function": {
            "name": f"{word}_{thing}{again}",
            "description": f"Use this to {word} one {thing} by its number.",
            "parameters": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer", "description": f"number of the {thing}"},
                    "reason": {"type": "string", "description": "one short sentence for the log"},
                },
                "required": ["number"],
            },
        },
    }
