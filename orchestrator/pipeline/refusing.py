"""What of a profile the engine would refuse, by file and line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.engines.flags.model import Finding
from orchestrator.engines.remarks import worded
from orchestrator.errors import InvalidFile, Problem
from orchestrator.pipeline.road import Job
from orchestrator.profile.loading import problems_at


def refusal(job: Job, errors: Sequence[Finding]) -> InvalidFile:
    """The error that names each, at the line that declared it where that is known."""
    said = [(one.path, worded(one)) for one in errors]
    if job.loaded is not None:
        return problems_at(job.loaded, said)
    file = job.profile.source or job.profile.name
    return InvalidFile([Problem(file=str(Path(file)), line=None, path=path, message=text) for path, text in said])
