"""Which configuration came of which: by what its profile extends, and by new builds and edits of the same profile."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestrator.figures.change import Form
from orchestrator.records.record import CellRecord
from orchestrator.report.compare import CellChange, Comparison, compare
from orchestrator.report.headlines import HEADLINES
from orchestrator.report.notebook.identity import Configuration, configurations_of, is_foreign
from orchestrator.report.pairing import pair_points
from orchestrator.report.tables import PointRow, RunRow

FIGURES = ("output_tok_per_s", "prompt_tok_per_s", "ttft_p50", "cached_share")
MOST_LEVELS = 4
"""Of one load, that are shown: the lowest, the highest, and what lies between in equal steps."""
VARIANTS = ("primed", "cold", "evicting", "single")
"""Of a swarm, the one that tells most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """One step of a path. configuration: None: the records do not have it."""

    name: str
    configuration: Configuration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change: `after` came of `before`.

    Attributes:
        is_same_profile: Another build of the engine, or an edit; else it extends it.
        path: From the oldest ancestor to `after`.
        comparison: Of the cells that are shown, `after` against `before`.
        headline: The cell that tells most; None: no cell of one has its like in the other.
        hidden: Paired cells that are not shown.
        overall: `after` against the oldest ancestor that the records have, its telling cell only; None: that is
            `before`.
    """

    before: RunRow
    after: RunRow
    is_same_profile: bool
    path: tuple[Ancestor, ...]
    comparison: Comparison
    headline: CellChange | None
    hidden: int
    overall: CellChange | None = None


def steps(rows: Sequence[RunRow]) -> tuple[Step, ...]:
    """The newest first; of one time those that did most."""
    known = [c for c in configurations_of(rows) if any(row.points for row in c.rows)]
    by_name: dict[tuple[str, str], list[Configuration]] = {}
    for c in known:
        by_name.setdefault((_source(c), profile_name(c.newest)), []).append(c)
    found = [step for c in known if (step := _extended(c, by_name)) is not None]
    found += [step for alike in by_name.values() for step in _rebuilt(alike, by_name)]
    return tuple(sorted(found, key=lambda s: (s.after.run.created_at, _size(s.headline)), reverse=True))


def profile_name(row: RunRow) -> str:
    """A transcript's run may have a name of its own beside that of its profile."""
    name = row.run.profile.get("name")
    return name if isinstance(name, str) and name else row.run.profile_name


Known = Mapping[tuple[str, str], Sequence[Configuration]]


def _extended(child: Configuration, by_name: Known) -> Step | None:
    """Against the nearest ancestor that the records have."""
    for name in child.newest.run.lineage:
        if (parents := by_name.get((_source(child), name), ())) and child not in parents:
            return _step(_nearest(parents, child), child, _path(child, by_name), is_same_profile=False)
    return None


def _rebuilt(alike: Sequence[Configuration], by_name: Known) -> Iterator[Step]:
    """One profile on the same hosts, build after build."""
    of_hosts: dict[tuple[str, ...], list[Configuration]] = {}
    for c in alike:
        of_hosts.setdefault(_hosts(c.newest), []).append(c)
    for builds in of_hosts.values():
        for before, after in pairwise(builds):
            path = (Ancestor(name=before.name, configuration=before), Ancestor(name=after.name, configuration=after))
            yield _step(before, after, path, is_same_profile=True)


def _step(before: Configuration, after: Configuration, path: tuple[Ancestor, ...], *, is_same_profile: bool) -> Step:
    a, b = _rows(before, after)
    shown, hidden = _shown(a, b)
    oldest = next((x.configuration for x in path if x.configuration is not None), None)
    far = None
    if oldest is not None and oldest is not before and oldest is not after:
        root, tip = _rows(oldest, after)
        far = telling(_shown(root, tip)[0])
    return Step(
        before=a,
        after=b,
        is_same_profile=is_same_profile,
        path=path,
        comparison=shown,
        headline=telling(shown),
        hidden=hidden,
        overall=far,
    )


def telling(found: Comparison) -> CellChange | None:
    """Of the load with most levels the highest; what cannot be compared comes last."""
    if not found.cells:
        return None
    loads: dict[object, list[CellChange]] = {}
    for cell in found.cells:
        loads.setdefault(_load(cell.cells[0]), []).append(cell)

    def weight(cell: CellChange) -> tuple[object, ...]:
        record = cell.cells[0]
        variant = -VARIANTS.index(record.variant) if record.variant in VARIANTS else -len(VARIANTS)
        return not cell.refusal, len(loads[_load(record)]), variant, record.concurrency, record.rate_rps or 0.0

    return max(found.cells, key=weight)


def _size(cell: CellChange | None) -> float:
    """How far the first figure moved, up or down."""
    change = None if cell is None else next((f.change for f in cell.figures if f.change is not None), None)
    if change is None or change.form is not Form.RATIO or not 0 < change.value < math.inf:
        return 0.0
    return abs(math.log(change.value))


def _shown(a: RunRow, b: RunRow) -> tuple[Comparison, int]:
    """Compared at the shown levels only."""
    pairs = pair_points(a.points, b.points).pairs
    kept = _thinned([(p.a, p.b) for p in pairs])
    figures = [h for h in HEADLINES if h.key in FIGURES]
    of_a, of_b = (replace(row, points=tuple(p[i] for p in kept)) for i, row in enumerate((a, b)))
    return compare(of_a, of_b, figures=figures), len(pairs) - len(kept)


def _thinned(pairs: Sequence[tuple[PointRow, PointRow]]) -> list[tuple[PointRow, PointRow]]:
    loads: dict[object, list[tuple[PointRow, PointRow]]] = {}
    for pair in pairs:
        cell = pair[0].figures.cell
        loads.setdefault((*_load(cell), cell.variant), []).append(pair)
    kept: list[tuple[PointRow, PointRow]] = []
    for of_load in loads.values():
        ordered = sorted(of_load, key=lambda pair: _level(pair[0].figures.cell))
        last = len(ordered) - 1
        count = min(MOST_LEVELS, len(ordered))
        places = {round(i * last / max(1, count - 1)) for i in range(count)}
        kept += [ordered[i] for i in sorted(places)]
    return kept


def _rows(before: Configuration, after: Configuration) -> tuple[RunRow, RunRow]:
    """The newest two that have a load in common; without one the newest of each."""
    with_points = [[row for row in c.rows if row.points] for c in (before, after)]
    both = ((a, b) for b in with_points[1] for a in with_points[0] if pair_points(a.points, b.points).pairs)
    return next(both, (with_points[0][0], with_points[1][0]))


def _nearest(parents: Sequence[Configuration], child: Configuration) -> Configuration:
    """Same hosts, same engine build, newest."""
    run = child.newest.run
    return max(
        parents,
        key=lambda c: (
            _hosts(c.newest) == _hosts(child.newest),
            (c.newest.run.engine, c.newest.run.engine_version) == (run.engine, run.engine_version),
            c.newest.run.created_at,
        ),
    )


def _path(child: Configuration, by_name: Known) -> tuple[Ancestor, ...]:
    ancestors = []
    for name in reversed(child.newest.run.lineage):
        known = by_name.get((_source(child), name), ())
        found = _nearest(known, child) if known else None
        ancestors.append(Ancestor(name=found.name if found is not None else name, configuration=found))
    return (*ancestors, Ancestor(name=child.name, configuration=child))


def _load(cell: CellRecord) -> tuple[object, ...]:
    return cell.workload, cell.kind, cell.prefix_tok, cell.prompt_tok, cell.output_tok, cell.depth_tok


def _level(cell: CellRecord) -> tuple[float, float]:
    return float(cell.concurrency), cell.rate_rps or 0.0


def _hosts(row: RunRow) -> tuple[str, ...]:
    return tuple(str(h.get("name")) for h in row.run.hosts)


def _source(configuration: Configuration) -> str:
    """Empty for what was measured here; reports are not mixed."""
    row = configuration.newest
    return str(row.run.source.get("title") or row.run.source.get("tool")) if is_foreign(row) else ""
