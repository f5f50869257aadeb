"""Percentiles, intervals and the distributions beneath them, beside values from tables."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from orchestrator.figures import distributions, stats
from orchestrator.figures.ratio import moments, ratio
from orchestrator.figures.stats import is_tight, percentile, percentiles, spread, values_needed, wilson
from tests.unit.figure_cases import CASES

TABLE = json.loads((CASES / "distributions.json").read_text())
DISTRIBUTIONS = [
    (name, row) for name in ("t_quantile", "chi_square_quantile", "binomial_cdf", "gamma_cdf") for row in TABLE[name]
]


@pytest.mark.parametrize(("name", "row"), DISTRIBUTIONS, ids=[f"{n}-{r[:-1]}" for n, r in DISTRIBUTIONS])
def test_a_distribution_agrees_with_its_table(name: str, row: list[float]) -> None:
    found = getattr(distributions, name)(*row[:-1])

    assert found == pytest.approx(row[-1], rel=1e-9)


@pytest.mark.parametrize(("n", "share", "expected"), TABLE["interval_ranks"])
def test_order_statistics_enclose_a_percentile(n: int, share: float, expected: list[int] | None) -> None:
    assert stats.interval_ranks(n, share) == (None if expected is None else tuple(expected))


@pytest.mark.parametrize(("hits", "n", "expected"), TABLE["wilson"])
def test_a_share_has_wilsons_interval(hits: int, n: int, expected: list[float] | None) -> None:
    found = wilson(hits, n)

    assert (None if found is None else [found.low, found.high]) == (
        None if expected is None else pytest.approx(expected, abs=1e-12)
    )


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([7.0], 0.5, 7.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
        (list(range(1, 30)), 0.9, None),
        (list(range(1, 31)), 0.9, 27),
        (list(range(1, 60)), 0.95, None),
        (list(range(1, 61)), 0.95, 57),
        (list(range(1, 300)), 0.99, None),
        (list(range(1, 301)), 0.99, 297),
        ([1.0, math.inf], 1.0, math.inf),
    ],
)
def test_a_percentile_is_an_observed_value_or_nothing(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected


def test_a_percentile_above_the_median_needs_three_values_beyond_it() -> None:
    assert [values_needed(s) for s in (0.25, 0.5, 0.9, 0.95, 0.99, 1.0)] == [1, 1, 30, 60, 300, 1]


def test_percentiles_carry_the_intervals_that_so_many_values_give() -> None:
    found = percentiles([float(v) for v in range(100, 0, -1)])

    assert (found.p50, found.p90, found.p95, found.p99) == (50, 90, 95, None)
    assert {name: (i.low, i.high) for name, i in found.intervals.items()} == {
        "p50": (40, 61),
        "p90": (84, 96),
        "p95": (90, 100),
    }


def test_a_mean_with_a_failure_in_it_is_not_a_mean() -> None:
    assert percentiles([1.0, math.inf]).mean is None


def test_one_repeat_has_no_deviation() -> None:
    found = spread([3.0])

    assert found is not None
    assert (found.sd, found.interval, found.cv, found.relative_half_width) == (None, None, None, None)
    assert spread([]) is None


@pytest.mark.parametrize(
    ("rates", "settings", "expected"),
    [
        ([], {}, False),
        ([100.0], {"min_repeats": 1}, False),
        ([100.0, 100.0], {}, False),
        ([100.0, 100.0], {"min_repeats": 2}, True),
        # t(0.975, 2) x 1 / sqrt(3) = 2.484 % of 100
        ([99.0, 100.0, 101.0], {}, False),
        ([99.0, 100.0, 101.0], {"half_width": 0.025}, True),
        ([99.5, 100.0, 100.5], {}, True),
    ],
)
def test_repeats_are_tight_when_half_the_interval_is_small(
    rates: list[float], settings: dict[str, Any], expected: bool
) -> None:
    assert is_tight(rates, **settings) is expected


def test_a_ratio_has_the_interval_of_welchs_test_on_logarithms() -> None:
    found = ratio(moments([110, 112, 108, 111, 109]), moments([100, 102, 98, 101, 99]))

    assert found is not None
    assert found.interval is not None
    assert (found.value, found.interval.low, found.interval.high, found.p_value) == pytest.approx(
        (1.1000190970045838, 1.0760031396445993, 1.1245710808747762, 9.224745910458457e-06), rel=1e-9
    )


def test_a_ratio_of_single_values_has_no_interval() -> None:
    found = ratio(moments([20.0]), moments([10.0, 10.0]))

    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert (found.interval, found.p_value) == (None, None)
    assert ratio(moments([]), moments([1.0])) is None
