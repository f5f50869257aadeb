"""From a profile and its command line to what a careful person would say of it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.engines.engine import Advisory, EngineCommand
from orchestrator.engines.images import Version
from orchestrator.engines.rules.argv import given_flags
from orchestrator.engines.rules.circumstances import Situation
from orchestrator.engines.rules.matching import holds
from orchestrator.engines.rules.model import Rule
from orchestrator.engines.rules.reading import all_rules
from orchestrator.engines.rules.vocabulary import PLACEHOLDER
from orchestrator.engines.words import Parser
from orchestrator.profile.model import Profile
from orchestrator.values import Json


def advise(
    profile: Profile,
    command: EngineCommand | None = None,
    *,
    parser: Parser | None = None,
    version: Version | None = None,
    is_official: bool = False,
    rules: Sequence[Rule] | None = None,
) -> tuple[Advisory, ...]:
    """Every rule that applies, in the rules' order.

    Args:
        command: What the profile comes to; None (or no parser): only what is said in the profile's own words is seen.
        version: The engine's, None: not known.
        is_official: The image is the engine's own, not a fork.
        rules: Instead of the shipped ones.
    """
    flags = {} if command is None or parser is None else given_flags(parser, command)
    here = Situation(profile=profile, flags=flags, version=version, is_official=is_official)
    found = (_apply(rule, here) for rule in (all_rules() if rules is None else rules))
    return tuple(advisory for advisory in found if advisory is not None)


def _apply(rule: Rule, here: Situation) -> Advisory | None:
    if rule.engines and here.profile.engine not in rule.engines:
        return None
    message = _message(rule, here.version)
    if message is None or not holds(rule.when, here.look):
        return None
    places = (here.declared_at(name) for name in rule.paths)
    return Advisory(
        code=rule.code,
        message=_filled(message, here),
        hint=_filled(rule.hint, here),
        evidence=rule.evidence,
        source=rule.standing,
        path=next((place for place in places if place), "engine"),
        gates=rule.answered_by,
    )


def _message(rule: Rule, version: Version | None) -> str | None:
    """What the rule says of that version; None: it has nothing to say of it."""
    if rule.versions is None:
        return rule.message
    if version is None:
        return rule.message_unknown
    return rule.message if rule.versions.holds(version) else None


def _filled(text: str, here: Situation) -> str:
    return PLACEHOLDER.sub(lambda found: _text(here.look(found[1])), text)


def _text(value: Json) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "not set" if value is None else str(value)
