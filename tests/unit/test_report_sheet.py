"""One cell in full: every figure with n, interval, definition and method; repeats; where its record lies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.errors import InputError
from orchestrator.figures.definitions import all_definitions
from orchestrator.records.store import Store, StoredCell
from orchestrator.report.sheet import cell_sheet, find_point
from orchestrator.report.sheet_figures import Figure, sheet_figures
from tests.unit.figure_cases import cell_of, requests_of
from tests.unit.test_report import run
from tests.unit.test_report_kinds import CASES, FILES, points_of, stored


def lines(case: str, cell: str) -> dict[str, Figure]:
    cells = stored(json.loads((CASES / f"{case}.json").read_text()))
    return {f.name: f for f in sheet_figures(find_point(points_of(cells), cell))}


@pytest.mark.parametrize(
    ("case", "cell", "name", "shown"),
    [
        ("interval", "c", "output", ("102.0 tok/s", 3, "97.0 to 107.0", "measured")),
        ("interval", "c", "batch of 200", ("19.6 s", None, "", "derived")),
        ("open_capped", "j", "ttft_scheduled p50", ("26300 ms", 60, "19100 to 34400", "measured")),
        ("open_capped", "j", "ttft_scheduled p99", ("–", 60, "needs 300", "measured")),
        ("open_capped", "j", "attainment", ("1.7%", 60, "0.3 to 8.9%", "measured")),
        ("open_capped", "j", "concurrency_peak", ("1", None, "", "measured")),
        ("overload", "o", "tail_growth", ("55.0", None, "", "derived")),
        ("overload", "o", "recovery", ("2.10 s", None, "", "measured")),
        ("swarm", "primed", "expected_cached_share", ("90.2%", None, "", "expected")),
        ("swarm", "primed", "reread in all", ("400.0 tok", 1, "", "measured")),
        ("swarm", "primed", "prefix_load time", ("2.00 s", 1, "", "measured")),
        ("prefill_slope", "p1000c1", "prefill", ("10000 tok/s", 2, "", "derived, slope: 1000 to 3000 tokens at 1")),
        ("ingest", "i", "prefill", ("10000 tok/s", 1, "", "measured, server: prompt_ms")),
        ("ingest", "i", "prefill_share", ("80.0%", None, "", "derived, by server")),
        ("mixed", "t", "chat: ttft slowdown", ("2.00", 1, "", "derived")),
        ("sessions", "s", "turn 2 cached", ("75.0%", 1, "", "measured")),
        ("drift", "c", "drift", ("1.10", 5, "1.08 to 1.12", "derived")),
        ("against_it", "c", "server_gap p50", ("13.0 ms", 3, "", "derived")),
        ("against_it", "c", "server_queue p50", ("20.0 ms", 3, "", "measured")),
        ("speculation", "c", "acceptance_rate", ("70.0%", None, "", "measured")),
    ],
)
def test_a_figure_has_its_n_interval_and_method(
    case: str, cell: str, name: str, shown: tuple[str, int | None, str, str]
) -> None:
    """Value, n, interval, method."""
    found = lines(case, cell)[name]

    assert (found.words, found.n, found.interval_words, found.method) == shown


def test_the_servers_queue_is_not_explained_as_its_first_token() -> None:
    found = lines("against_it", "c")

    assert found["server_queue p50"].definition == "server_queue_time/v1"
    assert found["server_ttft p50"].definition == "server_scheduled_to_first_token/v1"


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_every_figure_names_a_definition_that_the_manual_has(path: Path) -> None:
    known = {d.tag for d in all_definitions()}

    for point in points_of(stored(json.loads(path.read_text()))):
        figures = sheet_figures(point)
        assert {f.definition for f in figures} <= known
        names = [f.name for f in figures]
        assert len(set(names)) == len(names)


def test_another_tools_figure_stands_under_its_own_definition() -> None:
    told = {"ttft_ms": {"mean": 12.5, "p50": 11.0, "unit": "ms", "definition": "vllm/ttft"}}
    (point,) = points_of([StoredCell(cell=cell_of({"stated": told, "source": {"tool": "vllm"}}), requests=())])

    found = {f.name: f for f in sheet_figures(point)}["ttft_ms p50"]

    assert (found.words, found.definition, found.method) == ("11.0 ms", "vllm/ttft", "stated")


def test_repeats_are_shown_in_order_with_their_place_and_time() -> None:
    laps = [
        {"repeat": 0, "order": 4, "started_at": "2026-11-29T10:00:00Z", "duration_s": 1.5, "lag_ms_p99": 0.5},
        {"repeat": 1, "order": 1, "started_at": "2026-11-29T10:01:00Z", "stamp_lag_ms": {"p99": 0.04}},
    ]
    raw = [{"events": [[500, 10]], "end": 1000}, {"repeat": 1, "sent": 2000, "failure": "timeout", "end": 2500}]
    cell = cell_of({"laps": laps, "spans_ms": [(0, 1000), (2000, 2500)]})
    requests = requests_of(raw)
    (point,) = points_of([StoredCell(cell=cell, requests=tuple(requests))])

    first, second = cell_sheet(point, requests).laps

    assert (first.order, first.started_at, first.duration_s) == (4, "2026-11-29T10:00:00Z", 1.5)
    assert (first.good, first.requests, first.output_tok_per_s, first.lag_ms_p99) == (1, 1, 10.0, 0.5)
    assert (second.order, second.good, second.requests, second.output_tok_per_s) == (1, 0, 1, None)
    assert (second.duration_s, second.stamp_lag_ms_p99) == (None, 0.04)


def test_a_cell_is_found_by_id_by_workload_or_by_a_part_that_is_its_own() -> None:
    points = points_of(
        [
            StoredCell(cell=cell_of({"id": name, "workload": workload}), requests=())
            for workload, name in (("w", "c1"), ("v", "c1"), ("w", "c12"))
        ]
    )

    assert find_point(points, "w/c1").figures.cell.workload == "w"
    assert find_point(points, "c12").figures.cell.id == "c12"
    assert find_point(points, "v/").figures.cell.workload == "v"
    with pytest.raises(InputError, match=r"'c1' fits 2 cells: w/c1, v/c1"):
        find_point(points, "c1")
    with pytest.raises(InputError, match="no cell named 'x' in this run") as error:
        find_point(points, "x")
    assert error.value.hint == "it has w/c1, v/c1, w/c12"


def written(folder: Path, case: str) -> None:
    writer = Store(folder).new_run("a")
    writer.write_run(run("a"))
    for c in stored(json.loads((CASES / f"{case}.json").read_text())):
        writer.write_cell(c.cell, c.requests)


def test_results_show_prints_one_cell_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "against_it")

    assert main(["results", "show", "a", "--cell", "c", "--results", str(tmp_path)]) == 0

    out = capsys.readouterr().out
    assert "w/c: w, closed: 100 tokens in, 10 out\n" in out
    assert "note: invalid: prompt_length: asked 100 tokens, the server counted 130\n" in out
    assert "client error 0.3 ms (p95 0.8) at 2 streams, calibrated 2026-11-29; stamps 0.05 ms" in out
    for row in ("client TTFT 3 133.0 –", "server TTFT 3 100.0 –", "server queue 3 20.0 –", "gap 3 13.0 –"):
        assert row in [" ".join(line.split()) for line in out.splitlines()]
    assert "client or network bound: yes\n" in out
    for name in ("c.json", "c.requests.jsonl"):
        assert f"raw record: {tmp_path}/a/sweeps/w/{name}\n" in out
        assert (tmp_path / "a" / "sweeps" / "w" / name).is_file()
    assert max(len(line.rstrip()) for line in out.splitlines() if "  " in line) <= 120


def test_results_show_gives_one_cell_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "swarm")

    assert main(["results", "show", "a", "--cell", "w/primed", "--json", "--results", str(tmp_path)]) == 0

    document = json.loads(capsys.readouterr().out)
    figures = {f["name"]: f for f in document["figures"]}
    assert (document["run"], document["cell"]["id"]) == ("a", "primed")
    assert figures["output"]["value"] == 20.0
    assert figures["output"]["definition"] == "output_tok_over_run/v1"
    assert document["all"]["figures"]["swarm"]["reread_total_tok"]["mean"] == 400
    assert document["files"] == ["sweeps/w/primed.json", "sweeps/w/primed.requests.jsonl"]


def test_a_cell_that_is_not_there_is_the_users_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "swarm")

    assert main(["results", "show", "a", "--cell", "x", "--results", str(tmp_path)]) == 2

    assert "no cell named 'x' in this run" in capsys.readouterr().err
