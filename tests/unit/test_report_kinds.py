"""What the tables say of each kind of load: cases with right values worked out by hand, in every layout."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.printer import Printer
from orchestrator.cli.tables import WIDTH, show_points
from orchestrator.figures.cell import cell_figures
from orchestrator.records.store import Store, StoredCell
from orchestrator.report.blocks import Block, blocks, line_remarks
from orchestrator.report.cell_line import cell_words
from orchestrator.report.columns import Line
from orchestrator.report.layout import block_table
from orchestrator.report.markdown import report
from orchestrator.report.notes import error_bar
from orchestrator.report.series import series_of
from orchestrator.report.tables import PointRow, RunRow, point_row, run_row
from tests.unit.figure_cases import CASES as FIGURES
from tests.unit.figure_cases import cell_of, requests_of
from tests.unit.notebook_pages import page, parsed
from tests.unit.test_report import Seen, run

CASES = Path(__file__).parents[1] / "cases" / "report"
FILES = sorted(CASES.glob("*.json"))


def stored(case: dict[str, Any]) -> list[StoredCell]:
    """The case's cells; `from`: a figures' case, whose cell is changed by `cell`."""
    found = []
    for raw in case["cells"]:
        base = json.loads((FIGURES / "cells" / f"{raw['from']}.json").read_text()) if "from" in raw else {}
        cell = cell_of({**base.get("cell", {}), **raw.get("cell", {})})
        found.append(StoredCell(cell=cell, requests=tuple(requests_of(raw.get("requests", base.get("requests"))))))
    return found


def points_of(cells: list[StoredCell]) -> list[PointRow]:
    figures = [cell_figures(c.cell, c.requests) for c in cells]
    return [point_row(f, figures) for f in figures]


def load(path: Path) -> tuple[dict[str, Any], list[StoredCell], Block]:
    case = json.loads(path.read_text())
    cells = stored(case)
    (block,) = blocks(points_of(cells))
    return case, cells, block


def label(block: Block, line: Line) -> str:
    return " ".join(column.words(line) for column in block.lead)


def written(folder: Path, cells: list[StoredCell], events: list[dict[str, Any]] | None = None) -> RunRow:
    writer = Store(folder).new_run("a")
    writer.write_run(run("a"))
    for c in cells:
        writer.write_cell(c.cell, c.requests)
    for event in events or []:
        writer.append_event("search", event)
    return run_row(Store(folder).find("a"))


def terminal(points: list[PointRow]) -> str:
    out = io.StringIO()
    show_points(Printer(stdout=out), points)
    return out.getvalue()


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_line_has_the_fields_worked_out_by_hand(path: Path) -> None:
    case, _, block = load(path)
    columns = (*block.lead, *block.columns)

    shown = {label(block, line): {c.head: c.words(line) for c in columns} for line in block.lines}

    assert block.title == case["title"]
    for name, fields in case["rows"].items():
        assert {head: shown[name].get(head, "–") for head in fields} == fields


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_what_speaks_against_a_line_is_named(path: Path) -> None:
    case, _, block = load(path)
    lines = {label(block, line): line for line in block.lines}

    assert {name: list(lines[name].marks) for name in case.get("marks", {})} == case.get("marks", {})
    assert {name: list(lines[name].notes) for name in case.get("notes", {})} == case.get("notes", {})
    for name, remarks in case.get("remarks", {}).items():
        assert list(line_remarks(block, lines[name]))[: len(remarks)] == remarks


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_only_figures_of_a_cell_that_broke_a_guard_are_struck(path: Path) -> None:
    case, _, block = load(path)
    table = block_table(block)

    struck = {
        label(block, line): {h.text for f, h in zip(row.fields, table.head, strict=True) if f.is_struck}
        for line, row in zip(block.lines, table.rows, strict=True)
    }

    expected = {name: set(heads) for name, heads in case.get("struck", {}).items()}
    assert {name: heads for name, heads in struck.items() if heads or name in expected} == expected


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_every_layout_shows_every_field_and_note(path: Path, tmp_path: Path) -> None:
    case, cells, block = load(path)
    row = written(tmp_path, cells)
    markdown, seen, screen = report([row]), Seen(page([row])).text, terminal(list(row.points))

    for name, fields in case["rows"].items():
        line = next(x for x in block.lines if label(block, x) == name)
        narrow = {c.head: c.narrow_words(line) for c in block.columns}
        for head, words in fields.items():
            assert words in markdown
            assert words in seen
            assert narrow.get(head, "") in screen
        for note in (*line.notes, *line_remarks(block, line)):
            assert note.replace("<", "&lt;") in markdown
            assert note in seen
            assert note in screen or note.startswith("stamps ")
    assert f"\n{case['title']}\n" in screen
    assert f"## {case['title']}\n" in markdown
    assert f"<h4>{html.escape(case['title'])}</h4>" in page([row])


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_finished_cell_is_one_line_that_fits_its_kind(path: Path) -> None:
    case, cells, _ = load(path)

    words = {c.cell.id: cell_words(c) for c in cells if c.cell.id in case.get("words", {})}

    assert words == case.get("words", {})


def tables_in(screen: str) -> Iterator[str]:
    """Its lines but sentences: notes and what explains the figures may be longer."""
    for line in screen.splitlines():
        if "  " in line.strip() or line.startswith(" "):
            yield line.rstrip()


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_table_is_not_wider_than_the_terminal_and_cuts_nothing(path: Path) -> None:
    _, cells, block = load(path)

    screen = terminal(points_of(cells))

    assert max(len(line) for line in tables_in(screen)) <= WIDTH
    for line in block.lines:
        for column in block.columns:
            text = column.narrow_words(line)
            assert (f"~{text}~" if column.is_struck(line) and text != "–" else text) in screen


def test_what_people_waited_stands_before_the_queue_and_the_dispatch() -> None:
    _, cells, block = load(CASES / "open_capped.json")
    heads = [c.head for c in block.columns]

    order = [
        next(i for i, h in enumerate(heads) if h.startswith(w)) for w in ("TTFT from schedule", "queue", "TTFT from d")
    ]

    assert order == sorted(order)
    assert {c.head for c in block.columns if c.is_aside} == {h for h in heads if "dispatch" in h}
    assert all("dispatch" in c.short for c in block.columns if c.is_aside)
    assert "first token 0.20" not in cell_words(cells[0])


def test_an_open_loop_without_a_cap_has_no_queue_column() -> None:
    case = json.loads((CASES / "open_capped.json").read_text())
    case["cells"][0]["cell"]["concurrency"] = 0

    (block,) = blocks(points_of(stored(case)))

    assert not [c.head for c in block.columns if "queue at" in c.head]


def grid_cell(**changes: Any) -> StoredCell:
    cell = cell_of({"spans_ms": [(0, 1000)], **changes})
    return StoredCell(cell=cell, requests=tuple(requests_of([{"events": [[500, 2]], "end": 1000}])))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"depth_tok": 0}, {"depth_tok": 4096}),
        ({"load": {"thinking": True}}, {"load": {"thinking": False}}),
        ({"kind": "open", "burstiness": 1.0}, {"kind": "open", "burstiness": 0.5}),
        ({"kind": "swarm", "prefix_tok": 1000}, {"kind": "swarm", "prefix_tok": 2000}),
        ({"endpoint": "chat"}, {"endpoint": "completions"}),
    ],
    ids=["depth", "thinking", "burstiness", "prefix", "endpoint"],
)
def test_loads_that_differ_stand_in_tables_of_their_own(tmp_path: Path, a: Any, b: Any) -> None:
    row = written(tmp_path, [grid_cell(id="a", **a), grid_cell(id="b", **b)])

    assert [len(s.lines) for s in series_of([row])] == [1, 1]


def test_rates_and_agents_of_one_load_stand_below_each_other(tmp_path: Path) -> None:
    cells = [grid_cell(id=f"r{r}", kind="open", concurrency=0, rate_rps=r, burstiness=1.0) for r in (2.0, 0.5)]

    (series,) = series_of([written(tmp_path, cells)])

    assert [series.family.lead[0].words(line) for _, line in series.all_lines] == ["0.5", "2"]


SEARCH = {
    "workload": "w",
    "kind": "closed",
    "variant": "",
    "prompt_tok": 100,
    "output_tok": 10,
    "depth_tok": 0,
    "prefix_tok": 0,
    "slo": {"name": "chat", "ttft_s": 1.0, "share": 0.95},
    "over": "concurrency",
    "levels": [{"level": 8.0, "verdict": "met"}, {"level": 16.0, "verdict": "missed"}],
    "ended": "bracketed",
    "best": 11.0,
    "missed": 12.0,
    "is_certain": True,
    "notes": [],
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "met up to 11 users, missed at 12"),
        ({"over": "rate", "best": 2.83, "missed": 3.1}, "met up to 2.83 requests/s, missed at 3.1"),
        ({"ended": "all_met", "best": 16.0, "missed": None}, "met up to 16 users, the highest tried"),
        ({"ended": "none_met", "best": None, "missed": 8.0}, "not met even at 8 users"),
        ({"ended": "spoiled", "best": None, "missed": None}, "no answer, a level broke a guard"),
        (
            {"ended": "budget", "best": 8, "missed": None},
            "no answer, the budget ended (met up to 8 users so far)",
        ),
        ({"ended": None, "best": None, "missed": None}, "no answer"),
        (
            {"is_certain": False},
            "met up to 11 users, missed at 12 (undecided: the interval of a level next to it encloses the share)",
        ),
    ],
    ids=["bracketed", "rate", "all", "none", "spoiled", "stopped", "budget", "uncertain"],
)
def test_the_answer_of_a_search_stands_with_its_table(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    newest = {**SEARCH, **changes}
    row = written(tmp_path, [grid_cell(id="c")], [{**newest, "ended": "bracketed", "best": 3.0}, newest])
    said = f"search for chat (95 % first token within 1 s): {words}"

    (series,) = series_of([row])

    assert [s.answer for line in series.lines for s in line.searches] == [words]
    assert f"- {said}\n" in report([row])
    assert f'<p class="answer">{said}</p>' in page([row])
    assert f"| {words} |" in report([row])
    assert row.as_json()["searches"][0]["best"] == newest["best"]  # type: ignore[index,call-overload]
    out = io.StringIO()
    show_points(Printer(stdout=out), row.points, row.searches)
    assert said in out.getvalue()


def test_a_search_whose_levels_cannot_be_read_is_said_all_the_same(tmp_path: Path) -> None:
    row = written(tmp_path, [grid_cell(id="c", workload="other")], [SEARCH])

    assert "- w: search for chat (95 % first token within 1 s): met up to 11 users, missed at 12" in report([row])
    assert "w: search for chat (95 % first token within 1 s): met up to 11 users, missed at 12" in page([row])


def test_a_broken_line_of_the_events_is_passed_over(tmp_path: Path) -> None:
    row = written(tmp_path, [], [SEARCH])
    file = tmp_path / "a" / "events.jsonl"
    file.write_text("{\n[1]\n\xff\n" + file.read_text(), encoding="latin-1")

    assert [s.best for s in run_row(Store(tmp_path).find("a")).searches] == [11.0] == [s.best for s in row.searches]


def test_where_more_users_bring_no_more_tokens_is_said(tmp_path: Path) -> None:
    rates = {1: 10, 2: 20, 4: 40, 8: 44, 16: 52}
    cells = [
        StoredCell(
            cell=cell_of({"id": f"c{c}", "concurrency": c, "spans_ms": [(0, 1000)]}),
            requests=tuple(requests_of([{"events": [[500, rate]], "end": 1000}])),
        )
        for c, rate in rates.items()
    ]

    row = written(tmp_path, cells)

    said = "knee at 4 users: 10.0 tok/s for each user more before it, 1.0 after (derived: two joined lines)"
    assert f"- {said}\n" in report([row])
    assert said in terminal(list(row.points))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "client error unknown: not calibrated"),
        (
            {"at": "2026-11-29T10:00:00Z", "concurrency": 32, "ttft_error_ms": {"mean": 0.28, "p95": 0.81}},
            "client error 0.3 ms (p95 0.8) at 32 streams, calibrated 2026-11-29",
        ),
        (
            {"at": "2026-11-29T10:00:00Z", "concurrency": 1, "ttft_error_ms": {"mean": 0.28, "p95": None}},
            "client error 0.3 ms at 1 stream, calibrated 2026-11-29",
        ),
    ],
)
def test_the_error_bar_says_where_and_when_it_was_measured(told: dict[str, Any], words: str) -> None:
    assert error_bar(cell_of({"client_error": told})) == words


def test_hostile_text_in_a_cell_stays_text(tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script> | {{ 7 * 7 }}'
    guard = {"name": evil, "message": evil}
    lanes = [{"name": evil, "concurrency": 1}]
    cells = [
        grid_cell(id="a", workload=evil, guards=[guard], slo={"name": evil, "ttft_s": 1.0}),
        StoredCell(
            cell=cell_of({"id": "b", "kind": "mixed", "variant": "together", "load": {"lanes": lanes}}),
            requests=tuple(requests_of([{"lane": evil, "events": [[500, 2]], "end": 1000}])),
        ),
        grid_cell(id="c", kind="replay", load={"file": evil}),
    ]

    row = written(tmp_path, cells, [{**SEARCH, "workload": evil, "notes": [evil]}])

    seen = Seen(page([row]))
    assert [s.attributes.get("id") for s in parsed(page([row])).every("script")] == ["popovers", "charts", None]
    assert "{{ 7 * 7 }}" in seen.text
    lines = [line for line in report([row]).splitlines() if "alert(1)" in line]
    assert lines
    assert not any("<script" in line for line in lines)
    for line in report([row]).splitlines():
        if line.startswith("|") and "alert(1)" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", _head_of(report([row]), line)))


def _head_of(text: str, line: str) -> str:
    """The rule of dashes of the table that a line stands in."""
    before = text[: text.index(line)].splitlines()
    return next(b for b in reversed(before) if b.startswith("| ---"))
