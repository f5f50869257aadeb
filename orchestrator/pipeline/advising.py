"""What is said of a profile before its server starts: warnings, advice, and which of it an earlier run has answered."""

from __future__ import annotations

from orchestrator.deploy.own_flags import kept_list
from orchestrator.engines.remarks import advisory_line, is_worrying, remarks, silenced_line
from orchestrator.engines.rules.answering import answered
from orchestrator.fleet.facts.checkpoint import Held, MtpWeights, declares_mtp, read_mtp_weights
from orchestrator.pipeline.own_list import is_to_be_read
from orchestrator.pipeline.planning import served
from orchestrator.pipeline.preparing import facts_of
from orchestrator.pipeline.road import Road
from orchestrator.profile.model import Profile

NO_WEIGHTS = "no_mtp_weights"
LIST = "flag_list"


def say_remarks(road: Road) -> None:
    """Say what the flag list and the rules have to say. A host that has the image already narrows what can answer."""
    job = road.job
    road.chosen = None if road.tools.own_flags is None else kept_list(job.profile)
    heard = remarks(job.engine, job.profile, road.chosen).heard
    is_moot = is_to_be_read(road)
    advisories = tuple(a for a in heard.advisories if not (is_moot and a.code == LIST))
    for advisory in answered(advisories, served(job.profile, road.image_digest), job.past_runs):
        road.note(advisory_line(advisory), is_warning=is_worrying(advisory))
    if heard.silenced:
        road.note(silenced_line(heard.silenced))


def warn_of_weights(road: Road) -> None:
    """Say so when the checkpoint on a host cannot draft as the profile wants; keep silent where it cannot be told."""
    profile = road.job.profile
    if not declares_mtp(profile) or NO_WEIGHTS in profile.silence:
        return
    for rank in road.ranks:
        found = read_mtp_weights(rank.box.host, profile, facts_of(rank).home or "/root")
        if found.held is Held.NO:
            road.note(road.said_of(rank, no_weights_line(profile, found)), is_warning=True)


def no_weights_line(profile: Profile, found: MtpWeights) -> str:
    """The warning: which file lists no such tensors, of which model."""
    return (
        f"{NO_WEIGHTS}: {found.file} lists no MTP tensors, and {profile.name} wants {profile.model.display} to draft "
        "with its own (a copy that kept them, or another method)"
    )
