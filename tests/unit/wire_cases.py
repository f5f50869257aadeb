"""Case files of the wire tests, by folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.wire.chat import Reply

ROOT = Path(__file__).resolve().parents[1] / "cases" / "wire"


def cases(folder: str) -> list[tuple[str, dict[str, Any]]]:
    found = [(p.stem, json.loads(p.read_text())) for p in sorted((ROOT / folder).glob("*.json"))]
    assert found, f"no cases in {ROOT / folder}"
    return found


def seen(reply: Reply, names: dict[str, Any]) -> dict[str, Any]:
    """The named fields of a reply, as the case files write them."""
    plain = {
        "usage": {n: getattr(reply.usage, n) for n in ("prompt_tok", "output_tok", "cached_tok", "reasoning_tok")},
        "tool_calls": [[c.id, c.name, c.arguments] for c in reply.tool_calls],
        "token_ids": None if reply.token_ids is None else list(reply.token_ids),
        "logprobs": [[t.token, t.logprob, [list(pair) for pair in t.top]] for t in reply.logprobs],
    }
    return {name: plain[name] if name in plain else getattr(reply, name) for name in names}
