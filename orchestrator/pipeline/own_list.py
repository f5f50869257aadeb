"""Between pull and start: the words that will be started, held against the flag list of the image itself.

The shipped lists know the engines' releases; a patched image has flags that they lack, and lacks some that they have.
What cannot be read is a note and the shipped list stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.deploy.own_flags import Subject, find_kept
from orchestrator.engines.flags.allowing import Allowed
from orchestrator.engines.flags.checking import check_profile
from orchestrator.engines.flags.live import ENGINES
from orchestrator.engines.flags.loading import choose_for
from orchestrator.engines.flags.model import Catalogue, Chosen, Finding, Severity
from orchestrator.engines.flags.reading import Match, own_words, read_words
from orchestrator.engines.remarks import worded
from orchestrator.errors import BoxError
from orchestrator.pipeline.events import StageMoved
from orchestrator.pipeline.named_files import check_in_image
from orchestrator.pipeline.preparing import command_of, spec_of
from orchestrator.pipeline.refusing import refusal
from orchestrator.pipeline.road import Job, Rank, Road
from orchestrator.profile.model import RuntimeKind

UNKNOWN = "unknown_flag"


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
        _warn_of_allowed(road, ranks, catalogue)
        road.chosen = _as_own(road, catalogue)
    check_in_image(road, subject, catalogue)


def is_to_be_read(road: Road) -> bool:
    """The list of what will be started is still to be read, so that which shipped one stands in for it is no matter."""
    return road.tools.own_flags is not None and road.job.engine.name in ENGINES and road.chosen is None


def own_list_of(road: Road, engine: str) -> Chosen | None:
    """The list that was read from what runs: on this road, or before, of a server that was found up. None: none was."""
    if road.chosen is not None and road.chosen.catalogue.is_own and road.chosen.catalogue.engine == engine:
        return _as_own(road, road.chosen.catalogue)
    if road.tools.own_flags is None or road.image_digest is None:
        return None
    if road.job.profile.runtime is RuntimeKind.PROCESS:
        found = _own_list(road, _subject(road)) if road.head.is_reused else None
    else:
        found = find_kept(engine, road.image_digest)
    return None if found is None else _as_own(road, found)


def _as_own(road: Road, catalogue: Catalogue) -> Chosen:
    return Chosen(catalogue=catalogue, wanted=catalogue.version, note=f"the {_holder(road)}'s own list")


def _holder(road: Road) -> str:
    return "program" if road.job.profile.runtime is RuntimeKind.PROCESS else "image"


def _warn_of_allowed(road: Road, ranks: Sequence[Rank], catalogue: Catalogue) -> None:
    """Flags that `allow_unknown_flags` lets through and that what is started does not know: its own list is certain."""
    accepted = Allowed(catalogue, road.job.profile.allow_unknown_flags)
    words = (read_words(catalogue, own_words(command_of(rank))[0]) for rank in ranks)
    unknown = (given for each in words for given in each if given.flag is None and given.match is Match.UNKNOWN)
    for spelling in dict.fromkeys(given.spelling for given in unknown if accepted.has_flag(given)):
        if UNKNOWN not in road.job.profile.silence:
            lacks = f"this {_holder(road)}'s own list has no {spelling}, which allow_unknown_flags lets through"
            road.note(f"{UNKNOWN}: {lacks}: it will refuse to start", is_warning=True)


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
    if subject.kind is RuntimeKind.DOCKER or subject.engine != "llamacpp":  # llama-server answers at once
        text = road.said_of(road.head, f"reading the flag list of {subject.image}")
        road.observer.on(StageMoved(where=road.where, stage="pull", text=text))
    try:
        return road.tools.own_flags(road.head.runtime, subject, road.cancel.is_set)
    except BoxError as exc:
        shipped = choose_for(road.job.profile)
        which = f": {shipped.note}" if shipped is not None and shipped.note else ""
        road.note(f"{exc.message}; the shipped list alone was checked{which}")
        return None


def _findings(job: Job, ranks: Sequence[Rank], chosen: Chosen) -> tuple[Finding, ...]:
    """Of all ranks, each once."""
    told = (one for rank in ranks for one in check_profile(job.profile, command_of(rank), chosen))
    return tuple(dict.fromkeys(told))
