"""The portable settings, one translation each: a piece of command line, or the reason why there is none.

An engine is a tuple of steps. A step sees the profile and one rank's place and returns a `Piece`, a `Refused`, or None
when its setting is not declared. What a piece writes is also what it claims: a flag that the profile names itself and
a piece writes too is a double declaration, found by comparing words, so no second table can go stale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import Placement
from orchestrator.profile.model import Profile

GIB = 1024**3
GB10_TOTAL_BYTES = 127_600_748 * 1024
"""MemTotal of a DGX Spark (121.69 GiB): stands in until the host was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a declared setting becomes.

    Attributes:
        path: Dotted path in the profile.
        words: What it puts on the command line.
        claims: Canonical names of flags that it speaks for without writing them (a positional model: `model`).
        note: What is worth showing.
    """

    path: str
    words: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A declared setting that this engine cannot express; the message says what to use instead."""

    path: str
    message: str


Step = Callable[[Profile, Placement], Piece | Refused | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """All steps applied to one profile and place."""

    pieces: tuple[Piece, ...]
    refused: tuple[Refused, ...]


def translate(profile: Profile, place: Placement, steps: Sequence[Step]) -> Translation:
    """Apply the steps in order."""
    results = [result for step in steps if (result := step(profile, place)) is not None]
    return Translation(
        pieces=tuple(r for r in results if isinstance(r, Piece)),
        refused=tuple(r for r in results if isinstance(r, Refused)),
    )


def setting(name: str, flag: str) -> Step:
    """A `serve` setting that the engine takes as it is, under a flag of its own."""

    def step(profile: Profile, place: Placement) -> Piece | None:
        value = getattr(profile.serve, name)
        return None if value is None else Piece(path=f"serve.{name}", words=(flag, str(value)))

    return step


def served_name(flag: str) -> Step:
    """The name under which the model is served."""

    def step(profile: Profile, place: Placement) -> Piece | None:
        return Piece(path="served_name", words=(flag, profile.served_name)) if profile.served_name else None

    return step


def refuse(name: str, message: str) -> Step:
    """A `serve` setting that the engine has no word for."""

    def step(profile: Profile, place: Placement) -> Refused | None:
        return None if getattr(profile.serve, name) is None else Refused(path=f"serve.{name}", message=message)

    return step


def memory_share(flag: str, *, of: str, base_bytes: Callable[[Placement], int | None]) -> Step:
    """`memory_fraction` and `memory_gib` for an engine that takes a fraction.

    Args:
        flag: The engine's flag.
        of: What it is a fraction of, in words ("the total", "what is free at start").
        base_bytes: The same in bytes; None while the host was not asked, and a GB10's total stands in.
    """

    def step(profile: Profile, place: Placement) -> Piece | Refused | None:
        fraction, gib = profile.serve.memory_fraction, profile.serve.memory_gib
        if fraction is not None and gib is not None:
            return Refused(path="serve.memory_gib", message="also given as serve.memory_fraction; give one of the two")
        known = base_bytes(place)
        base_gib = (known or GB10_TOTAL_BYTES) / GIB
        guess = "" if known else ", taken from a DGX Spark until the host is asked"
        if fraction is not None:
            comes_to = f"{fraction * base_gib:.1f} GiB of {base_gib:.1f} GiB{guess}"
            note = f"serve.memory_fraction: {fraction:g} of {of} is {comes_to}"
            return Piece(path="serve.memory_fraction", words=(flag, f"{fraction:g}"), note=note)
        if gib is None:
            return None
        share = int(gib / base_gib * 1000) / 1000
        if not 0 < share <= 1:
            return Refused(
                path="serve.memory_gib", message=f"{gib:g} GiB is not within {of}: {base_gib:.1f} GiB{guess}"
            )
        note = f"serve.memory_gib: {gib:g} -> {flag} {share:g} of {of} ({base_gib:.1f} GiB{guess})"
        return Piece(path="serve.memory_gib", words=(flag, f"{share:g}"), note=note)

    return step
