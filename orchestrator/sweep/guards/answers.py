"""What the answers themselves show: failures, lengths, cached tokens, and whether tokens could be counted."""

from __future__ import annotations

from collections import Counter

from orchestrator.records.record import Guard, RequestRecord, TokenSource
from orchestrator.sweep.guards.cell import TIMED, GuardInput
from orchestrator.sweep.spec import MAIN
from orchestrator.sweep.workload import Kind, SwarmCell

FAILED_SHARE = 0.01
"""Of an open load: one lost request in a hundred changes no percentile below the 99th."""
PROMPT_SHARE = 0.02
SHARING = frozenset({Kind.SWARM, Kind.SESSIONS})
"""How much of the shared tokens is read again is what these are measured for; only no hit at all says that the cell is
not the one that was declared."""
REAL_HIT = 0.5
UNCOUNTED = frozenset({TokenSource.USAGE_TOTAL.value, TokenSource.UNKNOWN.value})
LOADS_WITH_LOSS = TIMED | {Kind.MIXED}


def failures(cell: GuardInput) -> Guard | None:
    """Any in a closed load, more than 1 % in an open one; an overload's failures are what it is measured for."""
    kind = cell.cell.kind
    if kind is Kind.OVERLOAD:
        return None
    main = [r for r in cell.requests if r.phase == MAIN]
    expected = cell.cell.requests_per_repeat * len(cell.laps) or len(main)
    missing = expected - len(main)
    counts = Counter(r.failure for r in cell.requests if r.failure is not None)
    if missing > 0:
        counts["not_sent"] = missing
    allowed = FAILED_SHARE * expected if kind in LOADS_WITH_LOSS else 0
    if sum(counts.values()) <= allowed:
        return None
    listed = ", ".join(f"{name} {n}" for name, n in counts.most_common())
    first = next((r.error for r in cell.requests if r.error), None)
    message = f"{sum(counts.values())} of {expected} requests failed: {listed}"
    return Guard(name="failures", message=f"{message} ({first})" if first else message)


def prompt_length(cell: GuardInput) -> Guard | None:
    """The server counts another prompt than was asked for, by more than 2 %."""
    off = [
        r
        for r in cell.good
        if r.prompt_tok is not None
        and r.expected_prompt_tok is not None
        and abs(r.prompt_tok - r.expected_prompt_tok) > PROMPT_SHARE * r.expected_prompt_tok
    ]
    if not off:
        return None
    worst = max(off, key=lambda r: abs((r.prompt_tok or 0) - (r.expected_prompt_tok or 0)))
    return Guard(
        name="prompt_length",
        message=f"{len(off)} prompts are more than {PROMPT_SHARE:.0%} off: "
        f"asked {worst.expected_prompt_tok} tokens, the server counted {worst.prompt_tok}",
    )


def output_length(cell: GuardInput) -> Guard | None:
    """An answer that is not as long as asked, where the length is fixed."""
    if not cell.cell.is_length_fixed:
        return None
    off = [r for r in cell.good if r.output_tok is not None and r.output_tok != cell.asked_tok(r)]
    if not off:
        return None
    worst = max(off, key=lambda r: abs((r.output_tok or 0) - cell.asked_tok(r)))
    return Guard(
        name="output_length",
        message=f"{len(off)} answers have another length: asked {cell.asked_tok(worst)} tokens, "
        f"got {worst.output_tok} (finish reason {worst.finish_reason})",
    )


def cached_tokens(cell: GuardInput) -> Guard | None:
    """More from the cache than expected anywhere, or less where the cell stands on a hit."""
    unit = cell.target.cache_unit_tok
    told = [r for r in cell.good if r.cached_tok is not None and r.expected_cached_tok is not None]
    more = [r for r in told if _cached(r) > _expected(r) + unit]
    if more:
        worst = max(more, key=lambda r: _cached(r) - _expected(r))
        return Guard(
            name="cached_tokens",
            message=f"{len(more)} prompts came from the prefix cache: expected at most {_expected(worst)} "
            f"tokens and one unit of {unit}, saw {_cached(worst)}",
        )
    wanted = [r for r in told if is_on_a_hit(cell, r)]
    less = [r for r in wanted if _is_short(cell, r)]
    if not less or (cell.cell.kind in SHARING and any(_cached(r) >= _expected(r) * REAL_HIT for r in wanted)):
        return None
    worst = min(less, key=lambda r: _cached(r) - _expected(r))
    return Guard(
        name="cached_tokens",
        message=f"{len(less)} prompts were not in the prefix cache as they should be: expected {_expected(worst)} "
        f"tokens but for {hit_slack_tok(cell)}, saw {_cached(worst)}",
    )


def token_source(cell: GuardInput) -> Guard | None:
    """A drafting server sends several tokens an event: without counts of each, TPOT and ITL cannot be known."""
    if not cell.target.is_speculative:
        return None
    several = [r for r in cell.good if r.phase == MAIN and len(r.events) > 0 and r.output_tok != 1]
    blind = [r for r in several if r.token_source in UNCOUNTED]
    if not blind:
        return None
    worst = max(blind, key=lambda r: r.output_tok or 0)
    total = "an unknown number of" if worst.output_tok is None else str(worst.output_tok)
    return Guard(
        name="token_source",
        message=f"the server drafts tokens, and {len(blind)} of {len(several)} answers do not say how many came with "
        f"each event ({total} tokens in {len(worst.events)} events): TPOT and ITL cannot be known",
    )


def cache_notes(cell: GuardInput) -> tuple[str, ...]:
    """Not guards: where the cell stands on a hit, what cannot be checked, and what its engine cannot do."""
    on_a_hit = [r for r in cell.good if _wants_a_hit(cell, r)]
    silent = sum(r.cached_tok is None for r in on_a_hit)
    apart = 0 if _is_held_to_hits(cell) else sum(_is_short(cell, r) for r in on_a_hit)
    notes = []
    if silent:
        notes.append(
            f"the server told no cached tokens of {silent} answers: whether the shared prefix was read is not known"
        )
    if apart:
        notes.append(
            f"{apart} of {len(on_a_hit)} prompts did not find their prefix: this engine keeps a cache in each slot"
        )
    return tuple(notes)


def is_on_a_hit(cell: GuardInput, request: RequestRecord) -> bool:
    """The request's figures mean something only if the cache gave what it should, and the engine can give it."""
    return _is_held_to_hits(cell) and _wants_a_hit(cell, request)


def _is_held_to_hits(cell: GuardInput) -> bool:
    return cell.target.shares_cache or cell.cell.concurrency == 1


def _wants_a_hit(cell: GuardInput, request: RequestRecord) -> bool:
    """A cold or evicting swarm, a first turn, and a history of the model's own answers stand on no hit."""
    if request.phase != MAIN or not request.shared_tok or not request.expected_cached_tok:
        return False
    cell_, w = cell.cell, cell.cell.workload
    if cell_.kind is Kind.SWARM:
        return cell_.variant in {SwarmCell.PRIMED, SwarmCell.SINGLE}
    if cell_.kind is Kind.SESSIONS:
        return w.history == "scripted" and request.turn > 0
    return bool(cell_.depth_tok) and w.depth_cache == "warm"


def _is_short(cell: GuardInput, request: RequestRecord) -> bool:
    return request.cached_tok is not None and request.cached_tok < _expected(request) - hit_slack_tok(cell)


def hit_slack_tok(cell: GuardInput) -> int:
    """How much shorter than expected a full hit may be: one unit, and one more that speculation drops (vLLM)."""
    unit = max(cell.target.cache_unit_tok, cell.target.hit_unit_tok or 0)
    return unit * 2 if cell.target.is_speculative else unit


def _cached(request: RequestRecord) -> int:
    return request.cached_tok or 0


def _expected(request: RequestRecord) -> int:
    return request.expected_cached_tok or 0
