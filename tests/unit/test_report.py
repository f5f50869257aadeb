"""Tables and page from records alone: what they say, and that nothing in a record can act on the page."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchestrator.records.record import CellRecord, GateRecord, RequestRecord, RunRecord
from orchestrator.records.store import Store
from orchestrator.report.html import page
from orchestrator.report.markdown import report
from orchestrator.report.tables import RunRow, gate_verdict, levels, run_row
from orchestrator.report.text import duration, number, seconds, share

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
            "id": f"closed-p128-o256-c{users}",
            "workload": "concurrency",
            "kind": "closed",
            "concurrency": users,
            "prompt_tok": 128,
            "output_tok": 256,
            "repeats": 1,
            "requests_per_repeat": 1,
            "digest": "d",
            "spans_ns": ((0, S),),
        }
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
        writer.write_cell(CellRecord(**{**values, **cell}), [request])  # type: ignore[arg-type]
    return run_row(Store(folder).find(str(folder / record.id)))


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

    assert levels(rows) == (1, 8)
    text = page(rows)
    assert '<span class="best" title="31.0 tok/s per user, first token 0.50 s, 1 requests">31.0</span>' in text
    assert '<span class="best" title="100.0 tok/s per user, first token 0.50 s, 1 requests">100.0</span>' in text
    assert "| title of a | vllm 0.31.0 | spark01 | 31.0 | 90.0 |" in report(rows)


def test_an_invalid_figure_is_struck_with_its_guard_and_never_the_best(tmp_path: Path) -> None:
    guard = {"name": "prompt_length", "message": "off by 12%"}
    rows = [write(tmp_path, run("a"), {1: 999}, guards=(guard,)), write(tmp_path, run("b"), {1: 30})]

    text = page(rows)

    assert "<s>999.0</s>" in text
    assert "prompt_length" in text
    assert 'class="best" title="30.0' in text
    assert "~~999.0~~ prompt_length" in report(rows)


def test_two_hosts_compete_in_no_single_host_column(tmp_path: Path) -> None:
    both = ({"name": "spark01"}, {"name": "spark02"})
    rows = [write(tmp_path, run("a", hosts=both), {1: 999}), write(tmp_path, run("b"), {1: 30})]

    assert 'class="best" title="30.0' in page(rows)


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

    seen = Seen(page([row], warnings=[evil]))

    assert "script" not in seen.tags
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
