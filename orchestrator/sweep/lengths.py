"""How long prompts and answers are: one number, or drawn from a distribution by a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from orchestrator.values import Json, digest

MOST_TOK = 10_000_000
SHOWN_TABLE = 64
"""A longer table is shown by its size, mean and digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """A distribution of token counts. Exactly one of the four forms is set.

    Attributes:
        fixed: Always this many.
        around, spread: Whole numbers evenly from around x (1 - spread) to around x (1 + spread), both ends included:
            what `--random-range-ratio` of vLLM's bench means. `spread` in [0, 1).
        median, sigma: Lognormal, `sigma` of the natural logarithm.
        table: Observed lengths, drawn with equal chance (read from a file when the workload was loaded).
        least, most: Draws outside are moved to the bound.
    """

    fixed: int | None = None
    around: int | None = None
    spread: float = 0.0
    median: int | None = None
    sigma: float = 0.0
    table: tuple[int, ...] = ()
    least: int = 1
    most: int = MOST_TOK

    @property
    def is_fixed(self) -> bool:
        return self.fixed is not None

    @property
    def typical(self) -> int:
        """The mean, rounded: for names, estimates and columns."""
        if self.fixed is not None:
            return self.fixed
        if self.around is not None:
            return self.around
        if self.median is not None:
            return self._bounded(round(self.median * math.exp(self.sigma**2 / 2)))
        return round(sum(self._bounded(tok) for tok in self.table) / len(self.table))

    def draw(self, rng: Random) -> int:
        """One length, at least 1 token."""
        if self.fixed is not None:
            return self.fixed
        if self.around is not None:
            low, high = math.floor(self.around * (1 - self.spread)), math.ceil(self.around * (1 + self.spread))
            return self._bounded(rng.randint(low, high))
        if self.median is not None:
            return self._bounded(round(self.median * math.exp(rng.gauss(0.0, self.sigma))))
        return self._bounded(rng.choice(self.table))

    def as_json(self) -> Json:
        """As the workload's file says it; a table as what was read."""
        if self.fixed is not None:
            return self.fixed
        bounds: dict[str, Json] = {}
        if self.least != 1:
            bounds["least"] = self.least
        if self.most != MOST_TOK:
            bounds["most"] = self.most
        if self.around is not None:
            return {"around": self.around, "spread": self.spread, **bounds}
        if self.median is not None:
            return {"median": self.median, "sigma": self.sigma, **bounds}
        if len(self.table) <= SHOWN_TABLE:
            return {"table": list(self.table), **bounds}
        table: dict[str, Json] = {"size": len(self.table), "mean": self.typical, "digest": digest(list(self.table))}
        return {"table": table, **bounds}

    @property
    def label(self) -> str:
        """For a cell's name: `4096`, `4096r0.3`, `800ln1.2`, `table500m228` (500 lengths, 228 on average)."""
        if self.fixed is not None:
            return str(self.fixed)
        if self.around is not None:
            return f"{self.around}r{self.spread:g}"
        if self.median is not None:
            return f"{self.median}ln{self.sigma:g}"
        return f"table{len(self.table)}m{self.typical}"

    def _bounded(self, tok: int) -> int:
        return max(self.least, min(self.most, tok))


def fixed(tok: int) -> Lengths:
    return Lengths(fixed=tok)


def lengths_of(value: int | Mapping[str, Json], table: tuple[int, ...] = ()) -> Lengths:
    """From a value that fits the schema: a number, or a mapping of `Lengths` fields.

    Args:
        table: What the mapping's `file` holds, where it has one.
    """
    if isinstance(value, int):
        return Lengths(fixed=value)
    plain = {k: v for k, v in value.items() if k not in {"file", "column"}}
    return Lengths(table=table, **plain)  # type: ignore[arg-type]
