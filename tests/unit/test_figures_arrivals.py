"""Open loops, saturation and overload, beside figures worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest

from orchestrator.figures.cell import cell_figures
from orchestrator.figures.open_loop import burstiness, dispersion, ks_distance
from orchestrator.figures.overload import OverloadVerdict, overload_figures
from orchestrator.figures.saturation import knee, outstanding_slope
from orchestrator.records.record import RequestRecord
from tests.unit.figure_cases import cell_of, request_of

S = 1_000_000_000


def answered(at_ms: float, ttft_ms: float, **more: Any) -> RequestRecord:
    return request_of({"sent": at_ms, "events": [[at_ms + ttft_ms, 1]], **more})


def test_the_dispersion_of_a_counted_process_is_variance_over_mean() -> None:
    # Bins of a second after the first arrival hold 5, 15, 5, 15, …: mean 10, variance 250 / 9.
    at = [0]
    for second in range(10):
        count = 5 if second % 2 == 0 else 15
        at += [round((second + (i + 1) / count) * S) for i in range(count)]

    found = dispersion([at])

    assert found is not None
    assert found.index == pytest.approx(250 / 90)
    assert (found.bins, found.bin_s) == (10, 1.0)
    assert (found.interval.low, found.interval.high) == pytest.approx((2.7003894999803584 / 9, 19.02276779864163 / 9))
    assert found.is_poisson is False


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0])
def test_a_drawn_process_is_recovered(shape: float) -> None:
    draw = random.Random(7)
    gaps = [draw.gammavariate(shape, 1 / (200 * shape)) for _ in range(12_000)]

    found = burstiness(gaps)
    spread = dispersion([[0, *(round(t * S) for t in accumulate(gaps))]])
    distance = ks_distance(gaps, rate_rps=200, shape=shape)

    assert found is not None
    assert spread is not None
    assert distance is not None
    assert shape in found.interval
    assert found.interval.high - found.interval.low < 0.2 * shape
    assert spread.is_poisson is (shape == 1.0)
    assert distance < 1.358 / 12_000**0.5


def test_gaps_of_another_process_are_far_from_the_asked_one() -> None:
    draw = random.Random(7)
    gaps = [draw.gammavariate(0.5, 1 / 100) for _ in range(12_000)]

    distance = ks_distance(gaps, rate_rps=200, shape=1.0)

    assert distance is not None
    assert distance > 0.15


def test_the_distance_of_equal_gaps_to_exponential_ones() -> None:
    # All gaps are the mean: F(mean) = 1 - 1/e; the empirical step goes from 0 to 1 there.
    assert ks_distance([0.1] * 20, rate_rps=10, shape=1.0) == pytest.approx(0.6321205588285577)


@pytest.mark.parametrize(
    ("rate", "shape", "gaps"), [(None, 1.0, 20), (10.0, None, 20), (10.0, float("inf"), 20), (10.0, 1.0, 19)]
)
def test_no_distance_without_a_process_to_compare_with(rate: float | None, shape: float | None, gaps: int) -> None:
    assert ks_distance([0.1] * gaps, rate_rps=rate, shape=shape) is None


def test_a_metronome_has_no_gamma_shape() -> None:
    assert burstiness([0.1] * 50) is None


@pytest.mark.parametrize(("load", "is_told"), [({}, True), ({"ramp": {"from": 1, "to": 9}}, False)])
def test_a_ramp_has_no_one_rate_to_be_tested_against(load: dict[str, Any], is_told: bool) -> None:
    draw = random.Random(3)
    at = list(accumulate(draw.expovariate(0.01) for _ in range(200)))
    cell = {"kind": "open", "concurrency": 0, "rate_rps": 10.0, "burstiness": 1.0, "load": load}

    found = cell_figures(cell_of(cell), [answered(t, 5) for t in at]).open

    assert found is not None
    assert [v is not None for v in (found.dispersion, found.burstiness, found.ks, found.ks_limit)] == [is_told] * 4


def test_what_is_outstanding_grows_by_what_the_server_falls_behind() -> None:
    # 10 arrivals a second, 8 answers a second: request i is due at i / 10 and ends at (i + 1) / 8 seconds.
    main = [request_of({"sent": i * 100, "events": [[(i + 1) * 125, 1]]}) for i in range(400)]

    found = outstanding_slope(main)

    assert found is not None
    assert found.per_s == pytest.approx(2.0, rel=0.01)
    assert found.share == pytest.approx(0.2, rel=0.01)
    assert found.is_growing


def test_a_server_that_keeps_up_has_a_level_queue() -> None:
    found = outstanding_slope([request_of({"sent": i * 100, "events": [[i * 100 + 250, 1]]}) for i in range(400)])

    assert found is not None
    assert found.per_s == pytest.approx(0.0, abs=1e-3)
    assert not found.is_growing


def test_too_few_arrivals_have_no_slope() -> None:
    assert outstanding_slope([answered(i * 100, 50) for i in range(19)]) is None


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(1, 10), (2, 20), (4, 40), (8, 80), (16, 88), (32, 104)], (8, 80, 10, 1)),
        ([(32, 104), (16, 88), (8, 80), (4, 40), (2, 20), (1, 10)], (8, 80, 10, 1)),
        ([(1, 10), (2, 20), (4, 40), (8, 40), (16, 40)], (4, 40, 10, 0)),
        ([(1, 10), (2, 20), (4, 40), (8, 80)], None),
        ([(1, 10), (2, 20), (4, 40), (8, 80), (16, 160)], None),
        ([(1, 10), (2, 20), (4, 40), (8, 80), (16, 130)], None),
        ([(1, 10), (2, 10), (4, 10), (8, 10), (16, 10)], None),
    ],
)
def test_the_knee_is_where_more_users_stop_paying(
    points: list[tuple[float, float]], expected: tuple[float, ...] | None
) -> None:
    found = knee(points)

    assert (found and (found.concurrency, found.tok_per_s, found.slope_before, found.slope_after)) == (
        expected and pytest.approx(expected, abs=1e-9)
    )


BEFORE = [answered(i * 100, 100, phase="before") for i in range(25)]
AFTER = [answered(20_000 + i * 500, 100, phase="after") for i in range(6)]


def refused(at_ms: float, **more: Any) -> RequestRecord:
    return request_of({"sent": at_ms, **more})


def main_phase(waits_ms: Sequence[float]) -> list[RequestRecord]:
    return [answered(5_000 + i * 50, wait) for i, wait in enumerate(waits_ms)]


@pytest.mark.parametrize(
    ("main", "after", "verdict", "growth"),
    [
        (main_phase([150] * 40), AFTER, OverloadVerdict.COPES, 1.5),
        (main_phase([100 + 100 * i for i in range(40)]), AFTER, OverloadVerdict.QUEUES, 38.0),
        (
            main_phase([150] * 40) + [refused(6_000, failure="http_4xx", http_status=429)] * 4,
            AFTER,
            OverloadVerdict.SHEDS,
            1.5,
        ),
        (
            main_phase([150] * 40) + [refused(6_000, failure="http_5xx", http_status=500)] * 4,
            AFTER,
            OverloadVerdict.BREAKS,
            1.5,
        ),
        (main_phase([150] * 40) + [refused(6_000, failure="timeout")] * 4, AFTER, OverloadVerdict.QUEUES, 1.5),
        (main_phase([150] * 40) + [refused(6_000, failure="cancelled")] * 4, AFTER, OverloadVerdict.COPES, 1.5),
        (main_phase([150] * 40), [refused(20_000, failure="connect", phase="after")], OverloadVerdict.BREAKS, 1.5),
        (main_phase([150] * 19), AFTER, OverloadVerdict.COPES, None),
    ],
)
def test_overload_says_what_the_server_does(
    main: list[RequestRecord], after: list[RequestRecord], verdict: OverloadVerdict, growth: float | None
) -> None:
    found = overload_figures([*BEFORE, *main, *after])

    assert found is not None
    assert (found.verdict, found.tail_growth) == (verdict, growth)


@pytest.mark.parametrize(
    ("waits_ms", "recovery_s", "has_recovered"),
    [
        ([100, 100, 100, 100], 13.05, True),
        # 200 is the limit; well from the third on.
        ([900, 201, 200, 150, 100], 14.05, True),
        # One good answer among slow ones is no recovery; two good ones at the end are all there are.
        ([900, 100, 900, 100, 100], 14.55, True),
        ([900, 800, 700], None, False),
        ([], None, None),
    ],
)
def test_recovery_is_when_first_tokens_are_fast_again(
    waits_ms: list[float], recovery_s: float | None, has_recovered: bool | None
) -> None:
    after = [answered(20_000 + i * 500, wait, phase="after") for i, wait in enumerate(waits_ms)]

    found = overload_figures([*BEFORE, *main_phase([150] * 40), *after])

    assert found is not None
    assert (found.recovery_s, found.has_recovered) == (
        None if recovery_s is None else pytest.approx(recovery_s),
        has_recovered,
    )
