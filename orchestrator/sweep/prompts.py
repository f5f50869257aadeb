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

from orchestrator.sweep.fitting import TOK_PER_WORD, Count, counted, fit_passage, fit_seldom, tok_per_word_of
from orchestrator.sweep.passages import NONCE_WORDS, corpus
from orchestrator.sweep.passages_code import words_with_code

__all__ = ["TOK_PER_WORD", "WORDS_IN_NONCE", "Counter", "Fresh", "Part", "PromptBook", "draw_nonce", "fit_passage"]

WORDS_IN_NONCE = 6
NONCE_TRIES = 60
ASKED_NONCES = 64
"""So many nonces are asked for one by one; then the lengths of their words are, which two hundred questions tell."""
CHECK_EVERY = 32
SAMPLE = 15
HEAD_WORDS = 12
BEFORE = "So far."
"""Stands in front of a part while it is fitted: a word inside a message may be another token than at its beginning."""
PREFIX_TEXTS = 4
ANSWER_TEXTS = 16
SHORT_ANSWER_TOK = 100
"""Below, an answer is prose: a single word of code may be longer."""
MOST_DEAR_PARTS = 4
TOK_PER_CODE_WORD = 2.3
"""Tokens of a word of `passages_code`, where the server tells nothing."""

Ask = Callable[[Sequence[tuple[str, str]]], int | None]
"""The tokens of a chat with these messages (role, content), by a real request; None: the server does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """How the server tells a text's length.

    Attributes:
        count: Asks the server.
        is_cheap: A tokenizer endpoint, not a prefill.
        overhead_tok: Tokens of the template around the user's text; None: unknown.
        ask: For what counting text cannot tell; None: there are no chats.
    """

    count: Count
    is_cheap: bool
    overhead_tok: int | None = None
    ask: Ask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A prompt that no cache has seen: `<nonce> <text>`.

    `prompt_tok` is what it comes to, template included; None when the server tells no lengths.
    """

    nonce: str
    text: str
    prompt_tok: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Words that follow others: `<nonce> <text>`, or the text alone where the nonce is empty.

    `tok` is what they make the prompt longer by; None where it was not counted.
    """

    text: str
    tok: int | None
    nonce: str = ""


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
        self._prefixes: dict[tuple[int, int], _Fit] = {}
        self._questions: dict[tuple[int, bool], tuple[_Fit, ...]] = {}
        self._answers: dict[tuple[int, int], Part] = {}
        self._before_tok: int | None = None
        self._words = _NonceWords(counter.count)
        self._proven: dict[_Fit, str] = {}
        self._drawn = 0
        self._turn_overhead: tuple[int | None] | None = None

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
        return Fresh(nonce=self._nonce(fit, self._counter.count), text=fit.text, prompt_tok=fit.prompt_tok)

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

    def prefix(self, tok: int, number: int = 0) -> Fresh:
        """Text with code in it, `tok` tokens as a prompt of its own (template and nonce included), never seen before.

        The text follows the seed and the number; up to `PREFIX_TEXTS` numbers have texts of their own, beyond (and
        where a question to the server is a prefill) the nonce alone tells one from another. A fit begins with another
        nonce than what it is for, so it warms nothing.

        Raises:
            InputError: The length asked for is less than template and nonce take.
            TargetError: The server's counts make no sense.
        """
        key = (tok, number % (PREFIX_TEXTS if self._counter.is_cheap else 1))
        if key not in self._prefixes:
            self._prefixes[key] = self._fit_prefix(*key)
        fit = self._prefixes[key]
        return Fresh(nonce=self._nonce(fit, self._counter.count), text=fit.text, prompt_tok=fit.prompt_tok)

    def questions(self, lengths: Sequence[int], *, is_message: bool = False) -> tuple[Part, ...]:
        """One for each length, in tokens: words that go behind others, no two with the same first word while they last.

        With `is_message` they make a message of their own in a longer chat instead, and may begin as they like.

        Where a question to the server is a prefill, few lengths are fitted; the others are near and their `tok` None.

        Raises:
            InputError: A length is less than a nonce takes.
            TargetError: The server's counts make no sense.
        """
        first = self._rng.sample(NONCE_WORDS, len(NONCE_WORDS))
        return tuple(
            self._question(tok, is_message, number=i, first=None if is_message else first[i % len(first)])
            for i, tok in enumerate(lengths)
        )

    def answer(self, tok: int, number: int = 0) -> Part:
        """What an assistant may have said, about `tok` tokens, the same for the same seed and number."""
        key = (tok, number % ANSWER_TEXTS)
        if key not in self._answers:
            self._answers[key] = self._fit_answer(*key)
        return self._answers[key]

    @property
    def turn_overhead_tok(self) -> int | None:
        """Tokens of the template around an earlier answer and the next question: what a turn adds beyond its words.

        Learned once from a short request; None: unknown.
        """
        if self._turn_overhead is None:
            self._turn_overhead = (self._learn_turn(),)
        return self._turn_overhead[0]

    def _learn_turn(self) -> int | None:
        said = ("Water finds the lowest place.", "It does.", "Then where is it now?")
        ask, overhead_tok = self._counter.ask, self._counter.overhead_tok
        if ask is None or overhead_tok is None:
            return None
        whole, alone = ask(list(zip(("user", "assistant", "user"), said, strict=True))), []
        for text in said:
            if (tok := self._counter.count(text)) is None:
                return None
            alone.append(tok - overhead_tok)
        return None if whole is None else max(0, whole - overhead_tok - sum(alone))

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
        return sorted(drawn, key=lambda nonce: counted(self._counter.count, nonce))[len(drawn) // 2]

    def _fit(self, prompt_tok: int, words: Sequence[str], nonce: str) -> _Fit:
        text = fit_passage(self._counter.count, prompt_tok, nonce=nonce, words=words)
        return self._fitted_as(text, nonce, self._counter.count)

    def _fitted_as(self, text: str, nonce: str, count: Count) -> _Fit:
        head = " ".join(islice(text.split(" "), HEAD_WORDS))
        head_tok = count(f"{nonce} {head}") if self._counter.is_cheap else None
        return _Fit(text=text, head=head, head_tok=head_tok, prompt_tok=count(f"{nonce} {text}"))

    def _fit_prefix(self, tok: int, number: int) -> _Fit:
        count, nonce = self._counter.count, self._typical_nonce()
        words = words_with_code(f"{self._seed}/prefix/{number}", 2 * tok)
        if self._counter.is_cheap or count(nonce) is None:
            slope = tok_per_word_of(count, nonce, words[:tok]) or TOK_PER_CODE_WORD
            text = fit_passage(count, tok, nonce=nonce, words=words, tok_per_word=slope, what="prefix_tokens")
        else:
            text = fit_seldom(count, tok, nonce=nonce, words=words, what="prefix_tokens")
        return self._fitted_as(text, nonce, count)

    def _fit_answer(self, tok: int, number: int) -> Part:
        words: Sequence[str] = words_with_code(f"{self._seed}/answer/{number}", max(8, 2 * tok))
        if tok < SHORT_ANSWER_TOK:
            start = random.Random(f"{self._seed}/answer/{number}").randrange(len(corpus()))
            words = (*corpus()[start:], *corpus()[:start])
        first, *others = words
        first_tok = self._count_message(first) if self._counter.is_cheap else None
        if first_tok is None:
            return Part(text=" ".join(words[: max(1, round(tok / TOK_PER_CODE_WORD))]), tok=None)
        if first_tok >= tok:
            return Part(text=first, tok=first_tok)
        text = fit_passage(self._count_message, tok, nonce=first, words=others, what="output_tokens")
        return Part(text=f"{first} {text}", tok=self._count_message(f"{first} {text}"))

    def _question(self, tok: int, is_message: bool, *, number: int, first: str | None) -> Part:
        key = (tok, is_message)
        if not self._counter.is_cheap and key not in self._questions and len(self._questions) >= MOST_DEAR_PARTS:
            return self._near_question(tok, first)
        count = self._count_message if is_message else self._count_part
        if key not in self._questions:
            self._questions[key] = self._fit_questions(tok, count)
        fits = self._questions[key]
        fit = fits[number % len(fits)]
        return Part(nonce=self._nonce(fit, count, first), text=fit.text, tok=fit.prompt_tok)

    def _near_question(self, tok: int, first: str | None) -> Part:
        """A piece of the longest that was fitted, or more than once that."""
        longest = max(self._questions)
        words = self._questions[longest][0].text.split(" ")
        n = max(1, round((len(words) + WORDS_IN_NONCE) * tok / longest[0]) - WORDS_IN_NONCE)
        text = " ".join(words[i % len(words)] for i in range(n))
        return Part(nonce=draw_nonce(self._rng, first), text=text, tok=None)

    def _fit_questions(self, tok: int, count: Count) -> tuple[_Fit, ...]:
        words, nonce = corpus(), self._typical_nonce()
        rng = random.Random(f"{self._seed}/question/{tok}")
        fits = []
        for _ in range(8 if self._counter.is_cheap else 2):
            start = rng.randrange(len(words))
            text = fit_passage(count, tok, nonce=nonce, words=words[start:] + words[:start])
            fits.append(self._fitted_as(text, nonce, count))
        return tuple(fits)

    def _count_part(self, text: str) -> int | None:
        """The tokens that this text adds behind others."""
        if self._before_tok is None:
            self._before_tok = self._counter.count(BEFORE)
        if self._before_tok is None:
            return None
        return counted(self._counter.count, f"{BEFORE} {text}") - self._before_tok

    def _count_message(self, text: str) -> int | None:
        """The tokens of this text as a message, without the template's."""
        if self._counter.overhead_tok is None:
            return self._count_part(text)
        tok = self._counter.count(text)
        return None if tok is None else tok - self._counter.overhead_tok

    def _nonce(self, fit: _Fit, count: Count, first: str | None = None) -> str:
        """One as long as the fit's; the nearest of many tries where the vocabulary splits most words."""
        nearest, off_by = draw_nonce(self._rng, first), None
        if fit.head_tok is None:
            return nearest
        self._drawn += 1
        if (like := self._like_proven(fit, first)) is not None:
            if self._drawn % CHECK_EVERY or counted(count, f"{like} {fit.head}") == fit.head_tok:
                return like
            self._words.is_additive = False
        for _ in range(NONCE_TRIES):
            nonce = draw_nonce(self._rng, first)
            off = abs(counted(count, f"{nonce} {fit.head}") - fit.head_tok)
            if off_by is None or off < off_by:
                nearest, off_by = nonce, off
            if off == 0:
                self._proven[fit] = nonce
                break
        return nearest

    def _like_proven(self, fit: _Fit, first: str | None) -> str | None:
        """One whose words are together as long as those of a nonce that was counted with this fit."""
        proven = self._proven.get(fit)
        if proven is None or self._drawn <= ASKED_NONCES or not self._words.is_additive:
            return None
        goal_tok = self._words.tok(proven)
        tries = (draw_nonce(self._rng, first) for _ in range(NONCE_TRIES))
        return next((nonce for nonce in tries if self._words.tok(nonce) == goal_tok), None)


class _NonceWords:
    """How long nonces are, by their words: each is asked for once where it stands first, and once behind others.

    `is_additive`: words are as long together as one by one. True until a nonce has shown that they are not.
    """

    def __init__(self, count: Count) -> None:
        self.is_additive = True
        self._count = count
        self._tok: dict[str, int] = {}

    def tok(self, nonce: str) -> int:
        """In tokens, and the same constant on top for each."""
        first, *others = nonce.split(" ")
        return self._of(f"{first} {BEFORE}") + sum(self._of(f"{BEFORE} {word}") for word in others)

    def _of(self, text: str) -> int:
        if text not in self._tok:
            self._tok[text] = counted(self._count, text)
        return self._tok[text]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A passage, its first words, and how many tokens those have behind the nonce of the fit."""

    text: str
    head: str
    head_tok: int | None
    prompt_tok: int | None


def draw_nonce(rng: random.Random, first: str | None = None) -> str:
    """Six words, 42 bits. `first`: the first of them is this one."""
    words = [rng.choice(NONCE_WORDS) for _ in range(WORDS_IN_NONCE)]
    return " ".join([first, *words[1:]] if first else words)
