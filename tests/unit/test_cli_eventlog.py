"""Events as lines: for programs, and for the viewers of llama-benchy's progress."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.eventlog import observed
from orchestrator.cli.options import seconds_of
from orchestrator.errors import InputError
from orchestrator.pipeline.events import Event
from tests.unit.road_fakes import QUICK, World


class Silent:
    def on(self, event: Event) -> None:
        pass


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def travelled(tmp_path: Path, **files: str) -> World:
    (tmp_path / "runs").mkdir()
    world = World(tmp_path / "runs", workloads=(replace(QUICK, repeats=2),))
    with observed(Silent(), events=files.get("events"), progress=files.get("progress"), model="m") as observer:
        world.on_event = observer.on
        world.go()
    return world


def test_every_event_is_one_line(tmp_path: Path) -> None:
    world = travelled(tmp_path, events=str(tmp_path / "events.jsonl"))

    lines = lines_of(tmp_path / "events.jsonl")
    assert len(lines) == len(world.events)
    assert {line["event"] for line in lines} >= {"stage_began", "gate_ended", "cell_began", "lap_ended", "cell_ended"}
    assert [line["repeats_done"] for line in lines if line["event"] == "lap_ended"] == [1, 2, 1, 2]
    ended = [line["cell"]["id"] for line in lines if line["event"] == "cell_ended"]
    assert ended == ["closed-p128-o8-c1", "closed-p128-o8-c2"]


def test_progress_lines_have_each_request_once_and_an_end(tmp_path: Path) -> None:
    travelled(tmp_path, progress=str(tmp_path / "progress.jsonl"))

    kinds = [line["type"] for line in lines_of(tmp_path / "progress.jsonl")]
    assert (kinds[0], kinds[-1]) == ("header", "bench_complete")
    assert kinds.count("request_start") == kinds.count("request_end") == 2 * (1 + 2)


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="--events"),
        observed(Silent(), events=str(tmp_path / "missing" / "events"), progress=None),
    ):
        pass


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("20m", 1200.0), ("1.5h", 5400.0)])
def test_budgets_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-5m", "0", "1d", "soon", "nan", "inf"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--budget"):
        seconds_of(text)
