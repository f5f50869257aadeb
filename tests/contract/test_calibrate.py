"""`gate0 calibrate` for real: the load process and the mock in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.pipeline.calibration import calibrate, calibration_file


def test_every_request_is_matched_with_its_truth() -> None:
    seen: list[int] = []

    found = calibrate((1, 12), rounds=1, on_level=seen.append)

    assert seen == [1, 12]
    assert [(level.concurrency, level.requests) for level in found.levels] == [(1, 1), (12, 12)]
    for level in found.levels:
        assert level.ttft_error_ms.mean == pytest.approx(level.dispatch_ms.mean + level.stamp_ms.mean)
        assert level.dispatch_ms.mean > 0, "no server has a request before it was sent"
        assert level.stamp_ms.mean > 0, "no token is seen before it was written"
        assert level.cost_us > 0


def test_the_verb_stores_it_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert main(["calibrate", "--concurrency", "2", "--json", "-q"]) == 0

    said = json.loads(capsys.readouterr().out)
    kept = json.loads(calibration_file().read_text())
    assert said.pop("file") == str(calibration_file())
    assert said == kept
    assert [level["concurrency"] for level in kept["levels"]] == [2]


def test_a_level_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--concurrency", "8,many"]) == 2
    assert "8,many" in capsys.readouterr().err
