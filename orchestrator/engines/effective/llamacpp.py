"""What llama-server tells: `/props`, `/v1/models`, `/slots`, and its log.

Most of the log appears only with `-lv 4`: types of the KV cache, flash attention, layers and their devices, what
`--fit` changed. At the default verbosity these stay untold. Not believed, because build b10434 was seen to answer the
same whatever was set: in `/props` `speculative.types`, `n_predict` and `reasoning_format`, which are the defaults of a
request; and "offloaded 31/31 layers to GPU", which it also says without a GPU, so the buffers decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from orchestrator.engines.effective.documents import document, items, mapping, model_listing
from orchestrator.engines.effective.lines import SOURCE, Admits, Tells, quoted, tell
from orchestrator.engines.effective.model import NoticeKind, Reading, Telling, Told

WORDS: Mapping[str, str] = {
    "alias": "served_name",
    "batch_size": "max_num_batched_tokens",
    "cache_type_k": "kv_cache_dtype_k",
    "cache_type_v": "kv_cache_dtype_v",
    "hf_repo": "model",
    "n_ctx": "max_model_len",
    "parallel": "max_num_seqs",
    "spec_type": "speculative_method",
    "temp": "temperature",
}
"""llama-server's names to ours. `ctx_size` has none: it is the whole pool, `max_model_len` one slot's share."""

_IGNORED, _CHANGED, _DEPRECATED = NoticeKind.IGNORED, NoticeKind.CHANGED, NoticeKind.DEPRECATED
_FLASH = re.compile(r"flash_attn\s+= (?P<state>enabled|disabled|auto)")
_INITIALIZING = re.compile(
    r"initializing, n_slots = (?P<slots>\d+), n_ctx_slot = (?P<each>\d+), kv_unified = '(?P<unified>\w+)'"
)
_ENABLED = {"enabled": "on", "disabled": "off", "auto": "auto"}

TELLS = (
    Tells(
        pattern=r"initializing, n_slots = (?P<max_num_seqs>\d+), n_ctx_slot = (?P<max_model_len>\d+)"
        r"(?:, kv_unified = '(?P<kv_unified>\w+)')?",
        only_first=True,
    ),
    Tells(pattern=r"llama_context: n_ctx\s+= (?P<ctx_size>\d+)", only_first=True),
    Tells(pattern=r"llama_context: n_batch\s+= (?P<max_num_batched_tokens>\d+)", only_first=True),
    Tells(pattern=r"llama_context: n_ubatch\s+= (?P<ubatch_size>\d+)", only_first=True),
    Tells(
        pattern=r"K \((?P<kv_cache_dtype_k>\w+)\):.*V \((?P<kv_cache_dtype_v>\w+)\):",
        only_first=True,
    ),
    Tells(pattern=r"llama_kv_cache: size =\s+(?P<kv_pool_mib>[\d.]+) MiB", only_first=True),
    Tells(pattern=r"load_mode = (?P<load_mode>[\w+]+)\)", only_first=True),
    Tells(pattern=r"prompt cache is enabled, size limit: (?P<cache_ram>\d+) MiB"),
    Tells(pattern=r"prompt cache is disabled", values={"cache_ram": 0}),
    Tells(
        pattern=r"context checkpoints enabled, max = (?P<ctx_checkpoints>\d+), min spacing = "
        r"(?P<checkpoint_min_step>\d+)"
    ),
    Tells(pattern=r"context checkpoints disabled", values={"ctx_checkpoints": 0}),
    Tells(pattern=r"adding speculative implementation '(?P<speculative_method>[\w-]+)'"),
    Tells(pattern=r"no implementations specified for speculative decoding", values={"speculative": None}),
    Tells(pattern=r"chat template, thinking = (?P<can_think>[01])"),
    Tells(pattern=r"print_info: arch\s+= (?P<architecture>\w+)", only_first=True),
    Tells(pattern=r"print_info: n_ctx_train\s+= (?P<model_max_len>\d+)", only_first=True),
    Tells(pattern=r"llama threadpool init, n_threads = (?P<threads>\d+)", only_first=True),
)

_NO_SUPPORT = r"\b(?P<name>cache_reuse|ctx_shift|swa_full)\b is not supported by [\w ]+"

ADMITS = (
    Admits(
        kind=_CHANGED,
        pattern=r"the slot context \(\d+\) exceeds the training context of the model \((?P<value>\d+)\) - capping",
        about="max_model_len",
    ),
    Admits(kind=_CHANGED, pattern=r"context size reduced from \d+ to (?P<value>\d+) -> need", about="max_model_len"),
    Admits(
        kind=_CHANGED,
        pattern=r"n_ctx is not divisible by n_seq_max - rounding down to (?P<value>\d+)",
        about="ctx_size",
    ),
    Admits(kind=_IGNORED, pattern=_NO_SUPPORT, about="{name}"),
    Admits(kind=_IGNORED, pattern=r"cache reuse is not supported - ignoring n_cache_reuse", about="cache_reuse"),
    Admits(kind=_IGNORED, pattern=r"no usable GPU found, (?P<flag>--[\w-]+) option will be ignored", about="{flag}"),
    Admits(kind=_IGNORED, pattern=r"speculative decoding not supported by this context", about="speculative"),
    Admits(
        kind=_IGNORED,
        pattern=r"failed to initialize speculative decoding context",
        about="speculative",
    ),
    Admits(
        kind=_IGNORED, pattern=r"(?P<flag>--[a-z][\w-]+)(?: option)? (?:has no effect|will be ignored)", about="{flag}"
    ),
    Admits(kind=_IGNORED, pattern=r"Setting the (?P<name>main GPU|split mode) has no effect", about="{name}"),
    Admits(kind=_IGNORED, pattern=r"(?P<flag>--cache-idle-slots) requires --cache-ram, disabling", about="{flag}"),
    Admits(kind=_IGNORED, pattern=r"ignoring (?P<flag>--[a-z][\w-]+)", about="{flag}"),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:enabling flash_attn since it is required)",
        about="flash_attn",
        value="on",
    ),
    Admits(kind=_CHANGED, pattern=r"flash_attn is not compatible .* forcing off", about="flash_attn", value="off"),
    Admits(kind=_DEPRECATED, pattern=r"DEPRECATED: (?P<flag>--[a-z][\w-]+)", about="{flag}"),
    Admits(kind=_DEPRECATED, pattern=r"via (?P<flag>--[a-z][\w-]+) is deprecated", about="{flag}"),
)

_SAMPLING = ("seed", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty")
_BUFFER = re.compile(r"load_tensors:\s+(?P<device>\S+) model buffer size =\s+(?P<mib>[\d.]+) MiB")
_OFFLOADED = re.compile(r"offloaded (?P<done>\d+)/(?P<total>\d+) layers to GPU")
_HOST_BUFFER = re.compile(r"^(?:CPU|Host)|_Host$")


def read_llamacpp(told: Told) -> Iterator[Reading]:
    """Everything that llama-server tells, the surest place of each thing first."""
    yield from model_listing(told)
    yield from _props(told)
    yield from _meta(told)
    yield from _slots(told)
    yield from tell(told.log, TELLS)
    yield from _flash_attention(told)
    yield from _pool(told)
    yield from _weights(told)


def _props(told: Told) -> Iterator[Reading]:
    path = "/props"
    props = mapping(document(told, path))
    settings = mapping(props.get("default_generation_settings"))
    plain = (
        ("build_info", "version"),
        ("total_slots", "max_num_seqs"),
        ("model_path", "model"),
        ("model_ftype", "quantization"),
        ("chat_template", "chat_template"),
        ("chat_template_caps", "chat_template_caps"),
        ("modalities", "modalities"),
        ("endpoint_metrics", "metrics"),
        ("endpoint_slots", "slots"),
        ("endpoint_props", "props"),
    )
    for key, name in plain:
        if props.get(key) is not None:
            yield Reading(name=name, value=props[key], source=f"{path} {key}", telling=Telling.SEEN)
    if settings.get("n_ctx") is not None:
        source = f"{path} default_generation_settings.n_ctx"
        yield Reading(name="max_model_len", value=settings["n_ctx"], source=source, telling=Telling.SEEN)
    parameters = mapping(settings.get("params"))
    for key in _SAMPLING:
        if key in parameters:
            yield Reading(name=key, value=parameters[key], source=f"{path} default_generation_settings.params.{key}")


def _meta(told: Told) -> Iterator[Reading]:
    path = "/v1/models"
    for entry in items(mapping(document(told, path)).get("data"))[:1]:
        meta = mapping(mapping(entry).get("meta"))
        for key, name in (("n_ctx", "max_model_len"), ("n_ctx_train", "model_max_len"), ("n_params", "parameters")):
            if meta.get(key) is not None:
                yield Reading(name=name, value=meta[key], source=f"{path} meta.{key}", telling=Telling.SEEN)


def _slots(told: Told) -> Iterator[Reading]:
    slots = [mapping(slot) for slot in items(document(told, "/slots"))]
    if not slots:
        return
    source = "/slots"
    yield Reading(name="max_num_seqs", value=len(slots), source=source, telling=Telling.SEEN)
    drafts = [slot.get("speculative") for slot in slots]
    if all(isinstance(d, bool) for d in drafts):
        yield Reading(name="speculates", value=all(drafts), source=f"{source} speculative", telling=Telling.SEEN)


def _pool(told: Told) -> Iterator[Reading]:
    """Tokens of all slots together: one slot's context where they share it, else that of each."""
    match = next((m for line in told.log if (m := _INITIALIZING.search(line))), None)
    if match is None:
        return
    slots, each = int(match.group("slots")), int(match.group("each"))
    pool = each if match.group("unified") == "true" else slots * each
    yield Reading(name="kv_pool_tok", value=pool, source=SOURCE, quote=quoted(match.string), telling=Telling.SEEN)


def _flash_attention(told: Told) -> Iterator[Reading]:
    for line in told.log:
        if match := _FLASH.search(line):
            state = _ENABLED[match.group("state")]
            yield Reading(name="flash_attn", value=state, source=SOURCE, quote=quoted(line), telling=Telling.SEEN)
            return


def _buffers(told: Told) -> Iterator[Reading]:
    """Where the weights lie, MiB by device; the first model's only: a draft model repeats a device."""
    sizes: dict[str, float] = {}
    quotes: list[str] = []
    for line in told.log:
        match = _BUFFER.search(line)
        if match and match.group("device") not in sizes:
            sizes[match.group("device")] = float(match.group("mib"))
            quotes.append(quoted(line))
    if not sizes:
        return
    quote = quotes[0]
    yield Reading(name="weights_mib", value=dict(sizes), source=SOURCE, quote=quote, telling=Telling.SEEN)
    has_gpu = any(not _HOST_BUFFER.search(device) for device in sizes)
    yield Reading(name="is_on_gpu", value=has_gpu, source=SOURCE, quote=quote, telling=Telling.SEEN)


def _weights(told: Told) -> Iterator[Reading]:
    """Where they lie, and how many layers of which lie on a GPU.

    None does where no buffer does, though the log says `offloaded 31/31`. Without that line `is_on_gpu` is all.
    """
    match = next((m for line in told.log if (m := _OFFLOADED.search(line))), None)
    buffers = tuple(_buffers(told))
    if match is None:
        yield from buffers
        return
    yield from (r for r in buffers if r.name != "is_on_gpu")
    idle = next((r for r in buffers if r.name == "is_on_gpu" and r.value is False), None)
    done, quote = (match["done"], quoted(match.string)) if idle is None else ("0", idle.quote)
    value = f"{done}/{match['total']}"
    yield Reading(name="layers_offloaded", value=value, source=SOURCE, quote=quote, telling=Telling.SEEN)
