"""What a server said when it started: where its settings stand, and where credentials must not."""

from __future__ import annotations

import re

from orchestrator.deploy.runtime import Runtime, Server
from orchestrator.errors import Gate0Error
from orchestrator.pipeline.road import Road

LOG_LINES = 20_000
"""Of the start-up; what a server says later is not about its settings."""
READ_S = 60.0

_CREDENTIAL = re.compile(
    r"""(?ix)
    ( ['"]? -{0,2} (?:[\w-]*[_-])? (?:api[_-]?keys?|hf[_-]?token|password|secret) ['"]? (?:\s*[:=]\s*|\s+) )
    ( \[[^\]]*\] | '[^']*' | "[^"]*" | (?!None\b)[^\s,})'"]+ )
    """
)


def mask(text: str) -> str:
    """The line without what follows a credential's name: others' logs repeat the words they were started with."""
    return _CREDENTIAL.sub(r"\1***", text)


def start_log(road: Road) -> tuple[str, ...]:
    """Rank 0's lines from the beginning; () where nobody's log is at hand."""
    rank = next((r for r in road.ranks if r.server is not None), None)
    if rank is None or rank.server is None:
        return ()
    if road.job.profile.attach is None:
        return rank.runtime.log_tail(rank.server.id, 0)[:LOG_LINES]
    try:
        return start_lines(rank.runtime, rank.server)
    except Gate0Error as exc:
        road.note(f"{rank.name}: the server's log cannot be read: {exc.message}", is_warning=True)
        return ()


def start_lines(runtime: Runtime, server: Server) -> tuple[str, ...]:
    """A foreign container's log from its beginning, at most LOG_LINES: it may have run for weeks."""
    lines: list[str] = []
    seen = -1

    def is_idle() -> bool:
        """Asked about once a second: nothing came since the last time."""
        nonlocal seen
        before, seen = seen, len(lines)
        return before == seen

    for line in runtime.follow(server.id, timeout_s=READ_S, is_cancelled=is_idle):
        lines.append(line)
        if len(lines) >= LOG_LINES:
            break
    return tuple(lines)
