"""What a server tells of its memory and its drafting: three engines, three places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from orchestrator.values import Json
from orchestrator.wire.chat import Target
from orchestrator.wire.paths import dig

VLLM_CONFIG = "vllm:cache_config_info"
VLLM_DRAFTS = "vllm:spec_decode_num_drafts_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """None: the server does not tell.

    Attributes:
        kv_tok: Tokens that fit into the KV cache; of llama-server at most so many (its slots may share one pool).
        unit_tok: The prefix cache hits whole units of so many tokens; on vLLM's hybrids it may be too small.
        is_speculative: It drafts tokens.
    """

    kv_tok: int | None = None
    unit_tok: int | None = None
    is_speculative: bool | None = None


def read_capacity(target: Target, engine: str) -> Capacity:
    """Ask the engine's own place; an engine that nobody knows tells nothing."""
    if engine == "vllm":
        return _vllm(target)
    if engine == "sglang":
        return _sglang(target.get_json("/server_info"))
    if engine == "llamacpp":
        return _llamacpp(target.get_json("/props"), target.get_json("/slots"))
    return Capacity()


def _vllm(target: Target) -> Capacity:
    """Of several engines behind one address the sum. `kv_cache_size_tokens` (0.24) knows of groups, blocks do not."""
    configs = target.metric_labels(VLLM_CONFIG)
    sizes = [_kv_tok(labels) for labels in configs]
    known = [size for size in sizes if size is not None]
    units = [unit for labels in configs if (unit := _unit_tok(labels)) is not None]
    exposed = target.metrics()
    return Capacity(
        kv_tok=sum(known) if known and len(known) == len(sizes) else None,
        unit_tok=max(units, default=None),
        is_speculative=None if exposed is None or not configs else VLLM_DRAFTS in exposed,
    )


def _kv_tok(labels: Mapping[str, str]) -> int | None:
    if (told := _whole(labels.get("kv_cache_size_tokens"))) is not None:
        return told
    blocks, block_tok = _whole(labels.get("num_gpu_blocks")), _whole(labels.get("block_size"))
    return None if blocks is None or block_tok is None else blocks * block_tok


def _unit_tok(labels: Mapping[str, str]) -> int | None:
    effective = _whole(labels.get("effective_attention_block_size"))
    return effective if effective is not None else _whole(labels.get("block_size"))


def _sglang(info: Json) -> Capacity:
    if not isinstance(info, Mapping):
        return Capacity()
    algorithm = info.get("speculative_algorithm", "")
    return Capacity(
        kv_tok=_whole(info.get("max_total_num_tokens")),
        unit_tok=_whole(info.get("page_size")),
        is_speculative=None if algorithm == "" else algorithm is not None,
    )


def _llamacpp(props: Json, slots: Json) -> Capacity:
    """Of drafting only the slots tell: `/props` has `speculative.types: none` whatever it drafts with (b10434)."""
    context, count = _whole(dig(props, "default_generation_settings.n_ctx")), _whole(dig(props, "total_slots"))
    told = [slot.get("speculative") for slot in slots if isinstance(slot, Mapping)] if _is_list(slots) else []
    known = [value for value in told if isinstance(value, bool)]
    return Capacity(
        kv_tok=None if context is None or count is None else context * count,
        is_speculative=any(known) if known else None,
    )


def _is_list(value: Json) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _whole(value: Json) -> int | None:
    """A positive whole number, also as text; anything else is not told."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
