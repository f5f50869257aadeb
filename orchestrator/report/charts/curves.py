"""Which configurations stand in which picture: the best of each load, one line each, looking the same everywhere."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.figures.saturation import Knee, knee
from orchestrator.report.charts.palette import Style, places, style_of
from orchestrator.report.charts.readings import first_token, per_user, total
from orchestrator.report.columns import Axis
from orchestrator.report.kinds.arrivals import BURSTINESS, CAP
from orchestrator.report.notebook.book import Book
from orchestrator.report.notebook.identity import Configuration, by_run, configurations_of, newest_only
from orchestrator.report.notebook.levels import headline_level, points_of
from orchestrator.report.series import Series, SeriesLine
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.words import engine_words, host_words

LIMIT = 8
"""Configurations a picture: more lines are not told apart."""
BEST = 6
"""Places that go by rank; in the others stand the configurations that these extend, then the next best."""
SLUG = 72
SPLITS: tuple[Axis, ...] = (BURSTINESS, CAP)
"""Sizes of a load that its table has as columns and that make a picture of their own each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One configuration in one picture. `points`: ascending by level, each level once."""

    label: str
    style: Style
    row: RunRow
    points: tuple[PointRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a picture is of.

    Attributes:
        slug: The title as a file's name.
        curves: The best first, at most `LIMIT` of `known`.
    """

    slug: str
    title: str
    kind: str
    curves: tuple[Curve, ...]
    known: int

    @property
    def labels(self) -> list[str]:
        return [c.label for c in self.curves]

    @property
    def levels(self) -> tuple[int, ...]:
        """Those at which anything is known."""
        known = (
            p
            for c in self.curves
            for p in c.points
            if any(read(p) is not None for read in (total, per_user, first_token))
        )
        return tuple(sorted({p.figures.cell.concurrency for p in known}))

    @property
    def words(self) -> str:
        """What is to be known of its lines: which are another's word, and that they are not all."""
        foreign = [c.label for c in self.curves if c.row.run.source]
        stated = ""
        if foreign:
            who = "all" if len(foreign) == len(self.curves) else listed(foreign)
            stated = f"Stated by others, not measured here: {who}."
        if self.known <= len(self.curves):
            return stated
        left = f"Shown are {len(self.curves)} of {self.known} configurations: the best, and what they extend."
        return f"{stated} {left}".strip()


def listed(labels: Sequence[str]) -> str:
    """The first three, and how many more."""
    more = len(labels) - 3
    return ", ".join(labels[:3]) + (f" and {more} more" if more > 0 else "")


def loads(book: Book) -> tuple[Load, ...]:
    """One or more of each series; labels and styles are settled over all of them."""
    known = configurations_of(book.rows)
    of_run, labels = by_run(known), labels_of(known)
    drafts = [draft for part in book.series for draft in _drafts(newest_only(part, of_run))]
    named = [_named(draft, labels) for draft in drafts]
    found = places([load.labels for load in sorted(named, key=lambda load: -load.known)])
    return tuple(
        replace(load, curves=tuple(replace(c, style=style_of(found[c.label])) for c in load.curves)) for load in named
    )


def labels_of(configurations: Sequence[Configuration]) -> Mapping[str, str]:
    """By run: the name, with what tells two configurations of one name apart."""
    by_name: dict[str, list[Configuration]] = {}
    for c in configurations:
        by_name.setdefault(c.name or c.newest.run.profile_name, []).append(c)
    found: dict[str, str] = {}
    for name, alike in by_name.items():
        for c, label in zip(alike, _apart(name, [c.newest for c in alike]), strict=True):
            unique = label if label not in found.values() else f"{label} [{c.newest.run.id}]"
            found |= {row.run.id: unique for row in c.rows}
    return found


def slug(text: str) -> str:
    """`concurrency-closed-128-tokens-in-256-out`; with a digest where letters had to go or it is long."""
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
    if len(plain) <= SLUG and text.isascii():
        return plain
    return f"{plain[:SLUG].rstrip('-.')}-{hashlib.sha256(text.encode()).hexdigest()[:6]}".lstrip("-")


def knee_of(curve: Curve) -> Knee | None:
    """By its valid totals."""
    rates = [
        (float(p.figures.cell.concurrency), r.value)
        for p in curve.points
        if p.figures.is_valid and (r := total(p)) is not None
    ]
    return knee(rates)


def _drafts(series: Series) -> Iterator[Load]:
    """Empty labels and no styles yet."""
    lines = _ranked(series)
    if series.family.name not in ("open", "overload"):
        yield _draft(series.key.title, series, lines, [tuple(of.point for of in line.lines) for line in lines])
        return
    variants: dict[str, dict[int, list[PointRow]]] = {}
    for at, line in enumerate(lines):
        for of_line in line.lines:
            words = ", ".join(w for axis in SPLITS if (w := axis.title(of_line.cell)))
            variants.setdefault(words, {}).setdefault(at, []).append(of_line.point)
    for words, parts in sorted(variants.items()):
        title = series.key.title if not words or words in series.key.title else f"{series.key.title}, {words}"
        yield _draft(title, series, [lines[at] for at in parts], [tuple(p) for p in parts.values()])


def _ranked(series: Series) -> list[SeriesLine]:
    """The best first: as its table has them; of a swarm by the total at the level that its table is sorted by; of loads
    that come by the clock by the first token at the highest rate.
    """
    if series.family.name == "swarm":
        level = headline_level(series)
        found = [None if level is None else points_of(line).get(level) for line in series.lines]
        totals = [total(p) if p is not None and p.figures.is_valid else None for p in found]
        scores = [-math.inf if r is None else r.value for r in totals]
    elif series.family.name in ("open", "overload", "replay"):
        scores = [-_first_token_s(line) for line in series.lines]
    else:
        return list(series.lines)
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    return [series.lines[i] for i in order]


def _first_token_s(line: SeriesLine) -> float:
    """At its highest rate with a valid figure, from the schedule; infinite without one."""
    valid = [x.point for x in line.lines if x.figures.is_valid and first_token(x.point) is not None]
    top = max(valid, key=lambda p: p.figures.cell.rate_rps or 0.0, default=None)
    found = None if top is None else first_token(top)
    return math.inf if found is None else found.value


def _draft(title: str, series: Series, lines: Sequence[SeriesLine], points: Sequence[tuple[PointRow, ...]]) -> Load:
    chosen = _chosen(lines)
    curves = [
        Curve(label="", style=style_of(0), row=line.row, points=part)
        for line, part in zip(lines, points, strict=True)
        if line in chosen
    ]
    return Load(slug=slug(title), title=title, kind=series.key.kind, curves=tuple(curves), known=len(lines))


def _chosen(lines: Sequence[SeriesLine]) -> list[SeriesLine]:
    """The best, those that they extend, the next best."""
    if len(lines) <= LIMIT:
        return list(lines)
    best = list(lines[:BEST])
    parents = {line.row.run.lineage[0] for line in best if line.row.run.lineage}
    for line in [*(x for x in lines[BEST:] if x.row.run.profile_name in parents), *lines[BEST:]]:
        if len(best) < LIMIT and line not in best:
            best.append(line)
    return best


def _named(load: Load, labels: Mapping[str, str]) -> Load:
    return replace(load, curves=tuple(replace(c, label=labels[c.row.run.id]) for c in load.curves))


def _apart(title: str, rows: Sequence[RunRow]) -> list[str]:
    if len(rows) == 1:
        return [title]
    tries = (
        [host_words(r) for r in rows],
        [engine_words(r) for r in rows],
        [f"{engine_words(r)}, {host_words(r)}" for r in rows],
        [r.run.id for r in rows],
    )
    words = next((t for t in tries if len(set(t)) == len(rows) and all(t)), tries[-1])
    return [f"{title} ({w})" for w in words]
