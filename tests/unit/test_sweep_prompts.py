"""Prompts of an exact length with a fresh nonce in front."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError, TargetError
from orchestrator.sweep.passages import NONCE_WORDS, corpus
from orchestrator.sweep.prompts import CHECK_EVERY, Counter, Fresh, PromptBook, draw_nonce, fit_passage

TEMPLATE_TOK = 9


def words_and_marks(text: str) -> int:
    """A vocabulary of whole words and punctuation marks."""
    return TEMPLATE_TOK + len(re.findall(r"\w+|[^\w\s]", text))


def pieces_of_three(text: str) -> int:
    """A poor vocabulary: a token for each three letters begun of a word."""
    return TEMPLATE_TOK + sum(-(-len(word) // 3) for word in text.split())


def first_word_is_split(text: str) -> int:
    """As vocabularies without a token for a word that has no space before it: some first words are two."""
    return words_and_marks(text) + (len(text.split(maxsplit=1)[0]) > 4)


COUNTS = [words_and_marks, pieces_of_three, first_word_is_split]


def text_of(fresh: Fresh) -> str:
    return f"{fresh.nonce} {fresh.text}"


def prompts_of(
    count: Callable[[str], int | None], prompt_tok: int, *, is_cheap: bool = True, nonce_seed: int = 1, n: int = 8
) -> list[Fresh]:
    book = PromptBook(Counter(count=count, is_cheap=is_cheap), seed=1, rng=random.Random(nonce_seed))
    return [book.fresh(prompt_tok) for _ in range(n)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("prompt_tok", [32, 64, 128, 777, 5000])
def test_every_prompt_has_exactly_the_tokens_asked_for(count: Callable[[str], int], prompt_tok: int) -> None:
    prompts = prompts_of(count, prompt_tok)

    assert {count(text_of(p)) for p in prompts} == {prompt_tok}


def words_that_stick(text: str) -> int:
    """No sum of its words: two neighbours that begin alike are one token less."""
    words = text.split()
    return words_and_marks(text) - sum(a[0] == b[0] for a, b in pairwise(words))


@pytest.mark.parametrize("count", COUNTS)
def test_thousands_of_prompts_are_exact_without_a_question_for_each(count: Callable[[str], int]) -> None:
    asked: list[str] = []

    def ask(text: str) -> int:
        asked.append(text)
        return count(text)

    prompts = prompts_of(ask, 128, n=4000)

    assert {count(text_of(p)) for p in prompts} == {128}
    assert len({p.nonce for p in prompts}) == 4000
    assert len(asked) < 1000


def test_words_that_are_no_sum_are_asked_for_again() -> None:
    prompts = prompts_of(words_that_stick, 128, n=500)

    off = [p for p in prompts if words_that_stick(text_of(p)) != 128]
    assert len(off) <= CHECK_EVERY * 3
    assert {words_that_stick(text_of(p)) for p in prompts[-300:]} == {128}


@settings(max_examples=60, deadline=None)
@given(prompt_tok=st.integers(40, 3000), seed=st.integers(0, 1000))
def test_fit_never_exceeds_and_misses_by_less_than_a_word(prompt_tok: int, seed: int) -> None:
    nonce = draw_nonce(random.Random(seed))

    text = fit_passage(pieces_of_three, prompt_tok, nonce=nonce, words=corpus())

    assert 0 <= prompt_tok - pieces_of_three(f"{nonce} {text}") <= 1


def test_fit_asks_seldom() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return pieces_of_three(text)

    fit_passage(count, 50_000, nonce=draw_nonce(random.Random(1)), words=corpus())

    assert len(asked) <= 30


def test_no_two_prompts_share_their_first_words() -> None:
    book = PromptBook(Counter(count=words_and_marks, is_cheap=True), seed=1)

    prompts = [book.fresh(64) for _ in range(80)]

    assert len({p.nonce for p in prompts}) == 80
    assert len({p.text for p in prompts}) == 8


def test_same_seed_gives_the_same_passages_and_other_nonces() -> None:
    one, two = (prompts_of(words_and_marks, 128, nonce_seed=seed) for seed in (1, 2))

    assert [p.nonce for p in one] != [p.nonce for p in two]
    assert [p.text.split()[:20] for p in one] == [p.text.split()[:20] for p in two]


def test_length_is_fitted_once() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return words_and_marks(text)

    book = PromptBook(Counter(count=count, is_cheap=False), seed=1)
    book.fresh(500)
    before = len(asked)
    book.fresh(500)

    assert len(asked) == before


def test_dear_counts_are_not_spent_on_nonces() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return words_and_marks(text)

    book = PromptBook(Counter(count=count, is_cheap=False), seed=1)
    for _ in range(100):
        book.fresh(128)

    assert len(asked) < 60


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("tok", [8, 64, 500])
def test_a_tail_makes_a_prompt_longer_by_what_was_asked(count: Callable[[str], int], tok: int) -> None:
    book = PromptBook(Counter(count=count, is_cheap=True), seed=1, rng=random.Random(1))
    fresh = book.fresh(200)

    assert count(f"{text_of(fresh)} {book.tail(tok)}") == 200 + tok


def test_server_that_tells_nothing_still_gets_prompts() -> None:
    prompts = prompts_of(lambda _: None, 128, is_cheap=False)

    assert prompts[0].prompt_tok is None
    assert 60 < len(text_of(prompts[0]).split()) < 140


def test_length_below_the_template_is_refused_with_what_it_takes() -> None:
    with pytest.raises(InputError, match=r"prompt_tokens 12: .* alone take 1\d"):
        prompts_of(words_and_marks, 12)


def test_count_that_stops_is_the_servers_fault() -> None:
    answers = iter([20, 100])

    with pytest.raises(TargetError, match="stopped telling"):
        fit_passage(lambda _: next(answers, None), 500, nonce="a b", words=corpus())


@pytest.mark.parametrize("tok", [0, 30])
def test_a_count_that_does_not_grow_is_refused_before_the_text_does(tok: int) -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return tok

    with pytest.raises(TargetError, match=f"counts {tok} tokens for a text and as many for one"):
        prompts_of(count, 512)
    assert max(len(text.split()) for text in asked) < 1000


def test_nonces_have_forty_bits() -> None:
    assert len(set(NONCE_WORDS)) == len(NONCE_WORDS) == 128
    assert len(draw_nonce(random.Random(1)).split()) == 6
