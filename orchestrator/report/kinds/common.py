"""Axes and columns that several kinds of load share."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.figures.cell import CellFigures
from orchestrator.figures.stats import Percentiles
from orchestrator.records.record import CellRecord
from orchestrator.report import foreign
from orchestrator.report.columns import Axis, Column, Line, never
from orchestrator.report.notes import slo_words
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH, number, plus_minus, seconds, share


def latency(name: str, shown: str) -> Callable[[Line], str]:
    """In seconds; of another tool's point what it states, marked."""
    return lambda line: foreign.latency_words(line.figures, name, shown, seconds)


def own_seconds(of: Callable[[CellFigures], Percentiles | None], shown: str) -> Callable[[Line], str]:
    """A percentile in seconds that only our own stamps can give."""

    def words(line: Line) -> str:
        found = of(line.figures)
        return DASH if found is None else seconds(getattr(found, shown))

    return words


def output_rate(point: PointRow) -> str:
    """`203.4 ±1.2` tok/s."""
    figures = point.figures
    stated = foreign.find(figures.cell, *foreign.RATES)
    if stated is not None:
        return foreign.words(stated, number, "tok/s")
    if figures.cell.source or figures.output_tok_per_s is None:
        return foreign.marked(number(foreign.output_tok_per_s(figures)), figures.cell)
    return plus_minus(figures.output_tok_per_s, 1)


def per_user(line: Line) -> str:
    own = line.figures.per_user_tok_per_s
    return number(own) if own is not None else foreign.stated_words(line.cell, ("per_user_tok_per_s",), number, "tok/s")


def cached(line: Line) -> str:
    own = line.figures.cached_share
    return share(own, 1) if own is not None else foreign.stated_words(line.cell, ("cached_share",), _percent)


def _percent(value: float | None) -> str:
    return share(value, 1)


def output_value(point: PointRow) -> float | None:
    return point.figures.output_tok_per_s.mean if point.figures.output_tok_per_s else None


def about(cell: CellRecord, key: str, typical: int) -> str:
    """`4096`, or `about 4000` where lengths are drawn."""
    return str(typical) if not isinstance(cell.load.get(key), dict) else f"about {typical}"


def _size(cell: CellRecord, tokens: int) -> str:
    """0 in another's report is a size that it does not tell."""
    return DASH if cell.source and not tokens else str(tokens)


def _slo(line: Line) -> str:
    return DASH if line.figures.goodput is None else slo_words(line.figures.goodput)


def _slo_narrow(line: Line) -> str:
    """`met 97.5%`: what it asks for stands in the line below the table."""
    found = line.figures.goodput
    if found is None:
        return DASH
    return found.verdict.value if found.attainment is None else f"{found.verdict.value} {share(found.attainment, 1)}"


PROMPT = Axis(
    column=Column(
        head="In", short="in", words=lambda line: _size(line.cell, line.cell.prompt_tok), group="lead", is_struck=never
    ),
    title=lambda cell: (
        "" if _size(cell, cell.prompt_tok) == DASH else f"{about(cell, 'prompt_tokens', cell.prompt_tok)} tokens in"
    ),
)
OUTPUT = Axis(
    column=Column(
        head="Out",
        short="out",
        words=lambda line: _size(line.cell, line.cell.output_tok),
        group="lead",
        is_struck=never,
    ),
    title=lambda cell: (
        "" if _size(cell, cell.output_tok) == DASH else f"{about(cell, 'output_tokens', cell.output_tok)} out"
    ),
)
DEPTH = Axis(
    column=Column(
        head="Depth", short="depth", words=lambda line: str(line.cell.depth_tok), group="lead", is_struck=never
    ),
    title=lambda cell: f"after {cell.depth_tok} tokens of context" if cell.depth_tok else "",
)
PREFIX = Axis(
    column=Column(
        head="Prefix", short="prefix", words=lambda line: str(line.cell.prefix_tok), group="lead", is_struck=never
    ),
    title=lambda cell: f"{cell.prefix_tok} tokens shared",
)
USERS = Column(
    head="Users", short="users", words=lambda line: str(line.cell.concurrency), group="lead", is_struck=never
)

RATE = Column(head="tok/s", short="tok/s", words=lambda line: output_rate(line.point), group="rate")
PER_USER = Column(
    head="tok/s per user",
    short="per\nuser",
    words=per_user,
    group="rate",
)
CACHED = Column(
    head="Cached",
    short="cached",
    words=cached,
    group="cache",
    is_optional=True,
)
TTFT_P50 = Column(head="TTFT p50 (s)", short="TTFT s\np50", words=latency("ttft_ms", "p50"), group="ttft")
TTFT_P95 = Column(head="TTFT p95 (s)", short="TTFT s\np95", words=latency("ttft_ms", "p95"), group="ttft")
TPOT = Column(
    head="TPOT p50 (ms)",
    short="TPOT\nms",
    words=lambda line: foreign.latency_words(line.figures, "tpot_ms", "p50", number, "ms"),
    group="decode",
)
E2E = Column(head="E2E p50 (s)", short="E2E s\np50", words=latency("e2e_ms", "p50"), group="decode")
SLO = Column(
    head="SLO",
    short="SLO",
    words=_slo,
    narrow=_slo_narrow,
    group="slo",
    is_text=True,
    is_long=True,
    is_optional=True,
)
GOOD = Column(head="Good", short="good", words=lambda line: foreign.good_words(line.figures), group="slo")


def order(line: Line) -> tuple[str | float, ...]:
    """By sizes, then by users."""
    cell = line.cell
    return cell.prefix_tok, cell.prompt_tok, cell.output_tok, cell.depth_tok, cell.concurrency
