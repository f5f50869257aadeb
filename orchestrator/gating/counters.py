"""How many prompt tokens the server took from its cache: its own words, never our clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target

FLAGS = {
    "vllm": "start vLLM with --enable-prompt-tokens-details",
    "sglang": "start SGLang with --enable-cache-report",
    "llamacpp": "use a llama-server whose usage has prompt_tokens_details, and start it with --metrics",
}
"""What makes each engine report cached tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request with what the counters said of it.

    Attributes:
        usage_tok: Cached tokens of its usage, None when that is silent.
        metric_tok: How far the engine's own hit counter moved meanwhile; other traffic counts too.
    """

    label: str
    body: Mapping[str, Json]
    reply: Reply
    usage_tok: int | None
    metric_tok: int | None

    @property
    def prompt_tok(self) -> int:
        return self.reply.usage.prompt_tok or 0

    @property
    def computed_tok(self) -> int | None:
        """Prompt tokens that were really read, where the server tells them apart (llama-server's `prompt_n`)."""
        computed = self.reply.timings.get("prompt_n")
        return computed if isinstance(computed, int) else None


def metric(target: Target, name: str) -> float | None:
    """The engine's metric by our name (`running`, `cache_hits_tok`); None: it has none, or serves no metrics."""
    theirs = target.claims.metrics.get(name)
    if theirs is None:
        return None
    return (target.metrics() or {}).get(theirs)


def ask_counted(target: Target, body: Mapping[str, Json], *, label: str, timeout_s: float) -> Seen:
    """Send one request, alone, and read the counters on both sides of it."""
    before = metric(target, "cache_hits_tok")
    reply = target.chat(body, timeout_s=timeout_s)
    after = metric(target, "cache_hits_tok")
    moved = None if before is None or after is None else round(after - before)
    return Seen(label=label, body=body, reply=reply, usage_tok=reply.usage.cached_tok, metric_tok=moved)


def cached_source(seen: Sequence[Seen]) -> str | None:
    """Which counter speaks for these requests: `usage`, `metrics`, or None."""
    if any(s.usage_tok is not None for s in seen):
        return "usage"
    return "metrics" if seen and all(s.metric_tok is not None for s in seen) else None


def cached_tok(seen: Seen, source: str) -> int:
    """Cached tokens of one request by the chosen counter.

    Some vLLM versions leave the detail out when it is zero: silence of a usage that spoke of other requests is 0.
    """
    return (seen.usage_tok if source == "usage" else seen.metric_tok) or 0


def flag_hint(engine: str) -> str:
    """What to set so that the counters speak."""
    return FLAGS.get(engine, "the server must report prompt_tokens_details.cached_tokens, or cache metrics")
