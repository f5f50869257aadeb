"""`gate0 compare` from the command line: which runs are named, what stands in the answer, and which code ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.records.exchange.foreign import make_point, named
from orchestrator.records.record import CellRecord, GateRecord, RequestRecord, RunRecord
from orchestrator.records.store import Store
from orchestrator.report.compare import Comparison, compare
from orchestrator.report.differences import differences
from orchestrator.report.figure_change import Verdict
from orchestrator.report.tables import run_row
from tests.unit.test_report import run

SWARM_REPORT = Path(__file__).parents[2] / "samples" / "reports" / "swarm-notebook.yaml"
S = 1_000_000_000
MS = 1_000_000
FACTS = {"kernel": "6.17", "gpus": [{"name": "NVIDIA GB10", "driver": "580.159"}], "docker": {"version": "28.3"}}


def write(folder: Path, record: RunRecord, cells: dict[int, list[int]], *, ttft_ms: int = 100, **cell: Any) -> str:
    """A run whose cell at c users made `cells[c][i]` tokens in the one second of repeat i."""
    writer = Store(folder).new_run(record.id)
    writer.write_gate(GateRecord(name="coherence", status="pass", summary="3 of 3"))
    for users, rates in cells.items():
        values: dict[str, Any] = {
            "id": f"closed-p128-o256-c{users}",
            "workload": "chat",
            "kind": "closed",
            "concurrency": users,
            "prompt_tok": 128,
            "output_tok": 256,
            "repeats": len(rates),
            "repeats_done": len(rates),
            "requests_per_repeat": 1,
            "digest": "d",
            "spans_ns": tuple((i * S, (i + 1) * S) for i in range(len(rates))),
        }
        requests = [answer(i, tokens, ttft_ms=ttft_ms) for i, tokens in enumerate(rates)]
        writer.write_cell(CellRecord(**{**values, **cell}), requests)
    writer.write_run(record)
    return record.id


def answer(repeat: int, tokens: int, *, ttft_ms: int) -> RequestRecord:
    """Of one second, the first token after `ttft_ms` and the rest at its end."""
    first, end = repeat * S + ttft_ms * MS, (repeat + 1) * S
    return RequestRecord(
        repeat=repeat,
        index=repeat,
        scheduled_ns=repeat * S,
        sent_ns=repeat * S,
        first_token_ns=first,
        last_token_ns=end,
        end_ns=end,
        events=((first, 1), (end, tokens - 1)),
        prompt_tok=128,
        output_tok=tokens,
    )


def pair(folder: Path, *, slower: float = 0.5) -> tuple[str, str]:
    """Two gated runs of two profiles: at 8 users B makes `slower` of A's tokens, at 32 as many; A alone has 64."""
    a = run("20261130T060000Z-base-spark01-aaaaaa", profile_name="base", profile_title="27B NVFP4 + MTP2")
    b = run("20261130T070000Z-new-spark01-bbbbbb", profile_name="new", profile_title="27B NVFP4 + MTP1")
    rates = [4000, 4040, 3960]
    write(folder, a, {8: rates, 32: [2000, 2020, 1980], 64: rates})
    write(folder, b, {8: [round(r * slower) for r in rates], 32: [2010, 1990, 2000]})
    return a.id, b.id


def told(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["compare", *words, "--results", str(folder)])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def document(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> dict[str, Any]:
    code, out, _ = told(capsys, folder, *words, "--json")
    assert code in (0, 1)
    found: dict[str, Any] = json.loads(out)
    return found


def fields(line: str) -> list[str]:
    return [part for part in line.split("  ") if part.strip()]


def test_the_tables_pair_cells_by_their_load_and_say_what_became_of_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 8: error 0.0081652, df 4, t 2.776445. At 32: error sqrt(1.25e-4 / 3) = 0.006455, df 2.94, t 3.22: 0.0208."""
    a, b = pair(tmp_path)

    code, out, _ = told(capsys, tmp_path, a, b)

    lines = [[f.strip() for f in fields(line)] for line in out.splitlines()]
    assert code == 0
    assert ["closed-p128-o256-c8", "output (tok/s)", "4000", "2000", "-50.0 %", "-51.1 to -48.9 %", "worse"] in lines
    alike = ["closed-p128-o256-c32", "output (tok/s)", "2000", "2000", "0.0 %", "-2.1 to +2.1 %", "no difference"]
    assert alike in lines
    assert "only in A: chat/closed-p128-o256-c64" in out
    assert "27B NVFP4 + MTP2 (20261130T060000Z-base-spark01-aaaaaa): vllm 0.31.0 on spark01, Gate 0 passed" in out


def test_json_is_one_document_with_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path)

    found = document(capsys, tmp_path, a, b, "--fail-if-worse", "5%")

    assert (found["a"]["id"], found["b"]["id"]) == (a, b)
    assert [c["concurrency"] for c in found["cells"]] == [8, 32]
    (output,) = [f for f in found["cells"][0]["figures"] if f["figure"] == "output_tok_per_s"]
    assert output["verdict"] == "worse"
    assert output["good"] == "more"
    assert output["b"]["repeats"] == [2000.0, 2020.0, 1980.0]
    assert output["change"]["form"] == "ratio"
    assert output["change"]["value"] == pytest.approx(0.5)
    assert output["change"]["interval"]["low"] == pytest.approx(0.488789, abs=1e-5)
    assert found["only_a"] == ["chat/closed-p128-o256-c64"]
    assert found["only_b"] == []
    assert found["fail_if_worse"]["share"] == 0.05
    failed = {(f["cell"], f["figure"]) for f in found["fail_if_worse"]["failed"]}
    assert failed == {
        ("closed-p128-o256-c8", "output_tok_per_s"),
        ("closed-p128-o256-c8", "per_user_tok_per_s"),
        ("closed-p128-o256-c8", "tpot_p50"),
    }


@pytest.mark.parametrize(
    ("slower", "words", "code"),
    [
        (0.5, ["--fail-if-worse", "5%"], 1),
        (0.5, ["--fail-if-worse", "60%", "--figure", "output"], 0),
        (0.5, [], 0),
        (0.96, ["--fail-if-worse", "5%"], 0),
        (0.96, ["--fail-if-worse", "1%"], 1),
        (1.5, ["--fail-if-worse", "0%"], 0),
        (0.5, ["--fail-if-worse", "5%", "--figure", "ttft"], 0),
    ],
)
def test_only_what_is_surely_worse_by_more_ends_with_one(
    slower: float, words: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair(tmp_path, slower=slower)

    assert told(capsys, tmp_path, a, b, *words)[0] == code


def test_what_is_worse_is_named_and_what_was_not_looked_at_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair(tmp_path)

    _, _, err = told(capsys, tmp_path, a, b, "--fail-if-worse", "5%", "--figure", "output")

    assert err.splitlines() == [
        "warning: only in A: chat/closed-p128-o256-c64",
        "error: worse by more than 5%:",
        "  chat/closed-p128-o256-c8: output (tok/s) -50.0 % (-51.1 to -48.9 %)",
    ]


def test_a_threshold_without_any_interval_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write(tmp_path, run("20261130T060000Z-a", profile_name="a"), {8: [100]})
    b = write(tmp_path, run("20261130T070000Z-b", profile_name="b"), {8: [50]})

    code, out, err = told(capsys, tmp_path, a, b, "--fail-if-worse", "5%")

    assert code == 2
    assert "-50.0 %" in out
    assert "undecided: one repeat only in A and B, no interval" in out
    assert "nothing could be judged for `--fail-if-worse 5%`" in err


def test_a_refused_pair_has_one_line_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guard = {"name": "client_lag", "message": "late"}
    a = write(tmp_path, run("20261130T060000Z-a", profile_name="a"), {8: [100, 101]})
    b = write(tmp_path, run("20261130T070000Z-b", profile_name="b"), {8: [50, 51]}, guards=(guard,))

    _, out, _ = told(capsys, tmp_path, a, b)

    (line,) = [line for line in out.splitlines() if line.startswith("closed-p128-o256-c8")]
    assert [f.strip() for f in fields(line)][1:] == [
        "all",
        "–",
        "–",
        "–",
        "–",
        "not comparable: invalid in B: client_lag",
    ]


def test_a_mark_of_a_cell_stands_below_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write(tmp_path, run("20261130T060000Z-a", profile_name="a"), {8: [100, 101]})
    b = write(tmp_path, run("20261130T070000Z-b", profile_name="b", is_ungated=True), {8: [50, 51]}, is_ungated=True)

    _, out, _ = told(capsys, tmp_path, a, b)

    assert "closed-p128-o256-c8: B: ungated" in out.splitlines()


def test_a_mark_of_all_cells_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write(tmp_path, run("20261130T060000Z-a", profile_name="a"), {8: [100, 101], 32: [100, 101]})
    b = write(tmp_path, run("20261130T070000Z-b", profile_name="b"), {8: [50, 51], 32: [50, 51]}, is_ungated=True)

    _, out, _ = told(capsys, tmp_path, a, b)

    assert [line for line in out.splitlines() if "ungated" in line] == ["all: B: ungated"]


def test_markdown_is_for_a_comment_and_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write(tmp_path, run("20261130T060000Z-a", profile_title="a|b <x>"), {8: [4000, 4040, 3960]})
    b = write(tmp_path, run("20261130T070000Z-b", profile_title="b", image="new:1"), {8: [2000, 2020, 1980]})

    code, out, _ = told(capsys, tmp_path, a, b, "--format", "md")

    assert code == 0
    assert "- A: a\\|b &lt;x> (20261130T060000Z-a): vllm 0.31.0 on spark01, Gate 0 passed" in out
    assert "| image | – | new:1 |" in out
    line = "| closed-p128-o256-c8 | output (tok/s) | 4000 | 2000 | -50.0 % | -51.1 to -48.9 % | **worse** |"
    assert line in out.splitlines()


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("base", "20261130T080000Z-base-spark02-cccccc"),
        ("base@spark01", "20261130T060000Z-base-spark01-aaaaaa"),
        ("27B NVFP4 + MTP2", "20261130T060000Z-base-spark01-aaaaaa"),
        ("aaaaaa", "20261130T060000Z-base-spark01-aaaaaa"),
        ("latest", "20261130T090000Z-base-spark02-dddddd"),
        ("20261130T060000Z-base-spark01-aaaaaa", "20261130T060000Z-base-spark01-aaaaaa"),
        ("{folder}/20261130T060000Z-base-spark01-aaaaaa", "20261130T060000Z-base-spark01-aaaaaa"),
        ("{folder}/20261130T060000Z-base-spark01-aaaaaa/run.json", "20261130T060000Z-base-spark01-aaaaaa"),
    ],
)
def test_a_run_is_named_by_id_path_or_profile(
    reference: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `deploy` left behind is newer and has no cells: the profile's name does not mean it."""
    _, b = pair(tmp_path)
    later = run("20261130T080000Z-base-spark02-cccccc", profile_name="base", hosts=({"name": "spark02"},))
    write(tmp_path, later, {8: [100, 101]})
    deployed = run("20261130T090000Z-base-spark02-dddddd", profile_name="base", invocation=("gate0", "deploy"))
    write(tmp_path, deployed, {8: [100, 101]})

    named_so = document(capsys, tmp_path, reference.format(folder=tmp_path), b)

    assert named_so["a"]["id"] == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["basse", "new"], "did you mean `base`?"),
        (["base", "base"], "'base' and 'base' are the same run"),
        (["base@spark09", "new"], "hint: it ran on spark01"),
        (["base", "new", "--fail-if-worse", "5"], "expected a percentage from 0% to below 100%"),
        (["base", "new", "--fail-if-worse", "x%"], "expected a percentage"),
        (["base", "new", "--workload", "chatt"], "did you mean `chat`?"),
        (["base", "new", "--figure", "tpott"], "did you mean `tpot`?"),
        (["base", "empty"], "empty has no cells: nothing was measured"),
        (["base"], "Missing argument 'B'"),
        (["base", "new", "--format", "html"], "Invalid value for '--format'"),
    ],
)
def test_bad_input_is_exit_2_with_what_to_do(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair(tmp_path)
    write(tmp_path, run("empty", profile_name="empty", status="failed", error={"message": "no host"}), {})

    code, _, err = told(capsys, tmp_path, *words)

    assert code == 2
    assert said in err


def test_a_workload_or_a_figure_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path)

    found = document(capsys, tmp_path, a, b, "--workload", "chat", "--figure", "ttft", "--figure", "tpot")

    assert {f["figure"] for c in found["cells"] for f in c["figures"]} == {"ttft_p50", "tpot_p50"}


def both(folder: Path, a: str, b: str) -> Comparison:
    return compare(*(run_row(Store(folder).find(name)) for name in (a, b)))


def test_cells_of_one_load_pair_by_name_and_else_not_at_all(tmp_path: Path) -> None:
    """Two points of one load in each: `x` has its like, `y` and `z` have none by name but are the only ones left."""
    a, b = run("20261130T060000Z-a"), run("20261130T070000Z-b")
    for record, names in ((a, ("x", "y")), (b, ("z", "x"))):
        for name in names:
            write(tmp_path, record, {8: [100, 101]}, id=name)

    found = both(tmp_path, a.id, b.id)

    assert [(c.cells[0].id, c.cells[1].id) for c in found.cells] == [("x", "x"), ("y", "z")]
    write(tmp_path, b, {8: [100, 101]}, id="w")
    found = both(tmp_path, a.id, b.id)
    assert [(c.cells[0].id, c.cells[1].id) for c in found.cells] == [("x", "x")]
    assert [p.figures.cell.id for p in found.only_b] == ["w", "z"]


def test_an_overload_at_another_rate_is_paired_by_name_and_refused(tmp_path: Path) -> None:
    a, b = run("20261130T060000Z-a"), run("20261130T070000Z-b")
    for record, rate in ((a, 2.0), (b, 3.0)):
        write(tmp_path, record, {0: [100, 101]}, kind="overload", id="overload-measured", rate_rps=rate)

    (cell,) = both(tmp_path, a.id, b.id).cells

    assert cell.refusal == "another load: rate 2.0 and 3.0"


def test_what_differs_is_told_by_group_and_what_is_alike_is_not() -> None:
    """Names, remarks and what is asked of the server are none; neither is a host fact that one does not tell."""
    profile: dict[str, Any] = {"name": "a", "title": "A", "serve": {"max_num_seqs": 32, "kv_cache_dtype": "fp8"}}
    changed: dict[str, Any] = {
        "name": "b",
        "serve": {"max_num_seqs": 64, "kv_cache_dtype": "fp8", "speculative": {"method": "mtp", "num_tokens": 2}},
        "flags": {"async-scheduling": True},
        "env": {"X": "1", "HF_TOKEN": {"secret": "hf"}},
        "args": ["--a", "b"],
    }
    a = run("a", profile=profile, image="v:1", image_digest="sha256:1", hosts=({"name": "spark01", "before": FACTS},))
    facts = {**FACTS, "kernel": "7.0", "gpus": [{"name": "NVIDIA GB10", "driver": "580.178"}], "docker": {}}
    b = run(
        "b",
        profile=changed,
        image="v:1",
        image_digest="sha256:2",
        engine_version="0.32.0",
        hosts=({"name": "spark02", "before": facts},),
        gates={"coherence": "fail"},
        vantage="tunnel",
        slots=64,
    )

    found = [(d.group.value, d.name, d.a, d.b) for d in differences(a, b)]

    assert found == [
        ("serving", "image digest", "sha256:1", "sha256:2"),
        ("serving", "engine version", "0.31.0", "0.32.0"),
        ("serving", "requests at once", None, 64),
        ("settings", "args", None, ["--a", "b"]),
        ("settings", "env.HF_TOKEN.secret", None, "hf"),
        ("settings", "env.X", None, "1"),
        ("settings", "flags.async-scheduling", None, True),
        ("settings", "serve.max_num_seqs", 32, 64),
        ("settings", "serve.speculative.method", None, "mtp"),
        ("settings", "serve.speculative.num_tokens", None, 2),
        ("hosts", "hosts", ["spark01"], ["spark02"]),
        ("hosts", "driver", "580.159", "580.178"),
        ("hosts", "kernel", "6.17", "7.0"),
        ("gates", "coherence", "pass", "fail"),
        ("measuring", "load from", "local", "tunnel"),
    ]


def test_a_record_without_its_profile_says_so_once() -> None:
    found = differences(run("a", profile={"serve": {"max_num_seqs": 1}, "env": {"X": "1"}}), run("b"))

    assert [(d.name, d.a, d.b) for d in found] == [("profile", "in the record", None)]


def foreign(folder: Path, run_id: str, *, title: str, rates: dict[int, float], ttft_ms: float, cached: float) -> str:
    """A row of a report that was typed off: nothing but stated figures."""
    points = []
    for agents, rate in rates.items():
        stated: dict[str, Any] = {"output_tok_per_s": {"value": rate, "unit": "tok/s", "definition": "report/combined"}}
        if agents == 32:
            stated["ttft_ms"] = {"value": ttft_ms, "unit": "ms", "definition": "report/first_token"}
            stated["cached_share"] = {"value": cached, "unit": "", "definition": "report/cached"}
        points.append(
            make_point(
                tool="transcript",
                kind="swarm",
                variant="primed",
                concurrency=agents,
                prompt_tok=None,
                output_tok=None,
                stated=stated,
            )
        )
    writer = Store(folder).new_run(run_id)
    for point in named(points, workload="swarm"):
        writer.write_cell(point.cell, point.requests)
    source = {"tool": "transcript", "title": "a report", "version": "2026-10-06"}
    writer.write_run(run(run_id, profile_name=run_id, profile_title=title, source=source, status="imported", gates={}))
    return run_id


def test_rows_of_a_report_are_compared_by_what_they_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """180.0 / 83.2 = 2.163; 12.9 / 60.2 = 0.214; 97.2 - 94.3 = 2.9 points."""
    row = "27B NVFP4 + MTP2"
    foreign(tmp_path, "a", title=row, rates={8: 59.5, 32: 83.2}, ttft_ms=60200, cached=0.943)
    foreign(
        tmp_path,
        "b",
        title=f"{row} + shared-prefix checkpoint",
        rates={8: 80.6, 32: 180.0},
        ttft_ms=12900,
        cached=0.972,
    )

    code, out, _ = told(capsys, tmp_path, row, f"{row} + shared-prefix checkpoint")

    undecided = "undecided: stated, no interval"
    lines = [[f.strip() for f in fields(line)] for line in out.splitlines()]
    assert code == 0
    assert ["swarm-primed-p0-o0-c32", "output (tok/s)", "83.2", "180.0", "+116 %", "–", undecided] in lines
    assert ["TTFT (s)", "60.2", "12.9", "-78.6 %", "–", undecided] in lines
    assert ["cached", "94.3%", "97.2%", "+2.9 points", "–", undecided] in lines


def test_the_transcribed_swarm_report_says_what_its_checkpoint_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own words: from 83 to 180 tok/s at 32 agents (+116 %), the first token from 60 to 13 s."""
    assert main(["import", str(SWARM_REPORT), "--results", str(tmp_path)]) == 0

    found = document(capsys, tmp_path, "qwen3.8-27b-nvfp4-mtp2", "qwen3.8-27b-nvfp4-mtp2-checkpoint")

    assert [(d["name"], d["a"], d["b"]) for d in found["differences"]] == [
        ("serve.prefix_checkpoint.match_unit", None, 16)
    ]
    (cell,) = [c for c in found["cells"] if c["concurrency"] == 32]
    changes = {f["figure"]: (f["a"]["value"], f["b"]["value"], f["change"]["value"]) for f in cell["figures"]}
    assert changes["output_tok_per_s"] == (83.2, 180.0, pytest.approx(2.1635, abs=1e-4))
    assert changes["ttft_p50"] == (60200, 12900, pytest.approx(0.2143, abs=1e-4))
    assert changes["cached_share"] == (0.943, 0.972, pytest.approx(0.029))
    assert {f["reason"] for f in cell["figures"]} == {"stated, no interval"}


def test_foreign_rows_of_one_name_are_told_apart_by_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        foreign(tmp_path, name, title="row" if name != "c" else "other", rates={8: 1.0}, ttft_ms=1, cached=0.5)

    code, _, err = told(capsys, tmp_path, "row", "c")

    assert code == 2
    assert "'row' fits 2 foreign runs: a, b" in err


def test_another_tools_figure_beside_ours_is_refused_and_compared_when_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = write(
        tmp_path,
        run("20261130T060000Z-a", profile_name="a"),
        {32: [100, 101]},
        kind="swarm",
        variant="primed",
        workload="swarm",
        prompt_tok=0,
        output_tok=0,
    )
    foreign(tmp_path, "b", title="row", rates={32: 200.0}, ttft_ms=1, cached=0.5)

    (cell,) = both(tmp_path, ours, "b").cells
    (output,) = [f for f in cell.figures if f.headline.key == "output_tok_per_s"]
    assert output.verdict is Verdict.NOT_COMPARABLE
    assert output.reason.startswith("other definitions of output_tok_per_s")

    _, out, _ = told(capsys, tmp_path, ours, "b", "--force", "--figure", "output")
    assert "undecided: stated, no interval" in out
    assert "+99.0 %" in out
