"""A recommendation in words: the answer, what decides it and how sure that is, and why the runner-up lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from orchestrator.report import foreign
from orchestrator.report.compare_words import change_words, interval_words
from orchestrator.report.notebook.identity import is_foreign
from orchestrator.report.recommend import OF_HEADLINE, Difference, Recommendation
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.use_candidates import Answer, Candidate, Check
from orchestrator.report.use_figures import STATED, USE_FIGURES, Told, UseFigure, in_seconds
from orchestrator.report.use_rules import Limit, Rule, Use, context_tok

TONES = {Answer.YES: "good", Answer.CAREFUL: "warn", Answer.NO: "bad"}
NO_DATA = "no data"
MOST_SAID = 3
"""Configurations that are named; of more, how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Figures that came about the same way. method: `measured`, `derived`, `stated`."""

    text: str
    method: str


def answer_words(found: Recommendation) -> str:
    return NO_DATA if found.best is None else found.best.answer.value


def tone(found: Recommendation) -> str:
    return "soft" if found.best is None else TONES[found.best.answer]


def limits_words(rule: Rule) -> str:
    """`first token p95 ≤ 3 s (careful: 10), ≥ 7 tok/s each (5)`."""
    shown = [limit for limit in rule.limits if limit.is_required or limit.figure == "e2e_p95"] or list(rule.limits)
    texts = [_limit(limit) for limit in shown]
    careful = [f"{_scaled(limit, limit.careful):g}" for limit in shown]
    return ", ".join(
        f"{t} ({'careful: ' if i == 0 else ''}{c})" for i, (t, c) in enumerate(zip(texts, careful, strict=True))
    )


def figures_words(found: Recommendation) -> tuple[Words, ...]:
    """Those that the rule shows, neighbours of one method together; of a batch its wall time first."""
    best, rule = found.best, found.rule
    if best is None or rule is None:
        return ()
    told: list[tuple[str, str]] = []
    if found.answers_s is not None:
        told.append((f"{found.use.answers} answers in {in_seconds(found.answers_s.value)}", found.answers_s.method))
    for figure in (USE_FIGURES[key] for key in rule.shows):
        one = figure.read(best.point)
        if one is not None and (figure_words(figure, one), one.method) not in told:
            told.append((figure_words(figure, one), one.method))
    if rule.is_any_level:
        told[-1] = (f"{told[-1][0]} at {best.point.figures.cell.concurrency} at once", told[-1][1])
    return tuple(
        Words(text=", ".join(text for text, _ in part), method=method)
        for method, part in groupby(told, key=lambda pair: pair[1])
    )


def figure_words(figure: UseFigure, told: Told) -> str:
    """`203.4 tok/s together (201.2 to 205.6)`, `first token 12.9 s p50`, `first token 1.26 s (mean)`."""
    if math.isinf(told.value):
        return f"{figure.title} {figure.share} never came"
    text = f"{figure.title} {figure.words(told.value)}".strip()
    if figure.share:
        text += f" ({told.stand_in})" if told.stand_in else f" {figure.share}"
    if not told.has_interval:
        return text
    scale = 100 if figure.unit == "%" else 1
    low, high = (_plain(v * scale) for v in (told.low, told.high))
    return f"{text} ({low} to {high})"


def cell_words(point: PointRow) -> str:
    """`swarm-54k: 32 agents, primed, 54282 tokens shared`."""
    cell = point.figures.cell
    who = "agent" if cell.kind == "swarm" else "user"
    count = f"{cell.concurrency} {who}{'' if cell.concurrency == 1 else 's'}" if cell.concurrency else ""
    if cell.rate_rps is not None:
        count = f"{cell.rate_rps:g} requests/s"
    sizes = f"{context_tok(cell)} in" if context_tok(cell) else "sizes not told"
    sizes += f", {cell.output_tok} out" if cell.output_tok else ""
    return f"{cell.workload}: {', '.join(w for w in (count, cell.variant, sizes) if w)}"


def because(candidate: Candidate) -> tuple[str, ...]:
    """Why it is no yes; empty for a yes."""
    lacking = [_short_of(c) for c in candidate.checks if c.answer in (Answer.CAREFUL, Answer.NO)]
    return (*candidate.refusals, *lacking, *candidate.doubts)


def lost_words(found: Recommendation) -> str:
    """`180.0 against 203.4 tok/s together (-11.5 %, no interval), first token 12.9 s against 5.10 s (+153 %)`."""
    best, second = found.best, found.second
    if best is None or second is None:
        return ""
    if found.is_tie:
        return f"a tie: {_against(found.differences[0])}" if found.differences else "a tie"
    words = []
    if second.answer.place > best.answer.place:
        kept = {c.limit.figure for c in best.checks if c.answer is Answer.YES}
        failed = [c for c in second.checks if c.answer not in (None, Answer.YES) and c.limit.figure in kept]
        worse = [*second.refusals, *(_short_of(c) for c in failed), *(d for d in second.doubts if d not in best.doubts)]
        words.append(f"{second.answer.value}: {', '.join(worse)}" if worse else second.answer.value)
    elif second.hosts > 1 >= best.hosts:
        words.append(f"needs {second.hosts} hosts")
    first, *further = found.differences or (None,)
    telling = next((d for d in further if d is not None and not d.is_none), None)
    return "; ".join([*words, *(_against(d) for d in (first, telling) if d is not None)])


def asides(found: Recommendation) -> tuple[str, ...]:
    """What else is to be known: other hosts, other reports, what may not win, what was not compared."""
    best, words = found.best, []
    if best is not None and best.hosts > 1:
        words.append(f"on {best.hosts} hosts: no single one has such a cell")
    for label, other in (("over several hosts", found.over_hosts), ("another report states", found.elsewhere)):
        if other is not None and found.rule is not None:
            words.append(f"{label}: {_name(other)}, {_rank_words(found.rule, other)}, {other.answer.value}")
    words += [f"may not win: {text}" for text in _named([(e.row.run.profile_title, e.reasons) for e in found.excluded])]
    if found.others:
        count = "1 configuration" if found.others == 1 else f"{found.others} configurations"
        words.append(f"{count} measured with another load only: not compared")
    return tuple(words)


def command(found: Recommendation) -> str:
    """What measures it; empty where it was measured here."""
    if found.best is not None and not found.best.is_foreign:
        return ""
    return f"gate0 run {_profile(found.best)} --workload {found.use.workload}"


def source_words(candidate: Candidate) -> str:
    """Empty for what was measured here."""
    return source_words_of(candidate.row)


def source_words_of(row: RunRow) -> str:
    return f"not measured here: {foreign.tool_words(row.run)}" if is_foreign(row) else ""


def limit_lines(uses: Sequence[Use]) -> Iterator[tuple[str, str]]:
    """Use and rule, and what it asks for."""
    for use in uses:
        for rule in use.rules:
            yield f"{use.title}: {rule.load}", limits_words(rule)


def _limit(limit: Limit) -> str:
    figure = USE_FIGURES[limit.figure]
    sign = "≤" if figure.is_less_good else "≥"
    head = f"{figure.title} {figure.share}".strip()
    return f"{head} {sign} {_scaled(limit, limit.yes):g} {figure.unit}".strip()


def _scaled(limit: Limit, value: float) -> float:
    return value * 100 if USE_FIGURES[limit.figure].unit == "%" else value


def _short_of(check: Check) -> str:
    """`first token 16.8 s p50, limit 15`, `first token p95 not known`, `… (2.5 to 3.4): reaches past 3`."""
    figure, told = check.figure, check.told
    if told is None:
        return f"{' '.join(w for w in (figure.title or figure.unit, figure.share) if w)} not known"
    bound = check.limit.careful if check.answer is Answer.NO else check.limit.yes
    text, shown = figure_words(figure, told), f"{_scaled(check.limit, bound):g}"
    is_kept = told.value <= bound if figure.is_less_good else told.value >= bound
    if not is_kept:
        return f"{text}, limit {shown}"
    return f"{text}: says nothing of {figure.share}" if told.stand_in else f"{text}: reaches past {shown}"


def _against(found: Difference) -> str:
    figure = found.figure
    a, b = figure.words(found.second.value), figure.words(found.best.value)
    unit = f" {figure.unit}" if figure.unit not in ("s", "%") else ""
    head = f"{figure.title} {'' if found.best.stand_in or found.second.stand_in else figure.share}".strip()
    values = f"{head} {a.removesuffix(unit)} against {b}".strip()
    if found.change is None:
        return values
    headline = OF_HEADLINE[figure.headline]
    words = [change_words(headline, found.change)]
    if found.is_none:
        words.append("within the interval" if found.is_sure else "the same")
    elif found.has_change_interval:
        words.append(interval_words(headline, found.change))
    elif found.best.method != STATED:
        words.append("the intervals are apart" if found.is_sure else "no interval")
    return f"{values} ({', '.join(words)})"


def _rank_words(rule: Rule, candidate: Candidate) -> str:
    return figure_words(USE_FIGURES[rule.ranks[0]], candidate.rank)


def _name(candidate: Candidate) -> str:
    return candidate.configuration.name


def _named(pairs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    shown = [f"{name} ({', '.join(reasons)})" for name, reasons in pairs[:MOST_SAID]]
    more = len(pairs) - MOST_SAID
    return [*shown, f"{more} more"] if more > 0 else shown


def _profile(candidate: Candidate | None) -> str:
    """The name of a profile that is there to run; else the word for one."""
    is_there = candidate is not None and bool(candidate.row.run.profile)
    return candidate.row.run.profile_name if candidate is not None and is_there else "PROFILE"


def _plain(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
