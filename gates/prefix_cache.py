"""Does the prefix cache really hit? Proof from counters, on a prompt that cannot have been seen before.

Theory of operation: a series sends one fresh prompt (nonce in the first block) cold, the same prompt again a few
times, then new tails after the same prefix. Only counters are believed: the cached tokens of `usage`, else the
engine's own metric. Real caches round hits down to a block or a retention boundary, drop the last block under
speculation, and some hybrid models hit only from the second repeat on; all of that is correct and named, so the
judgement works with the cache's unit: what the engine declares, or what the hits themselves show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.gating.counters import Seen, ask_counted, cached_source, cached_tok, flag_hint
from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.params import number, whole
from orchestrator.gating.prompts import Nonce, fact_of, fresh_nonce
from orchestrator.gating.sizing import Ruler, longest_prompt, measure, text_of, user
from orchestrator.gating.verdicts import not_answered, skip, skip_unless_generating
from orchestrator.values import Json
from orchestrator.wire.chat import Target

OUTPUT_TOK = 8
RESERVE_TOK = 160
"""Room for the chat template and the question behind the text."""
TAILS = (
    "Who checked the pumps? Answer in one word.",
    "How many lamps are named in the log? Answer with a number.",
    "Is any leak left open? Answer yes or no.",
    "Which room is named first? Answer in one line.",
    "What was painted? Answer in one word.",
)
TAIL_TOK = 64
"""No tail with its template end is longer than this."""
NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Cached tokens of one prompt: sent cold, repeated, and with new tails. `computed`: where the server tells."""

    prompt_tok: int
    cold: int
    repeats: tuple[int, ...]
    tails: tuple[int, ...] = ()
    tail_prompt_tok: tuple[int, ...] = ()
    computed: tuple[int | None, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """For `measured`."""
        return {
            "prompt_tok": self.prompt_tok,
            "cold_cached_tok": self.cold,
            "repeats_cached_tok": list(self.repeats),
            "tails_cached_tok": list(self.tails),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the judgement allows.

    Attributes:
        unit_tok: The cache's rounding unit.
        head_tok: Most tokens that a template may put before the nonce.
        has_drop: Speculative decoding drops the last unit of a hit.
    """

    unit_tok: int
    head_tok: int
    has_drop: bool = False

    def is_miss(self, cached: int, prompt_tok: int) -> bool:
        """True when no more is cached than the template's head."""
        return cached <= min(self.head_tok, prompt_tok // 4)

    def expected(self, prompt_tok: int) -> int:
        """The full hit: all but the last token, rounded down to the unit."""
        full = (prompt_tok - 1) // self.unit_tok * self.unit_tok
        return max(0, full - self.unit_tok) if self.has_drop else full

    def is_full(self, cached: int, prompt_tok: int) -> bool:
        """True when the hit is as long as rounding allows, or nearly the whole prompt."""
        enough = min(self.expected(prompt_tok), math.floor(NEARLY_ALL * prompt_tok))
        return cached >= enough and not self.is_miss(cached, prompt_tok)


def unit_of(hits: Sequence[int]) -> int:
    """The rounding unit that the hits themselves show.

    Several different hits have the unit as common divisor. One hit alone proves only its power of two: 2304 is not
    taken for a unit of 2304.
    """
    shown = math.gcd(*hits) if hits else 1
    return shown & -shown if len(set(hits)) == 1 else shown


def bounds_of(series: Sequence[Series], declared: int | None, *, head_tok: int, has_drop: bool) -> Bounds:
    """The bounds by the declared block where it explains every hit, else by the unit that the hits show.

    Engines keep some states at multiples of their block only, and hybrids declare a block that is not the one in use.
    """
    loose = Bounds(unit_tok=1, head_tok=head_tok, has_drop=has_drop)
    hits = [c for s in series for c in (*s.repeats, *s.tails) if not loose.is_miss(c, s.prompt_tok)]
    shown = replace(loose, unit_tok=unit_of(hits))
    if not declared:
        return shown
    by_block = replace(loose, unit_tok=declared)
    is_explained = all(max(s.repeats) >= by_block.expected(s.prompt_tok) for s in series if s.repeats)
    return by_block if is_explained or shown.unit_tok < declared else shown


def judge(
    series: Sequence[Series],
    *,
    head_tok: int = 128,
    block_tok: int | None = None,
    is_claimed: bool | None = True,
    is_speculative: bool = False,
) -> Verdict:
    """Judge the counters of all series.

    Args:
        head_tok: Most tokens that a template may put before the nonce.
        block_tok: The cache block as the engine declares it, None unknown.
        is_claimed: The profile's word on prefix caching; None: it says nothing.
    """
    bounds = bounds_of(series, block_tok, head_tok=head_tok, has_drop=is_speculative)
    measured: dict[str, Json] = {"series": [s.as_json() for s in series], "unit_tok": bounds.unit_tok}
    verdict = (
        _wrong_counters(series, bounds)
        or _never(series, bounds, block_tok=block_tok, is_claimed=is_claimed)
        or _tails(series, bounds)
        or _unsteady(series, bounds)
        or _hit(series, bounds)
    )
    return replace(verdict, measured=measured)


def _wrong_counters(series: Sequence[Series], bounds: Bounds) -> Verdict | None:
    for s in series:
        if not bounds.is_miss(s.cold, s.prompt_tok):
            return Verdict(
                status=Status.FAIL,
                summary=f"a prompt never seen before shows {s.cold:,} of {s.prompt_tok:,} tokens as cached",
                hint="the counter does not count prefix hits, or the server takes another prompt's cache",
            )
        asked = ((s.cold, *s.repeats), s.computed)
        for cached, computed in zip(*asked, strict=False):
            if computed is not None and abs(cached + computed - s.prompt_tok) > 1:
                return Verdict(
                    status=Status.FAIL,
                    summary=f"counters do not add up: {cached:,} cached + {computed:,} computed, "
                    f"prompt of {s.prompt_tok:,}",
                )
        if max((s.cold, *s.repeats)) > s.prompt_tok:
            return Verdict(
                status=Status.FAIL,
                summary=f"{max(s.repeats):,} cached tokens in a prompt of {s.prompt_tok:,}",
            )
    return None


def _never(
    series: Sequence[Series], bounds: Bounds, *, block_tok: int | None, is_claimed: bool | None
) -> Verdict | None:
    dead = [s for s in series if all(bounds.is_miss(c, s.prompt_tok) for c in s.repeats)]
    if not dead:
        return None
    shortest = dead[0].prompt_tok
    if block_tok is not None and all(s.prompt_tok <= block_tok for s in dead):
        return Verdict(
            status=Status.ERROR,
            summary=f"could not tell: the prompt of {shortest:,} tokens is shorter than the cache block "
            f"of {block_tok:,}",
            hint=f"set prompt_tokens above {3 * block_tok:,}",
        )
    lengths = " and ".join(f"{s.prompt_tok:,}" for s in dead)
    if len(dead) < len(series):
        return Verdict(
            status=Status.FAIL,
            summary=f"never hits at {lengths} tokens, though it does at another length",
            hint="the hit depends on the prompt's length: look at block size, match unit and retention interval",
        )
    if is_claimed is None:
        return skip(f"never hits ({lengths} tokens sent again), and nothing claims that it should")
    repeats = len(dead[0].repeats)
    return Verdict(
        status=Status.FAIL,
        summary=f"never hits: prompts of {lengths} tokens sent again {repeats} times, 0 cached",
        hint="prefix caching is declared on; if it is meant to be off, say `prefix_caching: false`. "
        "A prompt shorter than the cache block cannot hit either",
    )


def _tails(series: Sequence[Series], bounds: Bounds) -> Verdict | None:
    for s in series:
        if s.tails and all(bounds.is_miss(c, s.prompt_tok) for c in s.tails):
            return Verdict(
                status=Status.FAIL,
                summary=f"only identical prompts hit: {len(s.tails)} new tails after the same prefix, 0 cached",
                hint="the cache keeps a state in the tail of a prompt only: shared prefixes are never reused",
            )
    return None


def _unsteady(series: Sequence[Series], bounds: Bounds) -> Verdict | None:
    for s in series:
        first = next(i for i, c in enumerate(s.repeats) if not bounds.is_miss(c, s.prompt_tok))
        lost = [i for i, c in enumerate(s.repeats) if i > first and bounds.is_miss(c, s.prompt_tok)]
        if lost:
            return Verdict(
                status=Status.UNSTABLE,
                summary=f"hits are lost: repeat {first + 1} hit, repeat {lost[0] + 1} did not",
                hint="something evicts the prefix between two requests: see the cache's size and other traffic",
            )
        best = max(s.repeats)
        if not bounds.is_full(best, s.prompt_tok):
            return Verdict(
                status=Status.UNSTABLE,
                summary=f"partial hit: {best:,} of {s.prompt_tok:,} tokens ({best / s.prompt_tok:.0%}), "
                f"{bounds.expected(s.prompt_tok):,} expected",
            )
    return None


def _hit(series: Sequence[Series], bounds: Bounds) -> Verdict:
    main = series[0]
    latest = max(_first_full(s, bounds) for s in series)
    notes = []
    if latest > 0:
        notes.append(f"late hit: full from repeat {latest + 1} on")
    if bounds.unit_tok >= 16 and max(main.repeats) < main.prompt_tok - 1:
        notes.append(f"rounded to {bounds.unit_tok:,}")
    missed = [
        i
        for s in series
        for i, (c, n) in enumerate(zip(s.tails, s.tail_prompt_tok, strict=True))
        if not bounds.is_full(c, max(1, n - TAIL_TOK))
    ]
    if missed:
        notes.append(f"tail {', '.join(str(i + 1) for i in missed)} in part")
    summary = f"{max(main.repeats):,} of {main.prompt_tok:,} tokens cached on repeat"
    if main.tails:
        summary += f", {max(main.tails):,} with a new tail"
    return Verdict(status=Status.PASS, summary="; ".join([summary, *notes]))


def _first_full(s: Series, bounds: Bounds) -> int:
    return next((i for i, c in enumerate(s.repeats) if bounds.is_full(c, s.prompt_tok)), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixCache:
    """The gate. `nonce` gives a fresh first word for every prompt."""

    nonce: Nonce = fresh_nonce
    name: str = "prefix_cache"
    title: str = "the prefix cache really hits"
    defaults: Mapping[str, Json] = field(
        default_factory=lambda: {
            "prompt_tokens": 20000,
            "second_prompt_tokens": 13000,
            "repeats": 3,
            "tails": 3,
            "head_tokens": 128,
            "timeout_s": 600.0,
        }
    )

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Send the series and judge their counters."""
        claims = target.claims
        if (skipped := skip_unless_generating(claims)) is not None:
            return skipped
        if claims.prefix_caching is False:
            return skip("prefix caching is declared off")
        timeout_s = number(params, "timeout_s")
        ruler = measure(target, nonce=self.nonce(), timeout_s=timeout_s)
        lengths, note = _lengths(target, params)
        asked: list[tuple[int, list[Seen]]] = []
        for index, tokens in enumerate(lengths):
            tails = whole(params, "tails") if index == 0 else 0
            seen = self._ask(
                target, ruler, tokens, seed=index, repeats=whole(params, "repeats"), tails=tails, timeout_s=timeout_s
            )
            asked.append((tails, seen))
            broken = next((s for s in seen if not s.reply.is_ok), None)
            if broken is not None:
                return not_answered(broken.label, broken.reply, evidence=_evidence(asked))
        return self._verdict(target, asked, head_tok=whole(params, "head_tokens"), note=note)

    def _ask(
        self, target: Target, ruler: Ruler, tokens: int, *, seed: int, repeats: int, tails: int, timeout_s: float
    ) -> list[Seen]:
        """Cold, repeats, tails; stops at the first request without an answer."""
        text = text_of(target, ruler, tokens, nonce=self.nonce(), seed=seed, fact=fact_of(seed)).text
        same = f"{text}\n\n{fact_of(seed).question}"
        turns = [("cold", same), *((f"repeat {i + 1}", same) for i in range(repeats))]
        turns += [(f"tail {i + 1}", f"{text}\n\n{TAILS[i % len(TAILS)]} ({i + 1})") for i in range(tails)]
        seen: list[Seen] = []
        for label, content in turns:
            body: Mapping[str, Json] = {"messages": user(content), "max_tokens": OUTPUT_TOK}
            seen.append(ask_counted(target, body, label=label, timeout_s=timeout_s))
            if not seen[-1].reply.is_ok:
                break
        return seen

    def _verdict(self, target: Target, asked: Sequence[tuple[int, list[Seen]]], *, head_tok: int, note: str) -> Verdict:
        claims, evidence = target.claims, _evidence(asked)
        everything = [s for _, seen in asked for s in seen]
        source = cached_source(everything)
        if source is None or any(not s.prompt_tok for s in everything):
            return Verdict(
                status=Status.ERROR,
                summary="could not tell: the server reports no cached tokens",
                evidence=evidence,
                hint=flag_hint(claims.engine),
            )
        if (quarrel := _disagreement(everything, source)) is not None:
            return Verdict(status=Status.ERROR, summary=quarrel, evidence=evidence)
        verdict = judge(
            [_series(seen, tails, source) for tails, seen in asked],
            head_tok=head_tok,
            block_tok=declared_block(target),
            is_claimed=claims.prefix_caching,
            is_speculative=claims.speculative,
        )
        measured = {**verdict.measured, "source": source}
        return replace(verdict, summary=verdict.summary + note, measured=measured, evidence=evidence)


def declared_block(target: Target) -> int | None:
    """The cache block as vLLM's `cache_config_info` declares it; None elsewhere. On hybrids it may be too small."""
    if target.claims.engine != "vllm":
        return None
    for labels in target.metric_labels("vllm:cache_config_info"):
        for name in ("effective_attention_block_size", "block_size"):
            if labels.get(name, "").isdigit():
                return int(labels[name])
    return None


def _lengths(target: Target, params: Mapping[str, Json]) -> tuple[list[int], str]:
    """The wanted prompt lengths, shrunk to what one request may hold; and a note when they were."""
    wanted = [n for n in (whole(params, "prompt_tokens"), whole(params, "second_prompt_tokens")) if n]
    room = longest_prompt(target, output_tok=OUTPUT_TOK, reserve_tok=RESERVE_TOK)
    if room is None or max(wanted) <= room:
        return wanted, ""
    room = max(room, 64)
    fitted = [room if n == max(wanted) else min(n, room * 2 // 3) for n in wanted]
    return fitted, f"; prompt cut from {max(wanted):,} to {room:,} tokens to fit max_model_len"


def _series(seen: Sequence[Seen], tails: int, source: str) -> Series:
    body = seen[: len(seen) - tails]
    ends = seen[len(seen) - tails :] if tails else ()
    return Series(
        prompt_tok=body[0].prompt_tok,
        cold=cached_tok(body[0], source),
        repeats=tuple(cached_tok(s, source) for s in body[1:]),
        tails=tuple(cached_tok(s, source) for s in ends),
        tail_prompt_tok=tuple(s.prompt_tok for s in ends),
        computed=tuple(s.computed_tok for s in body),
    )


def _disagreement(seen: Sequence[Seen], source: str) -> str | None:
    """Usage against the engine's own counter. Other traffic may add to the counter, nothing takes from it."""
    if source != "usage" or any(s.metric_tok is None for s in seen):
        return None
    usage, metrics = sum(s.usage_tok or 0 for s in seen), sum(s.metric_tok or 0 for s in seen)
    if metrics < usage // 2 or (usage == 0 and metrics > sum(s.prompt_tok for s in seen) // 2):
        return f"could not tell: usage adds up to {usage:,} cached tokens, the engine's metric to {metrics:,}"
    return None


def _evidence(asked: Sequence[tuple[int, list[Seen]]]) -> tuple[Mapping[str, Json], ...]:
    return tuple(
        exchange(s.label, s.body, s.reply, cached_tok_usage=s.usage_tok, cached_tok_metric=s.metric_tok)
        for _, seen in asked
        for s in seen
    )


GATE = PrefixCache()
