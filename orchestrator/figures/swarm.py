"""Many agents on one prefix: how fast together, when all are under way, and how much of the prefix was read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.figures.plain import Plain
from orchestrator.figures.request import NS_PER_S, ttft_ms, uncached_tok
from orchestrator.figures.scope import by_repeat, good_of, of_phase, values_of
from orchestrator.figures.stats import Percentiles, Spread, percentiles, spread
from orchestrator.records.record import RequestRecord

if TYPE_CHECKING:
    from orchestrator.figures.cell import CellFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLoad(Plain):
    """The request that read the prefix before the agents came (phase `prime`), mean over repeats.

    Attributes:
        seconds: Its TTFT.
        tok_per_s: Its uncached tokens / TTFT; None when the server does not tell the cached ones.
    """

    seconds: Spread
    tok_per_s: Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmFigures(Plain):
    """Beside a cell's standard figures (combined tok/s, per-agent speed, TTFT).

    Attributes:
        agents: Asked at once.
        ttft_slowest_ms: The slowest agent's first token of all repeats; None when one has none.
        expected_cached_share: Tokens that the cache should have given / prompt tokens. By each request's own
            expectation (`expected_cached_tok`: shared tokens rounded down to the cache's unit), else its shared tokens.
        cached_share: Tokens that it gave / prompt tokens; None when the server did not tell one of them.
        reread_tok: Shared tokens that an agent's request computed again (shared - cached, at least 0), by agent.
        reread_total_tok: Summed over the agents of a repeat, mean over repeats. In a cold swarm one reading of the
            prefix is in it that nobody can save.
        hit_ends: At which token hits ended, and how many did: `{cached_tok: requests}`, ascending.
        all_started_s: First byte sent by the first agent to the first token of the last one; a repeat in which one
            agent got none gives none.
        prefix_load: None without a `prime` request.
    """

    agents: int
    ttft_slowest_ms: float | None
    expected_cached_share: float | None
    cached_share: float | None
    reread_tok: Percentiles | None
    reread_total_tok: Spread | None
    hit_ends: Mapping[int, int]
    all_started_s: Spread | None
    prefix_load: PrefixLoad | None


def swarm_figures(agents: int, requests: Sequence[RequestRecord]) -> SwarmFigures | None:
    """Of all phases of a swarm's cell; None without a `main` request."""
    main = of_phase(requests)
    if not main:
        return None
    good = good_of(main)
    first = values_of(good, ttft_ms)
    reread = [_reread_tok(r) for r in good]
    totals = [_sum([_reread_tok(r) for r in good_of(part)]) for part in by_repeat(main).values()]
    return SwarmFigures(
        agents=agents,
        ttft_slowest_ms=max(first, default=None) if len(first) == len(main) else None,
        expected_cached_share=_share(good, _expected_tok),
        cached_share=_share(good, lambda r: r.cached_tok),
        reread_tok=percentiles([v for v in reread if v is not None]) if good and None not in reread else None,
        reread_total_tok=spread([v for v in totals if v is not None]),
        hit_ends=dict(sorted(Counter(r.cached_tok for r in good if r.cached_tok is not None).items())),
        all_started_s=spread([v for part in by_repeat(main).values() if (v := _all_started_s(part)) is not None]),
        prefix_load=_prefix_load(good_of(of_phase(requests, "prime"))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmAgent(Plain):
    """One agent alone on the warm prefix: what the swarm is compared with."""

    ttft_ms: float | None
    per_user_tok_per_s: float | None
    cached_share: float | None


def warm_agent(point: CellFigures, others: Sequence[CellFigures]) -> WarmAgent | None:
    """From the `single` cell of the same swarm; None when it was not run or is not valid."""
    key = (point.cell.workload, point.cell.prefix_tok, point.cell.prompt_tok, point.cell.output_tok)
    for other in others:
        cell = other.cell
        is_same = (cell.workload, cell.prefix_tok, cell.prompt_tok, cell.output_tok) == key
        if cell.kind == "swarm" and cell.variant == "single" and is_same and other.is_valid:
            return WarmAgent(
                ttft_ms=other.ttft_ms.p50,
                per_user_tok_per_s=other.per_user_tok_per_s,
                cached_share=other.cached_share,
            )
    return None


def _expected_tok(request: RequestRecord) -> int | None:
    return request.expected_cached_tok if request.expected_cached_tok is not None else request.shared_tok


def _reread_tok(request: RequestRecord) -> int | None:
    if request.shared_tok is None or request.cached_tok is None:
        return None
    return max(0, request.shared_tok - request.cached_tok)


def _share(good: Sequence[RequestRecord], count: object) -> float | None:
    """Counted / prompt tokens; None as soon as one of either is unknown."""
    counts = [count(r) for r in good]  # type: ignore[operator]
    prompts = [r.prompt_tok for r in good]
    total, counted = _sum(prompts), _sum(counts)
    return counted / total if total and counted is not None else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None


def _all_started_s(part: Sequence[RequestRecord]) -> float | None:
    sent = [r.sent_ns for r in part if r.sent_ns is not None]
    first = [r.first_token_ns for r in good_of(part) if r.first_token_ns is not None]
    return (max(first) - min(sent)) / NS_PER_S if sent and len(first) == len(part) else None


def _prefix_load(primes: Sequence[RequestRecord]) -> PrefixLoad | None:
    timed = [(r, ms / 1000) for r in primes if (ms := ttft_ms(r)) is not None and ms > 0]
    lengths = spread([s for _, s in timed])
    if lengths is None:
        return None
    speeds = [tok / s for r, s in timed if (tok := uncached_tok(r)) is not None]
    return PrefixLoad(seconds=lengths, tok_per_s=spread(speeds) if len(speeds) == len(timed) else None)
