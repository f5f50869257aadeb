"""This machine's own error: from stamps and truths to a level, and from a level to a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.errors import BoxError
from orchestrator.pipeline import calibration
from orchestrator.pipeline.calibration import Calibration, Level, Round, doubts, error_at, level_of
from orchestrator.pipeline.events import Notice
from orchestrator.records.record import RequestRecord
from tests.unit.road_fakes import World, stored

MS = 1_000_000
EPOCH_NS = 7_000 * MS


def said(k: int, *, dispatch_ms: float = 0.0, stamp_ms: float = 0.0) -> tuple[RequestRecord, dict[str, int]]:
    """A request of k prompt tokens whose client errs by so much, and its truth (TTFT 200 ms, 1,000 ms of decode)."""
    received_ns = EPOCH_NS + 50 * MS
    request = RequestRecord(
        repeat=0,
        index=k,
        scheduled_ns=0,
        sent_ns=50 * MS - round(dispatch_ms * MS),
        first_token_ns=250 * MS + round(stamp_ms * MS),
        last_token_ns=1250 * MS,
        prompt_tok=k,
        output_tok=10,
    )
    truth = {
        "prompt_tok": k,
        "received_ns": received_ns,
        "first_ns": received_ns + 200 * MS,
        "last_ns": received_ns + 1200 * MS,
    }
    return request, truth


def test_level_splits_the_error_into_dispatch_and_stamp() -> None:
    pairs = [said(k, dispatch_ms=0.5, stamp_ms=0.25 * k) for k in (1, 2, 3)]
    burst = Round(
        requests=tuple(r for r, _ in pairs),
        epoch_ns=EPOCH_NS,
        truths={t["prompt_tok"]: t for _, t in pairs},
        cpu_s=0.0003,
        kernel_lag_ms={"p99": 0.2},
    )

    level = level_of(3, [burst])

    assert (level.requests, level.concurrency) == (3, 3)
    assert level.ttft_error_ms.p50 == pytest.approx(1.0)
    assert level.ttft_error_ms.worst == pytest.approx(1.25)
    assert level.dispatch_ms.mean == pytest.approx(0.5)
    assert level.stamp_ms.mean == pytest.approx(0.5)
    assert level.decode_error_ms.mean == pytest.approx(-0.5)
    assert level.cost_us == pytest.approx(10.0)
    assert level.kernel_lag_ms == {"p99": 0.2}


def test_a_failed_request_is_no_calibration() -> None:
    request = RequestRecord(repeat=0, index=0, scheduled_ns=0, failure="connect", error="Connection refused")
    burst = Round(requests=(request,), epoch_ns=0, truths={}, cpu_s=0.1, kernel_lag_ms=None)

    with pytest.raises(BoxError, match="at 32 streams: connect Connection refused"):
        level_of(32, [burst])


def stored_calibration(*levels: int) -> dict[str, object]:
    spread = calibration.Spread(mean=0.1, p50=0.1, p95=None, p99=None, worst=0.2)
    found = tuple(
        Level(
            concurrency=n,
            requests=n,
            ttft_error_ms=spread,
            dispatch_ms=spread,
            stamp_ms=spread,
            decode_error_ms=spread,
            kernel_lag_ms=None,
            cost_us=9.0,
        )
        for n in levels
    )
    whole = Calibration(at="2026-11-30T00:00:00Z", machine=calibration.this_machine(), levels=found)
    return dict(json.loads(json.dumps(whole.as_json())))


@pytest.mark.parametrize(
    ("concurrency", "level", "is_beyond"),
    [(1, 1, False), (2, 8, False), (8, 8, False), (32, 32, False), (33, 32, True)],
)
def test_a_cell_gets_the_next_calibrated_level(concurrency: int, level: int, is_beyond: bool) -> None:
    error = error_at(stored_calibration(1, 8, 32), concurrency)  # type: ignore[arg-type]

    assert (error["concurrency"], error["is_beyond"]) == (level, is_beyond)


def test_doubts_are_said_and_nothing_else() -> None:
    known = stored_calibration(1, 8, 32)
    elsewhere = {**known, "machine": {"system": "another kernel"}}

    assert doubts(known, 32) is None  # type: ignore[arg-type]
    assert "--concurrency 64" in str(doubts(known, 64))  # type: ignore[arg-type]
    assert "another kernel" in str(doubts(elsewhere, 1))  # type: ignore[arg-type]
    assert "gate0 calibrate" in str(doubts(None, 1))


def test_it_is_read_back_as_it_was_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert calibration.read_calibration() is None
    whole = Calibration(at="2026-11-30T00:00:00Z", machine=calibration.this_machine(), levels=())

    path = calibration.store_calibration(whole)

    assert calibration.read_calibration() == whole.as_json()
    path.write_text('{"format": "something else"}')
    assert calibration.read_calibration() is None


def test_every_record_carries_the_error_bar(tmp_path: Path) -> None:
    world = World(tmp_path, calibration=stored_calibration(1, 8))  # type: ignore[arg-type]
    world.go()

    assert {c.cell.concurrency: c.cell.client_error["concurrency"] for c in stored(world).cells()} == {1: 1, 2: 8}
    assert stored(world).run.client_error["at"] == "2026-11-30T00:00:00Z"


def test_a_sweep_from_an_uncalibrated_machine_says_so_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.go()

    assert sum("gate0 calibrate" in e.text for e in world.events if isinstance(e, Notice)) == 1
    assert all(c.cell.client_error == {} for c in stored(world).cells())
