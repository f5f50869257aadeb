"""The death of a rank that nobody was waiting for."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.deploy.diagnosis import diagnose
from orchestrator.deploy.runtime import Server
from orchestrator.engines.engine import Symptom
from orchestrator.errors import ServerDied
from orchestrator.pipeline.road import Rank

TAIL_LINES = 40


def death_of(rank: Rank, server: Server | None, symptoms: Sequence[Symptom]) -> ServerDied:
    """What ended it, from its last words; `server` None: it is gone."""
    assert rank.server is not None
    lines = rank.runtime.log_tail(rank.server.id, 0)
    exit_code = server.exit_code if server is not None else None
    found = diagnose(lines, exit_code, server.oom_killed if server is not None else False, symptoms)
    how = "it is gone" if server is None else f"exit code {exit_code}"
    why = f": {found.message}" if found is not None else ""
    return ServerDied(
        f"{rank.name}: rank {rank.index} died while rank 0 was waited for ({how}){why}",
        exit_code=exit_code,
        log_tail=lines[-TAIL_LINES:],
        cause=found.cause if found is not None else None,
        hint=found.hint if found is not None else "the last lines of its log are in the record",
    )
