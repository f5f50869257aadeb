"""Our records in other tools' forms: their formulas over our stamps, and back again without loss."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InputError
from orchestrator.figures.cell import cell_figures
from orchestrator.records.exchange.benchy_progress import BenchyProgress
from orchestrator.records.exchange.benchy_tables import csv_text, markdown_text
from orchestrator.records.exchange.importing import read_file
from orchestrator.records.exchange.to_csv import cells_csv, requests_csv
from orchestrator.records.exchange.to_inferencex import inferencex_aggregate
from orchestrator.records.exchange.to_llama_benchy import doubles, llama_benchy_report
from orchestrator.records.exchange.to_vllm import vllm_result
from orchestrator.records.record import CellRecord, RequestRecord, RunRecord
from orchestrator.records.store import StoredCell

CASES = Path(__file__).parents[1] / "cases" / "exchange"
MS = 1_000_000
S = 1_000_000_000
RUN = RunRecord(
    id="r1",
    status="passed",
    created_at="2026-11-30T06:17:56.000Z",
    updated_at="",
    profile_name="tiny",
    profile_title="Tiny",
    profile_digest="d1",
    engine="vllm",
    model="acme/tiny-7b",
    image="vllm/vllm-openai:v0.33.0",
    hosts=({"name": "spark01"},),
    profile={"serve": {"tensor_parallel": 2}},
)


def request(index: int, **changes: Any) -> RequestRecord:
    """Sent at 1 s, four tokens first at 1.2 s, then two each 100 ms twice: 8 tokens, last at 1.4 s, ended at 1.5 s."""
    sent = changes.pop("at", S)
    base = RequestRecord(
        repeat=0,
        index=index,
        scheduled_ns=sent - 50 * MS,
        ready_ns=sent,
        sent_ns=sent,
        first_event_ns=sent + 100 * MS,
        first_token_ns=sent + 200 * MS,
        last_token_ns=sent + 400 * MS,
        end_ns=sent + 500 * MS,
        events=((sent + 200 * MS, 4), (sent + 300 * MS, 2), (sent + 400 * MS, 2)),
        prompt_tok=100,
        output_tok=8,
        token_source="cumulative_usage",
    )
    return replace(base, **changes)


def cell(**changes: Any) -> CellRecord:
    base = CellRecord(
        id="closed-p100-o8-c2",
        workload="chat",
        kind="closed",
        concurrency=2,
        prompt_tok=100,
        output_tok=8,
        repeats=1,
        requests_per_repeat=2,
        digest="d",
        started_at="2026-11-30T06:20:00.000Z",
        spans_ns=((S, 3 * S),),
        duration_s=2.5,
    )
    return replace(base, **changes)


PAIR = (request(0), request(1, at=2 * S))


def test_vllms_figures_follow_vllms_definitions_and_not_ours() -> None:
    result = vllm_result(RUN, cell(), PAIR)

    wanted = {
        "date": "20261130-062000",
        "model_id": "acme/tiny-7b",
        "num_prompts": 2,
        "request_rate": "inf",
        "max_concurrency": 2,
        "duration": 2.0,
        "completed": 2,
        "failed": 0,
        "total_input_tokens": 200,
        "total_output_tokens": 16,
        "request_throughput": 1.0,
        "request_goodput": None,
        "output_throughput": 8.0,
        "total_token_throughput": 108.0,
        "ttfts": [0.2, 0.2],
        "itls": [[0.1, 0.1], [0.1, 0.1]],
        "latencies": [0.4, 0.4],
        "start_times": [1.0, 2.0],
        "queue_times": [0.05, 0.05],
        "max_output_tokens_per_s": 3.0,
        "max_concurrent_requests": 1,
        "mean_ttft_ms": 200.0,
        "median_itl_ms": 100.0,
        "p99_e2el_ms": 400.0,
        "std_e2el_ms": 0.0,
    }
    assert {k: result[k] for k in wanted} == wanted
    assert result["mean_tpot_ms"] == pytest.approx(200 / 7)
    assert cell_figures(cell(), PAIR).tpot_ms.mean == 50.0


def test_a_failed_request_counts_as_vllm_counts_it() -> None:
    lost = request(1, at=2 * S, failure="closed_early", error="eof", output_tok=None, last_token_ns=None)

    result = vllm_result(RUN, cell(slo={"ttft_s": 0.25, "tpot_ms": 20.0}), (request(0), lost))

    wanted = {
        "completed": 1,
        "failed": 1,
        "output_lens": [8, 0],
        "errors": ["", "closed_early: eof"],
        "output_throughput": 4.0,
        "request_goodput": 0.0,
    }
    assert {k: result[k] for k in wanted} == wanted


@pytest.mark.parametrize(
    ("slo", "goodput"),
    [({"ttft_s": 0.2}, 1.0), ({"ttft_s": 0.1}, 0.0), ({"tpot_ms": 29.0, "e2e_s": 0.4}, 1.0), ({"name": "x"}, None)],
)
def test_goodput_is_vllms(slo: dict[str, Any], goodput: float | None) -> None:
    assert vllm_result(RUN, cell(slo=slo), PAIR)["request_goodput"] == goodput


def test_tokens_that_the_server_did_not_count_leave_the_totals_empty() -> None:
    result = vllm_result(RUN, cell(), (request(0), request(1, at=2 * S, output_tok=None)))

    empty = ("total_output_tokens", "output_throughput", "total_token_throughput")
    assert [result[k] for k in empty] == [None, None, None]


def test_the_export_gives_vllms_own_figures_from_vllms_own_stamps() -> None:
    theirs = json.loads((CASES / "real-vllm-0.32.0.json").read_text())
    (point,) = read_file(CASES / "real-vllm-0.32.0.json").content.points

    ours = vllm_result(RUN, point.cell, point.requests)

    not_from_stamps = {"request_goodput", *(k for k in theirs if k.startswith("spec_decode"))}
    numbers = {k: v for k, v in theirs.items() if isinstance(v, int | float) and k not in not_from_stamps}
    assert len(numbers) > 30
    assert {k: ours[k] for k in numbers} == pytest.approx(numbers, rel=1e-6)


def test_a_record_exported_as_vllm_and_imported_again_keeps_its_stamps(tmp_path: Path) -> None:
    requests = (*PAIR, request(2, at=2 * S + 7, failure="timeout", error="late", events=(), first_token_ns=None))
    exported = vllm_result(RUN, cell(), requests)
    file = tmp_path / "x.json"
    file.write_text(json.dumps(exported))

    (point,) = read_file(file).content.points

    again, first = cell_figures(point.cell, point.requests), cell_figures(cell(), requests)
    assert (again.ttft_ms, again.itl_ms) == (first.ttft_ms, first.itl_ms)
    assert (again.requests, again.good, again.output_tok) == (first.requests, first.good, first.output_tok)
    assert again.output_tok_per_s == first.output_tok_per_s
    assert [r.sent_ns for r in point.requests] == [0, S, S + 7]
    assert [[t for t, _ in r.events] for r in point.requests[:2]] == [
        [200 * MS, 300 * MS, 400 * MS],
        [1200 * MS, 1300 * MS, 1400 * MS],
    ]
    second = vllm_result(RUN, point.cell, point.requests)
    same = {k: v for k, v in exported.items() if isinstance(v, int | float)}
    assert {k: second[k] for k in same} == pytest.approx(same, rel=1e-9)


BATCH = cell(
    id="batch-p100-o8-c2",
    kind="batch",
    repeats=2,
    depth_tok=400,
    spans_ns=((S, 2 * S), (3 * S, 4 * S)),
)
BATCHES = (
    request(0),
    request(1, at=S + 100 * MS),
    request(0, at=3 * S, repeat=1),
    request(1, at=3 * S, repeat=1, prompt_tok=130),
)


def test_llama_benchys_figures_follow_its_definitions() -> None:
    (run,) = benchmarks([StoredCell(cell=BATCH, requests=BATCHES)])

    assert (run["concurrency"], run["context_size"], run["prompt_size"], run["response_size"]) == (2, 400, 100, 8)
    # A prompt count more than a fifth off what was asked is replaced by what was asked: 130 tokens count as 100.
    assert run["pp_req_throughput"]["values"] == pytest.approx([1000.0] * 4)
    # Tokens of both over the time from the first start to the last first token: 300 ms, then 200 ms.
    assert run["pp_throughput"]["values"] == pytest.approx([200 / 0.3, 200 / 0.2])
    # 4 of 8 tokens come after the first stamp; the batch lasts from the first first token to the last token.
    assert run["tg_req_throughput"]["values"] == pytest.approx([20.0] * 4)
    assert run["tg_throughput"]["values"] == pytest.approx([8 / 0.3, 8 / 0.2])
    assert run["peak_req_throughput"]["values"] == pytest.approx([8 / 0.2] * 4)
    assert run["peak_throughput"]["values"] == pytest.approx([16 / 0.3, 16 / 0.2])
    assert (run["ttfr"]["mean"], run["est_ppt"]["mean"], run["e2e_ttft"]["mean"]) == (100.0, 100.0, 200.0)
    assert run["tg_throughput"]["std"] == pytest.approx((8 / 0.2 - 8 / 0.3) / 2)


def test_the_peak_is_the_best_second_of_a_long_run() -> None:
    stamps = [S + i * 400 * MS for i in range(6)]
    long = request(0, events=tuple((t, n) for t, n in zip(stamps, (1, 1, 5, 1, 1, 1), strict=True)))

    (run,) = benchmarks([StoredCell(cell=cell(concurrency=1), requests=(long,))])

    assert run["peak_throughput"]["values"] == [7.0]


def test_tokens_of_unknown_number_are_not_spread_evenly() -> None:
    unknown = request(0, events=((S, None), (2 * S, None)))

    (run,) = benchmarks([StoredCell(cell=cell(concurrency=1), requests=(unknown,))])

    empty = ("tg_throughput", "tg_req_throughput", "peak_throughput", "peak_req_throughput")
    assert [run[k] for k in empty] == [None] * 4


def test_the_phase_that_loads_a_context_is_a_benchmark_of_its_own() -> None:
    context = request(0, at=0, phase="context", prompt_tok=400)

    loading, main = benchmarks([StoredCell(cell=BATCH, requests=(context, *BATCHES))])

    assert (loading["is_context_prefill_phase"], main["is_context_prefill_phase"]) == (True, False)
    assert loading["pp_req_throughput"]["values"] == pytest.approx([4000.0])


def test_a_record_exported_as_llama_benchy_and_imported_again_states_the_same(tmp_path: Path) -> None:
    report: Any = llama_benchy_report(RUN, [StoredCell(cell=BATCH, requests=BATCHES)])
    (run,) = report["benchmarks"]
    file, table = tmp_path / "x.json", tmp_path / "x.csv"
    file.write_text(json.dumps(report))
    table.write_text(csv_text(report))

    (point,), (line,) = read_file(file).content.points, read_file(table).content.points

    names = {
        "prefill_tok_per_s": "pp_throughput",
        "prefill_per_user_tok_per_s": "pp_req_throughput",
        "total_decode_tok_per_s": "tg_throughput",
        "decode_tok_per_s": "tg_req_throughput",
        "peak_tok_per_s": "peak_throughput",
        "peak_per_user_tok_per_s": "peak_req_throughput",
        "ttfr_ms": "ttfr",
        "est_ppt_ms": "est_ppt",
        "ttft_ms": "e2e_ttft",
    }
    assert set(point.cell.stated) == set(line.cell.stated) == set(names)
    for ours, theirs in names.items():
        metric = run[theirs]
        assert point.cell.stated[ours]["values"] == metric["values"], ours
        for seen in (point.cell.stated[ours], line.cell.stated[ours]):
            assert (seen["mean"], seen["sd"]) == (metric["mean"], metric["std"]), ours
    assert (point.cell.concurrency, point.cell.depth_tok, point.cell.prompt_tok, point.cell.output_tok) == (
        2,
        400,
        100,
        8,
    )


def test_a_real_llama_benchy_report_gives_its_own_csv() -> None:
    """The table is made of the report as llama-benchy makes it: same names, same order, same columns."""
    report = json.loads((CASES / "real-llama-benchy-0.4.0.json").read_text())
    theirs = list(csv.reader(io.StringIO((CASES / "real-llama-benchy-0.4.0.csv").read_text())))

    ours = list(csv.reader(io.StringIO(csv_text(report))))

    assert ours[0] == theirs[0]
    assert [(r[0], r[1], [bool(v) for v in r]) for r in ours] == [(r[0], r[1], [bool(v) for v in r]) for r in theirs]


def test_llama_benchys_table_names_users_only_when_there_are_several() -> None:
    one = llama_benchy_report(RUN, [StoredCell(cell=cell(concurrency=1), requests=(request(0),))])
    two = llama_benchy_report(RUN, [StoredCell(cell=BATCH, requests=BATCHES)])

    assert markdown_text(one).splitlines()[:4] == [
        "| model | test | t/s | peak t/s | ttfr (ms) | est_ppt (ms) | e2e_ttft (ms) |",
        "| :--- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| acme/tiny-7b | pp100 | 1000.00 ± 0.00 |  | 100.00 ± 0.00 | 100.00 ± 0.00 | 200.00 ± 0.00 |",
        "| acme/tiny-7b | tg8 | 20.00 ± 0.00 | 40.00 ± 0.00 |  |  |  |",
    ]
    assert [line.split(" | ")[1] for line in markdown_text(two).splitlines()[2:4]] == [
        "pp100 @ d400 (c2)",
        "tg8 @ d400 (c2)",
    ]
    assert "t/s (total) | t/s (req) | peak t/s | peak t/s (req)" in markdown_text(two)


def test_inferencexs_aggregate_is_per_gpu_and_in_seconds() -> None:
    found = inferencex_aggregate(RUN, cell(), PAIR)

    wanted = {
        "hw": "spark01",
        "conc": 2,
        "isl": 100,
        "osl": 8,
        "framework": "vllm",
        "tp": 2,
        "is_multinode": False,
        "tput_per_gpu": 54.0,
        "output_tput_per_gpu": 4.0,
        "input_tput_per_gpu": 50.0,
        "mean_ttft": 0.2,
        "p99_e2el": 0.4,
    }
    assert {k: found[k] for k in wanted} == pytest.approx(wanted)
    assert found["p99_intvty"] == pytest.approx(7 / 0.2)


@pytest.mark.parametrize("make", [vllm_result, inferencex_aggregate])
def test_a_cell_without_requests_is_refused(make: Any) -> None:
    with pytest.raises(InputError, match="chat closed-p100-o8-c2 has no requests"):
        make(RUN, cell(), ())


def test_a_run_without_a_grid_cell_has_no_llama_benchy_report() -> None:
    with pytest.raises(InputError, match="no grid cell"):
        llama_benchy_report(RUN, [StoredCell(cell=cell(kind="open"), requests=PAIR)])


def test_the_csv_has_a_line_a_cell_with_all_figures() -> None:
    lines = list(csv.DictReader(io.StringIO(cells_csv(RUN, [StoredCell(cell=cell(), requests=PAIR)]))))

    wanted = {
        "run": "r1",
        "workload": "chat",
        "id": "closed-p100-o8-c2",
        "is_valid": "true",
        "ttft_ms_p50": "200.0",
        "tpot_ms_mean": "50.0",
        "output_tok_per_s_mean": "8.0",
        "good": "2",
        "ttft_ms_p99": "",
    }
    assert [{k: line[k] for k in wanted} for line in lines] == [wanted]


def test_the_csv_of_requests_has_their_stamps() -> None:
    lines = list(csv.DictReader(io.StringIO(requests_csv(RUN, [StoredCell(cell=cell(), requests=PAIR)]))))

    wanted = {"run": "r1", "cell": "closed-p100-o8-c2", "sent_ns": str(2 * S), "events": "3", "failure": ""}
    assert len(lines) == 2
    assert {k: lines[1][k] for k in wanted} == wanted


def test_the_csv_states_what_another_tool_states() -> None:
    (point, _) = read_file(CASES / "llama-benchy.json").content.points

    (line,) = csv.DictReader(io.StringIO(cells_csv(RUN, [StoredCell(cell=point.cell, requests=())])))

    seen = [line[f"stated_prefill_tok_per_s_{k}"] for k in ("mean", "unit", "definition")]
    assert seen == ["4000.0", "tok/s", "llama-benchy/pp_throughput"]


def test_progress_has_a_requests_life_in_the_order_of_time() -> None:
    lines: list[dict[str, Any]] = []
    progress = BenchyProgress(lambda line: lines.append(json.loads(line)), model="m", base_url="http://x/v1")

    progress.begin(10.0)
    progress.lap(BATCH, [request(0), request(1, at=S + 100 * MS)], zero_s=100.0)
    progress.end(200.0)

    assert {line["schema"] for line in lines} == {"llama-benchy-progress.v1"}
    assert [(line["type"], line["ts"], line.get("request_id")) for line in lines] == [
        ("header", 10.0, None),
        ("latency_measured", 10.0, None),
        ("request_start", 101.0, 0),
        ("request_first_response", 101.1, 0),
        ("request_start", 101.1, 1),
        ("request_first_token", 101.2, 0),
        ("tokens", 101.2, 0),
        ("request_first_response", 101.2, 1),
        ("tokens", 101.3, 0),
        ("request_first_token", 101.3, 1),
        ("tokens", 101.3, 1),
        ("tokens", 101.4, 0),
        ("tokens", 101.4, 1),
        ("request_end", 101.5, 0),
        ("tokens", 101.5, 1),
        ("request_end", 101.6, 1),
        ("bench_complete", 200.0, None),
    ]
    by_type = {line["type"]: line for line in lines}
    start = {k: by_type["request_start"][k] for k in ("prompt_size", "response_size", "context_size", "run_index")}
    assert start == {"prompt_size": 100, "response_size": 8, "context_size": 400, "run_index": 0}
    end = by_type["request_end"]
    assert (end["total_tokens"], end["prompt_tokens"], end["decode_seconds"], end["error"]) == (8, 100, 0.3, "")
    assert [line["count"] for line in lines if line["type"] == "tokens" and line["request_id"] == 0] == [4, 2, 2]


def test_progress_numbers_requests_on_and_names_failures_and_estimates() -> None:
    lines: list[dict[str, Any]] = []
    progress = BenchyProgress(lambda line: lines.append(json.loads(line)), model="m", base_url="http://x/v1")
    lost = request(0, first_event_ns=None, first_token_ns=None, events=(), failure="timeout", error=None)
    unknown = request(0, events=((S + 200 * MS, None),))
    never = request(1, sent_ns=None, failure="connect")

    progress.lap(cell(), [lost, never], zero_s=0.0)
    progress.lap(cell(), [unknown, request(1, phase="before")], zero_s=0.0)

    kinds = [(line["type"], line["request_id"]) for line in lines]
    assert kinds[:3] == [("request_start", 0), ("request_end", 0), ("request_start", 1)]
    assert (lines[1]["error"], lines[1]["decode_seconds"]) == ("timeout", 0.0)
    assert [(line["count"], line["estimated"]) for line in lines if line["type"] == "tokens"] == [(1, True)]
    assert {i for _, i in kinds} == {0, 1}


def test_a_closed_cell_beside_a_batch_of_its_sizes_has_no_second_line() -> None:
    twin = StoredCell(cell=cell(), requests=PAIR)
    batch = StoredCell(cell=cell(id="batch-p100-o8-c2", kind="batch"), requests=PAIR)
    other = StoredCell(cell=cell(id="closed-p100-o8-c1", concurrency=1), requests=PAIR)

    assert doubles([twin, batch, other]) == (twin.cell,)
    assert [b["concurrency"] for b in benchmarks([twin, batch, other])] == [1, 2]
    assert doubles([twin, other]) == ()


def test_prompt_speed_of_all_is_null_where_answers_lie_between_the_prompts() -> None:
    refilled = cell(requests_per_repeat=4)
    requests = tuple(request(i, at=S + i // 2 * S) for i in range(4))

    (found,) = benchmarks([StoredCell(cell=refilled, requests=requests)])

    assert found["pp_throughput"] is None
    assert found["pp_req_throughput"]["mean"] == pytest.approx(100 / 0.1)


def benchmarks(cells: list[StoredCell]) -> list[dict[str, Any]]:
    found: Any = llama_benchy_report(RUN, cells)["benchmarks"]
    return list(found)
