"""Tables and page from records alone: what they say, and that nothing in a record can act on the page."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchestrator.records.record import CellRecord, GateRecord, RequestRecord, RunRecord
from orchestrator.records.store import Store
from orchestrator.report.markdown import report
from orchestrator.report.series import series_of
from orchestrator.report.tables import RunRow, gate_verdict, run_row
from orchestrator.report.text import duration, number, seconds, share
from tests.unit.notebook_pages import bests, boards, cells, heads, page, parsed, tree

S = 1_000_000_000


def run(name: str, **changes: object) -> RunRecord:
    values: dict[str, object] = {
        "id": name,
        "status": "passed",
        "created_at": "2026-11-30T06:17:56.000Z",
        "updated_at": "2026-11-30T06:20:00.000Z",
        "profile_name": name,
        "profile_title": f"title of {name}",
        "profile_digest": "d",
        "engine": "vllm",
        "engine_version": "0.31.0",
        "hosts": ({"name": "spark01"},),
        "suite": "gate0",
        "is_suite_unmodified": True,
        "gates": {"coherence": "pass"},
    }
    return RunRecord(**{**values, **changes})  # type: ignore[arg-type]


def write(folder: Path, record: RunRecord, rates: dict[int, int], **cell: object) -> RunRow:
    """A run whose cell at c users made `rates[c]` tokens in one second."""
    writer = Store(folder).new_run(record.id)
    writer.write_run(record)
    writer.write_gate(GateRecord(name="coherence", status="pass", summary="3 of 3"))
    for users, tokens in rates.items():
        values: dict[str, object] = {
            "workload": "concurrency",
            "kind": "closed",
            "concurrency": users,
            "prompt_tok": 128,
            "output_tok": 256,
            "repeats": 1,
            "requests_per_repeat": 1,
            "digest": "d",
            "spans_ns": ((0, S),),
            **cell,
        }
        values["id"] = "{kind}-p{prompt_tok}-o{output_tok}-c{concurrency}".format_map(values)
        request = RequestRecord(
            repeat=0,
            index=0,
            scheduled_ns=0,
            sent_ns=0,
            first_token_ns=S // 2,
            end_ns=S,
            output_tok=tokens,
            prompt_tok=8,
        )
        writer.write_cell(CellRecord(**values), [request])  # type: ignore[arg-type]
    return run_row(Store(folder).find(str(folder / record.id)))


def shown(rows: list[RunRow]) -> dict[str, dict[str, dict[int, object]]]:
    """Table, run, level: the rate."""
    return {
        series.key.title: {
            line.row.run.id: {
                c: rate.mean if (rate := p.figures.output_tok_per_s) else None for c, p in line.points.items()
            }
            for line in series.lines
        }
        for series in series_of(rows)
    }


def best(rows: list[RunRow], concurrency: int) -> str | None:
    """The run whose figure is marked in the only table, as both layouts show it."""
    (series,) = series_of(rows)
    found = series.find_best(concurrency)
    (name,) = [line.row.run.id for line in series.lines if line.points.get(concurrency) is found]
    (board,) = boards(tree(rows)).values()
    assert bests(board, f"{concurrency} user{'' if concurrency == 1 else 's'}") == [f"title of {name}"]
    marked = [line for line in report(rows).splitlines() if "**" in line]
    assert [f"title of {name}" in line for line in marked] == [True]
    return name


class Seen(HTMLParser):
    """What a browser would find in the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_configurations_table_has_a_column_a_level_and_the_best_is_marked(tmp_path: Path) -> None:
    rows = [write(tmp_path, run("a"), {1: 31, 8: 90}), write(tmp_path, run("b"), {1: 30, 8: 100})]

    (series,) = series_of(rows)
    assert series.levels == (1, 8)
    (board,) = boards(tree(rows)).values()
    assert bests(board, "1 user") == ["title of a"]
    assert bests(board, "8 users") == ["title of b"]
    assert "| title of a | vllm 0.31.0 | spark01 | **31.0** | 90.0 | 0.50 at 8 |" in report(rows)


def test_an_invalid_figure_is_struck_with_its_guard_and_never_the_best(tmp_path: Path) -> None:
    guard = {"name": "prompt_length", "message": "off by 12%"}
    rows = [write(tmp_path, run("a"), {1: 999}, guards=(guard,)), write(tmp_path, run("b"), {1: 30})]

    (board,) = boards(tree(rows)).values()
    field = cells(board, "title of a")[1]

    assert field.the("s").text == "999.0"
    assert field.words == "999.0 prompt_length"
    assert bests(board, "1 user") == ["title of b"]
    assert "~~999.0~~ prompt_length" in report(rows)


def test_two_hosts_compete_in_no_single_host_column(tmp_path: Path) -> None:
    both = ({"name": "spark01"}, {"name": "spark02"})
    rows = [write(tmp_path, run("a", hosts=both), {1: 999}), write(tmp_path, run("b"), {1: 30})]

    (board,) = boards(tree(rows)).values()
    assert bests(board, "1 user") == ["title of b"]
    assert cells(board, "title of a")[0].words == "title of a over 2 hosts"


def test_closed_and_batch_are_separate_tables(tmp_path: Path) -> None:
    write(tmp_path, run("a"), {1: 31, 8: 90})
    rows = [write(tmp_path, run("a"), {1: 29, 8: 70}, kind="batch")]

    assert shown(rows) == {
        "concurrency, batch: 128 tokens in, 256 out": {"a": {1: 29.0, 8: 70.0}},
        "concurrency, closed: 128 tokens in, 256 out": {"a": {1: 31.0, 8: 90.0}},
    }
    for title in shown(rows):
        assert title in boards(tree(rows))
        assert f"## {title}\n" in report(rows)


def test_two_workloads_and_two_prompt_sizes_are_separate_tables(tmp_path: Path) -> None:
    write(tmp_path, run("a"), {8: 90})
    write(tmp_path, run("a"), {8: 20}, prompt_tok=8000)
    rows = [write(tmp_path, run("a"), {8: 300, 64: 700}, workload="batching")]

    assert shown(rows) == {
        "batching, closed: 128 tokens in, 256 out": {"a": {8: 300.0, 64: 700.0}},
        "concurrency, closed: 128 tokens in, 256 out": {"a": {8: 90.0}},
        "concurrency, closed: 8000 tokens in, 256 out": {"a": {8: 20.0}},
    }
    assert [bests(b, h) for b in boards(tree(rows)).values() for h in ("8 users", "64 users") if h in heads(b)] == [
        ["title of a"]
    ] * 4


def test_two_vantages_never_compete(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("a"), {1: 999}, vantage="tunnel"),
        write(tmp_path, run("b"), {1: 30}, vantage="lan"),
        write(tmp_path, run("c"), {1: 31}, vantage="lan"),
    ]

    assert best(rows, 1) == "c"
    assert '<span class="warn">load from tunnel: not compared</span>' in page(rows)
    assert "| spark01; load from tunnel: not compared | 999.0 |" in report(rows)


def test_of_two_vantages_alike_in_number_the_nearer_is_the_tables(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("a"), {1: 999}, vantage="tunnel"),
        write(tmp_path, run("b"), {1: 30}, vantage="tailnet"),
    ]

    assert best(rows, 1) == "b"


@pytest.mark.parametrize(
    ("record", "cell"),
    [({"is_ungated": True}, {}), ({}, {"is_ungated": True}), ({"gates": {}}, {})],
    ids=["run", "cell", "no-gates"],
)
def test_an_ungated_figure_is_never_the_best(
    tmp_path: Path, record: dict[str, object], cell: dict[str, object]
) -> None:
    rows = [write(tmp_path, run("a", **record), {1: 999}, **cell), write(tmp_path, run("b"), {1: 30})]

    assert best(rows, 1) == "b"


def test_an_ungated_cell_is_said_in_its_table(tmp_path: Path) -> None:
    rows = [write(tmp_path, run("a"), {1: 999}, is_ungated=True)]

    assert "Gate 0 passed · ungated |" in report(rows)
    assert '<strong class="warn">ungated</strong>' in page(rows)


def test_lines_are_sorted_by_the_rate_at_the_largest_level(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("short"), {1: 500}),
        write(tmp_path, run("slow"), {1: 40, 8: 80}),
        write(tmp_path, run("fast"), {1: 20, 8: 90}),
        write(tmp_path, run("broken"), {8: 999}, guards=({"name": "requests", "message": "3 of 8"},)),
    ]

    (series,) = series_of(rows)

    assert [line.row.run.id for line in series.lines] == ["fast", "slow", "broken", "short"]


def test_first_token_and_cached_share_are_of_the_own_tables_highest_valid_level(tmp_path: Path) -> None:
    write(tmp_path, run("a"), {64: 700}, workload="batching")
    write(tmp_path, run("a"), {16: 700}, guards=({"name": "requests", "message": "3 of 8"},))
    rows = [write(tmp_path, run("a"), {1: 31, 8: 90})]

    line = next(line for line in report(rows).splitlines() if "**31.0**" in line)

    assert "| 0.50 at 8 |" in line


def test_a_run_without_points_is_listed_as_not_measured(tmp_path: Path) -> None:
    failed = run("b", status="gate_failed", gates={"coherence": "fail"})
    rows = [write(tmp_path, run("a"), {1: 31}), write(tmp_path, failed, {})]

    after = report(rows).partition("## Not measured")[2]
    assert "| title of b | vllm 0.31.0 | spark01 | gate_failed | Gate 0 failed: coherence |" in after
    left = tree(rows).the(id="not-measured")
    assert [td.words for td in left.every("td")] == [
        "gate_failed",
        "Gate 0 failed: coherence",
        "vllm 0.31.0",
        "spark01",
    ]


def test_the_page_and_the_markdown_say_the_same_of_each_line(tmp_path: Path) -> None:
    guard = {"name": "prompt_length", "message": "off by 12%"}
    rows = [
        write(tmp_path, run("a"), {1: 31, 8: 90}),
        write(tmp_path, run("b"), {1: 77, 2: 55}, vantage="tunnel"),
        write(tmp_path, run("c"), {1: 66}, guards=(guard,)),
        write(tmp_path, run("d", status="failed", gates={}), {}),
    ]

    on_page = Seen(page(rows)).text
    lines = [line for line in report(rows).splitlines() if line.startswith("| title of ")]
    said = {cell.strip(" *~") for line in lines for part in line.split("|") for cell in part.split("; ")}
    struck, first_tokens = "66.0~~ prompt_length", {"0.50 at 8", "0.50 at 2"}

    assert len(lines) == 4
    assert struck in said
    assert "<s>66.0</s>" in page(rows)
    assert {cell for cell in said if cell not in on_page} == {struck, *first_tokens}


def test_a_workloads_own_number_of_answers_is_the_batch_times(tmp_path: Path) -> None:
    row = write(tmp_path, run("a"), {1: 32}, batch_answers=40)

    (point,) = row.points
    assert (point.batch_answers, point.batch_s) == (40, 40 * 256 / 32)
    assert "| 5.3 min for 40 |" in report([row])
    assert "<td>5.3 min for 40</td>" in page([row])


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(2)> | `x` {{ 7 * 7 }}'
    row = write(
        tmp_path,
        run(
            "a",
            profile_title=evil,
            model=evil,
            engine_version=evil,
            command=(evil,),
            profile_source=evil,
            error={"message": evil, "hint": None},
        ),
        {1: 31},
    )

    text = page([row], warnings=[evil])
    seen = Seen(text)

    assert [s.attributes.get("id") for s in parsed(text).every("script")] == ["popovers", "charts", None]
    assert "img" not in seen.tags
    assert not any(name.startswith("on") for name, _ in seen.attributes)
    assert "{{ 7 * 7 }}" in seen.text
    table_line = next(line for line in report([row]).splitlines() if "31.0" in line)
    assert "<script" not in table_line
    assert "\\|" in table_line


def test_the_page_needs_nothing_from_outside(tmp_path: Path) -> None:
    seen = Seen(page([write(tmp_path, run("a"), {1: 31})]))

    links = [value for name, value in seen.attributes if name in ("src", "href")]
    assert all(value is not None and value.startswith("#") for value in links)
    assert "link" not in seen.tags


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Gate 0 passed"),
        ({"gates": {"coherence": "pass", "tool_call": "skip"}}, "Gate 0 passed (1 skipped)"),
        ({"gates": {"coherence": "pass", "determinism": "unstable"}}, "Gate 0 unstable: determinism"),
        ({"gates": {"coherence": "fail", "determinism": "unstable"}}, "Gate 0 failed: coherence"),
        ({"gates": {"coherence": "error"}}, "Gate 0 could not tell: coherence"),
        ({"is_suite_unmodified": False}, "suite gate0 (modified) passed"),
        ({"suite": "quick"}, "suite quick passed"),
        ({"suite": "suite", "gates": {"effective": "fail"}}, "its suite failed: effective"),
        ({"gates": {}}, "not gated"),
    ],
)
def test_only_the_unmodified_suite_reads_gate_0_passed(changes: dict[str, object], words: str) -> None:
    assert gate_verdict(run("a", **changes)) == words


def test_a_failed_gate_that_may_fail_is_named_beside_passed() -> None:
    record = run("a", gates={"coherence": "pass", "tool_call": "fail"})
    gates = [GateRecord(name="tool_call", status="fail", summary="no call", is_required=False)]

    assert gate_verdict(record, gates) == "Gate 0 passed (tool_call fail)"


def test_the_json_row_has_units_and_nulls(tmp_path: Path) -> None:
    row = json.loads(json.dumps(write(tmp_path, run("a"), {1: 31}).as_json()))

    (point,) = row["points"]
    assert point["output_tok_per_s"] == 31.0
    assert point["tpot_ms"]["p50"] is None
    assert point["batch_s"] == {"answers": 200, "seconds": pytest.approx(200 * 256 / 31), "kind": "derived"}


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (number(None), "–"),
        (number(float("inf")), "∞"),
        (seconds(51.2), "0.051"),
        (seconds(5123.0), "5.12"),
        (seconds(62500.0), "62.5"),
        (share(0.787), "79%"),
        (duration(41.2), "41 s"),
        (duration(576.0), "9.6 min"),
        (duration(17280.0), "4.8 h"),
        (duration(None), "–"),
    ],
)
def test_figures_are_written_by_their_size(got: str, expected: str) -> None:
    assert got == expected


def test_a_corrupt_gate_file_drops_itself_alone_and_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, run("a", gates={"coherence": "pass", "context": "pass"}), {1: 31})
    (tmp_path / "a" / "gates" / "context.json").write_text("{")
    (tmp_path / "a" / "sweeps" / "concurrency" / "closed-p128-o256-c2.json").write_text("[]")

    row = run_row(Store(tmp_path).find("a"))

    assert [g.name for g in row.gates] == ["coherence"]
    assert [w.split(": ")[0] for w in row.warnings] == [
        "a/gates/context.json",
        "a/sweeps/concurrency/closed-p128-o256-c2.json",
    ]
    for warning in row.warnings:
        assert warning in page([row])
        assert warning in report([row])


@pytest.mark.parametrize(
    ("gates", "tone"),
    [
        ({"coherence": "pass", "tool_call": "skip"}, "good"),
        ({"coherence": "pass", "tool_call": "fail"}, "warn"),
        ({"coherence": "unstable", "tool_call": "pass"}, "warn"),
        ({"coherence": "fail", "tool_call": "pass"}, "bad"),
        ({"coherence": "error", "tool_call": "pass"}, "bad"),
        ({}, "soft"),
    ],
)
def test_a_verdict_is_shown_as_good_only_where_every_gate_is(tmp_path: Path, gates: dict[str, str], tone: str) -> None:
    Store(tmp_path).new_run("a").write_gate(
        GateRecord(name="tool_call", status=gates.get("tool_call", "skip"), summary="seen", is_required=False)
    )

    (board,) = boards(tree([write(tmp_path, run("a", gates=gates), {1: 31})])).values()

    assert [cls for span in cells(board, "title of a")[-4].every("span") for cls in span.classes] == [tone]
