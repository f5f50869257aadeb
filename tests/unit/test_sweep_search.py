"""The search for the largest level that meets a service level, against servers whose limit is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.sweep.search import MET, MISSED, UNDECIDED, Ended, Found, Range, Tried, next_level

USERS = Range(low=1, high=256, precision=0.1, is_whole=True)
RATES = Range(low=0.1, high=50.0, precision=0.05, is_whole=False)


def search(where: Range, is_met: Callable[[float], bool]) -> tuple[Found, list[float]]:
    tried: list[Tried] = []
    for _ in range(60):
        level = next_level(where, tried)
        if isinstance(level, Found):
            return level, [t.level for t in tried]
        tried.append(
            Tried(level=level, verdict=MET if is_met(level) else MISSED, attainment=float(is_met(level)), share=0.95)
        )
    raise AssertionError("the search does not end")


@settings(max_examples=200, deadline=None)
@given(limit=st.integers(1, 255))
def test_the_true_number_of_users_is_within_the_precision(limit: int) -> None:
    found, levels = search(USERS, lambda level: level <= limit)

    assert found.best is not None
    assert found.missed is not None
    assert found.best <= limit < found.missed
    assert found.missed - found.best <= max(1, 0.1 * found.best)
    assert len(levels) == len(set(levels)) <= 14


@settings(max_examples=200, deadline=None)
@given(limit=st.floats(0.11, 49.0))
def test_the_true_rate_is_within_the_precision(limit: float) -> None:
    found, _ = search(RATES, lambda level: level <= limit)

    assert found.best is not None
    assert found.missed is not None
    assert found.best <= limit <= found.missed
    assert found.missed / found.best <= 1.06


@settings(max_examples=200, deadline=None)
@given(low=st.floats(0.01, 20.0), ratio=st.floats(1.01, 900.0), limit=st.floats(0.0, 20_000.0), is_whole=st.booleans())
def test_every_search_ends_whatever_its_bounds(low: float, ratio: float, limit: float, is_whole: bool) -> None:
    found, levels = search(Range(low=low, high=low * ratio, precision=0.1, is_whole=is_whole), lambda v: v <= limit)

    assert found.ended in {Ended.BRACKETED, Ended.ALL_MET, Ended.NONE_MET}
    assert len(levels) == len(set(levels))
    assert min(levels) >= (1.0 if is_whole else 0.01)


def test_levels_double_and_then_halve_the_gap() -> None:
    _, levels = search(USERS, lambda level: level <= 11)

    assert levels == [1, 2, 4, 8, 16, 11, 13, 12]


@pytest.mark.parametrize(
    ("is_met", "ended", "best", "missed"),
    [
        (lambda _: True, Ended.ALL_MET, 256.0, None),
        (lambda _: False, Ended.NONE_MET, None, 1.0),
        (lambda level: level <= 1, Ended.BRACKETED, 1.0, 2.0),
        (lambda level: level <= 255, Ended.BRACKETED, 235.0, 256.0),
    ],
)
def test_the_ends_of_the_range_are_answers_too(
    is_met: Callable[[float], bool], ended: Ended, best: float | None, missed: float | None
) -> None:
    found, _ = search(USERS, is_met)

    assert (found.ended, found.best, found.missed, found.is_certain) == (ended, best, missed, True)


def tried(
    level: float, verdict: str, *, attainment: float | None = 0.95, is_valid: bool = True, more: bool = False
) -> Tried:
    return Tried(level=level, verdict=verdict, attainment=attainment, share=0.95, is_valid=is_valid, can_go_on=more)


def test_an_undecided_level_is_measured_again_while_it_has_repeats() -> None:
    assert next_level(USERS, [tried(1, MET), tried(2, UNDECIDED, more=True)]) == 2


@pytest.mark.parametrize(("attainment", "best", "missed"), [(0.96, 2.0, 3.0), (0.94, 1.0, 2.0)])
def test_a_level_that_stays_undecided_counts_by_its_share_and_says_so(
    attainment: float, best: float, missed: float
) -> None:
    levels = [tried(1, MET), tried(2, UNDECIDED, attainment=attainment), tried(3, MISSED)]

    found = next_level(USERS, levels)

    assert isinstance(found, Found)
    assert (found.best, found.missed, found.is_certain) == (best, missed, False)


def test_a_level_that_broke_a_guard_ends_the_search_without_an_answer() -> None:
    found = next_level(USERS, [tried(1, MET), tried(2, MISSED, is_valid=False)])

    assert isinstance(found, Found)
    assert (found.ended, found.is_certain) == (Ended.SPOILED, False)


def test_a_level_of_which_nothing_can_be_judged_is_no_miss() -> None:
    found = next_level(USERS, [tried(1, MET), tried(2, UNDECIDED, attainment=None)])

    assert isinstance(found, Found)
    assert (found.ended, found.best, found.missed, found.is_certain) == (Ended.UNJUDGED, 1.0, None, False)


def test_more_load_that_is_better_is_named_not_believed() -> None:
    found = next_level(USERS, [tried(1, MET), tried(2, MISSED), tried(4, MET), tried(3, MISSED)])

    assert isinstance(found, Found)
    assert (found.best, found.missed, found.notes) == (1.0, 2.0, ("4 met although 2 missed",))
