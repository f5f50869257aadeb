"""vLLM's log lines that tell what it built, and those in which it says that it does something else.

Wordings of 0.20 to 0.33; where a version changed one, the pattern takes both. Which of them were captured and which
are only written after the source stands with the cases under tests/cases/effective.
"""

from __future__ import annotations

from orchestrator.engines.effective.lines import Admits, Tells
from orchestrator.engines.effective.model import NoticeKind, Telling

_IGNORED, _CHANGED, _DEPRECATED = NoticeKind.IGNORED, NoticeKind.CHANGED, NoticeKind.DEPRECATED

TELLS = (
    Tells(pattern=r"Resolved architecture: (?P<architecture>\w+)", only_first=True),
    Tells(pattern=r"Using max model len (?P<max_model_len>\d+)", telling=Telling.RESOLVED, only_first=True),
    Tells(pattern=r"KV cache size: (?P<kv_pool_tok>[\d,]+) tokens", only_first=True),
    Tells(pattern=r"Maximum concurrency for [\d,]+ tokens per request: (?P<max_concurrency>[\d.]+)x", only_first=True),
    Tells(pattern=r"Available KV cache memory: (?P<kv_pool_gib>[\d.]+) GiB", only_first=True),
    Tells(pattern=r"Setting attention block size to (?P<attention_block_tok>\d+) tokens", only_first=True),
    Tells(pattern=r"Mamba cache mode is set to '(?P<mamba_cache_mode>\w+)'", telling=Telling.RESOLVED),
    Tells(
        pattern=r"Using (?:AttentionBackendEnum\.)?(?P<attention_backend>[A-Z][A-Z0-9_]+) (?:attention )?backend"
        r"(?: out of|\.|$)",
        only_first=True,
    ),
    Tells(
        pattern=r"Using '?(?P<moe_backend>[A-Za-z0-9_ ]+?)'? (?:\w+ )?MoE backend(?: out of|\.|$)",
        only_first=True,
    ),
    Tells(pattern=r"Using (?P<linear_kernel>\w+) for \w+ (?:GEMM|linear)", only_first=True),
    Tells(pattern=r"Using (?P<kv_cache_dtype>\w+) data type to store kv cache", telling=Telling.RESOLVED),
    Tells(
        pattern=r"Chunked prefill is enabled with max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)",
        telling=Telling.RESOLVED,
        values={"enable_chunked_prefill": True},
    ),
    Tells(pattern=r"Defaulting max_num_seqs to (?P<max_num_seqs>\d+)", telling=Telling.RESOLVED),
    Tells(pattern=r"\"auto\" tool choice has been enabled", values={"enable_auto_tool_choice": True}),
    Tells(pattern=r"Model loading took (?P<weights_gib>[\d.]+) GiB", only_first=True),
    Tells(pattern=r"Graph capturing finished in \d+ secs?, took (?P<graphs_gib>[\d.]+) GiB", only_first=True),
    Tells(pattern=r"Asynchronous scheduling is (?P<async_scheduling>enabled|disabled)", telling=Telling.RESOLVED),
)

_FLAG = r"`?'?(?P<flag>--[a-z][\w-]+|\b[a-z]+(?:_[a-z]+)+)'?`?"

ADMITS = (
    Admits(kind=_IGNORED, pattern=r"Unknown vLLM environment variable detected: (?P<name>\w+)", about="env.{name}"),
    Admits(kind=_IGNORED, pattern=_FLAG + r" is deprecated and has no effect", about="{flag}"),
    Admits(kind=_IGNORED, pattern=_FLAG + r" (?:now )?has no effect", about="{flag}"),
    Admits(kind=_IGNORED, pattern=_FLAG + r"(?: is| was|,)? (?:being |will be )?ignored", about="{flag}"),
    Admits(kind=_IGNORED, pattern=r"[Ii]gnoring (?:the )?" + _FLAG, about="{flag}"),
    Admits(kind=_IGNORED, pattern=r"Disabling fine-grained prefix-cache hits", about="prefix_match_unit"),
    Admits(
        kind=_CHANGED,
        pattern=r"[Dd]isabling prefix caching|[Pp]refix caching is (?:not supported|disabled)"
        r"|prefix caching; disabling",
        about="prefix_caching",
        value=False,
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"[Dd]isabling chunked prefill|Chunked prefill is (?:not supported|disabled)",
        about="enable_chunked_prefill",
        value=False,
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"max_model_len\b.*?(?:reduced|lowered|clamped|capped|adjusted) (?:from [\d,]+ )?to (?P<value>[\d,]+)",
        about="max_model_len",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"max_num_seqs\b.*?(?:reduced|lowered|clamped|capped|adjusted) (?:from [\d,]+ )?to (?P<value>[\d,]+)",
        about="max_num_seqs",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:Reducing|Lowering|Clamping|Capping) max_num_seqs (?:from [\d,]+ )?to (?P<value>[\d,]+)",
        about="max_num_seqs",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:Raising|Reducing|Lowering|Clamping) max_num_batched_tokens from [\d,]+ to (?P<value>[\d,]+)",
        about="max_num_batched_tokens",
    ),
    Admits(kind=_CHANGED, pattern=r"(?:Down|Up)?[Cc]asting \S+ to (?P<value>torch\.\w+)", about="dtype"),
    Admits(
        kind=_CHANGED, pattern=r"doesn't support \S+ Falling back to (?P<value>\S+) for compatibility", about="dtype"
    ),
    Admits(
        kind=_CHANGED, pattern=r"Setting attention block size to (?P<value>\d+) tokens to ensure", about="block_size"
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"Updating (?P<name>[a-z]+(?:_[a-z]+)+) to '?(?P<value>[\w.]+)'? for",
        about="{name}",
    ),
    Admits(kind=_CHANGED, pattern=r"Reset SSM cache type to (?P<value>\w+)", about="mamba_ssm_cache_dtype"),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:kv.cache.dtype|KV cache dtype)\b.*?(?:[Ff]alling back|[Ss]witching|[Oo]verrid\w+|changed) to "
        r"'?(?P<value>\w+)",
        about="kv_cache_dtype",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"Overriding num_gpu_blocks=\d+ with num_gpu_blocks_override=(?P<value>\d+)",
        about="kv_blocks",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"[Dd]isabling speculative decoding"
        r"|[Ss]peculative decoding (?:is (?:not supported|disabled)|has been disabled)",
        about="speculative",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"(?:Overriding|overriding) cudagraph_mode (?:from )?\S*? ?to (?P<value>\w+)",
        about="cudagraph_mode",
    ),
    Admits(
        kind=_CHANGED,
        pattern=r"Async scheduling (?:is )?not supported .*will be disabled",
        about="async_scheduling",
        value=False,
    ),
    Admits(kind=_DEPRECATED, pattern=r"argument '(?P<flag>[\w-]+)' is deprecated", about="{flag}"),
    Admits(kind=_DEPRECATED, pattern=r"(?P<flag>--[a-z][\w-]+)[`']? is deprecated", about="{flag}"),
)
