"""Flags beside each other: given twice, one without the other that it needs, two that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.engines.flags.facts import Combination, Condition, load_facts
from orchestrator.engines.flags.model import Finding, Severity
from orchestrator.engines.flags.reading import Given, spellings
from orchestrator.engines.flags.saying import Saying

Last = Mapping[str, Given]
"""What holds of each flag in the end, by canonical name: of several the last."""


def repeat_findings(saying: Saying, givens: Sequence[Given]) -> Iterator[Finding]:
    """Flags of which an earlier value is lost."""
    seen: dict[tuple[str, str | None], Given] = {}
    for given in givens:
        if given.flag is None or given.flag.is_repeatable or given.is_added:
            continue
        before = seen.get((given.name, given.dotted))
        whole = seen.get((given.name, None)) if given.dotted else None
        if before is not None:
            yield _repeated(saying, before, given)
        elif whole is not None:
            yield saying.of(
                given,
                "repeated_flag",
                f"throws away the whole of `{whole.spelling} …` given before it",
                hint="write all keys in one of the two ways",
                severity=Severity.WARNING,
            )
        seen[(given.name, given.dotted)] = given


def combination_findings(saying: Saying, givens: Sequence[Given]) -> Iterator[Finding]:
    """Flags that need or exclude others, as far as is known by hand."""
    last = {given.name: given for given in givens if given.flag is not None}
    for rule in load_facts(saying.catalogue.engine).combinations:
        if all(_holds(saying, condition, last) for condition in rule.when):
            yield from _broken(saying, rule, last)


def _repeated(saying: Saying, before: Given, given: Given) -> Finding:
    is_same = (before.values, before.is_negative) == (given.values, given.is_negative)
    return saying.of(
        given,
        "repeated_flag",
        "is given twice, with the same value"
        if is_same
        else f"was given before as {_words(before)}; the last one wins",
        hint="leave one out",
        severity=Severity.ADVICE if is_same else Severity.WARNING,
    )


def _broken(saying: Saying, rule: Combination, last: Last) -> Iterator[Finding]:
    first = _given(saying, rule.when[0].flag, last)
    if first is None:
        return
    known = spellings(saying.catalogue)
    for word in rule.needs:
        if word in known and _given(saying, word, last) is None:
            yield saying.of(
                first,
                "flag_needs",
                f"needs {word}: {rule.message}",
                hint=f"add {word}",
                severity=rule.severity,
            )
    for word in rule.excludes:
        other = _given(saying, word, last)
        if other is not None:
            yield saying.of(
                first,
                "flag_conflict",
                f"and {_words(other)} do not go together: {rule.message}",
                hint="leave one out",
                severity=rule.severity,
            )


def _holds(saying: Saying, condition: Condition, last: Last) -> bool:
    given = _given(saying, condition.flag, last)
    if given is None:
        return False
    values = {value.lower() for value in given.values}
    if condition.among is not None:
        return bool(values & {value.lower() for value in condition.among})
    if condition.not_among is not None:
        return bool(values) and not values & {value.lower() for value in condition.not_among}
    return True


def _given(saying: Saying, spelling: str, last: Last) -> Given | None:
    """The flag as given last, when that is the sense (on, or off) of the spelling."""
    meant = spellings(saying.catalogue).get(spelling)
    if meant is None:
        return None
    given = last.get(meant.flag.name)
    return given if given is not None and given.is_negative is meant.is_negative else None


def _words(given: Given) -> str:
    shown = " ".join((given.spelling, *given.values))
    return f"`{shown if len(shown) <= 60 else shown[:59] + '…'}`"
