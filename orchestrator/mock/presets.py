"""Named servers: the usual ways in which a real one is unlike the simple case."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from orchestrator.errors import InputError

PRESETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "thinking": ("reasons for 64 tokens before it answers", {"reasoning_tok": 64, "withheld_every": 7}),
    "speculative": (
        "several tokens an event, in a changing number; tells its own times",
        {"tokens_pattern": [1, 4, 2, 3], "has_metrics": True},
    ),
    "chunked-prefill": (
        "the role chunk leaves after the first 2048 prompt tokens, long before the first token",
        {"prefill_tok_per_s": 4000, "prefill_chunk_tok": 2048, "prefill_is_serial": True},
    ),
    "small-cache": (
        "one prefill at a time, none shared while it runs, room for 64k tokens",
        {"prefill_tok_per_s": 4000, "prefill_is_serial": True, "shares_in_flight": False, "cache_blocks": 4096},
    ),
    "proxied": (
        "comments while it computes, CRLF, four events a write",
        {"keepalive_s": 0.5, "is_crlf": True, "events_per_write": 4},
    ),
    "silent": ("tells no usage and no cached tokens", {"reports_usage": False}),
    "crowded": ("four at once, four waiting, the rest refused", {"slots": 4, "sheds_beyond": 4}),
    "flaky": ("every fifth stream breaks off", {"fault": "close_early", "fault_every": 5}),
    "loading": ("503 for the first ten seconds", {"loading_s": 10.0}),
    "mortal": ("healthy until its tenth request, which kills it", {"dies_at": 10}),
    "restarting": ("starts anew at its tenth request, cache and counters lost", {"restarts_at": 10}),
    "lying": ("says that answers ran to their limit when they ended early", {"short_by_tok": 8}),
}
"""Name -> what it is, and the switches that make it so."""


def get_preset(name: str) -> Mapping[str, Any]:
    """
    Raises:
        InputError: There is none of that name.
    """
    if name in PRESETS:
        return PRESETS[name][1]
    near = difflib.get_close_matches(name, PRESETS, n=1)
    known = f"known: {', '.join(PRESETS)}"
    raise InputError(f"no preset {name!r}", hint=f"did you mean {near[0]!r}? {known}" if near else known)
