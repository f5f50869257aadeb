"""What SGLang tells: `/server_info` with every argument as resolved, and its log.

No SGLang was at hand: documents and wordings follow its source and public reports, 0.5.9 to 0.5.23. The arguments at
the top of `/server_info`, and those it logs, went through the start's own rules, but not through the scheduler's, which
may lower them once more (fewer requests at once, because the state of a hybrid model has no room): its own copy stands
in `internal_states`, and counts first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from orchestrator.engines.effective.documents import document, fields, is_secret, items, mapping, model_listing
from orchestrator.engines.effective.lines import SOURCE, Admits, Tells, quoted, tell
from orchestrator.engines.effective.model import NoticeKind, Reading, Telling, Told
from orchestrator.engines.effective.reprs import parse_fields
from orchestrator.values import Json

WORDS: Mapping[str, str] = {
    "chunked_prefill_size": "max_num_batched_tokens",
    "context_length": "max_model_len",
    "context_len": "max_model_len",
    "default_chat_template_kwargs": "template_hints",
    "limit_mm_data_per_request": "limit_mm",
    "max_running_requests": "max_num_seqs",
    "max_total_num_tokens": "kv_pool_tok",
    "mem_fraction_static": "memory_fraction",
    "model_path": "model",
    "random_seed": "seed",
    "served_model_name": "served_name",
    "tensor_parallel_size": "tensor_parallel",
    "tp_size": "tensor_parallel",
}
"""SGLang's names to ours."""

_IGNORED, _CHANGED, _DEPRECATED = NoticeKind.IGNORED, NoticeKind.CHANGED, NoticeKind.DEPRECATED
_PATH = "/server_info"
_OLD_PATH = "/get_server_info"
_ARGS = re.compile(r"server_args=ServerArgs\((?P<fields>.*)")
_NOT_SETTINGS = frozenset({"internal_states", "version"})
_STATE_ONLY = frozenset(
    {"effective_max_running_requests_per_dp", "last_gen_throughput", "memory_usage", "avg_spec_accept_length"}
)
_METHODS = {
    "NEXTN": "mtp",
    "EAGLE": "eagle",
    "EAGLE3": "eagle3",
    "DFLASH": "dflash",
    "DSPARK": "dspark",
    "NGRAM": "ngram",
    "STANDALONE": "draft_model",
}

TELLS = (
    Tells(
        pattern=r"max_total_num_tokens=(?P<kv_pool_tok>\d+), chunked_prefill_size=(?P<max_num_batched_tokens>-?\d+)"
        r".*max_running_requests=(?P<max_num_seqs>\d+), context_len=(?P<max_model_len>\d+)",
        only_first=True,
    ),
    Tells(pattern=r"KV Cache is allocated\. dtype: (?P<kv_cache_dtype>[\w.]+)", only_first=True),
    Tells(pattern=r"KV Cache is allocated\..*#tokens: (?P<kv_pool_tok>\d+)", only_first=True),
    Tells(pattern=r"Using KV cache dtype: (?P<kv_cache_dtype>[\w.]+)", only_first=True),
    Tells(
        pattern=r"[Aa]ttention backend not (?:explicitly )?specified\. Use (?P<attention_backend>\w+) backend",
        telling=Telling.RESOLVED,
        only_first=True,
    ),
)

ADMITS = (
    Admits(kind=_CHANGED, pattern=r"max_running_requests is capped to (?P<value>\d+)", about="max_num_seqs"),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:[Mm]ax running requests|max_running_requests) is (?:reset|reduced|adjusted|set) (?:from \d+ )?to "
        r"(?P<value>\d+)",
        about="max_num_seqs",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"[Cc]hunked prefill (?:size )?is (?:reduced|adjusted|set|changed) (?:from \d+ )?to (?P<value>-?\d+)",
        about="max_num_batched_tokens",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:[Rr]adix|[Tt]ree) cache is (?:turned off|disabled)|[Dd]isabl\w+ (?:the )?radix cache",
        about="prefix_caching",
        value=False,
    ),
    Admits(kind=_CHANGED, pattern=r"[Oo]verlap scheduler is disabled", about="disable_overlap_schedule", value=True),
    Admits(
        kind=_CHANGED,
        pattern=r"[Mm]ixed chunked prefill is disabled",
        about="enable_mixed_chunk",
        value=False,
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:[Ss]et|[Ss]etting|[Oo]verrid\w+) (?:the )?(?:KV cache dtype|kv_cache_dtype) to (?P<value>\w+)",
        about="kv_cache_dtype",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"max_total_tokens=\d+ is larger than the profiled value (?P<value>\d+)",
        about="max_total_tokens",
    ),
    Admits(kind=_CHANGED, pattern=r"[Cc]uda graph is disabled", about="disable_cuda_graph", value=True),
    Admits(
        kind=_CHANGED,
        pattern=r"page_size (?:is |has been )?(?:set|changed|adjusted|reset) to (?P<value>\d+)",
        about="page_size",
    ),
    Admits(
        kind=_IGNORED, pattern=r"(?P<flag>--[a-z][\w-]+)(?: argument| option)?(?: is| will be)? ignored", about="{flag}"
    ),
    Admits(kind=_IGNORED, pattern=r"(?P<flag>--[a-z][\w-]+) has no effect", about="{flag}"),
    Admits(kind=_DEPRECATED, pattern=r"(?P<flag>--[a-z][\w-]+)'? is deprecated", about="{flag}"),
)


def read_sglang(told: Told) -> Iterator[Reading]:
    """Everything that SGLang tells, the surest place of each thing first."""
    info = mapping(document(told, _PATH) or document(told, _OLD_PATH))
    if isinstance(info.get("version"), str):
        yield Reading(name="version", value=info["version"], source=f"{_PATH} version", telling=Telling.SEEN)
    yield from _states(info)
    yield from tell(told.log, TELLS)
    yield from model_listing(told)
    for state in items(info.get("internal_states"))[:1]:
        settings = {key: value for key, value in mapping(state).items() if key not in _STATE_ONLY}
        yield from _derived(settings, f"{_PATH} internal_states", None)
        yield from fields(settings, f"{_PATH} internal_states", WORDS, Telling.RESOLVED)
    settings = {key: value for key, value in info.items() if key not in _NOT_SETTINGS}
    yield from _derived(settings, _PATH, None)
    yield from fields(settings, _PATH, WORDS, Telling.RESOLVED)
    yield from _logged(told)


def _states(info: Mapping[str, Json]) -> Iterator[Reading]:
    """What the scheduler of the first rank says of itself."""
    for state in items(info.get("internal_states"))[:1]:
        found = mapping(state)
        running = found.get("effective_max_running_requests_per_dp")
        if isinstance(running, int):
            ranks = found.get("dp_size") if found.get("enable_dp_attention") else 1
            source = f"{_PATH} internal_states effective_max_running_requests_per_dp"
            value = running * (ranks if isinstance(ranks, int) else 1)
            yield Reading(name="max_num_seqs", value=value, source=source, telling=Telling.SEEN)
        capacity = mapping(found.get("memory_usage")).get("token_capacity")
        if capacity is not None:
            source = f"{_PATH} internal_states memory_usage.token_capacity"
            yield Reading(name="kv_pool_tok", value=capacity, source=source, telling=Telling.SEEN)
    pool = info.get("max_total_num_tokens")
    if pool is not None:
        source = f"{_PATH} max_total_num_tokens"
        yield Reading(name="kv_pool_tok", value=pool, source=source, telling=Telling.SEEN)


def _derived(found: Mapping[str, Json], source: str, quote: str | None) -> Iterator[Reading]:
    """Our words that stand for several of SGLang's arguments, or for the opposite of one."""
    if isinstance(found.get("disable_radix_cache"), bool):
        caches = not found["disable_radix_cache"]
        yield Reading(name="prefix_caching", value=caches, source=f"{source} disable_radix_cache", quote=quote)
    if "speculative_algorithm" in found:
        where = f"{source} speculative_algorithm"
        yield Reading(name="speculative", value=_speculation(found), source=where, quote=quote)


def _speculation(found: Mapping[str, Json]) -> Json:
    """None: off. `num_tokens` is drafted tokens: one less than what is verified."""
    algorithm = found.get("speculative_algorithm")
    if not isinstance(algorithm, str):
        return None
    verified, steps = found.get("speculative_num_draft_tokens"), found.get("speculative_num_steps")
    count = verified - 1 if isinstance(verified, int) else steps
    method = _METHODS.get(algorithm.upper(), algorithm.lower())
    return {"method": method, "num_tokens": count, "model": found.get("speculative_draft_model_path")}


def _logged(told: Told) -> Iterator[Reading]:
    found = next((match for line in told.log if (match := _ARGS.search(line))), None)
    if found is None:
        return
    text = found.group("fields")
    values = mapping(parse_fields(text[:-1] if text.endswith(")") else text).value)
    line = quoted(found.string)
    yield from _derived(values, SOURCE, line)
    for key, value in values.items():
        if not is_secret(key):
            yield Reading(name=WORDS.get(key, key), value=value, source=SOURCE, quote=line)
