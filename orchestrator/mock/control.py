"""The mock's paths that generate nothing: models, tokenizer, configuration, cache, and its own truth."""

from __future__ import annotations

from typing import Any

import orjson

from orchestrator.mock.ask import FIRST_ID, Refused
from orchestrator.mock.engine import StepEngine
from orchestrator.mock.settings import Flavour, MockSettings
from orchestrator.mock.told import drafts_tok

VERSION = "0.0.0-mock"
FLUSHES = frozenset({"/reset_prefix_cache", "/flush_cache"})


def control_answer(engine: StepEngine, method: str, path: str, body: bytes) -> bytes | None:
    """The JSON body for a path; None: no such path in this flavour.

    Raises:
        Refused: As the flavour's engine would.
    """
    settings, flavour = engine.settings, engine.settings.flavour
    if (method, path) == ("GET", "/health"):
        return b'{"status":"ok"}' if flavour is Flavour.LLAMACPP else b""
    if (method, path) == ("GET", "/v1/models"):
        owner = {"owned_by": flavour.value}
        entry = {"id": settings.model, "object": "model", **owner, "max_model_len": settings.max_model_len}
        return orjson.dumps({"object": "list", "data": [entry]})
    if path == "/mock/truth":
        return _truths(engine, is_taken=method == "POST")
    if (method, path) == ("POST", "/tokenize") and settings.has_tokenize:
        return _tokenized(body, settings)
    if flavour is Flavour.LLAMACPP:
        return _of_llamacpp(engine, method, path)
    if path in FLUSHES and (method == "POST" or (flavour is Flavour.SGLANG and path == "/flush_cache")):
        if flavour is Flavour.SGLANG and engine.running:
            raise Refused(400, "the cache is not flushed while requests run")
        engine.cache.clear()
        return b'{"success":true}'
    if flavour is Flavour.SGLANG and (method, path) == ("GET", "/server_info"):
        return orjson.dumps(_server_info(settings))
    if flavour is Flavour.VLLM and (method, path) == ("GET", "/version"):
        return orjson.dumps({"version": VERSION})
    return None


def _truths(engine: StepEngine, *, is_taken: bool) -> bytes:
    truths = list(engine.truths)
    if is_taken:
        engine.truths.clear()
    return orjson.dumps(truths)


def _of_llamacpp(engine: StepEngine, method: str, path: str) -> bytes | None:
    slots = engine.settings.slots
    if (method, path) == ("GET", "/props"):
        kv_tok = _kv_tok(engine.settings)
        return orjson.dumps(
            {
                "total_slots": slots,
                "build_info": VERSION,
                # The real one says "none" here even while it drafts; its slots tell.
                "default_generation_settings": {"n_ctx": kv_tok // slots, "params": {"speculative.types": "none"}},
            }
        )
    if (method, path) == ("GET", "/slots"):
        busy = len(engine.running)
        is_drafting = drafts_tok(engine.settings) > 0
        return orjson.dumps([{"id": i, "is_processing": i < busy, "speculative": is_drafting} for i in range(slots)])
    return None


def _server_info(settings: MockSettings) -> dict[str, Any]:
    return {
        "version": VERSION,
        "speculative_algorithm": "NEXTN" if drafts_tok(settings) else None,
        "served_model_name": settings.model,
        "max_running_requests": settings.slots,
        "max_total_num_tokens": _kv_tok(settings),
        "page_size": settings.block_tok,
        "disable_radix_cache": not settings.prefix_caching,
    }


def _kv_tok(settings: MockSettings) -> int:
    return (settings.cache_blocks or 1_000_000) * settings.block_tok


def _tokenized(body: bytes, settings: MockSettings) -> bytes | None:
    raw = orjson.loads(body or b"{}")
    text = raw.get("content" if settings.flavour is Flavour.LLAMACPP else "prompt") or ""
    ids = [FIRST_ID + i for i, _ in enumerate(str(text).split())]
    return orjson.dumps({"tokens": ids, "count": len(ids), "max_model_len": settings.max_model_len})
