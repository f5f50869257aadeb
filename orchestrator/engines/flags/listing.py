"""Which list a profile is checked against, and whether all that tells the engine's version tells the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.engines.flags.loading import REPOSITORIES
from orchestrator.engines.flags.model import Chosen, Finding, Severity
from orchestrator.engines.images import image_tag_version
from orchestrator.profile.model import Profile


def list_findings(profile: Profile, chosen: Chosen) -> Iterator[Finding]:
    """The list is not that of the version, or is the image's own; two places name two versions."""
    if chosen.note:
        is_odd = chosen.wanted is not None and not chosen.catalogue.is_own
        yield Finding(
            severity=Severity.WARNING if is_odd else Severity.ADVICE,
            code="flag_list",
            path="image" if profile.image else "engine",
            message=chosen.note,
            hint='engine_version: "…" in the profile states it' if chosen.wanted is None else None,
        )
    stated = profile.engine_version
    for said, other in _told(profile, chosen):
        if stated is not None and is_other_version(stated, other):
            yield Finding(
                severity=Severity.WARNING,
                code="version_mismatch",
                path="engine_version",
                message=f"{stated} is stated, and {said} {other}",
                hint="state the version that runs, or leave it out where the image tells it",
            )
            return


def is_other_version(one: str, other: str) -> bool:
    """The two surely name different releases: `0.31.0` and `0.31.2`. `0.31` names all of its patch releases.

    llama.cpp's build numbers and release numbers cannot be compared with each other.
    """
    ours, theirs = _parts(one), _parts(other)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    shorter = min(len(ours), len(theirs))
    return ours[:shorter] != theirs[:shorter]


def _told(profile: Profile, chosen: Chosen) -> Iterator[tuple[str, str]]:
    """What else tells the version: who, and which."""
    tag = image_tag_version(profile.image, REPOSITORIES.get(profile.engine, ()))
    if tag is not None:
        yield "the image's tag says", tag
    if chosen.catalogue.is_own:
        yield "the image itself says", chosen.catalogue.version


def _parts(version: str) -> tuple[str | int, ...] | None:
    found = re.match(r"(v|b)?(\d+(?:\.\d+)*)", version)
    if found is None:
        return None
    return ("b" if found[1] == "b" else "v", *(int(part) for part in found[2].split(".")))
