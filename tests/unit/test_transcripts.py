"""Reports typed off: the format, its import, and that the shipped ones say what the reports print."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.errors import InvalidFile
from orchestrator.figures.stated import stated
from orchestrator.profile.finding import shipped_dir
from orchestrator.profile.loading import load_profile
from orchestrator.profile.yaml_lines import load_document
from orchestrator.records.exchange.definitions import MEANINGS, comparable
from orchestrator.records.exchange.importing import read_file, read_files, write_foreign
from orchestrator.records.exchange.transcript.reading import is_transcript, read_transcript
from orchestrator.records.record import CellRecord, RunRecord
from orchestrator.records.store import Store, StoredRun
from orchestrator.report.html import page
from orchestrator.report.markdown import report
from orchestrator.report.tables import run_row

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "transcripts"
REPORTS = {path.stem: path for path in sorted((ROOT / "samples" / "reports").glob("*.yaml"))}
SHIPPED: dict[str, dict[str, Any]] = json.loads((CASES / "shipped.json").read_text())
BAD: list[dict[str, str]] = json.loads((CASES / "malformed.json").read_text())
SMALL = (CASES / "small.yaml").read_text()

Figure = Mapping[str, Any]


def imported(paths: list[Path], folder: Path) -> dict[str, StoredRun]:
    store = Store(folder)
    for run in read_files(paths):
        write_foreign(store, run)
    good, bad = store.runs()
    assert bad == ()
    return {stored.run.profile_name: stored for stored in good}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StoredRun]:
    return imported([CASES / "small.yaml"], tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("samples")


@pytest.fixture(scope="module")
def samples(folder: Path) -> dict[str, StoredRun]:
    return imported(list(REPORTS.values()), folder)


def cell_of(stored: StoredRun, workload: str, **wanted: object) -> CellRecord:
    (found,) = [
        c.cell
        for c in stored.cells()
        if c.cell.workload == workload and all(getattr(c.cell, key) == value for key, value in wanted.items())
    ]
    return found


def figures_of(cell: CellRecord) -> dict[str, Any]:
    return json.loads(json.dumps(cell.stated))  # type: ignore[no-any-return]


def source_of(run: RunRecord) -> dict[str, Any]:
    return json.loads(json.dumps(run.source))  # type: ignore[no-any-return]


def all_figures(stored: StoredRun) -> list[tuple[str, Figure]]:
    source = source_of(stored.run)
    groups = [figures_of(c.cell) for c in stored.cells()] + [source["stated"], source["report"]["stated"]]
    groups += [json.loads(json.dumps(host["stated"])) for host in stored.run.hosts]
    first = [(name, figure) for group in groups for name, figure in group.items()]
    return first + [(name, other) for name, figure in first for other in figure.get("also", [])]


def test_the_printed_number_is_kept_in_the_unit_of_its_name(small: dict[str, StoredRun]) -> None:
    cell = cell_of(small["qwen3.8-27b-nvfp4-mtp2"], "one")

    at = {"place": "table 1, row 1, column tok/s"}
    assert figures_of(cell) == {
        "output_tok_per_s": {
            "value": 29.4,
            "unit": "tok/s",
            "definition": "report/combined",
            **at,
            "also": [{"value": 39, "unit": "tok/s", "definition": "report/combined", "place": "note"}],
        },
        "ttft_ms": {
            "mean": 35670.0,
            "sd": 18000.0,
            "printed": {"mean": "35.67", "sd": "18.00", "unit": "s"},
            "unit": "ms",
            "definition": "report/first_token",
            "place": "table 1, row 1, column First",
        },
        "cached_share": {
            "value": 0.992,
            "printed": {"value": "99.2", "unit": "%"},
            "unit": "",
            "definition": "report/cached_share",
            "place": "table 1",
        },
        "reread_tok": {
            "low": 1000,
            "high": 3000,
            "printed": {"low": "1", "high": "3", "unit": "Ktok"},
            "unit": "tok",
            "definition": "report/reread_tok",
            "place": "note",
        },
        "gain": {
            "value": 3,
            "of": 8,
            "unit": "x",
            "definition": "report/gain",
            "place": "note",
            "about": True,
            "basis": "derived",
            "against": "one agent",
        },
        "e2e_ms": {"not_measured": True, "unit": "ms", "definition": "report/e2e_ms", "place": "note"},
    }


def test_a_run_says_where_it_comes_from_and_what_was_told_of_it(small: dict[str, StoredRun]) -> None:
    run = small["qwen3.8-27b-nvfp4-mtp2"].run

    source = source_of(run)
    told = {key: source[key] for key in ("tool", "title", "version", "form", "file", "note", "gate", "place")}
    assert told == {
        "tool": "transcript",
        "title": "a made-up report",
        "version": "2026-10-06",
        "form": "gate0-transcript/1",
        "file": "small.yaml",
        "note": "not measured here",
        "gate": {"word": "varies", "verdict": "unstable", "place": "table 1, row 1"},
        "place": "table 1, row 1",
    }
    assert source["report"]["contradictions"] == ["one figure twice"]
    assert source["report"]["stated"]["points"]["value"] == 2
    assert source["stated"]["ready_s"]["value"] == 90.0
    assert (run.status, run.gates, run.slots, run.created_at) == ("imported", {}, 8, "2026-10-06")
    assert [(h["name"], h["rank"]) for h in run.hosts] == [("DGX Spark", 0), ("DGX Spark", 1)]
    bandwidth = json.loads(json.dumps(run.hosts[0]["stated"]))["memory_bandwidth_gb_per_s"]
    assert (bandwidth["low"], bandwidth["high"], bandwidth["unit"], bandwidth["about"]) == (260, 273, "GB/s", True)


def test_a_run_with_a_shipped_profile_carries_it_as_a_run_of_ours(small: dict[str, StoredRun]) -> None:
    run = small["qwen3.8-27b-nvfp4-mtp2"].run
    loaded = load_profile("qwen3.8-27b-nvfp4-mtp2", search=(shipped_dir(),))

    assert run.profile == loaded.resolved
    assert run.profile_source == loaded.text
    assert list(run.lineage) == ["qwen3.8-27b-nvfp4"]
    other = small["other"].run
    assert (other.profile, list(other.lineage), other.profile_title) == ({}, [], "Another")
    assert other.profile_digest != run.profile_digest


def test_a_cell_has_the_load_that_was_told(small: dict[str, StoredRun]) -> None:
    run = small["qwen3.8-27b-nvfp4-mtp2"]
    swarm, arrivals = cell_of(run, "one"), cell_of(run, "two")

    assert (swarm.id, swarm.prefix_tok, swarm.repeats_done) == ("swarm-primed-p0-o0-c8", 54282, 3)
    assert (arrivals.id, arrivals.rate_rps, arrivals.burstiness) == ("open-p0-o0-r1.5-c25", 1.5, 0.7)
    assert (arrivals.concurrency, arrivals.requests_per_repeat, arrivals.batch_answers) == (25, 300, 400)
    assert arrivals.definitions == {"tpot_ms": "vllm/tpot"}
    assert arrivals.vantage == "unknown"


def test_a_single_number_stands_in_a_column_and_a_range_does_not(small: dict[str, StoredRun]) -> None:
    cell = cell_of(small["qwen3.8-27b-nvfp4-mtp2"], "one")

    seen = {name: found.value for name in cell.stated if (found := stated(cell, name))}
    assert seen == {
        "output_tok_per_s": 29.4,
        "ttft_ms": 35670.0,
        "cached_share": 0.992,
        "reread_tok": None,
        "gain": 3,
        "e2e_ms": None,
    }


@pytest.mark.parametrize("case", BAD, ids=[c["name"] for c in BAD])
def test_a_broken_transcript_is_refused_by_file_line_and_key(
    case: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert SMALL.count(case["from"]) == 1
    file = tmp_path / "small.yaml"
    file.write_text(SMALL.replace(case["from"], case["to"]))

    assert main(["import", str(file), "--results", str(tmp_path / "r")]) == 2

    said = capsys.readouterr().err
    assert case["says"] in said
    assert str(file) in said
    assert not (tmp_path / "r").exists()


def test_all_that_is_wrong_is_said_at_once() -> None:
    text = SMALL.replace("machine: spark, count", "machine: sparc, count").replace("value: 29.4", "sd: 29.4")

    with pytest.raises(InvalidFile) as caught:
        read_transcript(text, "x.yaml")

    assert [p.path for p in caught.value.problems] == [
        "runs[0].hosts[0].machine",
        "runs[0].cells[0].stated.output_tok_per_s[0]",
    ]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (SMALL, True),
        ('{"format": "gate0-transcript/1"}', True),
        ("\ufeff---\n# x\nformat: 'gate0-transcript/9'\n", True),
        ("format: gate0-record/1\n", False),
        ("title: x\nformat: gate0-transcript/1\n", False),
        ('{"request_throughput": 1, "note": "format: gate0-transcript/1"}', False),
        ("", False),
    ],
    ids=["yaml", "json", "mark and dashes", "record", "not first", "inside", "empty"],
)
def test_a_transcript_is_known_by_its_first_key(text: str, is_one: bool) -> None:
    assert is_transcript(text) is is_one


def test_a_transcript_is_imported_once_beside_other_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(CASES / "small.yaml"), str(CASES.parent / "exchange" / "llama-bench.json")]

    assert main(["import", *files, "--results", str(tmp_path), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["import", *files, "--results", str(tmp_path), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)

    assert [(r["is_new"], r["points"]) for r in first["runs"]][1:] == [(True, 2), (True, 1)]
    assert [r["run"] for r in again["runs"]] == [r["run"] for r in first["runs"]]
    assert not any(r["is_new"] for r in again["runs"])
    assert [f["file"] for f in first["files"]] == ["llama-bench.json", "small.yaml"]
    assert len(Store(tmp_path).runs()[0]) == 3


def test_points_of_two_reports_are_not_compared(samples: dict[str, StoredRun]) -> None:
    one = cell_of(samples["ollama-gemma3-4b"], "one-agent")
    other = cell_of(samples["m4-max-qwen3.8-27b-8bit"], "one-agent", variant="short")
    users = cell_of(samples["gemma-31b-dense"], "batching")
    alone = cell_of(samples["nemotron-3.5"], "one-user")

    assert str(comparable(one, other, "decode_tok_per_s")).startswith("another load: variant")
    assert str(comparable(users, alone, "output_tok_per_s")).startswith("other definitions")
    assert users.source["tool"] != alone.source["tool"]


def test_the_shipped_transcripts_are_these() -> None:
    assert sorted(REPORTS) == sorted(SHIPPED)


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_a_shipped_transcript_holds_these_runs_and_cells(name: str, samples: dict[str, StoredRun]) -> None:
    of_report = [run.content for (run,) in read_files([REPORTS[name]])]
    profiles = [bool(found.run.get("profile")) for found in of_report]

    seen = [[r.slug, has, len(r.points)] for r, has in zip(of_report, profiles, strict=True)]
    assert seen == SHIPPED[name]["runs"]
    assert {found.created_at for found in of_report} == {SHIPPED[name]["created_at"]}
    assert all(len(samples[r.slug].cells()) == len(r.points) for r in of_report)


def test_every_figure_says_where_it_stands_and_what_it_is(samples: dict[str, StoredRun]) -> None:
    figures = [f for stored in samples.values() for f in all_figures(stored)]

    assert len(figures) > 300
    assert [name for name, figure in figures if not figure["place"]] == []
    foreign = {str(f["definition"]) for _, f in figures if not str(f["definition"]).startswith("report/")}
    assert foreign - set(MEANINGS) == {
        "vllm/completed",
        "vllm/request_throughput",
        "vllm/total_token_throughput",
    }


def test_the_swarm_table_is_the_reports_in_its_order(samples: dict[str, StoredRun]) -> None:
    lines = [line.split() for line in (CASES / "swarm-table.txt").read_text().splitlines()]

    def printed(profile: str) -> list[str]:
        cells = {c.cell.concurrency: figures_of(c.cell) for c in samples[profile].cells()}
        rates = [cells.get(n, {}).get("output_tok_per_s") for n in (1, 8, 32, 64)]
        at_32 = cells.get(32, {})
        others = [at_32.get("ttft_ms"), at_32.get("cached_share")]
        words = [_printed(figure) for figure in (*rates, *others)]
        return [profile, *words, source_of(samples[profile].run)["gate"]["verdict"]]

    assert [printed(line[0]) for line in lines] == lines
    at_32 = [float(line[3]) for line in lines if line[3] != "-"]
    assert at_32 == sorted(at_32, reverse=True)


def _printed(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return str(figure.get("printed", {}).get("value", figure["value"]))


def test_the_office_tables_are_the_reports(samples: dict[str, StoredRun]) -> None:
    run = samples["gemma-4-26b-a4b-bf16"]
    lines = [line for line in (CASES / "office-tables.txt").read_text().splitlines() if not line.startswith("#")]
    names = ("prefill_tok_per_s", "decode_tok_per_s", "total_decode_tok_per_s", "ttft_ms")

    for line in lines:
        load, *wanted = (part.split() for part in line.split("|"))
        prompt, output, users = (int(n) for n in load[1:])
        figures = figures_of(cell_of(run, load[0], prompt_tok=prompt, output_tok=output, concurrency=users))
        numbers = [[figures[name]["mean"], figures[name]["sd"]] for name in names]
        factors = (1, 1, 1, 1000)
        assert numbers == [
            [pytest.approx(float(n) * factor) for n in pair] for pair, factor in zip(wanted, factors, strict=True)
        ], line
    assert len(lines) == len(run.cells()) - 3


ARRIVALS = {
    "test-h": ("ttft 1395 1286 2284 2644 3316", "tpot 177 182 193 202 214", "e2e 85921 85306 150192 162375 171351"),
    "test-i": ("ttft 376 353 469 509 637", "tpot 93 95 117 123 135", "e2e 19600 10923 49525 63036 82596"),
    "test-j": ("ttft 1370 1132 1932 2961 6157", "tpot 185 187 195 199 221", "e2e 92752 91099 165179 172073 179139"),
}
COUNTS = {"test-h": (200, 0.27, 36, 1215), "test-i": (250, 0.30, 17, 133), "test-j": (300, 0.26, 27, 1173)}


@pytest.mark.parametrize("workload", sorted(ARRIVALS))
def test_the_percentiles_of_the_office_by_the_clock(workload: str, samples: dict[str, StoredRun]) -> None:
    figures = figures_of(cell_of(samples["gemma-4-26b-a4b-bf16"], workload))

    for line in ARRIVALS[workload]:
        name, *numbers = line.split()
        figure = figures[f"{name}_ms"]
        assert [figure[key] for key in ("mean", "p50", "p90", "p95", "p99")] == [int(n) for n in numbers]
    names = ("requests_good", "request_per_s", "peak_concurrency", "total_tok_per_s")
    assert tuple(figures[name]["value"] for name in names) == COUNTS[workload]


TWICE = [
    ("qwen3.8-flash-next-nvfp4-tp2-mtp3", "swarm-54k", 1, "output_tok_per_s", [29.4, 39]),
    ("qwen3.8-flash-next-exl3-velogb10", "swarm-54k", 1, "output_tok_per_s", [49.9, 52.5]),
    ("qwen3.6-35b-a3b-nvfp4", "batching", 1, "output_tok_per_s", [119.9, 82]),
    ("gemma-4-26b-a4b-fp8-mtp4", "batching", 1, "output_tok_per_s", [46, 56.2]),
    ("gpt-oss-120b-sglang", "batching", 1, "output_tok_per_s", [61.4, (50, 61), 57]),
    ("gemma-4-26b-a4b-fp8-mtp4", "batching", 64, "ttft_ms", [1300.0, (None, 1000)]),
    ("gemma-4-26b-a4b-bf16", "test-h", 0, "arrivals_per_min", [18, 25]),
]


@pytest.mark.parametrize(
    ("profile", "workload", "users", "name", "values"), TWICE, ids=[f"{t[0]}-{t[1]}-{t[2]}-{t[3]}" for t in TWICE]
)
def test_where_a_report_disagrees_with_itself_both_are_kept(
    *, profile: str, workload: str, users: int, name: str, values: list[Any], samples: dict[str, StoredRun]
) -> None:
    figure = figures_of(cell_of(samples[profile], workload, concurrency=users))[name]

    seen = [f for f in (figure, *figure["also"]) if not f.get("rounded")]
    assert [f.get("value", (f.get("low"), f.get("high"))) for f in seen] == values
    assert len({f["place"] for f in seen}) == len(seen)


GAINS = [
    ("gpt-oss-120b-sglang", "batching", 128, 1, 42.7),
    ("qwen3.6-35b-a3b-nvfp4", "batching", 128, 1, 23.4),
    ("gemma-4-26b-a4b-fp8-mtp4", "batching", 128, 0, 22),
    ("gemma-4-26b-a4b-fp8-mtp4", "batching", 64, 1, 17.6),
    ("qwen3.8-flash-next-iq1s-llamacpp", "concurrency", 8, 1, 2.9),
]


@pytest.mark.parametrize(
    ("profile", "workload", "users", "digits", "gain"), GAINS, ids=[f"{g[0]}-{g[2]}" for g in GAINS]
)
def test_a_gain_follows_from_its_two_figures(
    *, profile: str, workload: str, users: int, digits: int, gain: float, samples: dict[str, StoredRun]
) -> None:
    many, one = (figures_of(cell_of(samples[profile], workload, concurrency=n)) for n in (users, 1))

    assert (many["gain"]["value"], many["gain"]["basis"]) == (gain, "derived")
    assert round(many["output_tok_per_s"]["value"] / one["output_tok_per_s"]["value"], digits) == gain


def test_the_checkpoint_brings_116_percent_at_32_agents(samples: dict[str, StoredRun]) -> None:
    before, after = (
        cell_of(samples[f"qwen3.8-27b-nvfp4-mtp2{end}"], "swarm-54k", concurrency=32) for end in ("", "-checkpoint")
    )

    was, now = (figures_of(c)["output_tok_per_s"]["value"] for c in (before, after))
    assert round(100 * (now / was - 1)) == figures_of(after)["output_change_pct"]["value"] == 116
    assert comparable(before, after, "output_tok_per_s") is None
    lineage = samples["qwen3.8-27b-nvfp4-mtp2-checkpoint"].run.lineage
    assert list(lineage) == ["qwen3.8-27b-nvfp4-mtp2", "qwen3.8-27b-nvfp4"]


def test_two_directions_of_eight_users(samples: dict[str, StoredRun]) -> None:
    run = samples["qwen3.8-flash-next-iq1s-llamacpp"]
    one, two, eight, sixteen = (figures_of(cell_of(run, "concurrency", concurrency=n)) for n in (1, 2, 8, 16))

    assert [(f["output_tok_per_s"]["value"], f["per_user_tok_per_s"]["value"]) for f in (one, eight)] == [
        (31.0, 31),
        (89.8, 11.2),
    ]
    assert [f["batch_s"]["value"] / 60 for f in (one, eight)] == [28, 10]
    assert [f["efficiency"]["value"] for f in (two, eight)] == [0.79, 0.36]
    assert sixteen["output_tok_per_s"]["not_measured"] is True
    person = figures_of(cell_of(run, "eight-users-mixed"))["per_user_tok_per_s"]
    assert (person["value"], person["basis"]) == (11.2, "derived")
    assert run.run.slots == 8


ROUNDS = [
    ("agent-round-1-qwen3.8-27b-fp8", "opencode", 3, (57, 90), 90, 1),
    ("agent-round-1-qwen3.8-27b-fp8", "codex", 8, (69, 90), 90, 5),
    ("agent-round-2-qwen3.8-27b-nvfp4-mtp2", "codex", 8, (26, 52), 52, None),
    ("agent-round-2-qwen3.8-27b-nvfp4-mtp2", "opencode", 8, (27, 60), 60, None),
]


@pytest.mark.parametrize(("run", "agent", "perfect", "each", "whole", "capped"), ROUNDS)
def test_the_agent_rounds(
    *,
    run: str,
    agent: str,
    perfect: int,
    each: tuple[int, int],
    whole: int,
    capped: int | None,
    samples: dict[str, StoredRun],
) -> None:
    figures = figures_of(cell_of(samples[run], "agent-rounds", variant=agent))

    assert (figures["runs_perfect"]["value"], figures["runs_perfect"]["of"]) == (perfect, 8)
    assert (figures["run_s"]["low"] / 60, figures["run_s"]["high"] / 60) == each
    assert figures["batch_s"]["value"] == whole * 60
    assert figures.get("runs_at_cap", {}).get("value") == capped


def test_the_other_machine_has_ranges_and_what_was_not_measured(samples: dict[str, StoredRun]) -> None:
    dense, sparse = (samples[f"m4-max-qwen3.8-{end}"] for end in ("27b-8bit", "flash-next-4bit"))

    def of(run: StoredRun, variant: str) -> dict[str, Any]:
        return figures_of(cell_of(run, "one-agent", variant=variant))

    short = [of(run, "short")["decode_tok_per_s"] for run in (dense, sparse)]
    assert [(f["low"], f["high"]) for f in short] == [(25, 28), (50, 57)]
    assert [of(run, "after-28k")["decode_tok_per_s"]["value"] for run in (dense, sparse)] == [14, 51]
    assert [source_of(run.run)["stated"]["prefill_tok_per_s"]["value"] for run in (dense, sparse)] == [165, 580]
    assert of(dense, "several")["output_tok_per_s"]["not_measured"] is True
    assert of(sparse, "several")["output_tok_per_s"]["value"] == 61


def test_nothing_expected_stands_among_the_cells(samples: dict[str, StoredRun]) -> None:
    figures = [f for s in samples.values() for c in s.cells() for f in figures_of(c.cell).values()]
    expected = {
        name: {f["value"] for key, f in source_of(s.run)["stated"].items() if key == "both_hosts_output_tok_per_s"}
        for name, s in samples.items()
    }

    assert [f for f in figures if f.get("basis") == "projected"] == []
    assert {name: values for name, values in expected.items() if values} == {
        "qwen3.8-27b-nvfp4-mtp2-checkpoint": {360},
        "qwen3.8-27b-nvfp4-mtp2-checkpoint-fp8kv-64": {534},
    }


def test_two_hosts_are_two_only_where_a_model_is_split(samples: dict[str, StoredRun]) -> None:
    split = [name for name, stored in samples.items() if len(stored.run.hosts) > 1]

    assert split == ["qwen3.8-flash-next-nvfp4-tp2-mtp3"]


def test_all_reports_are_laid_out(samples: dict[str, StoredRun]) -> None:
    rows = [run_row(stored) for stored in samples.values()]

    assert [w for row in rows for w in row.warnings] == []
    for text in (page(rows, []), report(rows, [])):
        assert "203.4†" in text
        assert "25-28†" in text
        assert "not measured" in text


def test_a_first_run_is_what_one_file_is_read_as() -> None:
    assert read_file(CASES / "small.yaml").content.slug == "qwen3.8-27b-nvfp4-mtp2"


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_a_shipped_transcript_needs_no_more_than_plain_yaml(name: str) -> None:
    document: Any = load_document(REPORTS[name].read_text(), name).value

    assert document["name"] == name
