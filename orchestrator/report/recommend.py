"""Which configuration to use for what: per use the best of those that may win, its verdict, and why the next one lost.

A cell that broke a guard, a run without its gates or one that failed them never wins; a verdict that varies may, with
care. What was measured here goes before what another reports, one host before several. Only cells of the very same
load are ranked against each other: of several loads that fit, the one with most complete answers decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.figures.change import Change, change_of
from orchestrator.figures.samples import Sample
from orchestrator.report.headlines import HEADLINES, Headline
from orchestrator.report.notebook.identity import Configuration, configurations_of, is_foreign
from orchestrator.report.pairing import Key, load_key
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.use_candidates import Candidate, barred, judged
from orchestrator.report.use_figures import USE_FIGURES, Told, UseFigure, answers_time
from orchestrator.report.use_rules import Rule, Use, context_tok
from orchestrator.report.uses import USES

OF_HEADLINE: Mapping[str, Headline] = {h.key: h for h in HEADLINES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What the runner-up has of one figure, and the winner. change: runner-up against winner; None: not to be had."""

    figure: UseFigure
    best: Told
    second: Told
    change: Change | None

    @property
    def is_sure(self) -> bool:
        """An interval tells whether there is a difference: over repeats, else the two figures' own."""
        return self.has_change_interval or (self.best.has_interval and self.second.has_interval)

    @property
    def has_change_interval(self) -> bool:
        return self.change is not None and self.change.interval is not None

    @property
    def is_none(self) -> bool:
        """The interval encloses none, or the two read the same."""
        if self.change is not None and self.change.interval is not None:
            return self.change.is_none
        if self.is_sure:
            return self.best.low <= self.second.high and self.second.low <= self.best.high
        return self.best.value == self.second.value

    @property
    def is_second_ahead(self) -> bool:
        """Surely better."""
        is_better = (self.second.value < self.best.value) is self.figure.is_less_good
        return self.is_sure and not self.is_none and is_better


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A configuration that has such a cell, and why it may not win."""

    row: RunRow
    point: PointRow
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One use.

    Attributes:
        rule: That decided; None: nothing was measured or reported.
        best: None: no cell, or none that may win.
        differences: Of `second` against `best`, by the ranks.
        is_tie: Nothing tells the two apart.
        over_hosts: Over several hosts, and ahead of `best` on one. elsewhere: the best of another's report, where
            `best` was measured here.
        excluded: Cells of any rule that may not win.
        others: Configurations that such a use was measured for with another load: not compared.
        answers_s: Of a batch: how long its answers take.
    """

    use: Use
    rule: Rule | None = None
    best: Candidate | None = None
    second: Candidate | None = None
    differences: tuple[Difference, ...] = ()
    is_tie: bool = False
    over_hosts: Candidate | None = None
    elsewhere: Candidate | None = None
    excluded: tuple[Excluded, ...] = ()
    others: int = 0
    answers_s: Told | None = None


def recommend(rows: Sequence[RunRow], uses: Sequence[Use] = USES) -> tuple[Recommendation, ...]:
    """One a use, in their order."""
    configurations = configurations_of(rows)
    return tuple(_recommend(use, configurations) for use in uses)


def _recommend(use: Use, configurations: Sequence[Configuration]) -> Recommendation:
    own, told = (_decided(use, [c for c in configurations if is_foreign(c.newest) is w]) for w in (False, True))
    found = own or told
    excluded = tuple(_excluded(use, configurations))
    if found is None:
        return Recommendation(use=use, excluded=excluded)
    is_timed = found.best is not None and use.answers
    return replace(
        found,
        elsewhere=told.best if own is not None and told is not None else None,
        excluded=excluded,
        answers_s=answers_time(found.best.point, use.answers) if found.best is not None and is_timed else None,
    )


def _decided(use: Use, configurations: Sequence[Configuration]) -> Recommendation | None:
    """By the first rule that has a cell; None: no rule has one that may win."""
    for rule in use.rules:
        groups: dict[tuple[object, ...], list[Candidate]] = {}
        for configuration in configurations:
            for key, candidate in _candidates(rule, configuration):
                groups.setdefault(key, []).append(candidate)
        if groups:
            chosen = max(groups.values(), key=lambda group: _weight(rule, group))
            return _ranked(use, rule, chosen, groups)
    return None


def _candidates(rule: Rule, configuration: Configuration) -> Iterator[tuple[tuple[object, ...], Candidate]]:
    """One a load that fits, of the newest run that carried it; at any level its best one."""
    done: dict[tuple[object, ...], Candidate | None] = {}
    for row in configuration.rows:
        of_row: dict[tuple[object, ...], list[Candidate | None]] = {}
        for point in row.points:
            if rule.matches(point.figures.cell):
                key = _load(rule, point)
                of_row.setdefault(key, []).append(judged(rule, configuration, row, point))
        for key, found in of_row.items():
            able = [c for c in found if c is not None]
            done.setdefault(key, min(able, key=lambda c: _order(rule, c)) if able else None)
    yield from ((key, c) for key, c in done.items() if c is not None)


def _load(rule: Rule, point: PointRow) -> tuple[object, ...]:
    """What two cells must share to be ranked against each other."""
    cell = point.figures.cell
    key: Key = load_key(replace(cell, concurrency=0) if rule.is_any_level else cell)
    return (*key, cell.vantage, str(cell.source.get("tool") or ""))


def _weight(rule: Rule, group: Sequence[Candidate]) -> tuple[object, ...]:
    """Of several loads that fit: most complete answers, sizes that are told, the wanted level, the most, the newest."""
    cell = group[0].point.figures.cell
    complete = sum(all(c.told is not None for c in g.checks if c.limit.is_required) for g in group)
    distance = 0 if rule.target is None else abs(cell.concurrency - rule.target)
    place = rule.kinds.index(cell.kind)
    newest = max(c.row.run.created_at for c in group)
    return complete, context_tok(cell) > 0, -distance, len(group), -place, newest, cell.workload, cell.id


def _order(rule: Rule, candidate: Candidate) -> tuple[int, bool, float, str]:
    """Best first: the answer, one host before several, the first ranking figure."""
    sign = 1 if USE_FIGURES[rule.ranks[0]].is_less_good else -1
    return candidate.answer.place, candidate.hosts > 1, sign * candidate.rank.value, candidate.configuration.name


def _ranked(
    use: Use, rule: Rule, group: Sequence[Candidate], groups: Mapping[tuple[object, ...], Sequence[Candidate]]
) -> Recommendation:
    ordered = sorted(group, key=lambda c: _order(rule, c))
    best = _champion(rule, ordered)
    rest = [c for c in ordered if c is not best]
    second = rest[0] if rest else None
    differences = () if second is None else tuple(_differences(rule, best, second))
    shown = {c.configuration.id for c in group}
    everyone = {c.configuration.id for of_one in groups.values() for c in of_one}
    return Recommendation(
        use=use,
        rule=rule,
        best=best,
        second=second,
        differences=differences,
        is_tie=second is not None and _are_equal(best, second) and all(d.is_none for d in differences),
        over_hosts=_over_hosts(rule, best, rest),
        others=len(everyone - shown),
    )


def _champion(rule: Rule, ordered: Sequence[Candidate]) -> Candidate:
    """Among those whose first figure differs by chance alone, the one that a further figure surely sets ahead."""
    best = leader = ordered[0]
    for candidate in ordered[1:]:
        if not _are_equal(leader, candidate) or not _is_tied(rule.ranks[0], leader, candidate):
            continue
        for key in rule.ranks[1:]:
            found = _difference(key, best, candidate)
            if found is not None and found.is_sure and not found.is_none:
                best = candidate if found.is_second_ahead else best
                break
    return best


def _are_equal(a: Candidate, b: Candidate) -> bool:
    return a.answer is b.answer and (a.hosts > 1) == (b.hosts > 1)


def _is_tied(key: str, a: Candidate, b: Candidate) -> bool:
    found = _difference(key, a, b)
    return found is not None and found.is_none


def _differences(rule: Rule, best: Candidate, second: Candidate) -> Iterator[Difference]:
    yield from (d for key in rule.ranks if (d := _difference(key, best, second)) is not None)


def _difference(key: str, best: Candidate, second: Candidate) -> Difference | None:
    figure = USE_FIGURES[key]
    of_best, of_second = figure.read(best.point), figure.read(second.point)
    if of_best is None or of_second is None:
        return None
    return Difference(figure=figure, best=of_best, second=of_second, change=_change(figure, best, second))


def _change(figure: UseFigure, best: Candidate, second: Candidate) -> Change | None:
    a, b = (_sample(figure, c.point) for c in (best, second))
    if a is None or b is None or a.statistic != b.statistic:
        return None
    return change_of(a, b, is_share=OF_HEADLINE[figure.headline].is_share)


def _sample(figure: UseFigure, point: PointRow) -> Sample | None:
    return next((s for s in point.figures.samples if s.key == figure.headline and not s.lane and not s.method), None)


def _over_hosts(rule: Rule, best: Candidate, rest: Sequence[Candidate]) -> Candidate | None:
    several = [c for c in rest if c.hosts > 1 and best.hosts == 1]
    found = min(several, key=lambda c: _order(rule, c), default=None)
    if found is None:
        return None
    sign = 1 if USE_FIGURES[rule.ranks[0]].is_less_good else -1
    is_ahead = math.copysign(1, sign) * (found.rank.value - best.rank.value) < 0
    return found if is_ahead or found.answer.place < best.answer.place else None


def _excluded(use: Use, configurations: Sequence[Configuration]) -> Iterator[Excluded]:
    """Configurations that have such a cell in their newest run that has one, and none that may win."""
    for configuration in configurations:
        row = next((r for r in configuration.rows if any(_matching(use, r))), None)
        found = [] if row is None else [(p, barred(configuration, row, p)) for p in _matching(use, row)]
        if row is not None and all(reasons for _, reasons in found):
            yield Excluded(row=row, point=found[0][0], reasons=found[0][1])


def _matching(use: Use, row: RunRow) -> Iterator[PointRow]:
    yield from (point for rule in use.rules for point in row.points if rule.matches(point.figures.cell))
