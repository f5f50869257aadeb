"""A rule: what was seen to go wrong with certain settings on such a box, where that is known from, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.engines.rules.versions import VersionRange
from orchestrator.values import Json

Conditions = Mapping[str, Json]
"""By the name of a circumstance what it must be (`matching.holds`); `any` and `unless` nest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        code: `GB10-CACHE-01`: stable, what a profile silences. `SERVE-…` is true of any box.
        engines: Whom it is about; (): every engine.
        versions: Engine versions that have it; None: not bound to versions. A profile whose version is not known is
            outside, unless `message_unknown` says what to tell it.
        when: All must hold.
        paths: Names of circumstances or paths of the profile; the first that the profile declares is where it is shown.
        message: What happens, `{name}` standing for a circumstance's value.
        evidence: Public reports, `owner/repository#number` or another name that can be looked up.
        standing: How sure it is: one report or several, read in the source or measured.
        answered_by: Gates that, passed on the same image, show that it does not happen here.
    """

    code: str
    title: str
    message: str
    hint: str
    evidence: tuple[str, ...]
    standing: str
    engines: tuple[str, ...] = ()
    versions: VersionRange | None = None
    when: Conditions = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    message_unknown: str | None = None
    answered_by: tuple[str, ...] = ()
