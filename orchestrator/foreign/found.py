"""What a reader finds in a text: launches, and notes that belong to none of them."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.foreign.model import Launch, Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Every server of a text that one of the engines serves; `notes`: the rest (`services.redis`: serves no model)."""

    launches: tuple[Launch, ...] = ()
    notes: tuple[Note, ...] = ()
