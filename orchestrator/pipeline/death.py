"""The death of a server that nobody was waiting for: looked for where an answer failed, told as what it is."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.deploy.diagnosis import diagnose
from orchestrator.deploy.runtime import Server
from orchestrator.engines.engine import Symptom
from orchestrator.errors import ServerDied
from orchestrator.pipeline.road import Rank, Road

TAIL_LINES = 40


def raise_if_dead(road: Road, doing: str) -> None:
    """Look at every rank's server.

    Raises:
        ServerDied: One has ended, with its diagnosis.
    """
    for rank in (rank for rank in road.ranks if rank.server is not None):
        death = find_death(rank, road.job.engine.traits.symptoms, doing)
        if death is not None:
            raise death


def find_death(rank: Rank, symptoms: Sequence[Symptom], doing: str) -> ServerDied | None:
    """What ended a rank's server, from its last words; None while it runs."""
    assert rank.server is not None
    server = rank.runtime.get(rank.server.id)
    if server is not None and server.is_running:
        return None
    return _told(rank, server, symptoms, doing)


def _told(rank: Rank, server: Server | None, symptoms: Sequence[Symptom], doing: str) -> ServerDied:
    assert rank.server is not None
    lines = rank.runtime.log_tail(rank.server.id, 0)
    exit_code = server.exit_code if server is not None else None
    found = diagnose(lines, exit_code, server.oom_killed if server is not None else False, symptoms)
    how = "it is gone" if server is None else f"exit code {exit_code}"
    why = f": {found.message}" if found is not None else ""
    return ServerDied(
        f"{rank.name}: {rank.server.name} died {doing} ({how}){why}",
        exit_code=exit_code,
        log_tail=lines[-TAIL_LINES:],
        cause=found.cause if found is not None else None,
        hint=found.hint if found is not None else "the last lines of its log are below, all of it is in the record",
    )
