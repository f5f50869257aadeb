"""The mock's /metrics: Prometheus text with each engine's own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.mock.engine import StepEngine
from orchestrator.mock.settings import Flavour
from orchestrator.mock.told import drafts_tok

Samples = dict[str, float]
"""Name with its labels -> value."""


def metrics_text(engine: StepEngine) -> str:
    """What the engine has counted since its (re)start."""
    samples = _OF[engine.settings.flavour](engine)
    lines = [f"{name} {value:.12g}\n" for name, value in samples.items()]
    lines.append(f"process_start_time_seconds {engine.born_s:.3f}\n")
    if engine.settings.has_nan:
        lines.append(f"{engine.settings.flavour}:mock_ratio NaN\n")
    return "".join(lines)


def _vllm(engine: StepEngine) -> Samples:
    c, settings = engine.counters, engine.settings
    blocks = settings.cache_blocks or 1_000_000
    samples: Samples = {
        "vllm:num_requests_running": len(engine.running),
        "vllm:num_requests_waiting": len(engine.waiting),
        "vllm:kv_cache_usage_perc": _kv_usage(engine),
        f'vllm:cache_config_info{{block_size="{settings.block_tok}",num_gpu_blocks="{blocks}",'
        f'enable_prefix_caching="{settings.prefix_caching}"}}': 1,
        "vllm:prompt_tokens_total": c.prompt,
        "vllm:generation_tokens_total": c.output,
        "vllm:prefix_cache_queries_total": c.queries,
        "vllm:prefix_cache_hits_total": c.cached,
        "vllm:prompt_tokens_cached_total": c.cached,
        "vllm:num_preemptions_total": 0,
        **{f'vllm:request_success_total{{finished_reason="{reason}"}}': n for reason, n in c.finished.items()},
        **_summed("vllm:time_to_first_token_seconds", c.ttft_s, c.timed),
        **_summed("vllm:request_queue_time_seconds", c.queue_s, c.timed),
        **_summed("vllm:request_prefill_time_seconds", c.prefill_s, c.timed),
        **_summed("vllm:request_decode_time_seconds", c.decode_s, c.timed),
        **_summed("vllm:e2e_request_latency_seconds", c.ttft_s + c.decode_s, c.timed),
    }
    return samples | _drafted(engine, "vllm:spec_decode")


def _sglang(engine: StepEngine) -> Samples:
    c, settings = engine.counters, engine.settings
    samples: Samples = {
        "sglang:num_running_reqs": len(engine.running),
        "sglang:num_queue_reqs": len(engine.waiting),
        "sglang:token_usage": _kv_usage(engine),
        "sglang:max_total_num_tokens": (settings.cache_blocks or 1_000_000) * settings.block_tok,
        "sglang:prompt_tokens_total": c.prompt,
        "sglang:generation_tokens_total": c.output,
        "sglang:cached_tokens_total": c.cached,
        "sglang:cache_hit_rate": c.cached / c.queries if c.queries else 0.0,
        **_summed("sglang:time_to_first_token_seconds", c.ttft_s, c.timed),
        **_summed("sglang:queue_time_seconds", c.queue_s, c.timed),
        **_summed("sglang:e2e_request_latency_seconds", c.ttft_s + c.decode_s, c.timed),
    }
    if drafts_tok(settings):
        samples["sglang:spec_accept_length"] = 1 + c.accepted_tok / c.drafts if c.drafts else 0.0
        samples["sglang:spec_accept_rate"] = c.accepted_tok / c.draft_tok if c.draft_tok else 0.0
        samples["sglang:spec_verify_calls_total"] = c.drafts
    return samples


def _llamacpp(engine: StepEngine) -> Samples:
    c = engine.counters
    samples: Samples = {
        "llamacpp:requests_processing": len(engine.running),
        "llamacpp:requests_deferred": len(engine.waiting),
        "llamacpp:prompt_tokens_total": c.prompt - c.cached,
        "llamacpp:prompt_tokens_cached_total": c.cached,
        "llamacpp:prompt_seconds_total": c.prefill_s,
        "llamacpp:tokens_predicted_total": c.output,
        "llamacpp:tokens_predicted_seconds_total": c.decode_s,
        "llamacpp:n_decode_total": c.steps,
        "llamacpp:n_busy_slots_per_decode": c.busy / c.steps if c.steps else 0.0,
    }
    return samples | _drafted(engine, "llamacpp:spec_decode")


_OF: Mapping[Flavour, Callable[[StepEngine], Samples]] = {
    Flavour.VLLM: _vllm,
    Flavour.SGLANG: _sglang,
    Flavour.LLAMACPP: _llamacpp,
}


def _summed(name: str, seconds: float, count: int) -> Samples:
    """A histogram as far as it is exact: sum and count."""
    return {f'{name}_bucket{{le="+Inf"}}': count, f"{name}_sum": seconds, f"{name}_count": count}


def _drafted(engine: StepEngine, prefix: str) -> Samples:
    c, drafted = engine.counters, drafts_tok(engine.settings)
    if not drafted:
        return {}
    samples: Samples = {
        f"{prefix}_num_drafts_total": c.drafts,
        f"{prefix}_num_draft_tokens_total": c.draft_tok,
        f"{prefix}_num_accepted_tokens_total": c.accepted_tok,
    }
    name = f"{prefix}_num_accepted_tokens_per_pos_total"
    return samples | {f'{name}{{position="{i}"}}': c.accepted_at[i] for i in range(drafted)}


def _kv_usage(engine: StepEngine) -> float:
    """Share of the KV blocks that running requests hold, 0 to 1; 0 without a capacity."""
    settings = engine.settings
    if not settings.cache_blocks:
        return 0.0
    held = sum(-(-s.ask.prompt_tok // settings.block_tok) for s in engine.running)
    return min(1.0, held / settings.cache_blocks)
