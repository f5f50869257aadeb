"""Verdicts that every gate needs in the same words."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.gating.gate import Status, Verdict
from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Reply


def skip(why: str) -> Verdict:
    """The gate does not apply."""
    return Verdict(status=Status.SKIP, summary=why)


def skip_unless_generating(claims: Claims) -> Verdict | None:
    """SKIP for a server that generates no text (embedding, reranking); None: go on."""
    return None if claims.task == "generate" else skip(f"does not apply to a server whose task is `{claims.task}`")


def not_answered(label: str, reply: Reply, *, evidence: tuple[Mapping[str, Json], ...] = ()) -> Verdict:
    """ERROR: a request that the gate needs got no answer, so nothing can be told."""
    how = "no answer" if reply.http_status == 0 else f"HTTP {reply.http_status}"
    return Verdict(
        status=Status.ERROR,
        summary=f"could not tell: {label}: {how}: {reply.error}",
        evidence=evidence,
        hint="see the server's log" if reply.http_status in (0, 200) or reply.http_status >= 500 else None,
    )
