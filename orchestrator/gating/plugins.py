"""Gates, found through the entry-point group `gate0.gates`; the built-in ones come through the same door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from orchestrator.errors import InputError
from orchestrator.gating.gate import Gate, Status, Verdict
from orchestrator.values import Json
from orchestrator.wire.chat import Target

GROUP = "gate0.gates"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenGate:
    """Stands for a gate whose package could not be loaded: it says so when asked, and spoils nothing else."""

    name: str
    reason: str
    title: str = "could not be loaded"
    defaults: Mapping[str, Json] = field(default_factory=dict)

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Always ERROR, with the reason."""
        return Verdict(
            status=Status.ERROR,
            summary=f"the gate could not be loaded: {self.reason}",
            hint="reinstall or remove the package that brings it",
        )


def load_gates(points: Iterable[EntryPoint] | None = None) -> dict[str, Gate]:
    """All installed gates by name, in alphabetical order.

    Raises:
        InputError: Two packages bring different gates under one name.
    """
    gates: dict[str, Gate] = {}
    origins: dict[str, str] = {}
    for point in sorted(points if points is not None else entry_points(group=GROUP), key=lambda p: p.name):
        if origins.get(point.name, point.value) != point.value:
            raise InputError(
                f"two packages bring a gate named {point.name!r}: {origins[point.name]} and {point.value}",
                hint="uninstall one of them",
            )
        if point.name not in gates:
            origins[point.name] = point.value
            gates[point.name] = _load(point)
    return gates


def _load(point: EntryPoint) -> Gate:
    try:
        gate = point.load()
        missing = [word for word in ("name", "title", "defaults", "check") if not hasattr(gate, word)]
    except Exception as exc:  # noqa: BLE001 - a plugin may raise anything, and must not take the others with it
        return BrokenGate(name=point.name, reason=f"{point.value}: {type(exc).__name__}: {exc}")
    if missing:
        return BrokenGate(name=point.name, reason=f"{point.value}: has no {', '.join(missing)}")
    return gate  # type: ignore[no-any-return]
