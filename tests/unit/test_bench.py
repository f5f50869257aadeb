"""The arithmetic of `make bench`: what it calls true, and what it calls met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tools import bench_mock, bench_open
from tools.bench_meter import CommandFailed, Metered, Sample, run_metered
from tools.bench_mock import Answer
from tools.bench_show import Target, table

MS = 1_000_000
FOUR_A_STEP = [
    Answer(received_ns=0, first_ns=100 * MS, last_ns=160 * MS, events=4, output_tok=16, first_tok=4),
    Answer(received_ns=20 * MS, first_ns=140 * MS, last_ns=200 * MS, events=4, output_tok=16, first_tok=4),
]
"""Two answers, four tokens each 20 ms."""


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (bench_mock.mean_ttft_ms, 110.0),
        (bench_mock.mean_tpot_ms, 5.0),
        (bench_mock.mean_gap_ms, 20.0),
        (bench_mock.run_tok_per_s, 160.0),
    ],
)
def test_true_figures_of_events_with_several_tokens(
    figure: Callable[[Sequence[Answer]], float], expected: float
) -> None:
    assert figure(FOUR_A_STEP) == pytest.approx(expected)


@pytest.mark.parametrize(("streams", "expected"), [(2, 240.0), (1, 200.0)])
def test_decode_rate_is_of_each_batch_from_its_first_token(streams: int, expected: float) -> None:
    assert bench_mock.decode_tok_per_s(FOUR_A_STEP, streams) == pytest.approx(expected)


def test_an_answer_of_one_event_has_no_tpot() -> None:
    only = Answer(received_ns=0, first_ns=MS, last_ns=MS, events=1, output_tok=4, first_tok=4)

    assert only.tpot_ms is None


def test_probes_and_warm_ups_do_not_count() -> None:
    probe = Answer(received_ns=-2, first_ns=0, last_ns=1, events=1, output_tok=1, first_tok=1)
    warm_up = Answer(received_ns=-1, first_ns=0, last_ns=1, events=4, output_tok=16, first_tok=4)

    counted = bench_mock.measured([probe, warm_up, *FOUR_A_STEP], output_tok=16, requests=2)

    assert counted == FOUR_A_STEP


GAPS_MS = [2, 4, 6, 8]
EVEN = [i * 10 * MS for i in range(101)]


def test_burstiness_is_the_inverse_square_of_the_gaps_variation() -> None:
    times = [sum(GAPS_MS[:i]) * MS for i in range(5)]

    assert bench_open.burstiness_of(times) == pytest.approx(5.0**2 / 5.0)


def test_even_arrivals_have_their_rate_and_no_dispersion() -> None:
    assert [bench_open.rate_rps(EVEN), bench_open.dispersion(EVEN)] == pytest.approx([100.0, 0.0])


METERED = Metered(samples=(Sample(0, 0.0, 5.0), Sample(100 * MS, 0.1, 5.1), Sample(300 * MS, 0.2, 5.25)), wall_s=0.3)


def test_processor_time_between_two_samples_is_on_a_line() -> None:
    assert [METERED.at(t * MS).cpu_s for t in (0, 50, 200, 400)] == pytest.approx([0.0, 0.05, 0.15, 0.2])


def test_what_the_core_did_beyond_the_command_is_of_others() -> None:
    assert METERED.others_share(100 * MS, 300 * MS) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("script", "deadline_s", "expected"),
    [("echo last words >&2; exit 3", 60.0, "exit code 3"), ("sleep 600", 0.0, "did not end within 0 s")],
)
def test_a_command_that_fails_or_hangs_is_told_with_its_reason(
    tmp_path: Path, script: str, deadline_s: float, expected: str
) -> None:
    with pytest.raises(CommandFailed, match=expected):
        run_metered(("sh", "-c", script), log=tmp_path / "log", deadline_s=deadline_s, env={"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize(
    ("value", "is_floor", "expected"),
    [(0.5, False, True), (0.6, False, False), (0.4, True, False), (0.5, True, True), (None, False, None)],
)
def test_a_target_is_met_at_its_limit(value: float | None, is_floor: bool, expected: bool | None) -> None:
    assert Target(name="x", value=value, limit=0.5, is_floor=is_floor).is_met is expected


def test_headings_break_and_figures_stand_to_the_right() -> None:
    assert table(("client", "TTFT ms"), [("gate0", "1.5"), ("vllm", "10")]) == [
        "          TTFT",
        "  client    ms",
        "  gate0    1.5",
        "  vllm      10",
    ]
