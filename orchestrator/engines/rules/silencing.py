"""Which advisories a profile does not want to hear, and codes that nothing answers to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import Advisory
from orchestrator.engines.rules.reading import all_rules
from orchestrator.profile.wording import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What is left to say. `silenced`: codes that were left out, in the order in which they came."""

    advisories: tuple[Advisory, ...]
    silenced: tuple[str, ...] = ()


def without_silenced(advisories: Sequence[Advisory], silence: Collection[str]) -> Heard:
    """The advisories that the profile does not silence."""
    return Heard(
        advisories=tuple(a for a in advisories if a.code not in silence),
        silenced=tuple(a.code for a in advisories if a.code in silence),
    )


def unknown_codes(silence: Sequence[str], others: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
    """Silenced codes that no rule has: `(path, message)` each, with the nearest code.

    Args:
        others: Codes beside the rules' that can be silenced too.
    """
    known = sorted({*(rule.code for rule in all_rules()), *others})
    return tuple(
        (f"silence[{index}]", f"no advisory has the code {code}{did_you_mean(code, known)}")
        for index, code in enumerate(silence)
        if code not in known
    )
