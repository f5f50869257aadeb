"""What a careful person would say of a profile: the rules, over what its engine makes of it."""

from __future__ import annotations

from orchestrator.engines.engine import Advisory, Engine, Placement
from orchestrator.engines.images import Version, split_image
from orchestrator.engines.rules.advising import advise
from orchestrator.engines.words import Parser
from orchestrator.profile.model import Profile


def advice(
    engine: Engine,
    profile: Profile,
    *,
    parser: Parser | None = None,
    version: Version | None = None,
    repositories: tuple[str, ...] = (),
) -> tuple[Advisory, ...]:
    """Every rule that applies; of a profile that comes to no command, only those that need none.

    Args:
        repositories: Last parts of the names of the engine's own images.
    """
    has_command = parser is not None and not engine.problems(profile)
    command = engine.command(profile, Placement(nodes=profile.nodes)) if has_command else None
    is_official = split_image(profile.image or "")[0].rpartition("/")[2] in repositories
    return advise(profile, command, parser=parser, version=version, is_official=is_official)
