"""Between pull and start: the words that will be started, held against the flag list of the image itself.

The shipped lists know the engines' releases; a patched image has flags that they lack, and lacks some that they have.
What cannot be read is a note and the shipped list stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.deploy.own_flags import Subject
from orchestrator.engines.flags.checking import check_profile
from orchestrator.engines.flags.live import ENGINES
from orchestrator.engines.flags.loading import choose_for
from orchestrator.engines.flags.model import Catalogue, Chosen, Finding, Severity
from orchestrator.engines.remarks import worded
from orchestrator.errors import BoxError
from orchestrator.pipeline.events import StageMoved
from orchestrator.pipeline.named_files import check_in_image
from orchestrator.pipeline.preparing import command_of, spec_of
from orchestrator.pipeline.refusing import refusal
from orchestrator.pipeline.road import Job, Rank, Road


def check_own_list(road: Road, *, is_new: bool) -> None:
    """Read the image's list, or find it kept, check every rank's words and the environment, and what files they name.

    Args:
        is_new: The image was just pulled. A server that is up already on the old one needs no check.

    Raises:
        InvalidFile: The engine would refuse the words; by file and line.
        Interrupted: On request.
    """
    ranks = [rank for rank in road.ranks if is_new or rank.command is not rank.declared]
    if not ranks or road.job.engine.name not in ENGINES or road.tools.own_flags is None:
        return
    subject = _subject(road)
    catalogue = _own_list(road, subject)
    if catalogue is not None:
        _check(road, ranks, catalogue)
    check_in_image(road, subject, catalogue)


def _check(road: Road, ranks: Sequence[Rank], catalogue: Catalogue) -> None:
    found = _findings(road.job, ranks, Chosen(catalogue=catalogue, wanted=catalogue.version))
    errors = [one for one in found if one.severity is Severity.ERROR]
    if errors:
        raise refusal(road.job, errors)
    before = road.chosen or choose_for(road.job.profile)
    known = {(one.code, one.path) for one in _findings(road.job, ranks, before)} if found and before else set()
    for one in found:
        if (one.code, one.path) not in known and one.code not in road.job.profile.silence:
            road.note(f"{one.code}: {worded(one)}", is_warning=one.severity is Severity.WARNING)


def _subject(road: Road) -> Subject:
    assert road.image_digest is not None
    spec = spec_of(road.head)
    return Subject(
        engine=road.job.engine.name,
        image=spec.image,
        digest=road.image_digest,
        kind=road.job.profile.runtime,
        entrypoint=spec.entrypoint,
        owner=road.run.id,
    )


def _own_list(road: Road, subject: Subject) -> Catalogue | None:
    assert road.tools.own_flags is not None
    text = road.said_of(road.head, f"reading the flag list of {subject.image}")
    road.observer.on(StageMoved(where=road.where, stage="pull", text=text))
    try:
        return road.tools.own_flags(road.head.runtime, subject, road.cancel.is_set)
    except BoxError as exc:
        road.note(f"{exc.message}; the shipped list alone was checked")
        return None


def _findings(job: Job, ranks: Sequence[Rank], chosen: Chosen) -> tuple[Finding, ...]:
    """Of all ranks, each once."""
    told = (one for rank in ranks for one in check_profile(job.profile, command_of(rank), chosen))
    return tuple(dict.fromkeys(told))
