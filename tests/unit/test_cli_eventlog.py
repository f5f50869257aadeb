"""Events as lines: for programs, and for the viewers of llama-benchy's progress."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.eventlog import observed
from orchestrator.cli.main import main
from orchestrator.cli.options import seconds_of
from orchestrator.errors import InputError
from orchestrator.pipeline.events import Event, StageEnded
from tests.unit.road_fakes import QUICK, World


class Silent:
    def on(self, event: Event) -> None:
        pass


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def travelled(tmp_path: Path, **files: str) -> World:
    (tmp_path / "runs").mkdir()
    world = World(tmp_path / "runs", workloads=(replace(QUICK, repeats=2),))
    with observed(
        Silent(), events=files.get("events"), progress=files.get("progress"), serving=lambda _: ("m", "http://x/v1")
    ) as observer:
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

    lines = lines_of(tmp_path / "progress.jsonl")
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("header", "bench_complete")
    assert kinds.count("request_start") == kinds.count("request_end") == 2 * (1 + 2)
    assert {(x["model"], x["base_url"]) for x in lines if x["type"] == "request_start"} == {("m", "http://x/v1")}
    assert lines[-1]["status"] == "ok"


@pytest.mark.parametrize(("status", "told"), [("interrupted", "interrupted"), ("failed", "error"), ("passed", "ok")])
def test_the_last_progress_line_says_how_it_ended(status: str, told: str, tmp_path: Path) -> None:
    ended = StageEnded(where="a", stage="sweeps", status=status, detail="", duration_s=1.0)
    collected = StageEnded(where="a", stage="collect", status="passed", detail="", duration_s=1.0)
    with observed(Silent(), events=None, progress=str(tmp_path / "p.jsonl")) as observer:
        observer.on(ended)
        observer.on(collected)

    last = lines_of(tmp_path / "p.jsonl")[-1]
    assert (last["type"], last["status"]) == ("bench_complete", told)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--events", "-", "--json"], "--events - and --json"),
        (["--progress-jsonl", "-", "--json"], "--progress-jsonl - and --json"),
        (["--events", "-", "--progress-jsonl", "-"], "--events - and --progress-jsonl -"),
    ],
)
def test_two_programs_cannot_read_one_stdout(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in (["sweep", "--url", "http://127.0.0.1:1", "--workload", "quick"], ["run", "no-such-profile"]):
        assert main([*verb, *words, "--results", str(tmp_path / "runs")]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_with_events_on_stdout_every_line_there_is_an_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "--url", "http://127.0.0.1:1", "--workload", "quick", "--events", "-"]

    assert main([*words, "--results", str(tmp_path)]) == 3

    shown = capsys.readouterr()
    events = [json.loads(line)["event"] for line in shown.out.splitlines()]
    assert (events[0], events[-1]) == ("stage_began", "stage_ended")
    assert "record: " in shown.err


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
