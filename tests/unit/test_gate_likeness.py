"""Comparing answers: where they part, how close the two words were, how far the probabilities moved."""

from __future__ import annotations

import pytest

from orchestrator.gating.likeness import Answer, Kind, Limits, Runs, compare, find
from orchestrator.wire.chat import TokenLogprob


def token(word: str, **top: float) -> TokenLogprob:
    ranked = tuple(sorted(top.items(), key=lambda pair: -pair[1]))
    return TokenLogprob(token=word, logprob=top.get(word, -9999.0), top=ranked)


def answer(*tokens: TokenLogprob, fact: bool = True) -> Answer:
    return Answer(text=" ".join(t.token for t in tokens), tokens=tokens, has_fact=fact)


A = answer(token("It", It=-0.1, So=-2.5), token("is", **{"is": -0.2, "was": -1.9}))


def test_equal_answers_do_not_differ() -> None:
    found = compare(A, A)

    assert (found.is_same, found.at, found.shift) == (True, None, 0.0)


def test_shift_is_the_largest_move_of_a_word_that_matters() -> None:
    moved = answer(token("It", It=-0.15, So=-2.2), token("is", **{"is": -0.2, "was": -1.9}))

    assert compare(A, moved).shift == pytest.approx(0.3)


def test_moves_of_the_far_tail_do_not_count() -> None:
    tail = answer(token("It", It=-0.1, So=-2.5, x=-9.0))
    moved = answer(token("It", It=-0.1, So=-2.5, x=-14.0))

    assert compare(tail, moved).shift == 0.0


def test_word_missing_from_the_other_list_moved_at_least_below_its_end() -> None:
    missing = answer(token("It", It=-0.1, Up=-6.0))

    assert compare(answer(token("It", It=-0.1, So=-2.5)), missing).shift == pytest.approx(3.5)


def test_margin_is_the_gap_where_the_two_words_were_closer() -> None:
    other = answer(token("So", So=-0.6, It=-0.7))

    found = compare(A, other)

    assert (found.at, found.words) == (0, ("It", "So"))
    assert found.margin == pytest.approx(0.1)


def test_shift_is_not_taken_after_the_first_difference() -> None:
    a = answer(token("It", It=-0.7, So=-0.7), token("is", **{"is": -0.1}))
    b = answer(token("So", It=-0.7, So=-0.7), token("far", far=-0.1))

    assert compare(a, b).shift == 0.0


def test_only_the_first_tokens_are_compared_for_shifts() -> None:
    late = answer(*A.tokens, token("ok", ok=-0.1))
    moved = answer(*A.tokens, token("ok", ok=-1.1))

    assert compare(late, moved, tokens=2).shift == 0.0
    assert compare(late, moved, tokens=3).shift == pytest.approx(1.0)


def test_answers_without_logprobs_are_compared_by_text() -> None:
    found = compare(Answer(text="a"), Answer(text="b"))

    assert (found.is_same, found.at, found.shift, found.margin) == (False, None, None, None)


def test_noise_comes_from_the_cold_runs() -> None:
    cold = answer(token("It", It=-0.1, So=-2.3), token("is", **{"is": -0.2, "was": -1.9}))

    found = find(Runs(prompt_tok=9, cold=(A, cold), warm=(A, A)), Limits())

    assert found.kind is Kind.SAME
    assert found.noise == pytest.approx(0.2)


def test_warm_runs_that_vary_wildly_while_cold_ones_agree_are_beyond() -> None:
    wild = answer(token("It", It=-3.0, So=-0.1), token("is", **{"is": -0.2, "was": -1.9}))

    found = find(Runs(prompt_tok=9, cold=(A, A), warm=(A, wild)), Limits())

    assert found.kind is Kind.BEYOND


def test_without_a_second_cold_run_the_warm_ones_are_the_control() -> None:
    other = answer(token("So", So=-0.6, It=-0.7))

    found = find(Runs(prompt_tok=9, cold=(A,), warm=(A, other)), Limits(fail_nats=5.0))

    assert found.kind is Kind.VARIES


def test_fact_found_only_once_cold_is_not_lost_when_warm() -> None:
    lost = Answer(text=A.text, tokens=A.tokens, has_fact=False)

    assert find(Runs(prompt_tok=9, cold=(A, lost), warm=(lost, lost)), Limits()).kind is Kind.SAME
    assert find(Runs(prompt_tok=9, cold=(A, A), warm=(lost, lost)), Limits()).kind is Kind.FACT_LOST


@pytest.mark.parametrize(
    ("warm", "kind"),
    [
        ((-0.70, -0.69), Kind.NEAR_TIE),
        ((-1.15, -0.66), Kind.NEAR_TIE),
        ((-1.30, -0.30), Kind.FACT_LOST),
        ((-4.00, -0.02), Kind.FACT_LOST),
    ],
)
def test_a_fact_goes_with_a_near_tie_only_where_rounding_explains_both(warm: tuple[float, float], kind: Kind) -> None:
    cold = answer(token("8", **{"8": -0.69, "9": -0.70}))
    lost = answer(token("9", **{"8": warm[0], "9": warm[1]}), fact=False)

    found = find(Runs(prompt_tok=9, cold=(cold, cold), warm=(lost, lost)), Limits())

    assert found.kind is kind
    assert "planted fact" in found.words


def test_a_fact_lost_without_logprobs_is_lost() -> None:
    found = find(
        Runs(prompt_tok=9, cold=(Answer(text="8", has_fact=True),) * 2, warm=(Answer(text="9"),) * 2), Limits()
    )

    assert found.kind is Kind.FACT_LOST


def test_same_tokens_with_another_text_differ() -> None:
    other = Answer(text="something else", tokens=A.tokens, has_fact=True)

    assert find(Runs(prompt_tok=9, cold=(A, A), warm=(other, other)), Limits()).kind is Kind.TEXT_DIFFERS
