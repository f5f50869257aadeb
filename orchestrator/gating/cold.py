"""The engine's own way to answer one request without its prefix cache."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Target

PLACEHOLDER = "{nonce}"


def has_cold_path(claims: Claims) -> bool:
    """True when the same prompt can be answered cold again."""
    return bool(claims.cold_fields) or claims.flush is not None


def cold_body(target: Target, body: Mapping[str, Json], *, nonce: str) -> Mapping[str, Json] | None:
    """The body that will be answered cold; flushes the cache where the engine has no field for it.

    None: the engine has no such way, or its flush was refused.
    """
    claims = target.claims
    if claims.cold_fields:
        return {**body, **{k: nonce if v == PLACEHOLDER else v for k, v in claims.cold_fields.items()}}
    if claims.flush is None:
        return None
    method, path = claims.flush
    if method == "GET":
        target.get_json(path)
        return body
    return body if target.post(path) in range(200, 300) else None
