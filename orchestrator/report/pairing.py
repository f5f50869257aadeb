"""Which cell of one run stands beside which of the other: by what was asked for, never by order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.records.record import CellRecord
from orchestrator.report.tables import PointRow

Key = tuple[str | int | float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPair:
    """The same load in both runs."""

    a: PointRow
    b: PointRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """In the order of A; `only_a`, `only_b`: what has no cell beside it."""

    pairs: tuple[CellPair, ...]
    only_a: tuple[PointRow, ...]
    only_b: tuple[PointRow, ...]


def load_key(cell: CellRecord) -> Key:
    """Workload, kind, variant, sizes and level."""
    sizes = (cell.prefix_tok, cell.prompt_tok, cell.output_tok, cell.depth_tok)
    return cell.workload, cell.kind, cell.variant, *sizes, cell.concurrency, cell.rate_rps, cell.burstiness


def pair_points(a: Sequence[PointRow], b: Sequence[PointRow]) -> Pairing:
    """Several cells of one load are told apart by their names; where that leaves more than one on a side, none pairs.

    An overload's rate follows from the server that was measured: such cells, and they alone, pair by name.
    """
    left_a, left_b = list(a), list(b)
    found: list[CellPair] = []
    for key in (_named_load, lambda p: load_key(p.figures.cell), _name):
        for pair in _unique_pairs(left_a, left_b, key):
            found.append(pair)
            left_a = [p for p in left_a if p is not pair.a]
            left_b = [p for p in left_b if p is not pair.b]
    places = {id(p): i for i, p in enumerate(a)}
    found.sort(key=lambda pair: places[id(pair.a)])
    return Pairing(pairs=tuple(found), only_a=tuple(left_a), only_b=tuple(left_b))


def _named_load(point: PointRow) -> Key:
    return *load_key(point.figures.cell), point.figures.cell.id


def _name(point: PointRow) -> Key | None:
    cell = point.figures.cell
    return (cell.workload, cell.kind, cell.variant, cell.id) if cell.kind == "overload" else None


def _unique_pairs(
    a: Iterable[PointRow], b: Iterable[PointRow], key: Callable[[PointRow], Key | None]
) -> tuple[CellPair, ...]:
    """One on each side with that key."""
    of_a, of_b = _by(a, key), _by(b, key)
    return tuple(
        CellPair(a=part[0], b=of_b[k][0]) for k, part in of_a.items() if len(part) == 1 and len(of_b.get(k, ())) == 1
    )


def _by(points: Iterable[PointRow], key: Callable[[PointRow], Key | None]) -> dict[Key, list[PointRow]]:
    found: dict[Key, list[PointRow]] = {}
    for point in points:
        if (of_point := key(point)) is not None:
            found.setdefault(of_point, []).append(point)
    return found
