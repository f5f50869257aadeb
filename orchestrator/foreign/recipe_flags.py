"""Recipes without a command: the few `defaults` keys from which sparkrun builds one, and what it leaves out.

A key outside its table is passed over without a word (spark-arena/sparkrun#276). Where the engine has a flag of that
name, it is what the author meant: it is taken, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.engines.flags.loading import choose
from orchestrator.engines.flags.model import ValueKind
from orchestrator.engines.flags.reading import Match, arity, find_spelling
from orchestrator.foreign.braces import as_text
from orchestrator.values import Json

_VLLM = {
    "port": "--port",
    "host": "--host",
    "tensor_parallel": "-tp",
    "pipeline_parallel": "-pp",
    "data_parallel": "--data-parallel-size",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "max_model_len": "--max-model-len",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_num_seqs": "--max-num-seqs",
    "served_model_name": "--served-model-name",
    "dtype": "--dtype",
    "quantization": "--quantization",
    "enforce_eager": "--enforce-eager",
    "enable_prefix_caching": "--enable-prefix-caching",
    "trust_remote_code": "--trust-remote-code",
    "distributed_executor_backend": "--distributed-executor-backend",
    "kv_cache_dtype": "--kv-cache-dtype",
    "otlp_traces_endpoint": "--otlp-traces-endpoint",
    "api_key": "--api-key",
    "enable_auto_tool_choice": "--enable-auto-tool-choice",
}
_SGLANG = {
    "port": "--port",
    "host": "--host",
    "tensor_parallel": "--tp-size",
    "pipeline_parallel": "--pp-size",
    "data_parallel": "--dp-size",
    "gpu_memory_utilization": "--mem-fraction-static",
    "max_model_len": "--context-length",
    "max_num_seqs": "--max-running-requests",
    "served_model_name": "--served-model-name",
    "dtype": "--dtype",
    "quantization": "--quantization",
    "trust_remote_code": "--trust-remote-code",
    "kv_cache_dtype": "--kv-cache-dtype",
    "api_key": "--api-key",
}
_LLAMACPP = {
    "port": "--port",
    "host": "--host",
    "ctx_size": "--ctx-size",
    "max_model_len": "--ctx-size",
    "n_gpu_layers": "--n-gpu-layers",
    "parallel": "--parallel",
    "threads": "--threads",
    "chat_template": "--chat-template",
    "reasoning_format": "--reasoning-format",
    "split_mode": "--split-mode",
    "served_model_name": "--alias",
    "flash_attn": "--flash-attn",
    "cont_batching": "--cont-batching",
    "no_webui": "--no-webui",
    "jinja": "--jinja",
    "api_key": "--api-key",
}
MAPS: Mapping[str, Mapping[str, str]] = {"vllm": _VLLM, "sglang": _SGLANG, "llamacpp": _LLAMACPP}
_PROGRAMS = {
    "vllm": ("vllm", "serve"),
    "sglang": ("python3", "-m", "sglang.launch_server", "--model-path"),
    "llamacpp": ("llama-server", "-hf"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A command line made of defaults; `keys`: for each word the key it comes from, empty for the program's.

    Attributes:
        beyond: Keys that sparkrun leaves out and the engine has a flag for, with that flag.
        unused: Keys that neither takes.
    """

    words: tuple[str, ...]
    keys: tuple[str, ...]
    beyond: Mapping[str, str]
    unused: tuple[str, ...]


def build_words(engine: str, model: str, defaults: Mapping[str, Json]) -> Built:
    """The command line that a recipe's defaults come to."""
    words: list[str] = [*_PROGRAMS[engine], model]
    keys = [""] * len(words)
    beyond: dict[str, str] = {}
    unused: list[str] = []
    for key, value in defaults.items():
        flag = MAPS[engine].get(key)
        if flag is None:
            flag = _own_flag(engine, key)
            if flag is None:
                unused.append(key)
                continue
            beyond[key] = flag
        said = _said(engine, flag, value)
        words += said
        keys += [key] * len(said)
    return Built(words=tuple(words), keys=tuple(keys), beyond=beyond, unused=tuple(unused))


def _own_flag(engine: str, key: str) -> str | None:
    found = find_spelling(choose(engine, None).catalogue, f"--{key.replace('_', '-')}")
    return found.full if found.flag is not None and found.match is not Match.ABBREVIATION else None


def _said(engine: str, flag: str, value: Json) -> tuple[str, ...]:
    known = find_spelling(choose(engine, None).catalogue, flag).flag
    if value is None:
        return ()
    if isinstance(value, bool):
        takes_word = known is not None and arity(known)[0] > 0 and known.kind is not ValueKind.BOOL
        if takes_word:
            return (flag, "on" if value else "off") if engine == "llamacpp" else (flag, str(value).lower())
        if value:
            return (flag,)
        negative = known.negatives[0] if known and known.negatives else None
        return (negative,) if negative else ()
    takes_several = known is not None and known.nargs in {"*", "+"}
    return (flag, *(as_text(value).split() if takes_several else (as_text(value),)))
