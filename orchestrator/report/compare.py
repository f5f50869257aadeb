"""One run against another: cells paired by their load, each headline figure with its change, interval and verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.figures.samples import Sample, slope_sample
from orchestrator.records.record import CellRecord
from orchestrator.report.differences import Difference, differences
from orchestrator.report.figure_change import FigureChange, Verdict, figure_change
from orchestrator.report.headlines import HEADLINES, Headline
from orchestrator.report.pairing import CellPair, pair_points
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """A pair of cells."""

    a: PointRow
    b: PointRow
    figures: tuple[FigureChange, ...]

    @property
    def cells(self) -> tuple[CellRecord, CellRecord]:
        return self.a.figures.cell, self.b.figures.cell

    @property
    def name(self) -> str:
        """Their id; both where they differ."""
        a, b = self.cells
        return a.id if a.id == b.id else f"{a.id} / {b.id}"

    @property
    def refusal(self) -> str:
        """The one reason why nothing of the pair can be compared; empty when something can, or for several reasons."""
        reasons = {f.reason for f in self.figures}
        is_refused = all(f.verdict is Verdict.NOT_COMPARABLE for f in self.figures)
        return reasons.pop() if is_refused and len(reasons) == 1 else ""

    def as_json(self) -> dict[str, Json]:
        a, b = self.cells
        load = ("workload", "kind", "variant", "concurrency", "rate_rps", "prompt_tok", "output_tok", "depth_tok")
        return {
            **{name: getattr(a, name) for name in (*load, "prefix_tok")},
            "a": a.id,
            "b": b.id,
            "marks": {"a": list(self.a.marks), "b": list(self.b.marks)},
            "figures": [f.as_json() for f in self.figures],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """B against A.

    Attributes:
        differences: Of the configurations: what may explain the changes.
        only_a, only_b: Cells without one of the same load in the other.
    """

    a: RunRow
    b: RunRow
    differences: tuple[Difference, ...]
    cells: tuple[CellChange, ...]
    only_a: tuple[PointRow, ...]
    only_b: tuple[PointRow, ...]

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Figures by verdict, all five."""
        found = Counter(f.verdict for cell in self.cells for f in cell.figures)
        return {verdict: found[verdict] for verdict in Verdict}

    @property
    def has_verdict(self) -> bool:
        """At least one figure has an interval: a threshold can be judged."""
        counts = self.counts
        return any(counts[v] for v in (Verdict.BETTER, Verdict.WORSE, Verdict.NO_DIFFERENCE))

    def worse_by(self, share: float) -> tuple[tuple[CellChange, FigureChange], ...]:
        """Figures that are surely worse by more than that share."""
        return tuple((cell, f) for cell in self.cells for f in cell.figures if f.is_worse_by(share))

    def as_json(self) -> dict[str, Json]:
        return {
            "a": _run_json(self.a),
            "b": _run_json(self.b),
            "differences": [d.as_json() for d in self.differences],
            "cells": [c.as_json() for c in self.cells],
            "only_a": [_point_name(p) for p in self.only_a],
            "only_b": [_point_name(p) for p in self.only_b],
            "counts": {verdict.value: count for verdict, count in self.counts.items()},
        }


def compare(
    a: RunRow,
    b: RunRow,
    *,
    figures: Sequence[Headline] = HEADLINES,
    workloads: Collection[str] = (),
    force: bool = False,
) -> Comparison:
    """
    Args:
        workloads: These alone; empty: all.
        force: Compare figures of other definitions, and loads from other places, too.
    """
    of_a, of_b = ([p for p in row.points if not workloads or p.figures.cell.workload in workloads] for row in (a, b))
    pairing = pair_points(of_a, of_b)
    return Comparison(
        a=a,
        b=b,
        differences=differences(a.run, b.run),
        cells=tuple(
            CellChange(a=pair.a, b=pair.b, figures=tuple(_figures(pair, a, b, figures=figures, force=force)))
            for pair in pairing.pairs
        ),
        only_a=pairing.only_a,
        only_b=pairing.only_b,
    )


def _figures(
    pair: CellPair, a: RunRow, b: RunRow, *, figures: Sequence[Headline], force: bool
) -> Iterator[FigureChange]:
    of_a, of_b = _samples(pair.a, a), _samples(pair.b, b)
    cells = pair.a.figures.cell, pair.b.figures.cell
    lanes = dict.fromkeys(lane for lane, _ in (*of_a, *of_b))
    for lane in lanes:
        for headline in figures:
            one, other = of_a.get((lane, headline.key)), of_b.get((lane, headline.key))
            is_there = headline.is_of(cells[0].kind) and (one is not None or other is not None)
            if is_there and not (headline.is_moot_at_zero and not any(s is not None and s.mean for s in (one, other))):
                yield figure_change(*cells, headline, one, other, lane=lane, force=force)


def _samples(point: PointRow, row: RunRow) -> dict[tuple[str, str], Sample]:
    found = {(s.lane, s.key): s for s in point.figures.samples}
    slope = slope_sample(point.figures, [p.figures for p in row.points])
    return found if slope is None else {("", slope.key): slope, **found}


def _run_json(row: RunRow) -> dict[str, Json]:
    run = row.run
    return {
        "id": run.id,
        "profile": run.profile_name,
        "title": run.profile_title,
        "hosts": [str(h.get("name")) for h in run.hosts],
        "status": run.status,
        "created_at": run.created_at,
        "verdict": row.verdict,
        "is_ungated": run.is_ungated,
        "source": dict(run.source),
        "warnings": list(row.warnings),
    }


def _point_name(point: PointRow) -> str:
    return f"{point.figures.cell.workload}/{point.figures.cell.id}"
