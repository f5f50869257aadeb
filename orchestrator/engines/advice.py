"""What a careful person would say of any profile, whatever its engine."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.engines.engine import Advisory
from orchestrator.engines.images import split_image
from orchestrator.profile.model import Profile, RuntimeKind

LARGE_SHM_GIB = 16
FLOATING_TAGS = ("", "latest", "nightly", "dev", "main")


def common_advice(profile: Profile) -> Iterator[Advisory]:
    """Exposure, image tag, shared memory, restart policy."""
    if profile.expose == "network" and profile.serve.api_key is None and profile.attach is None:
        yield Advisory(
            code="open_server",
            message="the server listens beyond loopback and asks for no key",
            hint="serve.api_key: generate, or expose: loopback",
        )
    if profile.runtime is RuntimeKind.DOCKER and profile.image and "@" not in profile.image:
        tag = split_image(profile.image)[1]
        if tag in FLOATING_TAGS or "nightly" in tag:
            yield Advisory(
                code="floating_tag",
                message=f"{profile.image} names another image tomorrow",
                hint="pin a version tag, or name@sha256:…",
            )
    if (profile.container.shm_gib or 0) > LARGE_SHM_GIB:
        yield Advisory(
            code="large_shm",
            message=f"container.shm_gib: {profile.container.shm_gib:g} is the model's own memory on a DGX Spark",
            hint="10 is enough",
        )
    if profile.container.restart != "no":
        yield Advisory(
            code="restarts",
            message=f"container.restart: {profile.container.restart} hides why a server died",
            hint='restart: "no" while measuring',
        )


def declared_fraction_advice(profile: Profile, *, above: float) -> Iterator[Advisory]:
    """A share of memory that has taken DGX Sparks down."""
    fraction = profile.serve.memory_fraction
    if fraction is not None and fraction > above:
        yield Advisory(
            code="high_memory_fraction",
            message=f"serve.memory_fraction: {fraction:g} leaves little to the rest of a unified-memory host",
            hint=f"{above:g} or less; neither the fraction nor Docker's limits are a hard bound there",
        )
