"""What load is asked for: a workload as frozen values, and the cells it unfolds into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.values import Json, digest


class Kind(StrEnum):
    """CLOSED: c requests kept in flight. BATCH: c at once, then wait for all."""

    CLOSED = "closed"
    BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A grid of load points.

    Attributes:
        prompt_tokens, output_tokens, concurrency: The grid's axes; every combination is a cell.
        requests_per_user: Closed loop: requests of one repeat = concurrency times this. Batch: always concurrency.
        repeats: Times each cell runs, each with fresh nonces at the start of each prompt.
        warmup: Unrecorded short requests before each cell, at the cell's concurrency.
        batch_answers: Size of the derived batch-time figure (200 in the eight-user report).
    """

    name: str
    title: str | None = None
    kinds: tuple[Kind, ...] = (Kind.CLOSED,)
    prompt_tokens: tuple[int, ...] = (128,)
    output_tokens: tuple[int, ...] = (256,)
    concurrency: tuple[int, ...] = (1, 2, 4, 8)
    requests_per_user: int = 1
    repeats: int = 5
    warmup: int = 2
    temperature: float = 0.0
    ignore_eos: bool = True
    endpoint: str = "chat"
    seed: int = 1
    request_timeout_s: float = 600.0
    batch_answers: int = 200
    extra_body: Mapping[str, Json] = field(default_factory=dict)

    def cells(self) -> tuple[Cell, ...]:
        """All points of the grid, by kind, prompt, output, then concurrency as listed."""
        return tuple(
            Cell(workload=self, kind=k, prompt_tok=p, output_tok=o, concurrency=c)
            for k in self.kinds
            for p in self.prompt_tokens
            for o in self.output_tokens
            for c in self.concurrency
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One point of the grid."""

    workload: Workload
    kind: Kind
    prompt_tok: int
    output_tok: int
    concurrency: int

    @property
    def id(self) -> str:
        return f"{self.kind.value}-p{self.prompt_tok}-o{self.output_tok}-c{self.concurrency}"

    @property
    def requests_per_repeat(self) -> int:
        return self.concurrency * (1 if self.kind is Kind.BATCH else self.workload.requests_per_user)

    def load_digest(self) -> str:
        """Identity of the load alone; the pipeline adds image, argv and effective settings."""
        w = self.workload
        return digest(
            {
                "id": self.id,
                "requests": self.requests_per_repeat,
                "repeats": w.repeats,
                "temperature": w.temperature,
                "ignore_eos": w.ignore_eos,
                "endpoint": w.endpoint,
                "seed": w.seed,
                "extra_body": dict(w.extra_body),
            }
        )
