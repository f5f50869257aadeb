"""What the server's counters say of a cell, and the telemetry of its hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.records.record import RequestRecord
from orchestrator.sweep.hosts import host_summary
from orchestrator.sweep.truth import fallen, read_calm, read_counters, server_side

NAMES = {"running": "e:running", "output_tok": "e:out_total", "queue_n": "e:queue_count"}


class Told:
    """Metrics as they come, one reading after the other; the last one stays."""

    def __init__(self, *readings: Mapping[str, float] | None) -> None:
        self.readings = list(readings)
        self.asked = 0

    def metrics(self) -> Mapping[str, float] | None:
        self.asked += 1
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


class Time:
    def __init__(self) -> None:
        self.now_s = 0.0

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_counters_are_told_by_our_names_and_the_absent_ones_not_at_all() -> None:
    told = Told({"e:out_total": 7.0, "e:other": 1.0, "process_start_time_seconds": 1000.5})

    assert read_counters(told, NAMES) == {"output_tok": 7.0, "started_at_s": 1000.5}


@pytest.mark.parametrize(("told", "names"), [(Told(None), NAMES), (Told({"x": 1.0}), NAMES), (Told({"x": 1.0}), {})])
def test_no_counters_are_none(told: Told, names: Mapping[str, str]) -> None:
    assert read_counters(told, names) is None


def test_a_gauge_that_lags_is_waited_for() -> None:
    told, time = Told({"e:running": 2.0}, {"e:running": 1.0}, {"e:running": 0.0}), Time()

    assert read_calm(told, NAMES, clock=time.clock, sleep=time.sleep) == {"running": 0.0}
    assert told.asked == 3


def test_a_server_that_stays_busy_is_told_so_after_a_while() -> None:
    told, time = Told({"e:running": 2.0}), Time()

    assert read_calm(told, NAMES, clock=time.clock, sleep=time.sleep) == {"running": 2.0}
    assert 1.5 <= time.now_s < 1.7


def test_counters_fall_only_in_another_process() -> None:
    before = {"output_tok": 9.0, "prompt_tok": 1.0, "running": 5.0, "kv_usage": 0.5, "started_at_s": 9.0}
    after = {"output_tok": 8.0, "prompt_tok": 1.0, "running": 0.0, "kv_usage": 0.0, "started_at_s": 1.0}

    assert fallen(before, after) == ("output_tok",)


def request(repeat: int, **changes: Any) -> RequestRecord:
    return RequestRecord(
        repeat=repeat, index=0, scheduled_ns=0, prompt_tok=100, output_tok=10, cached_tok=32, **changes
    )


def lap(repeat: int, before: Mapping[str, float] | None, after: Mapping[str, float] | None) -> dict[str, Any]:
    warm = {"requests": 1, "prompt_tok": 50, "output_tok": 5, "cached_tok": 0, "is_complete": True}
    return {"repeat": repeat, "server_before": before, "server_after": after, "unrecorded": warm}


def test_the_servers_side_stands_beside_ours_over_all_repeats() -> None:
    start = {"prompt_tok": 1000.0, "cache_hits_tok": 10.0, "ttft_sum_s": 1.0, "ttft_n": 10.0, "running": 0.0}
    middle = {"prompt_tok": 1150.0, "cache_hits_tok": 42.0, "ttft_sum_s": 2.0, "ttft_n": 12.0, "running": 3.0}
    end = {"prompt_tok": 1300.0, "cache_hits_tok": 74.0, "ttft_sum_s": 2.2, "ttft_n": 14.0, "running": 0.0}

    assert server_side([lap(0, start, middle), lap(1, middle, end)], [request(0), request(1)]) == {
        "repeats": 2,
        "prompt_tok": 300.0,
        "cache_hits_tok": 64.0,
        "ttft_sum_s": pytest.approx(1.2),
        "ttft_n": 4.0,
        "ttft_ms": pytest.approx(300.0),
        "cached_by_counters": 64.0,
        "cached_by_usage": 64,
        "ours": {"requests": 4, "prompt_tok": 300, "output_tok": 30},
    }


def test_a_repeat_without_counters_or_with_fallen_ones_is_left_out_on_both_sides() -> None:
    good, worse = {"output_tok": 100.0}, {"output_tok": 115.0}
    laps = [lap(0, good, worse), lap(1, None, None), lap(2, worse, good)]

    found = server_side(laps, [request(0), request(1), request(2)])

    assert (found["repeats"], found["output_tok"]) == (1, 15.0)
    assert found["ours"] == {"requests": 2, "prompt_tok": 150, "output_tok": 15}


def test_a_counter_that_one_repeat_lacks_has_no_sum() -> None:
    laps = [
        lap(0, {"output_tok": 0.0, "spec_drafts": 0.0}, {"output_tok": 5.0, "spec_drafts": 5.0}),
        lap(1, {"output_tok": 5.0}, {"output_tok": 9.0}),
    ]

    assert "spec_drafts" not in server_side(laps, [])


def test_nothing_told_is_nothing() -> None:
    assert server_side([lap(0, None, None)], [request(0)]) == {}


def sample(clock_mhz: float | None = None, *, busy: float | None = 90.0, **told: Any) -> dict[str, Any]:
    gpu = {"sm_clock_mhz": clock_mhz, "utilization_percent": busy, "clock_reasons": told.pop("why", None)}
    return {"gpus": [gpu], **told}


def gpus(found: Any) -> Any:
    return found["spark01"]["gpus"]


def test_a_hosts_memory_and_pressure_are_the_least_and_the_growth() -> None:
    samples = [
        {"memory": {"available_bytes": a}, "pressure": {"swapped_in_pages": s, "oom_kills": k}}
        for a, s, k in ((900, 50, 2), (400, 60, 2), (700, 75, 3))
    ]

    assert host_summary({"spark01": samples, "spark02": []}) == {
        "spark01": {"samples": 3, "available_min_bytes": 400, "swapped_in_pages": 25, "oom_kills": 1}
    }


def test_a_clock_is_judged_under_load_alone_from_its_first_third_to_its_last() -> None:
    idle = [sample(208.0, busy=0.0)] * 4
    clocks = (2400.0, 2410.0, 2300.0, 2300.0, 1900.0, 1890.0)

    found = host_summary({"spark01": [*idle, *map(sample, clocks), *idle]})

    assert gpus(found) == [{"index": 0, "samples": 6, "first_mhz": 2405.0, "last_mhz": 1895.0}]


def test_a_few_samples_say_nothing_of_the_clock_and_an_idle_gpu_nothing_at_all() -> None:
    few = host_summary({"spark01": [sample(2400.0)] * 5})
    idle = host_summary({"spark01": [sample(208.0, busy=3.0), sample(208.0, busy=None)]})

    assert few == {"spark01": {"samples": 5, "gpus": [{"index": 0, "samples": 5}]}}
    assert idle == {"spark01": {"samples": 2}}


def test_reasons_that_hold_a_clock_back_are_counted_a_power_cap_is_none() -> None:
    hot = sample(2400.0, why=["sw_power_cap", "sw_thermal_slowdown"])

    found = host_summary({"spark01": [hot, hot, sample(2400.0, why=["sw_power_cap"])]})

    assert gpus(found) == [{"index": 0, "samples": 3, "throttle_reasons": {"sw_thermal_slowdown": 2}}]
