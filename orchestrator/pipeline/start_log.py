"""What a server said when it started: where its settings stand, and where credentials must not."""

from __future__ import annotations

import re

from orchestrator.errors import Gate0Error
from orchestrator.pipeline.road import Road
from orchestrator.values import printable

LOG_LINES = 20_000
"""Of the start-up; what a server says later is not about its settings."""

_CREDENTIAL = re.compile(
    r"""(?ix)
    ( ['"]? -{0,2} (?:[\w-]*[_-])?
      (?: api[_-]?keys? | (?:hf|hub|access|auth)[_-]?token | password | secret(?:[_-]access)?(?:[_-]key)? )
      ['"]? (?:\s*[:=]\s*|\s+) )
    ( \[[^\]]*\] | '[^']*' | "[^"]*" | \w+\([^)]*\) | (?!None\b)[^\s,})'"]+ )
    """
)
_TOKEN = re.compile(r"(?i)\b(?:hf_[a-z0-9]{16,}|sk-[\w-]{16,}|nvapi-[\w-]{16,}|(?<=bearer )[\w.~+/=-]{6,})")
"""Credentials by their own shape, whatever stands before them."""


def mask(text: str) -> str:
    """The line without what follows a credential's name: others' logs repeat the words they were started with."""
    return _TOKEN.sub("***", _CREDENTIAL.sub(r"\1***", text))


def start_log(road: Road) -> tuple[str, ...]:
    """Rank 0's lines from the beginning, without colours and credentials; () where nobody's log is at hand.

    Credentials go before anything is read: a quoted line is cut, and half a key would be known by no name.
    """
    rank = next((r for r in road.ranks if r.server is not None), None)
    if rank is None or rank.server is None:
        return ()
    try:
        return tuple(mask(printable(line)) for line in rank.runtime.log_head(rank.server.id, LOG_LINES))
    except Gate0Error as exc:
        road.note(f"{rank.name}: the server's log cannot be read: {exc.message}", is_warning=True)
        return ()
