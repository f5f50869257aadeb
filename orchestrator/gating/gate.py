"""A gate: one question about a running server, one verdict, its evidence.

Found through the entry-point group `gate0.gates`; a third party's gate is equal to a built-in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from orchestrator.values import Json
from orchestrator.wire.chat import Target


class Status(StrEnum):
    """What a gate found.

    PASS: as promised. UNSTABLE: varies within its own controls, or a near-tie; swept, shown, never a tick.
    FAIL: the server is wrong. ERROR: could not tell. SKIP: does not apply.
    """

    PASS = "pass"
    UNSTABLE = "unstable"
    FAIL = "fail"
    ERROR = "error"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A gate's answer.

    Attributes:
        summary: One line for the terminal, lower case, with the deciding figure.
        measured: The figures, by name with unit (`{"cached_tok": [0, 16384]}`).
        evidence: What was sent and what came back, enough to judge again by eye.
        hint: What to try, when it did not pass.
    """

    status: Status
    summary: str
    measured: Mapping[str, Json] = field(default_factory=dict)
    evidence: tuple[Mapping[str, Json], ...] = ()
    hint: str | None = None


class Gate(Protocol):
    """One check. `defaults` names every parameter it takes."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """What it proves, for the terminal."""
        ...

    @property
    def defaults(self) -> Mapping[str, Json]: ...

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Ask the server and judge. `params` is complete and of the defaults' types.

        A gate that cannot tell returns ERROR; it raises nothing for what a server may answer.
        """
        ...
