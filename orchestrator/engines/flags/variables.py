"""Environment variables that the engine's version does not read, or no longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.engines.flags.facts import load_facts
from orchestrator.engines.flags.history import load_history, when_there
from orchestrator.engines.flags.model import Catalogue, Chosen, Finding, Flag, Severity, ValueKind
from orchestrator.engines.flags.nearest import nearest
from orchestrator.engines.flags.saying import PROGRAMS, Saying
from orchestrator.engines.flags.values import value_faults
from orchestrator.engines.images import version_key
from orchestrator.profile.model import EnvValue

NEGATIVE = "LLAMA_ARG_NO_"
"""llama-server reads the opposite of a switch under this name; another engine has no such variables."""

READ_ELSEWHERE_TOO = frozenset({"sglang"})
"""Engines that read variables which no table of theirs lists."""

ALIKE = 0.8
"""How similar the rest of a variable's name must be to be suggested."""

SWITCH_WORDS = frozenset({"on", "enabled", "true", "1", "off", "disabled", "false", "0"})


def check_env(chosen: Chosen, env: Mapping[str, EnvValue], *, origin: str = "env") -> tuple[Finding, ...]:
    """What is wrong with variables; those that are unset (None) or not the engine's do not count.

    Args:
        origin: Where they were declared: a finding's path is `env.VLLM_X`.
    """
    saying = Saying(chosen=chosen)
    flags = {flag.env: flag for flag in chosen.catalogue.flags.values() if flag.env}
    found: list[Finding] = []
    for name, value in env.items():
        if value is None:
            continue
        found += _gone(saying, name, origin)
        if name in flags and isinstance(value, str):
            found += _bad_value(saying, flags[name], name, value, origin)
    return tuple(found)


def _gone(saying: Saying, name: str, origin: str) -> Iterator[Finding]:
    catalogue = saying.catalogue
    if name in catalogue.env or name.replace(NEGATIVE, catalogue.env_prefix or "") in catalogue.env:
        return
    here = version_key(catalogue.version)
    fact = load_facts(catalogue.engine).variables.get(name)
    history = load_history(catalogue.engine)
    span = history.env.get(name)
    if fact is not None and version_key(fact.since) <= here:
        told = f"{saying.engine} {fact.since} and later do not read {name}"
        yield _finding(
            "removed_variable", name, origin, told, f"use {fact.successor}" if fact.successor else "leave it out"
        )
    elif span is not None and catalogue.env and version_key(span.last) < here:
        told = f"{saying.release} reads {name} no more"
        yield _finding("removed_variable", name, origin, told, f"it was read {when_there(span, history)}")
    elif catalogue.env and catalogue.env_prefix and name.startswith(catalogue.env_prefix):
        hint = f"it is read {when_there(span, history)}" if span else meant(catalogue, name)
        if catalogue.engine in READ_ELSEWHERE_TOO:
            told = f"{name} is not among the variables known of {saying.release}"
            yield _finding("unknown_variable", name, origin, told, hint, severity=Severity.ADVICE)
        else:
            yield _finding("unknown_variable", name, origin, f"{saying.release} reads no {name}", hint)


def meant(catalogue: Catalogue, name: str) -> str | None:
    """In words the variable that was probably meant; of one that is read no more, what took over."""
    facts, history = load_facts(catalogue.engine).variables, load_history(catalogue.engine)
    prefix = catalogue.env_prefix or ""
    bare = {known.removeprefix(prefix): known for known in (*facts, *history.env, *catalogue.env)}
    # The prefix is all alike, and left out: with it far names look near.
    near = nearest(name.removeprefix(prefix), bare, least=ALIKE)
    if near is None:
        return None
    found = bare[near]
    if found in catalogue.env:
        return f"did you mean {found}?"
    fact = facts.get(found)
    if fact is None:
        return f"did you mean {found}, read {when_there(history.env[found], history)}?"
    program = PROGRAMS.get(catalogue.engine, catalogue.engine)
    took_over = f"use {fact.successor}" if fact.successor else "nothing took over"
    return f"did you mean {found}? {program} {fact.since} and later do not read it: {took_over}"


def _bad_value(saying: Saying, flag: Flag, name: str, value: str, origin: str) -> Iterator[Finding]:
    """A variable that says what a flag says (llama-server) takes the flag's values."""
    if flag.is_removed or flag.kind in {ValueKind.NONE, ValueKind.BOOL}:
        is_odd = not flag.is_removed and value.lower() not in SWITCH_WORDS
        if is_odd:
            yield _finding("flag_value", name, origin, f"{name}: `{value}` is neither on nor off", "1 or 0")
        return
    for fault in value_faults(saying.catalogue, flag, value):
        yield Finding(
            severity=saying.lack(fault),
            code=fault.code,
            path=f"{origin}.{name}",
            message=f"{name}: {fault.message} ({saying.release})",
            hint=fault.hint,
            flag=flag.name,
        )


def _finding(
    code: str, name: str, origin: str, message: str, hint: str | None, *, severity: Severity = Severity.WARNING
) -> Finding:
    return Finding(severity=severity, code=code, path=f"{origin}.{name}", message=message, hint=hint)
