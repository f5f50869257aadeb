"""A repeat request by request, with telemetry on its time axis, and the pictures as files."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.report.charts.bars import MOST, timeline
from orchestrator.report.charts.clock import lap_zero, utc_s
from orchestrator.report.charts.telemetry import MOST as MOST_SAMPLES
from orchestrator.report.charts.telemetry import panels
from orchestrator.report.charts.timeline import timeline_charts
from tests.unit.chart_records import S, closed, opened, stamp, tell, write
from tests.unit.test_charts import book, rows

ZERO = 1_796_025_600.0
"""2026-11-30T08:00:00Z."""


def request(index: int, due: float, end: float | None, **changes: Any) -> RequestRecord:
    values: dict[str, Any] = {
        "repeat": 0,
        "index": index,
        "scheduled_ns": round(due * S),
        "sent_ns": round(due * S),
        "end_ns": None if end is None else round(end * S),
    }
    return RequestRecord(**{**values, **changes})


def lap(
    began: float, took: float, end: float, *, epoch: float | None, repeat: int = 0, offset: int = 0
) -> dict[str, Any]:
    """Begun so many seconds after `ZERO`, with its last answer `end` seconds after its own zero."""
    phases = [] if epoch is None else [{"name": "main", "epoch_ns": round(epoch * S), "span_ns": None}]
    return {
        "repeat": repeat,
        "started_at": stamp(began),
        "duration_s": took,
        "offset_ns": offset,
        "span_ns": [offset, offset + round(end * S)],
        "phases": phases,
    }


def cell(*laps: dict[str, Any]) -> CellRecord:
    return replace(closed(1, 10, 0.5).cell, laps=laps)


def test_the_zero_of_a_repeats_clock_lies_where_the_brackets_of_all_laps_meet() -> None:
    first = cell(lap(0.0, 10.0, 8.0, epoch=100.0))  # between 0 and 2 after ZERO: UTC - clock between -100 and -98
    other = cell(lap(20.0, 6.0, 5.0, epoch=119.5))  # between 20 and 21: -99.5 and -98.5

    found = lap_zero(first, 0, [first, other])

    assert found is not None
    assert found.utc_s - ZERO == pytest.approx(1.0, abs=1e-3)
    assert found.error_s == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("other", "utc", "error"),
    [
        pytest.param(cell(lap(20.0, 6.0, 5.0, epoch=7.0)), 1.0, 1.0, id="another boot"),
        pytest.param(cell(lap(20.0, 6.0, 5.0, epoch=None)), 1.0, 1.0, id="no clock told"),
        pytest.param(cell({"repeat": 0}), 1.0, 1.0, id="an older record"),
    ],
)
def test_without_a_common_clock_a_laps_own_bracket_stands(other: CellRecord, utc: float, error: float) -> None:
    first = cell(lap(0.0, 10.0, 8.0, epoch=100.0))

    found = lap_zero(first, 0, [first, other])

    assert found is not None
    assert found.utc_s - ZERO == pytest.approx(utc, abs=1e-3)
    assert found.error_s == pytest.approx(error, abs=1e-3)


@pytest.mark.parametrize(
    "told",
    [{"repeat": 0}, {**lap(0, 1, 5, epoch=1.0)}, {**lap(0, 10, 5, epoch=1.0), "started_at": "soon"}],
    ids=["nothing told", "shorter than its load", "no time"],
)
def test_a_lap_that_does_not_tell_enough_has_no_zero(told: dict[str, Any]) -> None:
    assert lap_zero(cell(told), 0, [cell(told)]) is None


def test_only_a_stamp_with_its_zone_is_a_time() -> None:
    assert utc_s("2026-11-30T08:00:00.500Z") == ZERO + 0.5
    assert utc_s("2026-11-30T08:00:00") is None
    assert utc_s(None) is None


def test_requests_of_a_closed_load_follow_each_other_on_as_few_lines_as_ran_at_once() -> None:
    found = timeline([request(0, 0, 2), request(1, 0, 1), request(2, 1, 3), request(3, 2, 4)])

    assert found is not None
    assert [b.line for b in found.bars] == [0, 1, 1, 0]
    assert (found.lines, found.by, found.until_s) == (2, "place", 4.0)


def test_lanes_have_lines_of_their_own() -> None:
    found = timeline([request(0, 0, 1, lane="b"), request(1, 1, 2, lane="a"), request(2, 1, 2, lane="b")])

    assert found is not None
    assert [b.line for b in found.bars] == [0, 1, 0]


def test_each_request_of_an_open_load_has_its_line_from_when_it_was_due() -> None:
    late = request(1, 1.0, 4.0, sent_ns=2 * S, first_token_ns=3 * S, last_token_ns=4 * S)

    found = timeline([request(0, 0.5, 1.0), late], is_open=True)

    assert found is not None
    bar = found.bars[1]
    assert (found.by, found.lines, found.start_ns) == ("request", 2, S // 2)
    assert (bar.line, bar.due, bar.sent, bar.first, bar.last, bar.end) == (1, 0.5, 1.5, 2.5, 3.5, 3.5)


def test_the_servers_own_queue_is_no_prefill_where_it_is_told(tmp_path: Path) -> None:
    cell = closed(1, 10, 2.0, repeats=(1.0,))
    queued = replace(cell, requests=tuple(replace(r, server={"queue_time_ms": 500.0}) for r in cell.requests))

    (chart,) = timeline_charts(book(write(tmp_path, "a", [queued])))

    assert [(r["s"], r["u"], r["f"]) for r in rows(chart, "requests")] == [(0.0, 0.5, 2.0), (10.0, 10.5, 12.0)]
    assert "the longest queue 0.50 s, the longest prefill 1.50 s" in chart.text
    assert "own queue" not in chart.text


def test_of_many_requests_the_first_two_hundred_are_shown_and_said(tmp_path: Path) -> None:
    stored = write(tmp_path, "a", [opened(10, 0.3, 0.1, n=MOST + 40)])

    (chart,) = timeline_charts(book(stored))

    assert len(rows(chart, "requests")) == MOST
    assert chart.text == (
        "The first 200 of 240 requests of repeat 1, 22.0 s, a line a request: the longest queue 0.10 s, the longest "
        "prefill 0.30 s; none failed. The server's own queue is in its prefill."
    )


def test_a_failed_request_is_crossed_and_has_no_prefill(tmp_path: Path) -> None:
    stored = write(tmp_path, "a", [closed(2, 20, 0.5, repeats=(1.0,), rounds=1, failed=1)])

    (chart,) = timeline_charts(book(stored))

    broken, good = rows(chart, "requests")
    assert broken == {"i": 0, "q": 0.0, "s": 0.0, "u": 0.0, "e": 10.0, "z": 0.0, "k": "http_5xx", "w": "0", "p": 128}
    assert {k: good[k] for k in "isfe"} == {"i": 1, "s": 0.0, "f": 0.5, "e": 10.0}
    assert "1 failed" in chart.text


def test_telemetry_stands_at_its_time_on_the_requests_axis(tmp_path: Path) -> None:
    stored = write(tmp_path, "a", [closed(2, 20, 0.5, repeats=(1.0,), rounds=2)])
    tell(
        stored,
        [
            {"at": stamp(t), "where": "spark01", "memory": {"available_bytes": 2**30 * (9 - t)},
             "gpus": [{"utilization_percent": 10.0 * t, "power_w": None}]}
            for t in range(-2, 30, 5)
        ] + [{"at": stamp(t), "where": "spark01:8000", "engine": {"running": 2, "waiting": t}} for t in (1, 6)]
          + [{"at": "never"}, {"at": stamp(7), "where": "x", "engine": None, "gpus": 3}],
    )  # fmt: skip

    (chart,) = timeline_charts(book(stored))

    # The lap was begun 0.4 s before its clock and ended 0.2 s after its last answer: the middle lies 0.1 s too early.
    memory = [(r["x"], r["v"]) for r in rows(chart, "memory")]
    assert memory == [(3.1, 6.0), (8.1, 1.0), (13.1, -4.0), (18.1, -9.0)]
    assert [(r["x"], r["v"], r["h"]) for r in rows(chart, "engine")] == [
        (1.1, 2, "spark01:8000 running"),
        (6.1, 2, "spark01:8000 running"),
        (1.1, 1, "spark01:8000 waiting"),
        (6.1, 6, "spark01:8000 waiting"),
    ]
    assert "watt" not in chart.spec["datasets"]  # type: ignore[operator]
    assert chart.text.endswith("against the requests' clock it is right within 0.30 s.")


def test_long_telemetry_is_thinned_evenly() -> None:
    samples = [{"at": stamp(t), "where": "h", "memory": {"available_bytes": t}} for t in range(1000)]

    (panel,) = panels(samples, {}, zero_utc_s=ZERO, until_s=1000)

    shown = [r["x"] for r in panel.data["memory"]]
    assert len(shown) <= MOST_SAMPLES
    assert {b - a for a, b in itertools.pairwise(shown)} == {5.0}


def test_pictures_are_written_with_their_title_and_the_same_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "r", "a", [closed(u, 10 * u, 0.5) for u in (1, 2)])
    line = ["report", "--results", str(tmp_path / "r"), "--charts"]

    codes = [main([*line, str(tmp_path / name)]) for name in ("one", "two")]
    codes.append(main([*line, str(tmp_path / "png"), "--charts-format", "png"]))

    files = sorted((tmp_path / "one").iterdir())
    assert codes == [0, 0, 0]
    assert capsys.readouterr().out.splitlines()[0] == f"{tmp_path / 'one'}: 6 pictures"
    assert [f.name for f in files] == [
        "e2e-concurrency-closed-128-tokens-in-100-out.svg",
        "efficiency-concurrency-closed-128-tokens-in-100-out.svg",
        "first-token-concurrency-closed-128-tokens-in-100-out.svg",
        "speed-concurrency-closed-128-tokens-in-100-out.svg",
        "timeline-concurrency-closed-p128-o100-c2.svg",
        "ttft-concurrency-closed-128-tokens-in-100-out.svg",
    ]
    assert all(f.read_bytes() == (tmp_path / "two" / f.name).read_bytes() for f in files)
    assert "concurrency, closed: 128 tokens in, 100 out: speed, all users together and each" in files[3].read_text()
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in (tmp_path / "png").iterdir())
    assert not (tmp_path / "r" / "notebook.html").exists(), "the page only with -o"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "a", [closed(u, 10 * u, 0.5, repeats=(1.0,)) for u in (1, 2)])
    (tmp_path / "file").write_text("")

    code = main(["report", "--results", str(tmp_path), "--charts", str(tmp_path / "file")])

    assert code == 3
    assert "cannot write" in capsys.readouterr().err


def test_a_record_says_the_same_after_it_was_read_back(tmp_path: Path) -> None:
    stored = write(tmp_path, "a", [closed(2, 20, 0.5)])
    (path,) = (stored.directory / "sweeps").glob("*/*.json")

    found = stored.find_cell(closed(2, 20, 0.5).cell)

    assert found is not None
    assert found.requests == closed(2, 20, 0.5).requests
    assert json.loads(path.read_text())["id"] == found.cell.id
    path.write_text("{")
    assert stored.find_cell(found.cell) is None
