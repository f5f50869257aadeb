"""What `/v1/models` says, evened out over the engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.values import Json

OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp", "llama.cpp": "llamacpp"}
"""`owned_by` of each engine's listing, and our name of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One served model. `max_model_len`: tokens of one request; None: the server does not say."""

    name: str
    max_model_len: int | None = None
    engine: str | None = None


def read_listing(models: Json) -> tuple[Listed, ...]:
    """Read the answer of `/v1/models`; () when it is none."""
    entries = models.get("data") if isinstance(models, Mapping) else None
    if not isinstance(entries, list):
        return ()
    return tuple(_listed(e) for e in entries if isinstance(e, Mapping) and isinstance(e.get("id"), str))


def find_listed(models: Json, name: str) -> Listed | None:
    """The entry of the named model; the only entry whatever its name (llama-server answers to any)."""
    listed = read_listing(models)
    return next((m for m in listed if m.name == name), listed[0] if len(listed) == 1 else None)


def _listed(entry: Mapping[str, Json]) -> Listed:
    meta = entry.get("meta")
    # llama-server: the context of one slot, and only under `meta`.
    lengths = (entry.get("max_model_len"), meta.get("n_ctx") if isinstance(meta, Mapping) else None)
    owner = entry.get("owned_by")
    return Listed(
        name=str(entry["id"]),
        max_model_len=next((n for n in lengths if isinstance(n, int) and n > 0), None),
        engine=OWNERS.get(owner) if isinstance(owner, str) else None,
    )
