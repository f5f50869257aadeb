"""All that can be said of a profile before anything starts: what would end it, and what is worth knowing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from orchestrator.engines.engine import Advisory, Engine, Placement
from orchestrator.engines.flags.checking import check_profile
from orchestrator.engines.flags.loading import choose_for
from orchestrator.engines.flags.model import Chosen, Finding, Severity
from orchestrator.engines.partial import partial_findings
from orchestrator.engines.rules.silencing import Heard, without_silenced
from orchestrator.profile.model import Profile

CODES = (
    *("abbreviated_flag", "ambiguous_flag", "deprecated_flag", "flag_choice", "flag_conflict", "flag_list"),
    *("flag_needs", "flag_range", "flag_value", "inert_flag", "json_key", "json_syntax", "missing_value"),
    *("removed_flag", "removed_variable", "repeated_flag", "unexpected_value", "unknown_flag", "unknown_variable"),
    *("idle_allowance", "missing_file", "version_mismatch"),
    *("lanes_and_slots", "many_prefixes", "no_mtp_weights"),
)
"""Codes beside the rules' that can be silenced: an error cannot, only a warning or an advice of the same code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """What is said of one profile.

    Attributes:
        problems: What its engine cannot express, `(path, message)`; more can be said of its words alone.
        errors: What would end the start.
        heard: Warnings and advice, those that the profile silences left out.
    """

    problems: tuple[tuple[str, str], ...] = ()
    errors: tuple[Finding, ...] = ()
    heard: Heard


def remarks(engine: Engine, profile: Profile, chosen: Chosen | None = None) -> Remarks:
    """Look at a profile with the engine's translation, its flag list and the rules.

    Args:
        chosen: The list to hold it against; None: the shipped one of its version.
    """
    problems = engine.problems(profile)
    findings = _findings(engine, profile, chosen, is_whole=not problems)
    warnings = tuple(_advisory(finding) for finding in findings if finding.severity is not Severity.ERROR)
    return Remarks(
        problems=problems,
        errors=tuple(finding for finding in findings if finding.severity is Severity.ERROR),
        heard=without_silenced((*warnings, *engine.advisories(profile)), profile.silence),
    )


def faults(engine: Engine, profile: Profile, chosen: Chosen | None = None) -> tuple[tuple[str, str], ...]:
    """Why this profile cannot be started, `(path, message)` each; () when it can. The rules are not asked."""
    problems = engine.problems(profile)
    found = _findings(engine, profile, chosen, is_whole=not problems)
    return (*problems, *((one.path, worded(one)) for one in found if one.severity is Severity.ERROR))


def worded(finding: Finding) -> str:
    """An error on one line: what, and what to do."""
    return f"{finding.message}; {finding.hint}" if finding.hint else finding.message


def is_worrying(advisory: Advisory) -> bool:
    """To be said as a warning: it will not do what is meant, it was seen here, or only a gate can tell."""
    return advisory.answer is None and bool(advisory.severity == "warning" or advisory.seen or advisory.gates)


def advisory_line(advisory: Advisory) -> str:
    """One advisory on one line: code, what, and the answer or else what to do."""
    return "; ".join((f"{advisory.code}: {advisory.message}", *afterwards(advisory)))


def afterwards(advisory: Advisory) -> tuple[str, ...]:
    """What follows an advisory's message: which run answered it, else which run saw it and what to do."""
    if advisory.answer:
        return (advisory.answer,)
    return tuple(part for part in (advisory.seen, advisory.hint) if part)


def silenced_line(codes: Collection[str]) -> str:
    """`2 silenced: GB10-CACHE-01, inert_flag`."""
    return f"{len(codes)} silenced: {', '.join(dict.fromkeys(codes))}"


def _findings(engine: Engine, profile: Profile, chosen: Chosen | None, *, is_whole: bool) -> tuple[Finding, ...]:
    held_against = chosen or choose_for(profile)
    if held_against is None:
        return ()
    if not is_whole:
        return partial_findings(profile, held_against)
    return check_profile(profile, engine.command(profile, Placement(nodes=profile.nodes)), held_against)


def _advisory(finding: Finding) -> Advisory:
    return Advisory(
        code=finding.code,
        message=finding.message,
        hint=finding.hint,
        severity="warning" if finding.severity is Severity.WARNING else "advice",
        path=finding.path,
    )
