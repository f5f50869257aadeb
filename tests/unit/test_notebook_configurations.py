"""The table of configurations: which runs stand in it, which columns it has, what is marked, what a figure tells."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.figures.cell import cell_figures
from orchestrator.records.record import RunRecord
from orchestrator.report.notebook.identity import configurations_of
from orchestrator.report.notebook.levels import headline_level, shown_levels
from orchestrator.report.series import series_of
from orchestrator.report.tables import PointRow, RunRow, point_row
from tests.unit.figure_cases import cell_of
from tests.unit.notebook_pages import Element, bests, boards, cells, heads, tree
from tests.unit.test_report import run, write


def row(record: RunRecord, *points: PointRow) -> RunRow:
    return RunRow(run=record, gates=(), points=points, verdict="Gate 0 passed")


def point(users: int, **changes: Any) -> PointRow:
    values = {"id": f"c{users}", "workload": "concurrency", "concurrency": users, **changes}
    figures = cell_figures(cell_of(values), [])
    return point_row(figures, [figures])


def stated(users: int, rate: float, **changes: Any) -> PointRow:
    return point(
        users,
        stated={"output_tok_per_s": {"value": rate, "unit": "tok/s", "definition": "report/x", "place": "table 1"}},
        source={"tool": "transcript/x", "extra": {}},
        vantage="unknown",
        **changes,
    )


def foreign(name: str, **changes: Any) -> RunRecord:
    source = {"tool": "transcript", "title": "a report", "version": "2026-10-06", "file": "a.yaml"}
    return run(name, **{"source": source, "status": "imported", "gates": {}, "suite": None, **changes})


def at(record: RunRecord, time: str, **changes: Any) -> RunRecord:
    return replace(record, id=f"{time}-{record.id}", created_at=f"2026-11-{time}T06:00:00.000Z", **changes)


def only(root: Element) -> Element:
    (board,) = boards(root).values()
    return board


def test_of_several_runs_of_one_configuration_the_newest_stands_and_the_older_can_be_reached(tmp_path: Path) -> None:
    rows = [write(tmp_path, at(run("a"), day), {1: rate}) for day, rate in (("28", 10), ("30", 30), ("29", 20))]

    root = tree(rows)
    line = cells(only(root), "title of a")

    assert len(only(root).every("tbody")[0].every("tr")) == 1
    assert line[1].words == "30.0 best"
    assert line[0].words == "title of a 2 earlier runs"
    older = root.the(id=line[0].the("a", cls="older").attributes["href"][1:])
    assert [d.every("summary")[0].words[:10] for d in older.every("details", cls="older")] == [
        "2026-11-29",
        "2026-11-28",
    ]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 1),
        ({"profile_digest": "other"}, 2),
        ({"engine_version": "0.29"}, 2),
        ({"image_digest": "sha256:1"}, 2),
        ({"hosts": ({"name": "spark02"},)}, 2),
        ({"source": {"title": "a report", "file": "a.yaml"}}, 2),
        ({"engine_version": None, "status": "failed"}, 1),
    ],
    ids=["same", "profile", "engine", "image", "host", "foreign", "failed-early"],
)
def test_another_profile_build_or_host_is_another_configuration(changes: dict[str, Any], count: int) -> None:
    rows = [row(at(run("a"), "28")), row(at(run("a"), "29", **changes))]

    assert len(configurations_of(rows)) == count


def test_configurations_that_read_the_same_are_told_apart_by_their_profile() -> None:
    rows = [row(at(run("a"), "28", profile_digest="abcdef123")), row(at(run("a"), "29", profile_digest="fedcba321"))]

    assert [c.name for c in configurations_of(rows)] == ["title of a [abcdef]", "title of a [fedcba]"]


def test_a_newer_run_that_has_not_this_load_leaves_the_older_ones_figures_standing(tmp_path: Path) -> None:
    rows = [write(tmp_path, at(run("a"), "28"), {1: 10}), write(tmp_path, at(run("a"), "29"), {1: 20}, prompt_tok=9)]

    found = boards(tree(rows))

    assert cells(found["concurrency, closed: 128 tokens in, 256 out"], "title of a")[1].words == "10.0 best"
    assert cells(found["concurrency, closed: 9 tokens in, 256 out"], "title of a")[1].words == "20.0 best"


@pytest.mark.parametrize(
    ("levels", "shown"),
    [
        ([1, 8, 32, 64], [1, 8, 32, 64]),
        ([1, 2, 4, 8, 16, 32, 64, 128], [1, 2, 4, 8, 16, 32, 64, 128]),
        ([1, 2, 3, 4, 5, 6, 8, 12, 16], [1, 2, 4, 8, 16]),
        ([1, 2, 4, 8, 16, 32, 64, 128, 256, 512], [1, 8, 16, 32, 64, 128, 256, 512]),
    ],
)
def test_many_levels_are_thinned_by_doubling(levels: list[int], shown: list[int]) -> None:
    (series,) = series_of([row(run("a"), *(point(c) for c in levels))])

    assert [level.users for level in shown_levels(series)] == shown


def test_of_a_doubling_the_level_that_most_runs_have_is_kept() -> None:
    many = [point(c) for c in (1, 2, 3, 4, 6, 8, 12, 16, 24)]
    (series,) = series_of([row(run("a"), *many), row(run("b"), point(6), point(12))])

    assert [level.users for level in shown_levels(series)] == [1, 2, 6, 12, 16]


def test_the_headline_level_is_the_highest_that_most_runs_have() -> None:
    rows = [row(run(n), point(8), point(32)) for n in "abc"] + [row(run("d"), point(8), point(64))]

    (series,) = series_of(rows)
    found = headline_level(series)

    assert found is not None
    assert found.users == 32


def test_the_load_that_most_configurations_have_comes_first_then_that_with_most_levels(tmp_path: Path) -> None:
    write(tmp_path, run("a"), {1: 1, 2: 2, 4: 3}, workload="alone")
    rows = [write(tmp_path, run("a"), {1: 1}), write(tmp_path, run("b"), {1: 1})]
    write(tmp_path, run("b"), {1: 1, 2: 2}, workload="short")

    root = tree([*rows[:1], write(tmp_path, run("b"), {1: 1})])

    assert [title.partition(",")[0] for title in boards(root)] == ["concurrency", "alone", "short"]
    options = root.the("select", id="choose-load").every("option")
    assert [o.words for o in options] == list(boards(root))
    assert [o.attributes["value"] for o in options] == [b.attributes["id"] for b in root.every(cls="board")]


def test_a_swarms_columns_are_its_agents_under_each_variant() -> None:
    fast, slow = (
        [stated(c, r, kind="swarm", variant=v, prefix_tok=54282, prompt_tok=0, output_tok=0) for v, c, r in points]
        for points in (
            [("single", 1, 14.1), ("primed", 8, 90.1), ("primed", 32, 203.4)],
            [("single", 1, 15.9), ("primed", 8, 80.5), ("primed", 32, 188.7), ("primed", 64, 267.2)],
        )
    )

    board = only(tree([row(foreign("slow"), *slow), row(foreign("fast"), *fast)]))

    assert heads(board)[1:5] == ["1 agent", "8 agents", "32 agents", "64 agents"]
    groups = board.every("tr", cls="groups")[0].every("th")
    assert [(g.words, g.attributes["colspan"]) for g in groups] == [
        ("tok/s, single", "1"),
        ("tok/s, primed", "3"),
        ("at 32 agents, primed", "1"),
    ]
    assert [r.every("th")[0].every("a")[0].words for r in board.every("tbody")[0].every("tr")] == [
        "title of fast",
        "title of slow",
    ]
    (sorted_by,) = [th for th in board.every("th") if "aria-sort" in th.attributes]
    assert (sorted_by.words, sorted_by.attributes["aria-sort"]) == ("32 agents", "descending")
    assert [f.words for f in cells(board, "title of slow")[1:5]] == [
        "15.9† best stated",
        "80.5†",
        "188.7†",
        "267.2† best stated",
    ]


def test_a_foreign_row_says_whose_it_is_and_never_competes_with_ours(tmp_path: Path) -> None:
    ours = write(tmp_path, run("ours"), {1: 30}, prompt_tok=100, output_tok=10)
    theirs = row(foreign("theirs"), stated(1, 90.5))

    board = only(tree([ours, theirs]))

    assert cells(board, "theirs")[0].words == "title of theirs not measured here: a report"
    marked = [f.the("a").classes - {"figure"} for f in (cells(board, "ours")[1], cells(board, "theirs")[1])]
    assert marked == [{"best"}, {"best", "stated"}]
    assert "† stated by another's report, not measured here." in board.words


@pytest.mark.parametrize(
    "changes",
    [
        {"hosts": ({"name": "a"}, {"name": "b"})},
        {"source": {"title": "a report", "gate": {"word": "varies", "verdict": "unstable"}}},
    ],
    ids=["two-hosts", "unstable"],
)
def test_a_stated_figure_of_two_hosts_or_of_doubtful_answers_is_not_marked(changes: dict[str, Any]) -> None:
    rows = [row(foreign("a", **changes), stated(1, 90)), row(foreign("b"), stated(1, 30))]

    assert bests(only(tree(rows)), "1 user") == ["title of b"]


def test_what_a_report_says_of_its_own_check_stands_in_the_gates_column() -> None:
    source = {"title": "a report", "gate": {"word": "varies run to run", "verdict": "unstable", "place": "t"}}

    board = only(tree([row(foreign("a", source=source), stated(1, 90))]))

    assert cells(board, "title of a")[-4].words == "its own check: varies run to run"


def test_a_figure_leads_to_its_detail_and_its_popover_to_the_raw_record(tmp_path: Path) -> None:
    rows = [write(tmp_path, run("a"), {1: 31})]

    root = tree(rows, record_links={"a": "../results/a"})
    figure = cells(only(root), "title of a")[1].the("a")
    said = json.loads(root.the("script", id="popovers").text)
    detail = figure.attributes["href"].removeprefix("#")
    title, cell, lines, notes, record = said["cells"][detail]

    assert (title, cell) == ("title of a", "concurrency/closed-p128-o256-c1")
    assert [td.words for td in root.the("tr", id=detail).every("td")][:3] == ["1", "31.0", "31.0"]
    assert record == "../results/a/sweeps/concurrency/closed-p128-o256-c1.json"
    assert lines[:3] == [
        ["all together", "31.0 tok/s", "", 1, "output_tok_over_run/v1", "measured"],
        ["per user", "31.0 tok/s", "", 1, "output_tok_over_e2e_median/v1", "measured"],
        ["first token p50", "500.0 ms", "", 1, "first_token_from_send/v1", "measured"],
    ]
    assert notes == ["client error unknown: not calibrated"]


def test_without_a_place_for_records_no_link_goes_there(tmp_path: Path) -> None:
    root = tree([write(tmp_path, run("a"), {1: 31})])

    assert [c[4] for c in json.loads(root.the("script", id="popovers").text)["cells"].values()] == [None]


def test_filters_offer_what_there_is_to_choose_from(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("a", engine="sglang", hosts=({"name": "x"}, {"name": "y"})), {1: 1}),
        write(tmp_path, run("b", gates={"coherence": "fail"}), {1: 1}),
    ]

    root = tree(rows)
    offered = {
        s.attributes["name"]: [o.attributes["value"] for o in s.every("option")]
        for s in root.the("form", id="board-controls").every("select")
    }

    assert offered == {
        "engine": ["", "sglang", "vllm"],
        "host": ["", "spark01", "x", "y"],
        "verdict": ["", "passed", "failed"],
    }
    lines = only(root).every("tbody")[0].every("tr")
    found = [[tr.attributes[f"data-{n}"] for n in ("engine", "host", "verdict")] for tr in lines]
    assert found == [["sglang", "x\ny", "passed"], ["vllm", "spark01", "failed"]]


def test_a_first_token_of_another_level_says_so_and_is_not_sorted_by(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("a"), {1: 1, 8: 9}),
        write(tmp_path, run("b"), {1: 1, 8: 9}),
        write(tmp_path, run("c"), {1: 1}),
    ]

    board = only(tree(rows))
    place = heads(board).index("First token (s)")
    own, other = cells(board, "title of a")[place], cells(board, "title of c")[place]

    assert (own.words, own.attributes["data-sort"]) == ("0.50 best", "500.0")
    assert (other.words, other.attributes.get("data-sort")) == ("0.50 at 1", None)


def test_loads_without_levels_stand_line_below_line(tmp_path: Path) -> None:
    rows = [write(tmp_path, run(n), {0: 5}, kind="open", rate_rps=2.0, burstiness=1.0) for n in "ab"]

    board = only(tree(rows))

    assert heads(board)[:2] == ["Configuration", "Asked (req/s)"]
    assert [r.every("th")[0].words for r in board.every("tbody")[0].every("tr")] == ["title of a", "title of b"]
    assert "data-popover" in cells(board, "title of a")[1].the("a").attributes
