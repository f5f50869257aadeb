"""Which cells of a load get a column: numbers of users (of a swarm, for each variant), thinned by doubling."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.report.columns import Matrix
from orchestrator.report.kinds.common import output_rate, output_value
from orchestrator.report.kinds.swarm import SWARM, VARIANTS
from orchestrator.report.series import Series, SeriesLine
from orchestrator.report.tables import PointRow

MOST = 8
HEADLINE_VARIANTS = ("primed", "cold", "evicting", "single")
"""Of variants that alike many runs have, the first tells most: what agents get once the prefix is loaded."""

BESIDE_SWARM = ("TTFT slowest (s)", "Read again per agent (tok)")
SWARM_MATRIX = Matrix(
    of="Output tokens per second, all agents together",
    unit="tok/s",
    words=output_rate,
    value=output_value,
    beside=tuple(replace(c, is_optional=True) for c in SWARM.columns if c.head in BESIDE_SWARM),
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Level:
    """A column of figures. variant: of a swarm; empty otherwise."""

    variant: str
    users: int


def matrix_of(series: Series) -> Matrix | None:
    return SWARM_MATRIX if series.family.name == "swarm" else series.family.matrix


def points_of(line: SeriesLine) -> Mapping[Level, PointRow]:
    """A run's points by level: of a series with a matrix."""
    return {_level(x.point): x.point for x in line.lines}


def levels_of(series: Series) -> tuple[Level, ...]:
    """All, in order: variants as a swarm goes through them, users upwards."""
    found = {level for line in series.lines for level in points_of(line)}
    return tuple(sorted(found, key=lambda level: (_place(VARIANTS, level.variant), level)))


def shown_levels(series: Series) -> tuple[Level, ...]:
    """At most about `MOST`: of each doubling of users the level that most runs have."""
    counts = _counts(series)
    of_variant: dict[str, list[Level]] = {}
    for level in levels_of(series):
        of_variant.setdefault(level.variant, []).append(level)
    room = max(2, MOST // max(1, len(of_variant)))
    return tuple(level for levels in of_variant.values() for level in _thinned(levels, counts, room))


def headline_level(series: Series) -> Level | None:
    """By which runs are sorted: the highest level that more than half of the runs have that carried its variant."""
    counts = _counts(series)
    if not counts:
        return None
    variants: Counter[str] = Counter()
    for line in series.lines:
        variants.update({level.variant for level in points_of(line)})
    variant = min(variants, key=lambda v: (-variants[v], _place(HEADLINE_VARIANTS, v)))
    shown = [level for level in shown_levels(series) if level.variant == variant]
    return max(level for level in shown if 2 * counts[level] > max(counts[x] for x in shown))


def _level(point: PointRow) -> Level:
    cell = point.figures.cell
    return Level(variant=cell.variant if cell.kind == "swarm" else "", users=cell.concurrency)


def _counts(series: Series) -> Counter[Level]:
    return Counter(level for line in series.lines for level in points_of(line))


def _thinned(levels: Sequence[Level], counts: Mapping[Level, int], room: int) -> Iterable[Level]:
    if len(levels) <= room:
        return levels
    octaves: dict[int, list[Level]] = {}
    for level in levels:
        octaves.setdefault(int(math.log2(max(level.users, 1))), []).append(level)
    left = [max(of_one, key=lambda level: (counts[level], -level.users)) for of_one in octaves.values()]
    while len(left) > room:
        left.remove(min(left[1:-1] or left, key=lambda level: (counts[level], level.users)))
    return left


def _place(order: Sequence[str], variant: str) -> int:
    return order.index(variant) if variant in order else len(order)
