"""What vLLM tells: its log's two lines of settings, the dev mode's configuration, labels, and what it built.

The line of non-default arguments repeats what the parser took; it proves that a flag arrived, not that it works. The
engine's line "with config:" and `/server_info` come after vLLM's own rules. Names did not change over 0.20 to 0.33
where nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from orchestrator.engines.effective.documents import document, fields, is_secret, mapping, model_listing
from orchestrator.engines.effective.lines import SOURCE, quoted, tell
from orchestrator.engines.effective.model import Reading, Telling, Told
from orchestrator.engines.effective.reprs import parse_fields, parse_repr
from orchestrator.engines.effective.vllm_lines import TELLS
from orchestrator.values import Json

WORDS: Mapping[str, str] = {
    "cache_dtype": "kv_cache_dtype",
    "default_chat_template_kwargs": "template_hints",
    "enable_prefix_caching": "prefix_caching",
    "gpu_memory_utilization": "memory_fraction",
    "kv_cache_max_concurrency": "max_concurrency",
    "kv_cache_size_tokens": "kv_pool_tok",
    "limit_mm_per_prompt": "limit_mm",
    "max_seq_len": "max_model_len",
    "model_tag": "model",
    "num_gpu_blocks": "kv_blocks",
    "effective_attention_block_size": "attention_block_tok",
    "override_generation_config": "generation_config_overrides",
    "served_model_name": "served_name",
    "speculative_config": "speculative",
    "tensor_parallel_size": "tensor_parallel",
}
"""vLLM's names to ours."""

LABELS = "vllm:cache_config_info"
UNRELIABLE_LABELS = frozenset({"mamba_block_size", "hash_block_size", "cache_hit_alignment_tokens"})
"""Seen to be wrong on a hybrid model of 0.32: 16 for a block of 384, None for a match unit of 128 that worked."""

INERT_LABELS = frozenset({"engine", "is_attention_free", "user_specified_block_size"})
SECTIONS = ("model_config", "cache_config", "parallel_config", "scheduler_config", "load_config", "device_config")
"""Of `/server_info`: their keys are flags."""

JSON_SECTIONS = (
    *("attention_config", "compilation_config", "kernel_config", "mamba_config", "structured_outputs_config"),
    *("observability_config", "offload_config", "kv_transfer_config", "kv_events_config", "reasoning_config"),
)
"""Of `/server_info`: each is a flag with JSON."""

TOP_LEVEL = ("optimization_level", "performance_mode", "shutdown_timeout", "speculative_config")
DEEPER = (
    ("attention_config", "backend", "attention_backend"),
    ("kernel_config", "moe_backend", "moe_backend"),
    ("kernel_config", "linear_backend", "linear_backend"),
    ("kernel_config", "enable_flashinfer_autotune", "enable_flashinfer_autotune"),
    ("structured_outputs_config", "reasoning_parser", "reasoning_parser"),
)
"""Keys of those sections that are also flags of their own: section, key, our name."""

NOT_SETTINGS = frozenset({"served_model_name"})
"""The engine's configuration keeps the first of several names only."""

_ECHO = re.compile(r"non-default args: (?P<fields>\{.*)")
_CONFIG = re.compile(r"Initializing an? (?:V\d )?LLM engine \(v(?P<version>[^)]+)\) with config: (?P<fields>.*)")


def read_vllm(told: Told) -> Iterator[Reading]:
    """Everything that vLLM tells, the surest place of each thing first."""
    yield from _version(told)
    yield from model_listing(told, root="model")
    yield from tell(told.log, TELLS)
    yield from _labels(told)
    yield from _server_info(told)
    yield from _engine_config(told)
    yield from _echo(told)


def variables(told: Told) -> Mapping[str, Json]:
    """vLLM's own variables as they stand (dev mode only); empty: it does not tell."""
    return mapping(mapping(document(told, "/server_info")).get("vllm_env"))


def has_echo(told: Told) -> bool:
    """The line of non-default arguments is there, and whole: a flag that it lacks has its default."""
    found = _find(told, _ECHO)
    return found is not None and parse_repr(found.group("fields")).is_whole


def _version(told: Told) -> Iterator[Reading]:
    version = mapping(document(told, "/version")).get("version")
    if isinstance(version, str):
        yield Reading(name="version", value=version, source="/version", telling=Telling.SEEN)


def _labels(told: Told) -> Iterator[Reading]:
    for labels in told.labels.get(LABELS, ())[:1]:
        for key, text in labels.items():
            if key not in UNRELIABLE_LABELS | INERT_LABELS and not key.startswith("_"):
                value = parse_repr(text).value if text else None
                yield Reading(name=WORDS.get(key, key), value=value, source=f"metrics {LABELS} {key}")


def _server_info(told: Told) -> Iterator[Reading]:
    """`/server_info` in JSON, or as the text that it gives without `config_format=json`."""
    path = "/server_info"
    config = mapping(document(told, path)).get("vllm_config")
    if isinstance(config, str):
        yield from _settings(mapping(parse_fields(config).value), path, None)
        return
    sections = mapping(config)
    for section in SECTIONS:
        for reading in fields(mapping(sections.get(section)), f"{path} {section}", WORDS, Telling.RESOLVED):
            if reading.name != "served_name" and reading.name not in UNRELIABLE_LABELS | INERT_LABELS:
                yield reading
    for section, key, name in DEEPER:
        value = mapping(sections.get(section)).get(key)
        if value is not None and value != "":
            yield Reading(name=name, value=value, source=f"{path} {section}.{key}")
    for section in (*TOP_LEVEL, *JSON_SECTIONS):
        if section in sections:
            value = sections[section]
            yield Reading(
                name=WORDS.get(section, section), value=_speculation(section, value), source=f"{path} {section}"
            )


def _engine_config(told: Told) -> Iterator[Reading]:
    found = _find(told, _CONFIG)
    if found is None:
        return
    yield Reading(name="version", value=found.group("version"), source=SOURCE, telling=Telling.SEEN)
    line = quoted(found.string)
    yield from _settings(mapping(parse_fields(found.group("fields")).value), SOURCE, line)


def _settings(found: Mapping[str, Json], source: str, quote: str | None) -> Iterator[Reading]:
    for key, value in found.items():
        if not is_secret(key) and key not in NOT_SETTINGS:
            yield Reading(name=WORDS.get(key, key), value=_speculation(key, value), source=source, quote=quote)
    parser = mapping(found.get("structured_outputs_config")).get("reasoning_parser")
    if parser:
        yield Reading(name="reasoning_parser", value=parser, source=source, quote=quote)


def _echo(told: Told) -> Iterator[Reading]:
    found = _find(told, _ECHO)
    if found is None:
        return
    line = quoted(found.string)
    for key, value in mapping(parse_repr(found.group("fields")).value).items():
        if not is_secret(key):
            read = _speculation(key, value)
            name = WORDS.get(key, key)
            yield Reading(name=name, value=read, source=SOURCE, quote=line, telling=Telling.ECHOED)


def _speculation(key: str, value: Json) -> Json:
    """vLLM's speculation under our keys: `method`, `num_tokens`, `model`; the rest of its keys as they are."""
    if key != "speculative_config" or not isinstance(value, Mapping):
        return value
    count = value.get("num_speculative_tokens", value.get("num_spec_tokens"))
    rest = {k: v for k, v in value.items() if k not in ("num_speculative_tokens", "num_spec_tokens")}
    return {**rest, "num_tokens": count}


def _find(told: Told, pattern: re.Pattern[str]) -> re.Match[str] | None:
    return next((match for line in told.log if (match := pattern.search(line))), None)
