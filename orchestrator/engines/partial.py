"""The words of a profile whose engine cannot express all of it: what can be said of them beside the problem."""

from __future__ import annotations

from orchestrator.engines.assembly import Recipe
from orchestrator.engines.engine import EngineCommand, Placement
from orchestrator.engines.flags.checking import check_env, check_words
from orchestrator.engines.flags.listing import list_findings
from orchestrator.engines.flags.model import Chosen, Finding
from orchestrator.engines.flags.reading import own_words
from orchestrator.engines.llamacpp import RECIPE as LLAMACPP
from orchestrator.engines.pieces import translate
from orchestrator.engines.sglang import RECIPE as SGLANG
from orchestrator.engines.vllm import RECIPE as VLLM
from orchestrator.engines.words import words
from orchestrator.profile.model import Profile

RECIPES = {"vllm": VLLM, "sglang": SGLANG, "llamacpp": LLAMACPP}
OF_THE_WHOLE = frozenset({"flag_needs", "flag_conflict", "repeated_flag"})
"""Findings about words beside each other: they mean nothing where some of the words are missing or said twice."""


def partial_findings(profile: Profile, chosen: Chosen) -> tuple[Finding, ...]:
    """What is wrong with each word by itself, and with each variable; () for engines without flags of their own."""
    recipe = RECIPES.get(profile.engine)
    if recipe is None:
        return ()
    own, origins = own_words(_expressible(recipe, profile))
    found = check_words(chosen, own, origins, allowed=profile.allow_unknown_flags)
    return (
        *list_findings(profile, chosen),
        *(finding for finding in found if finding.code not in OF_THE_WHOLE),
        *check_env(chosen, profile.env),
    )


def _expressible(recipe: Recipe, profile: Profile) -> EngineCommand:
    """The words that are there: those of the settings that the engine takes, of `flags`, and of `args`."""
    pieces = translate(profile, Placement(nodes=profile.nodes), recipe.steps).pieces
    written = (
        *((piece.path, word) for piece in pieces for word in piece.words),
        *((f"flags.{key}", word) for key, value in profile.flags.items() for word in words(recipe.parser, key, value)),
        *((f"args[{index}]", word) for index, word in enumerate(profile.args)),
    )
    return EngineCommand(
        argv=tuple(word for _, word in written),
        origins=tuple(origin for origin, _ in written),
        port=profile.port or recipe.default_port,
    )
