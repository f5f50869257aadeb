"""Agents on one shared prefix: together, each, and how much of the prefix was read again."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.figures.swarm import SwarmFigures
from orchestrator.report.columns import Column, Family, Line, never
from orchestrator.report.kinds.common import GOOD, OUTPUT, PREFIX, PROMPT, RATE, SLO, TTFT_P50
from orchestrator.report.text import DASH, number, plus_minus, seconds, share

VARIANTS = ("single", "cold", "primed", "evicting")


def _of(write: Callable[[SwarmFigures], str]) -> Callable[[Line], str]:
    return lambda line: DASH if line.figures.swarm is None else write(line.figures.swarm)


def _of_warm(line: Line) -> str:
    """Per-agent speed beside that of one agent alone on a warm prefix."""
    own, warm = line.figures.per_user_tok_per_s, line.point.warm
    if own is None or warm is None or not warm.per_user_tok_per_s or line.cell.variant == "single":
        return DASH
    return share(own / warm.per_user_tok_per_s)


def _reread(found: SwarmFigures) -> str:
    """`400`, or `40 to 360`: the median agent, and the one that read most where it is another."""
    if found.reread_tok is None or found.reread_tok.p50 is None:
        return DASH
    most = found.reread_tok.max
    middle = number(found.reread_tok.p50, 0)
    return middle if most is None or most == found.reread_tok.p50 else f"{middle}, most {number(most, 0)}"


def _load_s(found: SwarmFigures) -> str:
    return DASH if found.prefix_load is None else plus_minus(found.prefix_load.seconds)


def _load_rate(found: SwarmFigures) -> str:
    return DASH if found.prefix_load is None else plus_minus(found.prefix_load.tok_per_s)


def _order(line: Line) -> tuple[str | float, ...]:
    cell = line.cell
    place = VARIANTS.index(cell.variant) if cell.variant in VARIANTS else len(VARIANTS)
    return cell.prefix_tok, cell.prompt_tok, cell.output_tok, place, cell.variant, cell.concurrency


SWARM = Family(
    name="swarm",
    axes=(PREFIX, PROMPT, OUTPUT),
    lead=(
        Column(
            head="Cell",
            short="cell",
            words=lambda line: line.cell.variant or "–",
            group="lead",
            is_struck=never,
            is_text=True,
        ),
        Column(
            head="Agents", short="agents", words=lambda line: str(line.cell.concurrency), group="lead", is_struck=never
        ),
    ),
    columns=(
        RATE,
        Column(
            head="tok/s per agent",
            short="per\nagent",
            words=lambda line: number(line.figures.per_user_tok_per_s),
            group="rate",
        ),
        Column(head="of one warm agent", short="of one\nwarm", words=_of_warm, group="rate", is_optional=True),
        TTFT_P50,
        Column(
            head="TTFT slowest (s)",
            short="TTFT s\nslowest",
            words=_of(lambda f: seconds(f.ttft_slowest_ms)),
            group="ttft",
        ),
        Column(
            head="All started (s)",
            short="all\nstarted s",
            words=_of(lambda f: plus_minus(f.all_started_s)),
            group="ttft",
        ),
        Column(
            head="Cached: expected",
            short="cached\nexpected",
            words=_of(lambda f: share(f.expected_cached_share, 1)),
            group="cache",
        ),
        Column(head="Cached: seen", short="cached\nseen", words=_of(lambda f: share(f.cached_share, 1)), group="cache"),
        Column(
            head="Read again per agent (tok)",
            short="read again\nper agent",
            words=_of(_reread),
            group="again",
        ),
        Column(
            head="Read again in all (tok)",
            short="read again\nin all",
            words=_of(lambda f: plus_minus(f.reread_total_tok, 0)),
            group="again",
        ),
        Column(head="Prefix load (s)", short="prefix\nload s", words=_of(_load_s), group="prefix", is_optional=True),
        Column(
            head="Prefix load (tok/s)",
            short="prefix\ntok/s",
            words=_of(_load_rate),
            group="prefix",
            is_optional=True,
        ),
        SLO,
        GOOD,
    ),
    caption=(
        "Cold: all at once on an empty cache, where one reading of the prefix cannot be saved; primed: one request "
        "loads the prefix, then all; evicting: more prefixes than fit; single: one agent on a warm prefix. Read again: "
        "shared tokens that were computed although they could have been cached."
    ),
    order=_order,
)
