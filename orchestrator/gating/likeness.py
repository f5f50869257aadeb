"""Are two answers to one prompt the same, nearly the same, or different? Judged on logprobs against a measured noise.

Theory of operation: temperature 0 is not bit-exact across batch shapes, and a warm run has another shape than a cold
one by construction, so equal text is too strict a test and too weak a one: a rounding difference can flip a near-tie,
and a zeroed state can leave the text alone. What tells them apart is how far the probabilities move. Cold against
cold gives the lane's own noise; cold against warm may move ten times that, or a floor that rounding reaches. A flip
counts as a near-tie only where the two tokens were that close; a planted fact that goes with such a flip, where
nothing else moved, was no sure answer in the first place (a 135M model was seen 0.007 from another digit). Only
tokens with a probability of 1 % or more in one of the runs are compared: the far tail moves by whole nats without
meaning anything. All logprobs are natural.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, product

from orchestrator.wire.chat import TokenLogprob

LEAST_LOGPROB = -4.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One run's answer. `tokens`: with alternatives, () when the server gives none. `has_fact`: the fact is in it."""

    text: str
    tokens: tuple[TokenLogprob, ...] = ()
    has_fact: bool = False
    cached_tok: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """All runs of one prompt. `prompt_tok` None: not counted."""

    prompt_tok: int | None
    cold: tuple[Answer, ...]
    warm: tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far is too far, over the first `tokens`: `noise_factor` times the control's shift, or these at least.

    Up to `floor_nats` is rounding (a 4-bit model on a CPU was seen to move 0.26 between cold and warm, with no noise at
    all between two cold runs); beyond `fail_nats` it is another distribution; between the two nobody can say.
    """

    noise_factor: float = 10.0
    floor_nats: float = 0.5
    fail_nats: float = 1.0
    tokens: int = 16

    def soft(self, noise: float | None) -> float:
        """The largest shift that rounding explains, nats."""
        return max(self.noise_factor * (noise or 0.0), self.floor_nats)

    def hard(self, noise: float | None) -> float:
        """The shift beyond which the answer is another one, nats; also the widest near-tie."""
        return max(self.noise_factor * (noise or 0.0), self.fail_nats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two answers compared.

    Attributes:
        is_same: Same text, same tokens.
        at: Index of the first differing token, None when none differs or tokens are unknown.
        words: The two tokens there.
        margin: Logprob between those two tokens, the smaller of both runs; None unknown.
        shift: Largest move of a logprob up to there, None without logprobs.
    """

    is_same: bool
    at: int | None = None
    words: tuple[str, str] | None = None
    margin: float | None = None
    shift: float | None = None


class Kind(StrEnum):
    """What one prompt's runs show."""

    SAME = "same"
    NEAR_TIE = "near-tie"
    SHIFTED = "same text, other logprobs"
    VARIES = "varies run to run"
    TEXT_DIFFERS = "text differs"
    BEYOND = "differs beyond the controls"
    FACT_LOST = "fact lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One prompt's outcome with its figures; shifts and margins in nats."""

    kind: Kind
    words: str
    prompt_tok: int | None = None
    noise: float | None = None
    shift: float | None = None
    margin: float | None = None


def compare(a: Answer, b: Answer, *, tokens: int = 16) -> Difference:
    """Compare two answers; shifts over the first `tokens`, up to and including the first difference."""
    pairs = list(zip(a.tokens, b.tokens, strict=False))
    at = next((i for i, (x, y) in enumerate(pairs) if x.token != y.token), None)
    common = pairs[: tokens if at is None else min(at + 1, tokens)]
    is_same = a.text == b.text and at is None
    if at is None:
        return Difference(is_same=is_same, shift=_largest_shift(common))
    x, y = pairs[at]
    return Difference(
        is_same=False, at=at, words=(x.token, y.token), margin=_margin(x, y), shift=_largest_shift(common)
    )


def find(runs: Runs, limits: Limits) -> Finding:
    """What one prompt's runs show. Without two cold runs, the warm ones are the control."""
    cold_cold = [compare(a, b, tokens=limits.tokens) for a, b in combinations(runs.cold, 2)]
    warm_warm = [compare(a, b, tokens=limits.tokens) for a, b in combinations(runs.warm, 2)]
    across = [compare(a, b, tokens=limits.tokens) for a, b in product(runs.cold, runs.warm)]
    noise = _worst(cold_cold or warm_warm)
    shift = _worst(across)
    bound = limits.hard(noise)
    first = min((d for d in across if not d.is_same), key=lambda d: d.at if d.at is not None else 1 << 30, default=None)
    kind, words = _kind(
        runs,
        is_beyond=shift is not None and shift > bound,
        is_warm_wild=bool(cold_cold) and (_worst(warm_warm) or 0.0) > bound,
        do_controls_vary=not all(d.is_same for d in (cold_cold or warm_warm)),
        do_warm_vary=not all(d.is_same for d in warm_warm),
        is_shifted=shift is not None and shift > limits.soft(noise),
        is_tie=_is_tie(first, shift, limits.soft(noise)),
        first=first,
        bound=bound,
    )
    return Finding(
        kind=kind,
        words=words,
        prompt_tok=runs.prompt_tok,
        noise=noise,
        shift=shift,
        margin=None if first is None else first.margin,
    )


def _kind(
    runs: Runs,
    *,
    is_beyond: bool,
    is_warm_wild: bool,
    do_controls_vary: bool,
    do_warm_vary: bool,
    is_shifted: bool,
    is_tie: bool,
    first: Difference | None,
    bound: float,
) -> tuple[Kind, str]:
    """The steps of the decision, worst first."""
    is_lost = runs.cold and runs.warm and all(a.has_fact for a in runs.cold) and not any(a.has_fact for a in runs.warm)
    if is_lost and not is_tie:
        return Kind.FACT_LOST, "the planted fact is found cold and lost warm"
    if is_beyond:
        text = "the same text, but logprobs move" if first is None else f"{_where(first)}; logprobs move"
        return Kind.BEYOND, f"{text} by more than {bound:.2f}"
    if is_warm_wild:
        return Kind.BEYOND, f"two warm runs differ by more than {bound:.2f}, two cold ones do not"
    if first is None:
        if do_controls_vary or do_warm_vary:
            return Kind.VARIES, "runs of one kind differ among themselves"
        if is_shifted:
            return Kind.SHIFTED, "the text is the same, but logprobs move by more than rounding explains"
        return Kind.SAME, ""
    if do_controls_vary:
        return Kind.VARIES, f"runs of one kind differ among themselves; {_where(first)}"
    if first.margin is None:
        return Kind.TEXT_DIFFERS, _where(first)
    if first.margin <= bound:
        lost = ", and with it the planted fact" if is_lost else ""
        return Kind.NEAR_TIE, f"{_where(first)}, {first.margin:.3f} apart{lost}"
    return Kind.BEYOND, f"{_where(first)}, {first.margin:.2f} apart: no near-tie"


def _is_tie(first: Difference | None, shift: float | None, rounding: float) -> bool:
    """Rounding alone parts the answers: a model that is sure of the fact never stands on such an edge."""
    if first is None or first.margin is None or shift is None:
        return False
    return max(shift, first.margin) <= rounding


def _where(d: Difference) -> str:
    if d.at is None or d.words is None:
        return "cold and warm texts differ"
    return f"cold and warm part at token {d.at + 1} ({d.words[0]!r} or {d.words[1]!r})"


def _worst(differences: Sequence[Difference]) -> float | None:
    return max((d.shift for d in differences if d.shift is not None), default=None)


def _largest_shift(pairs: Sequence[tuple[TokenLogprob, TokenLogprob]]) -> float | None:
    shifts = [shift for x, y in pairs if x.top and y.top for shift in _shifts(x, y)]
    has_logprobs = any(x.top and y.top for x, y in pairs)
    return max(shifts, default=0.0) if has_logprobs else None


def _shifts(x: TokenLogprob, y: TokenLogprob) -> list[float]:
    """Moves of the tokens that matter in either run. Missing from the other's list: at least down to its last entry."""
    ours, theirs = dict(x.top), dict(y.top)
    found = []
    for here, there in ((ours, theirs), (theirs, ours)):
        last = min(there.values())
        for token, logprob in here.items():
            if logprob >= LEAST_LOGPROB:
                found.append(abs(logprob - there[token]) if token in there else max(0.0, logprob - last))
    return found


def _margin(x: TokenLogprob, y: TokenLogprob) -> float | None:
    """How close the two tokens were, in the run where they were closer."""
    gaps = [
        abs(dict(run.top)[x.token] - dict(run.top)[y.token])
        for run in (x, y)
        if {x.token, y.token} <= dict(run.top).keys()
    ]
    if gaps:
        return min(gaps)
    # Neither run ranks both: they are at least as far apart as the winner from the last of its list.
    listed = [run.logprob - min(v for _, v in run.top) for run in (x, y) if run.top]
    return min(listed) if listed else None
