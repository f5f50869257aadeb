"""The pictures: what they are of, the figures in their data, the sentences beside them, and that each can be drawn."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from orchestrator.figures.cell import cell_figures
from orchestrator.records.record import CellRecord
from orchestrator.records.store import StoredCell, StoredRun
from orchestrator.report.charts.curves import LIMIT, loads, slug
from orchestrator.report.charts.export import slide_spec
from orchestrator.report.charts.palette import COLOURS, places, style_of
from orchestrator.report.notebook.book import Book, Chart
from orchestrator.report.notebook.curves import MOST_LOADS, all_charts, section
from orchestrator.report.notebook.page import page, script_json, vega_bundle
from orchestrator.report.raw import RawRecords
from orchestrator.report.tables import RunRow, point_row, run_row
from tests.unit.chart_records import CHAT, closed, opened, stamp, stated, swarm, tell, write
from tests.unit.test_report import run

HOSTILE = "</script><img src=x onerror=alert(1)> \" ' \\ ${7*7} \u2028 [datum.x] 日本 \ud800"
TOK = {"unit": "tok/s", "definition": "report/total"}


def book(*stored: StoredRun) -> Book:
    return Book(rows=tuple(run_row(s) for s in stored), raw=RawRecords.of(stored))


def by_id(charts: Sequence[Chart]) -> dict[str, Chart]:
    """By what they are of: for records with one load."""
    return {c.id.partition("-concurrency")[0].partition("-arrivals")[0].partition("-agents")[0]: c for c in charts}


def rows(chart: Chart, name: str) -> list[dict[str, Any]]:
    datasets: Any = chart.spec["datasets"]
    return list(datasets[name])


def one_point(folder: Path) -> list[StoredRun]:
    return [write(folder, "a", [closed(4, 80, 0.5)])]


def one_configuration(folder: Path) -> list[StoredRun]:
    return [
        write(folder, "a", [closed(u, 100 * u / (4 + u), 0.1 * u, cached_tok=64, slo=CHAT) for u in (1, 2, 4, 8, 16)])
    ]


def no_intervals(folder: Path) -> list[StoredRun]:
    return [
        write(folder, n, [closed(u, v * u, 0.5, repeats=(1.0,)) for u in (1, 2)]) for n, v in (("a", 20), ("b", 30))
    ]


def all_invalid(folder: Path) -> list[StoredRun]:
    return [write(folder, "a", [closed(u, 20 * u, 0.5, guard="client_lag") for u in (1, 2, 8)])]


def foreign(folder: Path) -> list[StoredRun]:
    cells = [
        stated(1, output_tok_per_s={"value": 31.0, **TOK}, per_user_tok_per_s={"value": 31.0, **TOK}),
        stated(2, output_tok_per_s={"low": 40.0, "high": 44.0, **TOK}, ttft_ms={"mean": 900, "unit": "ms"}),
        stated(4, output_tok_per_s={"not_measured": True, **TOK}, cached_share={"value": 0.0}),
        stated(8, output_tok_per_s={"mean": 89.8, "sd": 0.5, **TOK}, per_user_tok_per_s={"value": 11.2, **TOK}),
    ]
    return [write(folder, "a", cells, source={"tool": "transcript", "file": "x.yaml"}, gates={})]


def hostile(folder: Path) -> list[StoredRun]:
    cells = [closed(u, 20 * u, 0.5, workload=HOSTILE[:-1], guard=HOSTILE[:-1] if u == 4 else "") for u in (1, 2, 4)]
    changes: dict[str, Any] = {"hosts": ({"name": HOSTILE[:-1]},)}
    return [write(folder, n, cells, profile_title=HOSTILE[:-1], **changes) for n in ("a", "b")]


def clocks(folder: Path) -> list[StoredRun]:
    return [
        write(
            folder,
            "a",
            [*(opened(r, 0.3, w) for r, w in ((1, 0), (2, 0.5), (40, 9.5))), opened(1, 0.3, 0, cap=0, id="x")],
        )
    ]


def agents(folder: Path) -> list[StoredRun]:
    cells = [swarm(1, "single", 30, cached=1000), swarm(4, "cold", 40), swarm(4, "primed", 90, cached=975)]
    return [write(folder, "a", cells), write(folder, "b", [swarm(4, "primed", 60, cached=0)])]


def unlike_scales(folder: Path) -> list[StoredRun]:
    return [write(folder, "a", [closed(u, 20 * u, 0.02 if u == 1 else 9.0, slo=CHAT) for u in (1, 2, 64)])]


def empty_cells(folder: Path) -> list[StoredRun]:
    return [write(folder, "a", [closed(u, 20 * u, 0.5, repeats=(1.0,), rounds=1, failed=u) for u in (1, 2)])]


def told(folder: Path) -> list[StoredRun]:
    """Of two hosts and an engine."""
    stored = write(folder, "a", [closed(2, 20, 0.5, failed=1), closed(1, 20, 0.5)])
    for host in ("spark01", "spark02"):
        gpus = [{"utilization_percent": 90.0, "sm_clock_mhz": 2400, "power_w": 60.0}] * (1 if host == "spark01" else 2)
        tell(
            stored,
            [
                {"at": stamp(t), "where": host, "memory": {"available_bytes": 10**9 * t}, "gpus": gpus}
                for t in range(20)
            ],
        )
    tell(stored, [{"at": stamp(t), "where": "spark01:8000", "engine": {"running": 2, "waiting": t}} for t in range(20)])
    return [stored]


SHAPES: tuple[Callable[[Path], list[StoredRun]], ...] = (
    one_point,
    one_configuration,
    no_intervals,
    all_invalid,
    foreign,
    hostile,
    clocks,
    agents,
    unlike_scales,
    empty_cells,
    told,
)


@pytest.mark.parametrize("shape", SHAPES, ids=[s.__name__ for s in SHAPES])
def test_every_picture_of_every_kind_of_record_is_drawn_without_a_warning(
    shape: Callable[[Path], list[StoredRun]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = book(*shape(tmp_path))
    charts = all_charts(made)

    for chart in charts:
        vega = vl_convert.vegalite_to_vega(json.dumps(slide_spec(chart)), show_warnings=True)
        assert vl_convert.vega_to_svg(vega).startswith("<svg")
        assert chart.spec["width"] == "container"
        assert chart.text

    assert len({c.id for c in charts}) == len(charts)
    assert capfd.readouterr() == ("", "")
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,110}", c.id) for c in charts), "a name of a file, and an anchor"


def test_speed_is_the_total_above_and_each_users_below(tmp_path: Path) -> None:
    a = write(tmp_path, "a", [closed(u, v, 0.5) for u, v in ((1, 30), (8, 88))])

    chart = by_id(all_charts(book(a)))["speed"]

    assert [(r["x"], r["v"]) for r in rows(chart, "total")] == [(1, 30.0), (8, 88.0)]
    assert [(r["x"], r["v"]) for r in rows(chart, "each")] == [(1, 30.0), (8, 11.0)]
    low, high = rows(chart, "total")[0]["lo"], rows(chart, "total")[0]["hi"]
    half = 4.302653 * 0.3 / math.sqrt(3)
    assert (low, high) == (pytest.approx(30 - half, abs=1e-3), pytest.approx(30 + half, abs=1e-3))
    assert rows(chart, "total")[0]["w"] == "30.0 (29.3 to 30.7, 95 % interval)"
    assert chart.text == (
        "title of a: 30.0 tok/s with 1 user, 88.0 with 8 users (×2.93); each user gets 30.0, then 11.0 (37%)."
    )


def test_of_several_the_sentence_names_the_fastest_and_the_next(tmp_path: Path) -> None:
    made = [
        write(tmp_path, "a", [closed(u, 10 * u, 0.5) for u in (1, 2, 4)]),
        write(tmp_path, "b", [closed(u, 20 * u, 0.3, guard="client_lag" if u == 2 else "") for u in (1, 2, 4)]),
        write(tmp_path, "c", [closed(u, 30 * u, 0.2) for u in (1, 2)]),
    ]

    charts = by_id(all_charts(book(*made)))

    assert charts["speed"].text == (
        "At 4 users title of b is fastest: 80.0 tok/s together, 20.0 for each user; then title of a with 40.0. "
        "No valid figure there: title of c. 1 point broke a guard (client_lag): hollow and crossed."
    )
    assert charts["efficiency"].text == (
        "Of perfect scaling from one user, at 4 users: title of b 100%, title of a 100% (derived). "
        "1 point broke a guard (client_lag): hollow and crossed."
    )
    assert [(r["c"], r["x"], r["g"]) for r in rows(charts["speed"], "total") if "g" in r] == [(0, 2, "client_lag")]


def test_the_knee_is_marked_where_the_two_lines_meet(tmp_path: Path) -> None:
    rates = {1: 12, 2: 24, 4: 48, 8: 52, 16: 60}
    a = write(tmp_path, "a", [closed(u, v, 0.1) for u, v in rates.items()])

    chart = by_id(all_charts(book(a)))["speed"]

    (knee,) = rows(chart, "knee")
    assert (knee["c"], knee["x"]) == (0, 4)
    assert rows(chart, "knee_names") == [{"x": 4, "v": 0, "t": "knee 4"}]
    assert "Knee at 4 users: 12.0 tok/s more with each user before it, 1.00 after (derived)." in chart.text


def test_the_service_levels_line_has_its_name_and_a_far_one_is_said_only(tmp_path: Path) -> None:
    cells = [closed(u, 10 * u, 0.4 * u, rounds=100 // u, slo=CHAT) for u in (1, 4)]
    near = write(tmp_path, "a", cells)
    far = write(tmp_path / "far", "a", [closed(u, 10 * u, 0.1, slo={**CHAT, "ttft_s": 20.0}) for u in (1, 4)])

    charts = [by_id(all_charts(book(s)))["first-token"] for s in (near, far)]

    assert rows(charts[0], "slo") == [{"v": 1.0, "t": "chat: 95 % within 1 s"}]
    assert "title of a meets chat with 1 user, misses it with 4 users." in charts[0].text
    assert "slo" not in charts[1].spec["datasets"]  # type: ignore[operator]
    assert "Not drawn, far above: chat: 95 % within 20 s." in charts[1].text
    assert rows(charts[0], "ttft_p95") == [
        {"c": 0, "x": 1, "v": 0.4, "lo": 0.4, "hi": 0.4, "w": "0.400 (0.400 to 0.400, 95 % interval)"},
        {"c": 0, "x": 4, "v": 1.6, "lo": 1.6, "hi": 1.6, "w": "1.60 (1.60 to 1.60, 95 % interval)"},
    ]


def test_what_a_report_states_stands_as_its_word_a_range_at_its_middle_and_what_it_left_out_not_at_all(
    tmp_path: Path,
) -> None:
    charts = {c.id.split("-report")[0]: c for c in all_charts(book(*foreign(tmp_path)))}

    assert [(r["x"], r["v"], r.get("lo"), r.get("hi"), r["w"]) for r in rows(charts["speed"], "total")] == [
        (1, 31.0, None, None, "31.0"),
        (2, 42.0, 40.0, 44.0, "42.0 (40.0 to 44.0, range as stated, the point is its middle)"),
        (8, 89.8, 89.3, 90.3, "89.8 (89.3 to 90.3, ± 1 sd as stated)"),
    ]
    assert charts["speed"].text == (
        "title of a: 31.0 tok/s with 1 user, 89.8 with 8 users (×2.90); each user gets 31.0, then 11.2 (36%). "
        "Stated by others, not measured here: all."
    )
    assert [(r["x"], r["v"]) for r in rows(charts["efficiency"], "efficiency")] == [(1, 1.0), (2, 0.67742), (8, 0.3621)]
    common: Any = charts["speed"].spec["layer"]
    assert {"calculate": '"stated"', "as": "m"} in common[0]["layer"][0]["transform"]


def test_a_distribution_ends_below_all_when_some_failed(tmp_path: Path) -> None:
    a = write(tmp_path, "a", [closed(4, 40, 0.5, rounds=5, failed=6)])

    charts = by_id(all_charts(book(a)))

    assert [(r["x"], r["v"]) for r in rows(charts["ttft"], "ttft")][-1] == (0.5, 0.9)
    assert rows(charts["ttft"], "ttft_shares") == [{"c": 0, "x": 0.5, "v": 0.5}, {"c": 0, "x": 0.5, "v": 0.9}]
    assert charts["ttft"].title.endswith("first token, all requests with 4 users")
    assert charts["ttft"].text == (
        "title of a: half of first tokens within 0.50 s (n = 60). "
        "title of a: 6 of 60 failed and count as never, so its line ends below 100%."
    )


def test_an_open_load_shows_schedule_and_dispatch_in_one_picture(tmp_path: Path) -> None:
    a = write(tmp_path, "a", [opened(1, 0.3, 0.0), opened(2, 0.3, 0.5)])

    chart = by_id(all_charts(book(a)))["rate"]

    assert [(r["x"], r["v"]) for r in rows(chart, "p50")] == [(1, 0.3), (2, 0.8)]
    assert [(r["x"], r["v"], r["s"]) for r in rows(chart, "p50_sent")] == [(1, 0.3, 0.3), (2, 0.3, 0.8)]
    assert [(r["x"], r["v"]) for r in rows(chart, "p95")] == [(1, 0.3), (2, 0.8)]
    assert "p99" not in chart.spec["datasets"]  # type: ignore[operator]
    assert chart.text.startswith(
        "title of a at 2.00 requests/s: first token p50 0.80, p95 0.80 s from the schedule, p50 0.30 s from dispatch."
    )


def test_a_swarm_shows_what_was_read_again(tmp_path: Path) -> None:
    charts = by_id(all_charts(book(*agents(tmp_path))))

    again = {(r["c"], r["x"]): r["v"] for r in rows(charts["swarm"], "again")}

    assert again == {(0, "1 single"): 0, (0, "4 cold"): 800, (0, "4 primed"): 100, (1, "4 primed"): 4000}
    assert charts["swarm"].text == (
        "4 primed: title of a is fastest, 90.0 tok/s together, 100 shared tokens read again. "
        "4 cold: title of a, 40.0 tok/s together, 800 shared tokens read again. "
        "1 single: title of a, 30.0 tok/s together, 0 shared tokens read again."
    )


def test_a_picture_has_the_best_eight_and_what_they_extend_and_says_so(tmp_path: Path) -> None:
    stored = [
        write(
            tmp_path,
            f"r{i:02}",
            [closed(u, (40 - i) * u, 0.5, repeats=(1.0,)) for u in (1, 2)],
            lineage=("r11",) if i == 0 else (),
        )
        for i in range(12)
    ]

    (load,) = loads(book(*stored))

    assert [c.row.run.id for c in load.curves] == ["r00", "r01", "r02", "r03", "r04", "r05", "r06", "r11"]
    assert load.words == "Shown are 8 of 12 configurations: the best, and what they extend."
    assert len({c.style for c in load.curves}) == LIMIT


def test_a_configuration_looks_the_same_on_all_pictures(tmp_path: Path) -> None:
    cells = {n: [closed(u, v * u, 0.5, prompt_tok=p) for u in (1, 2) for p in sizes] for n, v, sizes in (
        ("a", 10, (100, 200)), ("b", 20, (100,)), ("c", 5, (200,)), ("d", 1, (200,)),
    )}  # fmt: skip
    found = loads(book(*(write(tmp_path, n, c) for n, c in cells.items())))

    styles: dict[str, set[str]] = {}
    for load in found:
        assert len({c.style.colour for c in load.curves}) == len(load.curves)
        for curve in load.curves:
            styles.setdefault(curve.label, set()).add(curve.style.colour)

    assert {label: len(colours) for label, colours in styles.items()} == {f"title of {n}": 1 for n in "abcd"}


def test_two_configurations_of_one_title_have_two_names(tmp_path: Path) -> None:
    cells = [closed(u, 10 * u, 0.5) for u in (1, 2)]
    stored = [
        write(tmp_path, n, cells, profile_title="same", hosts=({"name": host},)) for n, host in (("a", "x"), ("b", "y"))
    ]

    (load,) = loads(book(*stored))

    assert sorted(load.labels) == ["same (x)", "same (y)"]


def test_only_the_newest_run_of_a_configuration_is_drawn(tmp_path: Path) -> None:
    old = write(tmp_path, "a", [closed(u, 10 * u, 0.5) for u in (1, 2)], profile_digest="d", profile_name="p")
    new = write(
        tmp_path,
        "b",
        [closed(u, 30 * u, 0.5) for u in (1, 2)],
        profile_digest="d",
        profile_name="p",
        created_at="2026-11-30T09:00:00.000Z",
    )

    (load,) = loads(book(old, new))

    assert [c.row.run.id for c in load.curves] == ["b"]


def test_the_same_records_give_the_same_pictures(tmp_path: Path) -> None:
    stored = [*one_configuration(tmp_path / "a"), *clocks(tmp_path / "b")]

    first, second = (all_charts(book(*stored)) for _ in range(2))

    assert json.dumps([c.spec for c in first]) == json.dumps([c.spec for c in second])
    assert [(c.id, c.text) for c in first] == [(c.id, c.text) for c in second]


def test_hostile_names_stay_text_on_the_page(tmp_path: Path) -> None:
    made = book(*hostile(tmp_path))
    found = section(made)
    assert found is not None

    text = page(made, ("curves",)).replace(vega_bundle(), "")

    assert "<img" not in text
    assert "<" not in script_json({c.id: c.spec for c in found.charts})
    shown: Any = found.charts[0].spec["layer"]
    label = shown[0]["layer"][0]["encoding"]["color"]["legend"]["labelExpr"]
    assert json.loads(label.removesuffix("[datum.value]"))[0].startswith("</script><img")


class SameCells(RawRecords):
    """Any run has this cell."""

    def cell(self, run_id: str, cell: CellRecord) -> StoredCell | None:
        return KNOWN[cell.id]


KNOWN: dict[str, StoredCell] = {}


def test_two_hundred_configurations_of_fifty_cells_stay_small() -> None:
    sizes = [(p, u) for p in range(1000, 11000, 1000) for u in (1, 4, 8, 16, 32)]
    cells = [closed(u, 20 * u / (1 + u / 10), 0.2 * u, prompt_tok=p, rounds=3) for p, u in sizes]
    KNOWN.update({c.cell.id: c for c in cells})
    figures = [cell_figures(c.cell, c.requests) for c in cells]
    points = tuple(point_row(f, figures) for f in figures)
    made = tuple(
        RunRow(
            run=run(f"r{i:03}", profile_digest=f"d{i}", profile_title=f"Qwen3.8-27B NVFP4 + MTP2, variant {i}"),
            gates=(),
            points=points,
            verdict="",
        )
        for i in range(200)
    )

    found = section(Book(rows=made, raw=SameCells()))

    assert found is not None
    assert len(found.charts) == MOST_LOADS * 5 + 1, "and one timeline"
    assert len(script_json({c.id: c.spec for c in found.charts})) < 800_000
    assert all(len(json.dumps(c.spec)) < 30_000 for c in found.charts)


def test_loads_past_the_tenth_are_named_and_drawn_as_files_alone(tmp_path: Path) -> None:
    cells = [closed(u, 10 * u, 0.5, repeats=(1.0,), prompt_tok=p) for p in range(1, 13) for u in (1, 2)]
    made = book(write(tmp_path, "a", cells))

    found = section(made)

    assert found is not None
    assert len(found.data["left_out"]) == 2
    drawn = {c.id for c in found.charts}
    assert len([c for c in all_charts(made) if c.id not in drawn]) == 2 * 3


def test_records_without_pictures_have_no_section(tmp_path: Path) -> None:
    assert section(Book(rows=())) is None
    assert section(replace(book(*one_point(tmp_path)), raw=RawRecords())) is None


@pytest.mark.parametrize("background", ["#ffffff", "#14181b"])
def test_every_colour_stands_out_on_light_and_dark(background: str) -> None:
    for colour in COLOURS:
        light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, colour


SEEN = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.1523, 1.0526, -0.2049), (0.1145, 0.7863, 0.0992), (-0.0039, -0.0481, 1.0520)),
    "deuteranopia": ((0.3673, 0.8606, -0.2280), (0.2801, 0.6725, 0.0474), (-0.0118, 0.0429, 0.9689)),
    "tritanopia": ((1.2555, -0.0767, -0.1788), (-0.0784, 0.9308, 0.1476), (0.0047, 0.6914, 0.3039)),
}
"""On linear RGB, after Machado, Oliveira and Fernandes, 2009."""


@pytest.mark.parametrize("sight", SEEN)
def test_two_colours_are_never_alike(sight: str) -> None:
    for a, b in itertools.combinations(COLOURS, 2):
        assert math.dist(lab(a, sight), lab(b, sight)) >= 20, (a, b)


def test_past_the_eighth_a_colour_comes_with_another_dash_and_shape() -> None:
    first, ninth = style_of(0), style_of(len(COLOURS))

    assert first.colour == ninth.colour
    assert first.dash != ninth.dash
    assert first.shape != ninth.shape


def test_places_are_lowest_and_unlike_within_a_picture() -> None:
    assert places([["a", "b"], ["c"], ["b", "c", "d"]]) == {"a": 0, "b": 1, "c": 0, "d": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("concurrency, closed: 128 tokens in, 256 out", "concurrency-closed-128-tokens-in-256-out"),
        ("../../etc/passwd", "etc-passwd"),
        ("日本", "cf2abf"),
    ],
)
def test_a_title_is_a_name_of_a_file(text: str, expected: str) -> None:
    assert slug(text) == expected


def luminance(colour: str) -> float:
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    r, g, b = (min(1.0, max(0.0, sum(m * v for m, v in zip(row, linear(colour), strict=True)))) for row in SEEN[sight])
    x, y, z = (
        _curve(v)
        for v in (
            (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
            0.2126 * r + 0.7152 * g + 0.0722 * b,
            (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _curve(value: float) -> float:
    return float(value ** (1 / 3)) if value > 0.008856 else 7.787 * value + 16 / 116
