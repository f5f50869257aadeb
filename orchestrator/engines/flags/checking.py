"""A command line and its environment, held against the list of the engine's version.

What would end the start is an error; what the engine takes and does not do, or takes otherwise than meant, a warning.
Where the list is not surely that of what runs, a name that it lacks is a warning too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.flags.absence import absence_findings
from orchestrator.engines.flags.allowing import Allowed, is_given
from orchestrator.engines.flags.combining import combination_findings, repeat_findings
from orchestrator.engines.flags.facts import load_facts
from orchestrator.engines.flags.listing import list_findings
from orchestrator.engines.flags.loading import ENGINES, is_certain
from orchestrator.engines.flags.model import Chosen, Finding, Flag, Severity
from orchestrator.engines.flags.named_files import named_files
from orchestrator.engines.flags.reading import Given, Match, arity, own_words, read_words, spellings
from orchestrator.engines.flags.saying import Saying
from orchestrator.engines.flags.values import Fault, key_faults, value_faults
from orchestrator.engines.flags.variables import check_env
from orchestrator.profile.model import Profile

PLUGINS = {"--tool-call-parser": "--tool-parser-plugin", "--reasoning-parser": "--reasoning-parser-plugin"}
"""Flags that bring values of their own for another one."""


def check_profile(profile: Profile, command: EngineCommand, chosen: Chosen) -> tuple[Finding, ...]:
    """Everything about the words and variables of a profile's command line; () for engines without lists.

    Args:
        command: What the profile comes to, with the origins of its words.
        chosen: The list for it: `loading.choose_for(profile)`, or the image's own.
    """
    if profile.engine not in ENGINES:
        return ()
    words, origins = own_words(command)
    found = check_words(chosen, words, origins, allowed=profile.allow_unknown_flags)
    return (
        *list_findings(profile, chosen),
        *found,
        *_idle_allowances(chosen, words, origins, profile.allow_unknown_flags, found),
        *check_env(chosen, profile.env),
    )


def check_words(
    chosen: Chosen, words: Sequence[str], origins: Sequence[str], *, allowed: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What is wrong with the words after the program, in their order; combinations last.

    Args:
        origins: For each word where it was declared; (): not known, and `word 3` stands for it.
        allowed: Flags, and keys of JSON flags, that are accepted although the list lacks them (`allowing`).
    """
    saying = Saying(chosen=chosen, origins=tuple(origins))
    givens = read_words(chosen.catalogue, words)
    accepted = Allowed(chosen.catalogue, allowed)
    found: list[Finding] = []
    for given in givens:
        if given.flag is None:
            if given.match is not Match.POSITIONAL and not accepted.has_flag(given):
                found += absence_findings(saying, given)
            continue
        if given.match is Match.ABBREVIATION:
            found += absence_findings(saying, given)
        found += _state_findings(saying, given, given.flag)
        found += _value_findings(saying, given, given.flag, givens, accepted)
    found += _positional_findings(saying, givens)
    found += repeat_findings(saying, givens)
    found += combination_findings(saying, givens)
    return tuple(found)


def _idle_allowances(
    chosen: Chosen, words: Sequence[str], origins: Sequence[str], entries: Sequence[str], found: tuple[Finding, ...]
) -> Iterator[Finding]:
    """Entries without which the same is found.

    Where the list is not surely that of what runs, or is read from the image, the entry may be needed elsewhere: then
    it is idle only when its flag is not given. A file that a flag names is looked for later.
    """
    if not entries:
        return
    givens = read_words(chosen.catalogue, words)
    files = {file.flag for file in named_files(chosen.catalogue, words, origins)}
    for index, entry in enumerate(entries):
        is_there = is_given(chosen.catalogue, entry, givens)
        is_sure = is_certain(chosen) and not chosen.catalogue.is_own
        names_file = is_given(chosen.catalogue, entry, [given for given in givens if given.name in files])
        if is_there and (not is_sure or names_file):
            continue
        others = [*entries[:index], *entries[index + 1 :]]
        if is_there and check_words(chosen, words, origins, allowed=others) != found:
            continue
        known = f"{chosen.catalogue.engine} {chosen.catalogue.version} knows what is given of it"
        yield Finding(
            severity=Severity.WARNING,
            code="idle_allowance",
            path=f"allow_unknown_flags[{index}]",
            message=f"`{entry}` allows nothing: {known if is_there else 'there is no such flag on the command line'}",
            hint="leave it out",
        )


def _state_findings(saying: Saying, given: Given, flag: Flag) -> Iterator[Finding]:
    """Deprecated, without effect, or gone though listed."""
    renamed = load_facts(saying.catalogue.engine).renames.get(given.full)
    successor = " or ".join(renamed.new) if renamed else flag.successor
    instead = f"use {successor}" if successor else None
    if flag.is_removed:
        yield saying.of(given, "removed_flag", f"was removed: {saying.engine} still lists it and ends", hint=instead)
    elif flag.is_inert:
        yield saying.of(
            given,
            "inert_flag",
            f"has no effect in {saying.release}",
            hint=instead or "leave it out",
            severity=Severity.WARNING,
        )
    elif flag.deprecated:
        yield saying.of(
            given,
            "deprecated_flag",
            f"is deprecated in {saying.release}: {flag.deprecated}",
            hint=instead,
            severity=Severity.WARNING,
        )


def _value_findings(
    saying: Saying, given: Given, flag: Flag, givens: Sequence[Given], accepted: Allowed
) -> Iterator[Finding]:
    conventions = saying.catalogue.conventions
    if flag.is_removed:
        return
    if given.is_joined and not conventions.equals:
        yield saying.of(
            given,
            "unexpected_value",
            f"and its value are two words: {saying.engine} takes no `{given.spelling}=…`",
            hint=f"write `{given.spelling} {given.values[0]}`",
        )
        return
    least, most = arity(flag, is_negative=given.is_negative)
    if given.dotted is not None:
        least, most = 1, 1
    if given.is_joined and most == 0:
        yield saying.of(
            given,
            "unexpected_value",
            f"is a switch and takes no value, got `{given.values[0]}`",
            hint=_switch_hint(given, flag),
        )
    elif len(given.values) < least or _swallowed(saying, given):
        yield saying.of(
            given, "missing_value", "needs a value" if least == 1 else f"needs {least} values", hint=_values_hint(flag)
        )
    else:
        yield from _faults(saying, given, flag, givens, accepted)


def _faults(saying: Saying, given: Given, flag: Flag, givens: Sequence[Given], accepted: Allowed) -> Iterator[Finding]:
    has_plugin = any(other.name == PLUGINS.get(flag.name) for other in givens)
    for offset, word in enumerate(given.values):
        for fault in _faults_of(saying, given, flag, word):
            is_accepted = fault.is_list_bound and accepted.has_value(given.name, fault.key)
            if not is_accepted and not (has_plugin and fault.code == "flag_choice"):
                yield saying.of_value(given, offset, fault)


def _faults_of(saying: Saying, given: Given, flag: Flag, word: str) -> Iterator[Fault]:
    if given.dotted is not None:
        yield from key_faults(saying.catalogue, flag, given.dotted, word, is_added=given.is_added)
    else:
        yield from value_faults(saying.catalogue, flag, word)


def _swallowed(saying: Saying, given: Given) -> bool:
    """llama-server took the next flag for the value: `-fa --fit off`."""
    if saying.catalogue.conventions.abbreviations or given.is_joined:
        return False
    return any(word in spellings(saying.catalogue) for word in given.values)


def _positional_findings(saying: Saying, givens: Sequence[Given]) -> Iterator[Finding]:
    room = len(saying.catalogue.conventions.positional)
    plain = [given for given in givens if given.match is Match.POSITIONAL and given.spelling != "--"]
    before = {after.index: given for given, after in pairwise(givens)}
    stray = [given for given in plain if _is_after_switch(before.get(given.index))]
    # The words after a switch are the likeliest to be too many; the first word is the model.
    order = sorted(plain, key=lambda given: given in stray and given is not plain[0])
    for given in sorted(order[room:], key=lambda one: one.index):
        previous = before.get(given.index)
        if previous is not None and _swallowed(saying, previous):
            continue
        switch = previous if given in stray else None
        yield saying.of(
            given,
            "unexpected_value",
            f"belongs to nothing: {switch.spelling} is a switch and takes no value" if switch else "belongs to no flag",
            hint=_switch_hint(switch, switch.flag) if switch and switch.flag else None,
        )


def _is_after_switch(previous: Given | None) -> bool:
    return previous is not None and previous.flag is not None and arity(previous.flag)[1] == 0


def _switch_hint(given: Given, flag: Flag) -> str:
    off = f"; {flag.negatives[-1]} turns it off" if flag.negatives else ""
    return f"write `{given.spelling}` alone{off}"


def _values_hint(flag: Flag) -> str | None:
    values = flag.choices or flag.known
    return f"one of {', '.join(values[:12])}" if values else None


__all__ = ["check_env", "check_profile", "check_words"]
