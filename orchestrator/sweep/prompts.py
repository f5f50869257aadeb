"""Prompts of an exact length in the server's own tokens, each with a fresh nonce in front.

A prompt is `<nonce> <passage>`: six random words, then running text. The nonce stands first because a prefix cache
compares from the first token on: a nonce at the end would leave the whole prompt cacheable. Passages are fitted once
per length by asking the server how long a text is; nonces are then drawn until one has the same number of tokens as
the one the fit was made with, so every prompt comes out exact. Where the server has no tokenizer endpoint a request
with one output token tells the length; nonces are not tried out then (each try would be a prefill).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from orchestrator.errors import InputError, TargetError
from orchestrator.sweep.passages import FILLERS, NONCE_WORDS, corpus

Count = Callable[[str], int | None]
"""The whole prompt's tokens, template included, when the user's text is this; None: the server cannot tell."""

WORDS_IN_NONCE = 6
NONCE_TRIES = 60
SAMPLE = 15
FIT_TRIES = 16
HEAD_WORDS = 12
TOK_PER_WORD = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """How the server tells a text's length.

    Attributes:
        count: Asks the server.
        is_cheap: A tokenizer endpoint, not a prefill.
        overhead_tok: Tokens of the template around the user's text; None: unknown.
    """

    count: Count
    is_cheap: bool
    overhead_tok: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A prompt that no cache has seen: `<nonce> <text>`.

    `prompt_tok` is what it comes to, template included; None when the server tells no lengths.
    """

    nonce: str
    text: str
    prompt_tok: int | None


class PromptBook:
    """Fits passages once per length, draws a fresh nonce for every prompt.

    Args:
        seed: Chooses the passages: the same seed and server give the same ones.
        rng: Source of the nonces; the default is never the same twice.
    """

    def __init__(self, counter: Counter, *, seed: int, rng: random.Random | None = None) -> None:
        self._counter = counter
        self._seed = seed
        self._rng = rng or random.SystemRandom()
        self._fitted: dict[tuple[int, int], tuple[_Fit, ...]] = {}
        self._turns: dict[tuple[int, int], int] = {}
        self._tails: dict[int, str] = {}

    @property
    def is_cheap(self) -> bool:
        """Asking for a length is a tokenizer's work, not a prefill."""
        return self._counter.is_cheap

    @property
    def overhead_tok(self) -> int | None:
        """Tokens of the template around one user message."""
        return self._counter.overhead_tok

    def count(self, text: str) -> int | None:
        """The whole prompt's tokens when the user's text is this; None: the server cannot tell."""
        return self._counter.count(text)

    def nonce(self) -> str:
        """Six words that no one has sent before; its number of tokens may vary by a few."""
        return draw_nonce(self._rng)

    def fresh(self, tok: int, *, variety: int | None = None) -> Fresh:
        """A prompt of `tok` tokens, template included. `variety`: so many different passages of this length take turns.

        Raises:
            InputError: The length asked for is less than template and nonce take.
            TargetError: The server's counts make no sense.
        """
        key = (tok, variety or (8 if self._counter.is_cheap else 2))
        if key not in self._fitted:
            self._fitted[key] = self._fit_all(*key)
        fits = self._fitted[key]
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        fit = fits[turn % len(fits)]
        return Fresh(nonce=self._nonce(fit), text=fit.text, prompt_tok=fit.prompt_tok)

    def tail(self, tok: int) -> str:
        """Text that makes a prompt `tok` tokens longer when it is put behind it (fitted behind a nonce).

        Raises:
            TargetError: The server's counts make no sense.
        """
        if tok not in self._tails:
            words, nonce = corpus(), self._typical_nonce()
            start = random.Random(f"{self._seed}/tail/{tok}").randrange(len(words))
            base = self._counter.count(nonce)
            goal = tok if base is None else base + tok
            self._tails[tok] = fit_passage(self._counter.count, goal, nonce=nonce, words=words[start:] + words[:start])
        return self._tails[tok]

    def _fit_all(self, prompt_tok: int, variety: int) -> tuple[_Fit, ...]:
        rng = random.Random(f"{self._seed}/{prompt_tok}")
        words = corpus()
        starts = [rng.randrange(len(words)) for _ in range(variety)]
        nonce = self._typical_nonce()
        return tuple(self._fit(prompt_tok, words[start:] + words[:start], nonce) for start in starts)

    def _typical_nonce(self) -> str:
        """The middle one of several by length: one that later draws will match soon."""
        drawn = [draw_nonce(self._rng) for _ in range(SAMPLE if self._counter.is_cheap else 1)]
        if len(drawn) == 1:
            return drawn[0]
        return sorted(drawn, key=lambda nonce: _counted(self._counter.count, nonce))[len(drawn) // 2]

    def _fit(self, prompt_tok: int, words: Sequence[str], nonce: str) -> _Fit:
        text = fit_passage(self._counter.count, prompt_tok, nonce=nonce, words=words)
        head = " ".join(islice(text.split(" "), HEAD_WORDS))
        head_tok = self._counter.count(f"{nonce} {head}") if self._counter.is_cheap else None
        return _Fit(text=text, head=head, head_tok=head_tok, prompt_tok=self._counter.count(f"{nonce} {text}"))

    def _nonce(self, fit: _Fit) -> str:
        """One as long as the fit's; the nearest of many tries where the vocabulary splits most words."""
        nearest, off_by = draw_nonce(self._rng), None
        if fit.head_tok is None:
            return nearest
        for _ in range(NONCE_TRIES):
            nonce = draw_nonce(self._rng)
            off = abs(_counted(self._counter.count, f"{nonce} {fit.head}") - fit.head_tok)
            if off_by is None or off < off_by:
                nearest, off_by = nonce, off
            if off == 0:
                break
        return nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A passage, its first words, and how many tokens those have behind the nonce of the fit."""

    text: str
    head: str
    head_tok: int | None
    prompt_tok: int | None


def draw_nonce(rng: random.Random) -> str:
    """Six words, 42 bits."""
    return " ".join(rng.choice(NONCE_WORDS) for _ in range(WORDS_IN_NONCE))


def fit_passage(count: Count, prompt_tok: int, *, nonce: str, words: Sequence[str]) -> str:
    """Running text that makes `<nonce> <text>` exactly `prompt_tok` long where words allow it, never longer.

    Searches on the number of words by the slope seen so far, then fills up with words of one token.

    Raises:
        InputError: Template and nonce alone are longer.
        TargetError: The search does not close in (the count does not grow with the text).
    """

    def text_of(n: int) -> str:
        return " ".join(words[i % len(words)] for i in range(n))

    low, low_tok = 0, count(nonce)
    if low_tok is None:
        return text_of(max(1, round(prompt_tok / TOK_PER_WORD) - WORDS_IN_NONCE))
    if low_tok >= prompt_tok:
        raise InputError(
            f"prompt_tokens {prompt_tok}: the chat template and the nonce alone take {low_tok}",
            hint=f"ask for {low_tok + 16} tokens or more",
        )
    high: int | None = None
    slope = TOK_PER_WORD
    for _ in range(FIT_TRIES):
        if low_tok == prompt_tok or (high is not None and high - low <= 1):
            return _filled(count, text_of(low), prompt_tok - low_tok, nonce=nonce)
        n = max(low + 1, low + int((prompt_tok - low_tok) / slope))
        if high is not None:
            n = min(n, high - 1)
        tok = _counted(count, f"{nonce} {text_of(n)}")
        if tok <= prompt_tok:
            slope = max(0.1, (tok - low_tok) / (n - low)) if tok > low_tok else slope / 2
            low, low_tok = n, tok
        else:
            high = n
            slope = max(slope, (tok - low_tok) / (n - low))
    return _filled(count, text_of(low), prompt_tok - low_tok, nonce=nonce)


def _filled(count: Count, text: str, missing_tok: int, *, nonce: str) -> str:
    if missing_tok == 0:
        return text
    have = _counted(count, f"{nonce} {text}")
    goal = have + missing_tok
    for filler in FILLERS * (1 + missing_tok // len(FILLERS)):
        tok = _counted(count, f"{nonce} {text} {filler}")
        if have < tok <= goal:
            text, have = f"{text} {filler}", tok
        if have == goal:
            break
    return text


def _counted(count: Count, text: str) -> int:
    tok = count(text)
    if tok is None:
        raise TargetError("the server stopped telling how many tokens a text has", hint="look at the server's log")
    return tok
