"""What a careful person would say of a profile: the rules, over what its engine makes of it."""

from __future__ import annotations

from orchestrator.engines.engine import Advisory, Engine, Placement
from orchestrator.engines.flags.loading import REPOSITORIES, wanted_version
from orchestrator.engines.images import image_version, split_image
from orchestrator.engines.rules.advising import advise
from orchestrator.engines.words import Parser
from orchestrator.profile.model import Profile


def advice(engine: Engine, profile: Profile, parser: Parser | None = None) -> tuple[Advisory, ...]:
    """Every rule that applies; of a profile that comes to no command, only those that need none.

    Args:
        parser: How the engine's command line is read; None: it is not.
    """
    has_command = parser is not None and not engine.problems(profile)
    own_images = REPOSITORIES.get(profile.engine, ())
    told = wanted_version(profile)
    return advise(
        profile,
        engine.command(profile, Placement(nodes=profile.nodes)) if has_command else None,
        parser=parser,
        version=None if told is None else image_version(f"told:{told}", ("told",)),
        is_official=split_image(profile.image or "")[0].rpartition("/")[2] in own_images,
    )
