"""Arrival times: exact numbers, the asked clumping, ramps, and the same every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from random import Random
from statistics import mean, pvariance, stdev

import pytest

from orchestrator.sweep.arrivals import arrivals, duration_s, mean_rate, unit_gaps
from orchestrator.values import Json

N = 20_000


def gaps(times: tuple[float, ...]) -> list[float]:
    return [b - a for a, b in pairwise(times)]


def dispersion(times: tuple[float, ...], window_s: float) -> float:
    """Variance by mean of the counts in windows: 1 for a Poisson process."""
    whole = int(times[-1] / window_s)
    counts = Counter(int(t / window_s) for t in times if t < whole * window_s)
    found = [counts[i] for i in range(whole)]
    return pvariance(found) / mean(found)


@pytest.mark.parametrize("burstiness", [0.1, 0.5, 1.0, 2.0, 100.0])
@pytest.mark.parametrize("n", [1, 2, 200])
def test_exact_arrivals_are_ascending_and_all_within_the_run(n: int, burstiness: float) -> None:
    times = arrivals(n, 0.3, burstiness=burstiness)

    assert len(times) == n
    assert list(times) == sorted(times)
    assert 0 < times[0] <= times[-1] < duration_s(n, 0.3) == pytest.approx(n / 0.3)


@pytest.mark.parametrize(
    ("burstiness", "cv"),
    [(0.25, 2.0), (0.5, 1.414), (0.7, 1.195), (1.0, 1.0), (2.0, 0.707), (25.0, 0.2)],
)
@pytest.mark.parametrize("mode", ["exact", "free"])
def test_gaps_vary_as_the_burstiness_says(mode: str, burstiness: float, cv: float) -> None:
    found = gaps(arrivals(N, 50.0, burstiness=burstiness, mode=mode))

    assert stdev(found) / mean(found) == pytest.approx(cv, rel=0.05)
    assert mean(found) == pytest.approx(1 / 50, rel=0.05)


@pytest.mark.parametrize(("burstiness", "index"), [(0.5, 2.0), (1.0, 1.0), (2.0, 0.5)])
def test_counts_disperse_as_the_burstiness_says(burstiness: float, index: float) -> None:
    assert dispersion(arrivals(N, 50.0, burstiness=burstiness), 1.0) == pytest.approx(index, rel=0.2)


def test_neighbouring_gaps_know_nothing_of_each_other() -> None:
    found = gaps(arrivals(N, 1.0))
    middle = mean(found)

    lagged = sum((a - middle) * (b - middle) for a, b in pairwise(found)) / len(found)
    assert lagged / pvariance(found) == pytest.approx(0.0, abs=0.03)


def test_exact_is_a_poisson_process_given_its_number() -> None:
    """The place of each of n arrivals is that of an ordered uniform: on average k / (n + 1) of the run."""
    runs = [arrivals(9, 9.0, seed=seed) for seed in range(4000)]

    means = [mean(run[k] for run in runs) for k in range(9)]

    assert means == pytest.approx([(k + 1) / 10 for k in range(9)], abs=0.01)


def test_free_meets_the_rate_on_average_only() -> None:
    ends = [arrivals(100, 10.0, mode="free", seed=seed)[-1] for seed in range(500)]

    assert mean(ends) == pytest.approx(10.0, rel=0.02)
    assert stdev(ends) == pytest.approx(1.0, rel=0.1)


def test_a_seed_gives_one_schedule_everywhere() -> None:
    first = arrivals(4, 1.0, burstiness=0.7, seed=42)

    assert first == pytest.approx(EXPECTED, rel=1e-9)
    assert arrivals(4, 1.0, burstiness=0.7, seed=43) != first


EXPECTED = (0.590663422163, 1.07399980297, 1.132827040645, 1.349892187193)


@pytest.mark.parametrize(
    ("ramp", "rate", "first_half"),
    [
        ({"from": 1, "to": 3}, 2.0, 0.375),
        ({"from": 3, "to": 1}, 2.0, 0.625),
        ({"from": 2, "to": 2}, 2.0, 0.5),
        ({"from": 1, "to": 4, "shape": "exponential"}, 3 / 1.3862943611, 1 / 3),
        ({"from": 2, "to": 2, "shape": "exponential"}, 2.0, 0.5),
    ],
)
@pytest.mark.parametrize("mode", ["exact", "free"])
def test_a_ramp_brings_what_its_rate_adds_up_to(
    mode: str, ramp: Mapping[str, Json], rate: float, first_half: float
) -> None:
    whole_s = duration_s(N, 99.0, ramp)

    times = arrivals(N, 99.0, ramp=ramp, mode=mode)

    assert mean_rate(ramp) == pytest.approx(rate)
    assert whole_s == pytest.approx(N / rate)
    assert times[-1] == pytest.approx(whole_s, rel=0.03)
    assert sum(t < whole_s / 2 for t in times) / N == pytest.approx(first_half, abs=0.02)


@pytest.mark.parametrize("shape", ["linear", "exponential"])
def test_a_metronome_on_a_ramp_follows_the_rate(shape: str) -> None:
    """Nearly equal gaps of the unit process: the local rate at the ends is what was asked for."""
    found = gaps(arrivals(1000, 0.0, burstiness=1e6, ramp={"from": 1, "to": 5, "shape": shape}))

    assert 1 / mean(found[:5]) == pytest.approx(1.0, rel=0.05)
    assert 1 / mean(found[-5:]) == pytest.approx(5.0, rel=0.05)


def test_free_arrivals_past_a_falling_ramp_keep_its_last_rate() -> None:
    ramp: Mapping[str, Json] = {"from": 9, "to": 1}
    runs = [arrivals(50, 0.0, mode="free", seed=seed, ramp=ramp) for seed in range(20)]

    beyond = [run for run in runs if run[-1] > duration_s(50, 0.0, ramp)]

    assert beyond
    assert all(list(run) == sorted(run) for run in beyond)


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.5])
def test_unit_gaps_have_the_moments_of_a_gamma(shape: float) -> None:
    found = unit_gaps(N, shape, Random(5))

    assert mean(found) == pytest.approx(1.0, rel=0.04)
    assert pvariance(found) == pytest.approx(1 / shape, rel=0.06)
