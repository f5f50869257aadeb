"""`gate0 import` and `gate0 export` from the command line, and foreign runs beside ours in every table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.records.record import CellRecord, RequestRecord, RunRecord
from orchestrator.records.store import Store
from orchestrator.report.html import page
from orchestrator.report.markdown import report
from orchestrator.report.series import series_of
from orchestrator.report.tables import RunRow, run_row

CASES = Path(__file__).parents[1] / "cases" / "exchange"
S = 1_000_000_000


def imported(folder: Path, *names: str, workload: str | None = None) -> str:
    extra = ["--workload", workload] if workload else []
    assert main(["import", *(str(CASES / n) for n in names), *extra, "--results", str(folder)]) == 0
    return next(s.run.id for s in reversed(Store(folder).runs()[0]) if names[0] in str(s.run.source.get("file")))


def ours(folder: Path, *, users: tuple[int, ...] = (2,)) -> RunRecord:
    """A gated run of ours whose cells made eight tokens a second."""
    run = RunRecord(
        id="20261130T061756Z-tiny-spark01-abcdef",
        status="passed",
        created_at="2026-11-30T06:17:56.000Z",
        updated_at="2026-11-30T06:20:00.000Z",
        profile_name="tiny",
        profile_title="Tiny",
        profile_digest="d",
        engine="vllm",
        hosts=({"name": "spark01"},),
        suite="gate0",
        is_suite_unmodified=True,
        gates={"coherence": "pass"},
    )
    writer = Store(folder).new_run(run.id)
    for c in users:
        cell = CellRecord(
            id=f"closed-p150-o4-c{c}",
            workload="chat",
            kind="closed",
            concurrency=c,
            prompt_tok=150,
            output_tok=4,
            repeats=1,
            requests_per_repeat=1,
            digest="d",
            spans_ns=((0, S),),
        )
        request = RequestRecord(
            repeat=0,
            index=0,
            scheduled_ns=0,
            sent_ns=0,
            first_token_ns=S // 2,
            last_token_ns=S,
            end_ns=S,
            events=((S // 2, 4), (S, 4)),
            prompt_tok=150,
            output_tok=8,
        )
        writer.write_cell(cell, [request])
    writer.write_run(run)
    return run


def rows(folder: Path) -> list[RunRow]:
    good, bad = Store(folder).runs()
    assert bad == ()
    return [run_row(stored) for stored in good]


def test_import_says_what_each_file_is_and_where_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = imported(tmp_path, "aiperf.json", "aiperf-requests.jsonl")

    seen = capsys.readouterr()
    assert seen.out == f"imported as {run_id}: 1 point, 3 requests\n"
    assert seen.err.splitlines() == [
        "aiperf.json: AIPerf profile export, aiperf 0.13.0",
        "aiperf-requests.jsonl: AIPerf per-request records, aiperf",
    ]


def test_the_same_file_is_imported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = imported(tmp_path, "llama-benchy.json")

    assert imported(tmp_path, "llama-benchy.json") == run_id
    assert f"already imported as {run_id}" in capsys.readouterr().out
    assert len(Store(tmp_path).runs()[0]) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"a": 1, "b": 2}', "x.json is no result that gate0 knows"),
        ("a,b,c\n" + "x" * 200_000 + ",2,3\n", "x.json is no result that gate0 knows"),
        (
            '{"request_throughput": 1, "output_throughput": 1}',
            "(read as vLLM bench serve result): duration: is missing",
        ),
        (None, "cannot read"),
    ],
)
def test_a_file_that_cannot_be_imported_leaves_nothing(
    content: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_text(content)

    assert main(["import", str(file), "--results", str(tmp_path / "r")]) == 2

    assert says in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_every_kind_of_foreign_run_is_listed_shown_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours(tmp_path)
    for case in json.loads((CASES / "cases.json").read_text()):
        imported(tmp_path, *case["files"])
    count = len(Store(tmp_path).runs()[0])
    capsys.readouterr()

    assert main(["results", "list", "--results", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count + 1
    for stored in Store(tmp_path).runs()[0]:
        assert main(["results", "show", stored.run.id, "--results", str(tmp_path)]) == 0
    for style in ("md", "html", "json"):
        assert main(["report", "--format", style, "-o", "-", "--results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "foreign: guidellm 0.8.1, not gated" in text
    assert "foreign: vllm bench, not gated" in text


def test_a_foreign_figure_is_marked_and_never_the_best(tmp_path: Path) -> None:
    ours(tmp_path)
    imported(tmp_path, "vllm-detailed.json", workload="chat")

    found = rows(tmp_path)
    (series,) = [s for s in series_of(found) if s.key.workload == "chat"]
    assert [line.row.run.engine for line in series.lines] == ["vllm", "vllm"]
    assert series.find_best(2) is not None
    text = report(found)
    assert "**8.0**" in text
    assert "| 3.6† |" in text
    assert "0.38† at 2" in text
    assert page(found).count('class="best"') == 1
    assert "3.6†" in page(found)


def test_only_foreign_figures_have_no_best(tmp_path: Path) -> None:
    imported(tmp_path, "llama-benchy.json")

    found = rows(tmp_path)

    assert 'class="best"' not in page(found)
    assert "**" not in report(found)
    assert (
        "† by the tool's own definitions: tok/s llama-benchy/tg_throughput; TTFT llama-benchy/e2e_ttft, a mean"
        in report(found)
    )


def test_a_report_in_json_has_the_stated_figures_with_their_definitions(tmp_path: Path) -> None:
    imported(tmp_path, "inference-perf-stage.json")

    ((point,),) = [row.points for row in rows(tmp_path)]

    found: Any = point.as_json()
    assert found["stated"]["tpot_ms"]["definition"] == "inference-perf/time_per_output_token"
    assert found["source"]["tool"] == "inference-perf"
    assert (found["ttft_ms"]["p50"], found["stated"]["ttft_ms"]["p50"]) == (None, 55.0)


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("vllm", '{"date"'),
        ("llama-benchy", '{\n  "version"'),
        ("llama-benchy-csv", "model,test_name,t_s_mean"),
        ("llama-benchy-md", "| model | test |"),
        ("inferencex", '[\n {\n  "hw"'),
        ("csv", "run,profile,engine"),
    ],
)
def test_export_writes_each_form_to_stdout(
    form: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours(tmp_path, users=(2, 4))

    assert main(["export", "latest", "--format", form, "--results", str(tmp_path)]) == 0

    assert capsys.readouterr().out.startswith(start)


@pytest.mark.parametrize(("form", "count"), [("vllm", 1), ("llama-benchy", 1), ("inferencex", 1), ("csv", 0)])
def test_a_broken_guard_is_said_where_the_form_has_no_mark_for_it(
    form: str, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours(tmp_path, users=(2, 4))
    (path,) = tmp_path.glob("*/sweeps/*/*c2.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "guards": [{"name": "failures", "message": "no"}]}))

    assert main(["export", "latest", "--format", form, "--results", str(tmp_path)]) == 0

    assert capsys.readouterr().err.count("c2 broke a guard (failures)") == count


def test_export_writes_a_file_a_cell_into_a_folder(tmp_path: Path) -> None:
    ours(tmp_path / "r", users=(2, 4))
    out = f"{tmp_path / 'out'}/"

    assert main(["export", "latest", "--format", "vllm", "-o", out, "--results", str(tmp_path / "r")]) == 0

    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["chat-closed-p150-o4-c2.json", "chat-closed-p150-o4-c4.json"]


def test_export_appends_cells_in_one_file_that_import_reads_again(tmp_path: Path) -> None:
    ours(tmp_path / "r", users=(2, 4))
    file = tmp_path / "all.json"

    assert main(["export", "latest", "--format", "vllm", "-o", str(file), "--results", str(tmp_path / "r")]) == 0

    assert main(["import", str(file), "--results", str(tmp_path / "again")]) == 0
    (row,) = rows(tmp_path / "again")
    assert [p.figures.cell.id for p in row.points] == ["closed-p150-o8-c2", "closed-p150-o8-c4"]
    assert [p.figures.ttft_ms.p50 for p in row.points] == [500.0, 500.0]


def test_export_takes_the_cell_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours(tmp_path, users=(2, 4))
    argv = ["export", "latest", "--format", "csv", "--results", str(tmp_path)]

    assert main([*argv, "--cell", "chat/closed-p150-o4-c4", "--requests"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[2] for line in lines] == ["cell", "closed-p150-o4-c4"]

    assert main([*argv, "--cell", "closed-p1-o1-c1"]) == 2
    assert "has no cell 'closed-p1-o1-c1'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--format", "vllm", "--requests"], "`--requests` belongs to `--format csv`"),
        (["--format", "parquet"], "'parquet' is not one of"),
    ],
)
def test_export_refuses_what_does_not_go_together(
    argv: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours(tmp_path)

    assert main(["export", "latest", *argv, "--results", str(tmp_path)]) == 2

    assert says in capsys.readouterr().err


def test_a_foreign_run_without_requests_is_not_exported_as_if_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, "llama-benchy.json")

    assert main(["export", "latest", "--format", "vllm", "--results", str(tmp_path)]) == 2

    assert "has requests to compute from" in capsys.readouterr().err
