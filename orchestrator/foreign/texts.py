"""Small texts for notes."""

from __future__ import annotations


def shorten(text: str, limit: int = 60) -> str:
    """One line of at most `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
