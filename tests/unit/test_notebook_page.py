"""The page as a whole: nothing in a record acts in it, nothing outside is needed, nothing is lost unscripted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orchestrator.figures.cell import cell_figures
from orchestrator.records.record import GateRecord
from orchestrator.report.notebook.book import Book, DatedNote
from orchestrator.report.notebook.page import page as notebook
from orchestrator.report.notebook.page import script_json, vega_bundle
from orchestrator.report.searches import SearchAnswer
from orchestrator.report.tables import RunRow, point_row
from tests.unit.figure_cases import cell_of
from tests.unit.notebook_pages import Element, page, parsed, tree
from tests.unit.test_report import run, write

EVIL = (
    '"><script>alert(1)</script><img src=x onerror=alert(2)>'
    "' onmouseover=alert(3) {{ 7 * 7 }} </script><!-- \u2028 &amp;"
)


def evil_row(**changes: Any) -> RunRow:
    """A record in which every text that can be anything is hostile."""
    host = {"name": EVIL, "before": {"kernel": EVIL, EVIL: EVIL, "gpus": [{"driver": EVIL}]}, "after": {"kernel": "x"}}
    record = run(
        EVIL,
        profile_name=EVIL,
        profile_title=EVIL,
        engine=EVIL,
        engine_version=EVIL,
        model=EVIL,
        served_name=EVIL,
        image=EVIL,
        image_digest=EVIL,
        hosts=(host,),
        status=EVIL,
        suite=EVIL,
        gates={EVIL: EVIL},
        command=(EVIL,),
        invocation=(EVIL,),
        profile={"note": EVIL},
        profile_source=EVIL,
        error={"message": EVIL, "hint": EVIL},
        added=({"words": [EVIL], "reason": EVIL},),
        memory_returned={EVIL: {}},
        **changes,
    )
    gate = GateRecord(
        name=EVIL,
        status=EVIL,
        summary=EVIL,
        hint=EVIL,
        measured={EVIL: EVIL, "list": [{EVIL: EVIL}]},
        params={EVIL: EVIL},
        evidence=(
            {
                "label": EVIL,
                "request": {"messages": [{"role": EVIL, "content": EVIL}], EVIL: EVIL},
                "reply": {"text": EVIL, "reasoning": EVIL, "error": EVIL, "logprobs": [{"token": EVIL}]},
            },
            {"request": {"messages": [{"role": EVIL, "content": EVIL}]}, "reply": {"logprobs": [{"token": "x"}]}},
        ),
    )
    raw = {
        "id": EVIL,
        "workload": EVIL,
        "vantage": EVIL,
        "guards": [{"name": EVIL, "message": EVIL}],
        "slo": {"name": EVIL, "ttft_s": 1.0},
        "source": {"tool": EVIL, "extra": {}},
        "stated": {
            "output_tok_per_s": {"value": 1, "unit": EVIL, "definition": EVIL, "place": EVIL},
            EVIL: {"value": 1, "unit": EVIL, "definition": EVIL, "place": EVIL, "note": EVIL, "basis": EVIL},
        },
    }
    figures = cell_figures(cell_of(raw), [])
    search = SearchAnswer(
        workload=EVIL,
        load={},
        over=EVIL,
        slo=EVIL,
        ended="x",
        best=1,
        missed=2,
        lowest=1,
        is_certain=True,
        notes=(EVIL,),
    )
    return RunRow(
        run=record,
        gates=(gate,),
        points=(point_row(figures, [figures]),),
        verdict=EVIL,
        searches=(search,),
        warnings=(EVIL,),
    )


SOURCE = {
    "tool": EVIL,
    "title": EVIL,
    "version": EVIL,
    "file": EVIL,
    "remark": EVIL,
    "gate": {"name": EVIL, "word": EVIL, "verdict": EVIL, "place": EVIL},
    "report": {EVIL: EVIL, "contradictions": [EVIL], "stated": {EVIL: {"value": 1, "note": EVIL}}},
    "stated": {EVIL: {"not_measured": True, "place": EVIL}},
}


@pytest.mark.parametrize("source", [{}, SOURCE], ids=["ours", "foreign"])
def test_a_hostile_record_stays_text_wherever_it_stands(source: dict[str, Any]) -> None:
    rows = [evil_row(source=source)]
    notes = [DatedNote(day="2026-11-30", title=EVIL, text=EVIL), DatedNote(day=EVIL, title=EVIL, text=f"`{EVIL}`")]

    root = tree(rows, warnings=[EVIL], notes=notes, record_links={EVIL: "a/b"})

    assert [s.attributes.get("id") for s in root.every("script")] == ["popovers", "charts", None]
    assert root.every("img") == []
    for element in root.every():
        assert not [name for name in element.attributes if name.startswith("on")]
        assert not element.attributes.get("href", "#").lower().startswith(("javascript:", "data:"))
    assert root.words.count("{{ 7 * 7 }}") > 40
    popover = next(iter(json.loads(root.the("script", id="popovers").text)["cells"].values()))
    assert popover[0] == EVIL


def test_ids_are_safe_and_no_two_are_alike_and_every_link_within_the_page_leads_somewhere(tmp_path: Path) -> None:
    rows = [evil_row(), write(tmp_path, run("a"), {1: 1, 8: 9}), write(tmp_path, run("b"), {1: 2}, kind="open")]

    root = tree(rows)
    ids = [e.attributes["id"] for e in root.every() if "id" in e.attributes]

    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[\w.-]+", i) for i in ids)
    links = {a.attributes["href"] for a in root.every("a")}
    assert {link for link in links if link.removeprefix("#") not in ids} == set()


def test_half_a_character_in_a_record_does_not_stop_the_page(tmp_path: Path) -> None:
    found = write(tmp_path, run("a"), {1: 1})

    text = page([replace(found, run=replace(found.run, profile_title="a\ud800b"))])

    assert "a?b" in text
    text.encode()


@pytest.mark.parametrize("value", ["</script>", "<!--", "\u2028\u2029", {"a": [1, None, "é"]}])
def test_json_in_a_script_element_reads_back_and_cannot_end_it(value: object) -> None:
    text = str(script_json(value))

    assert json.loads(text) == value
    assert "<" not in text
    assert "\u2028" not in text


def policy(root: Element) -> dict[str, set[str]]:
    meta = root.the("meta", http_equiv="Content-Security-Policy").attributes["content"]
    return {name: set(values) for name, *values in (part.split() for part in meta.split(";"))}


def test_the_policy_lets_nothing_in_from_outside_and_evaluates_no_text(tmp_path: Path) -> None:
    found = policy(tree([write(tmp_path, run("a"), {1: 1})]))

    assert found == {
        "default-src": {"'none'"},
        "style-src": {"'unsafe-inline'"},
        "script-src": {"'unsafe-inline'"},
        "img-src": {"data:", "blob:"},
        "connect-src": {"'none'"},
        "base-uri": {"'none'"},
        "form-action": {"'none'"},
    }


def test_the_page_needs_less_than_a_megabyte_and_a_half_before_data() -> None:
    empty = notebook(Book(rows=()), ())

    assert len(empty.encode()) + len(vega_bundle().encode()) < 1_500_000
    assert "No runs yet." in empty


def test_without_a_script_everything_is_open_and_what_needs_one_is_hidden(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("a", command=("docker run a",)), {1: 1}),
        write(tmp_path, run("b"), {1: 2}, workload="other"),
    ]

    root = tree(rows)

    hidden = [e for e in root.every() if "hidden" in e.attributes]
    assert {
        e.attributes.get("id") or e.attributes.get("data-copy") or e.attributes.get("data-fold") for e in hidden
    } == {
        "board-controls",
        "popover",
        "run-a-command-1",
        "open",
        "close",
    }
    closed = [d for d in root.every("details") if "open" not in d.attributes]
    assert {d.attributes["class"] for d in closed} <= {"long"}


def labelled(root: Element) -> Iterator[Element]:
    for label in root.every("label"):
        yield from (e for e in label.every() if e.tag in ("input", "select"))


def test_tables_regions_and_controls_have_names(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("a"), {1: 1, 8: 2}),
        write(tmp_path, run("b", engine="sglang"), {1: 2}, kind="swarm", variant="primed", prefix_tok=9),
        write(tmp_path, run("c", status="failed"), {}),
        evil_row(),
    ]

    root = tree(rows, notes=[DatedNote(day="2026-11-30", title="t", text="|a|\n|-|\n|b|")])

    assert root.the("html").attributes["lang"] == "en"
    for region in root.every(role="region"):
        assert region.attributes["aria-label"]
        assert region.attributes["tabindex"] == "0"
    for table in root.every("table"):
        assert all("scope" in th.attributes for th in table.every("th"))
    controls = [e for e in root.every() if e.tag in ("input", "select")]
    assert {id(c) for c in controls} == {id(c) for c in labelled(root)}
    levels = [int(e.tag[1]) for e in root.every() if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_index_leads_to_every_section(tmp_path: Path) -> None:
    root = tree([write(tmp_path, run("a"), {1: 1})])

    index = [a.attributes["href"] for a in root.the("nav").every("a")]
    assert index == [f"#{s.attributes['id']}" for s in root.every("section")]
    assert index == ["#configurations", "#details", "#log"]


def test_the_head_says_how_new_and_how_much(tmp_path: Path) -> None:
    rows = [write(tmp_path, run("a"), {1: 1, 8: 2}), write(tmp_path, run("b"), {1: 2})]

    assert "Newest record 2026-11-30 06:20 UTC · 2 configurations, 2 runs, 3 points" in tree(rows).the("header").words


@pytest.mark.parametrize("is_live", [True, False])
def test_only_a_live_page_reloads_itself(tmp_path: Path, is_live: bool) -> None:
    root = parsed(page([write(tmp_path, run("a"), {1: 1})], is_live=is_live))

    assert len(root.every("meta", http_equiv="refresh")) == is_live
