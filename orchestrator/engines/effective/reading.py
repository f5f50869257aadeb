"""One entry for all engines: what a running server tells, sorted for reading, and what it admits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engines.effective import llamacpp, sglang, vllm, vllm_lines
from orchestrator.engines.effective.documents import model_listing
from orchestrator.engines.effective.lines import Admits, admit
from orchestrator.engines.effective.model import Notice, Reading, Telling, Told
from orchestrator.engines.engine import MetricNames, Names
from orchestrator.engines.llamacpp import METRIC_NAMES as LLAMACPP_METRICS
from orchestrator.engines.llamacpp import PARSER as LLAMACPP_PARSER
from orchestrator.engines.sglang import METRICS as SGLANG_METRICS
from orchestrator.engines.sglang import PARSER as SGLANG_PARSER
from orchestrator.engines.vllm import METRICS as VLLM_METRICS
from orchestrator.engines.vllm import PARSER as VLLM_PARSER
from orchestrator.engines.words import Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How one engine speaks of itself.

    Attributes:
        words: Its names to ours.
        parser: How it reads the command line that it was given.
        documents: GET paths worth asking, each 404 elsewhere.
        labels: Metrics whose labels tell something.
    """

    read: Callable[[Told], Iterator[Reading]]
    admits: Sequence[Admits]
    words: Mapping[str, str]
    metrics: MetricNames
    parser: Parser
    documents: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


VOICES: Mapping[str, Voice] = {
    "vllm": Voice(
        read=vllm.read_vllm,
        admits=vllm_lines.ADMITS,
        words=vllm.WORDS,
        metrics=VLLM_METRICS,
        parser=VLLM_PARSER,
        documents=("/version", "/v1/models", "/server_info?config_format=json"),
        labels=(vllm.LABELS,),
    ),
    "sglang": Voice(
        read=sglang.read_sglang,
        admits=sglang.ADMITS,
        words=sglang.WORDS,
        metrics=SGLANG_METRICS,
        parser=SGLANG_PARSER,
        documents=("/v1/models", "/server_info"),
    ),
    "llamacpp": Voice(
        read=llamacpp.read_llamacpp,
        admits=llamacpp.ADMITS,
        words=llamacpp.WORDS,
        metrics=LLAMACPP_METRICS,
        parser=LLAMACPP_PARSER,
        documents=("/v1/models", "/props", "/slots"),
    ),
}
"""Engines whose servers tell of themselves; another one (generic, unknown) has its list of models at most."""

ORDER = (
    *("version", "model", "architecture", "served_name", "max_model_len", "model_max_len", "max_num_seqs"),
    *(
        "max_num_batched_tokens",
        "enable_chunked_prefill",
        "tensor_parallel",
        "memory_fraction",
        "quantization",
        "dtype",
    ),
    *("kv_cache_dtype", "kv_cache_dtype_k", "kv_cache_dtype_v", "kv_pool_tok", "kv_pool_gib", "kv_pool_mib"),
    *("max_concurrency", "kv_blocks", "block_size", "attention_block_tok", "page_size", "prefix_caching"),
    *(
        "cached_tok",
        "prefix_match_unit",
        "prefix_cache_retention_interval",
        "mamba_cache_mode",
        "mamba_ssm_cache_dtype",
    ),
    *("speculative", "speculates", "speculative_method", "drafts", "drafted_tok", "accepted_tok", "acceptance_length"),
    *("attention_backend", "flash_attn", "moe_backend", "linear_backend", "linear_kernel", "layers_offloaded"),
    *(
        "weights_mib",
        "weights_gib",
        "graphs_gib",
        "tool_call_parser",
        "reasoning_parser",
        "template_hints",
    ),
    *("chat_template_caps", "modalities", "seed", "enforce_eager", "cache_ram", "ctx_checkpoints", "load_mode"),
)
"""The readings that a person wants to see, in this order; all others follow by name in the record only."""

NOTABLE = frozenset(ORDER)
_RANK = {name: rank for rank, name in enumerate(ORDER)}
_TELLING_RANK = {Telling.SEEN: 0, Telling.RESOLVED: 1, Telling.ECHOED: 2}


def read(engine: str, told: Told) -> tuple[Reading, ...]:
    """What the server tells of itself.

    Args:
        engine: `vllm`, `sglang`, `llamacpp`; another one gives what its `/v1/models` says.

    Returns:
        Notable ones first (see `ORDER`), the others by name; of one name the surest first. One thing told in several
        places stands there several times, unless value and telling are the same.
    """
    voice = VOICES.get(engine)
    found = [*(voice.read(told) if voice else model_listing(told)), *(_counters(told, voice.metrics) if voice else ())]
    distinct = {(r.name, repr(r.value), r.telling): r for r in reversed(found)}
    kept = [r for r in found if distinct[(r.name, repr(r.value), r.telling)] is r]
    return tuple(
        sorted(kept, key=lambda r: (_RANK.get(r.name, len(ORDER)), _unranked(r.name), _TELLING_RANK[r.telling]))
    )


def find_notices(engine: str, told: Told) -> tuple[Notice, ...]:
    """The log lines in which the engine says that it does something else than it was told."""
    voice = VOICES.get(engine)
    return tuple(admit(told.log, voice.admits, voice.words)) if voice else ()


def notable(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """One reading for each thing that a person wants to see: the surest of each name."""
    best: dict[str, Reading] = {}
    for reading in readings:
        if reading.name in NOTABLE and reading.value is not None:
            best.setdefault(reading.name, reading)
    return tuple(best.values())


def _unranked(name: str) -> str:
    return "" if name in _RANK else name


def _counters(told: Told, names: MetricNames) -> Iterator[Reading]:
    """Caching and speculation as counted since the start; nothing where the engine has no such metric."""
    wanted: tuple[tuple[str, Names], ...] = (
        ("cached_tok", names.cache_hits_tok),
        ("drafts", names.spec_drafts),
        ("drafted_tok", names.spec_draft_tok),
        ("accepted_tok", names.spec_accepted_tok),
        ("acceptance_length", names.spec_acceptance_length),
    )
    for name, spellings in wanted:
        metric = next((m for m in spellings if m in told.metrics), None)
        if metric is not None:
            value = told.metrics[metric]
            whole = int(value) if value == int(value) else value
            yield Reading(name=name, value=whole, source=f"metrics {metric}", telling=Telling.SEEN)
