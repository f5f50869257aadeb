"""Flags that the list lacks, or that are written short: what they were, what they are now, what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.engines.flags.facts import Rename, load_facts
from orchestrator.engines.flags.history import Span, load_history, when_there
from orchestrator.engines.flags.loading import load
from orchestrator.engines.flags.model import Catalogue, Chosen, Finding, Severity
from orchestrator.engines.flags.nearest import nearest, versions_that
from orchestrator.engines.flags.reading import Given, Match, find_spelling, spellings
from orchestrator.engines.flags.saying import Saying
from orchestrator.engines.images import version_key


def absence_findings(saying: Saying, given: Given) -> Iterator[Finding]:
    """About a flag that is unknown, ambiguous, or abbreviated."""
    if given.match is Match.AMBIGUOUS:
        yield _ambiguous(saying, given)
    elif given.match is Match.ABBREVIATION:
        yield _abbreviated(saying, given)
    else:
        yield _unknown(saying, given)


def _ambiguous(saying: Saying, given: Given) -> Finding:
    could_be = ", ".join(given.candidates)
    elsewhere = _where_known(saying, given.spelling)
    told = f"{given.spelling} exists {elsewhere}; " if elsewhere else ""
    return saying.of(
        given,
        "ambiguous_flag",
        f"is short for several flags of {saying.release}",
        hint=f"{told}one of {could_be}",
        severity=saying.absence(is_elsewhere=elsewhere is not None),
    )


def _abbreviated(saying: Saying, given: Given) -> Finding:
    hint = f"write {given.full}"
    for version in load_history(saying.catalogue.engine).whole:
        if version_key(version) <= version_key(saying.catalogue.version):
            continue
        later = find_spelling(load(saying.catalogue.engine, version), given.spelling)
        if later.match is Match.AMBIGUOUS:
            hint += f"; in {version} it could be {', '.join(later.candidates)}, and the engine refuses it"
            break
    return saying.of(given, "abbreviated_flag", f"is taken for {given.full}", hint=hint, severity=Severity.WARNING)


def _unknown(saying: Saying, given: Given) -> Finding:
    spelling = _normal(saying, given.spelling)
    rename = load_facts(saying.catalogue.engine).renames.get(spelling)
    elsewhere = _where_known(saying, spelling)
    is_gone = _is_gone(saying, spelling, rename)
    code = "removed_flag" if is_gone else "unknown_flag"
    what = "is no longer a flag" if is_gone else "is no flag"
    return saying.of(
        given,
        code,
        f"{what} of {saying.release}",
        hint=_hint(saying, given, spelling, rename, elsewhere),
        severity=saying.absence(is_elsewhere=elsewhere is not None or rename is not None),
    )


def whereabouts(catalogue: Catalogue, spelling: str) -> str | None:
    """In words which versions have a flag that the list lacks, and what took over; None: no version is known to."""
    saying = Saying(chosen=Chosen(catalogue=catalogue, wanted=catalogue.version))
    plain = _normal(saying, spelling)
    return _known_of(saying, plain, load_facts(catalogue.engine).renames.get(plain), _where_known(saying, plain))


def _known_of(saying: Saying, spelling: str, rename: Rename | None, elsewhere: str | None) -> str | None:
    is_told = elsewhere is not None and not (rename is not None and _came_back(saying, spelling, rename))
    told = [f"exists {elsewhere}"] if is_told else []
    if rename is not None:
        new = " or ".join(rename.new)
        told.append(f"since {rename.since} it is {new}" if new else f"gone since {rename.since}, nothing took over")
    return "; ".join(told) or None


def _hint(saying: Saying, given: Given, spelling: str, rename: Rename | None, elsewhere: str | None) -> str:
    known = _known_of(saying, spelling, rename, elsewhere)
    told = [known] if known else []
    if rename is None and (not elsewhere or given.spelling != spelling):
        near = nearest(given.spelling, spellings(saying.catalogue))
        told += [f"did you mean {near}?"] if near else []
        told += [] if elsewhere else [f"allow_unknown_flags: [{given.spelling.lstrip('-')}] accepts a fork's own"]
    return "; ".join(told)


def _where_known(saying: Saying, spelling: str) -> str | None:
    """In words which versions have a flag of this very spelling."""
    history = load_history(saying.catalogue.engine)
    span = history.flags.get(spelling)
    if span is not None and span.alias_of is None:
        return when_there(span, history)
    return versions_that(saying.catalogue.engine, lambda one: spelling in spellings(one))


def _came_back(saying: Saying, spelling: str, rename: Rename) -> bool:
    """A later version took the old spelling again: for this one only what took over counts."""
    here, since = version_key(saying.catalogue.version), version_key(rename.since)
    engine = saying.catalogue.engine
    later = (version for version in load_history(engine).whole if version_key(version) >= since)
    return since <= here and any(spelling in spellings(load(engine, version)) for version in later)


def _is_gone(saying: Saying, spelling: str, rename: Rename | None) -> bool:
    """It was a flag of an earlier version."""
    here = version_key(saying.catalogue.version)
    if rename is not None:
        return version_key(rename.since) <= here
    span: Span | None = load_history(saying.catalogue.engine).flags.get(spelling)
    return span is not None and span.alias_of is None and version_key(span.last) < here


def _normal(saying: Saying, spelling: str) -> str:
    is_long = saying.catalogue.conventions.underscores and spelling.startswith("--")
    return f"--{spelling[2:].replace('_', '-')}" if is_long else spelling
