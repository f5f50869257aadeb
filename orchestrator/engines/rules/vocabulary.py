"""Which names and words a rule may use; anything else is a mistake in the rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from orchestrator.engines.rules.circumstances import DERIVED
from orchestrator.engines.rules.matching import COMPARISONS, comparisons_in, names_in
from orchestrator.engines.rules.model import Rule
from orchestrator.profile.model import ContainerSettings, GateChoice, ModelRef, Profile, Ready, Serve, Speculative

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
"""`{serve.max_num_seqs}` in a message; braces with anything else inside are text."""
_GROUPS: Mapping[str, type] = {
    "container": ContainerSettings,
    "gates": GateChoice,
    "model": ModelRef,
    "ready": Ready,
    "serve": Serve,
    "speculative": Speculative,
}
_OPEN = frozenset({"limit_mm", "ulimits"})
"""Mappings whose keys are not ours."""


def is_known(name: str) -> bool:
    """True for the name of something that a profile, its command or its model can be asked for."""
    head, _, rest = name.partition(".")
    return name in DERIVED or (head in {"flag", "env"} and bool(rest)) or _has_field(Profile, name.split("."))


def mistakes(rule: Rule) -> Iterator[str]:
    """What in a rule is not in the vocabulary, in words."""
    for word in comparisons_in(rule.when):
        if word not in COMPARISONS:
            yield f"{rule.code}: no comparison is called {word}"
    shown = [m for text in (rule.message, rule.message_unknown or "", rule.hint) for m in PLACEHOLDER.findall(text)]
    for name in (*names_in(rule.when), *rule.paths, *shown):
        if not is_known(name):
            yield f"{rule.code}: there is no circumstance {name}"


def _has_field(kind: type, steps: list[str]) -> bool:
    names = getattr(kind, "__dataclass_fields__", {})
    if steps[0] not in names:
        return False
    is_end = len(steps) == 1 or steps[0] in _OPEN
    return is_end or (steps[0] in _GROUPS and _has_field(_GROUPS[steps[0]], steps[1:]))
