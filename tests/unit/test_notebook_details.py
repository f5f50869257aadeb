"""The details of a configuration: evidence that can be judged by eye, where the figures come from, what changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.records.record import GateRecord
from orchestrator.records.store import Store
from orchestrator.report.markdown import report
from orchestrator.report.notebook.evidence import first_difference, gate_evidence
from orchestrator.report.notebook.provenance import host_facts, provenance
from orchestrator.report.notebook.told import figure_words, stated_lines
from orchestrator.report.tables import RunRow, run_row
from tests.unit.notebook_pages import tree
from tests.unit.test_notebook_configurations import foreign, point, row
from tests.unit.test_report import run, write


def token(word: str, logprob: float, **top: float) -> dict[str, Any]:
    return {"token": word, "logprob": logprob, "top": [[k, v] for k, v in top.items()]}


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([token("a", -0.1)], [token("a", -0.1)], "first 1 tokens the same"),
        ([token("a", -0.1)], [token("b", -0.3)], "token 1: 'b', first 'a', margin unknown"),
        (
            [token("x", -0.1), token("a", -0.5, a=-0.5, b=-0.75)],
            [token("x", -0.1), token("b", -0.5, b=-0.5, a=-0.6)],
            "token 2: 'b', first 'a', margin 0.100 nats",
        ),
        ([], [token("a", -0.1)], ""),
    ],
    ids=["same", "no-alternatives", "near-tie", "no-logprobs"],
)
def test_the_first_differing_token_and_its_margin(a: Any, b: Any, words: str) -> None:
    assert first_difference(a, b) == words


def exchange(
    label: str, prompt: str | Mapping[str, Any], text: str, cached: int, tokens: list[Any], **request: Any
) -> dict[str, Any]:
    return {
        "label": label,
        "request": {"messages": [{"role": "user", "content": prompt}], "max_tokens": 8, **request},
        "reply": {"http_status": 200, "text": text, "usage": {"cached_tok": cached}, "logprobs": tokens},
    }


GATE = GateRecord(
    name="determinism",
    status="unstable",
    summary="near-tie",
    measured={"prompts": [{"kind": "near-tie", "margin": 0.1}], "largest_shift_nats": 0.25},
    evidence=(
        exchange("cold 1", "What?", "a b", 0, [token("a", -0.5, a=-0.5, b=-0.6)], cache_prompt=False),
        exchange("warm 1", "What?", "b b", 64, [token("b", -0.5, b=-0.5, a=-0.6)]),
        exchange("other", "Who?", "c", 0, [token("c", -0.5)]),
    ),
)


def test_evidence_says_what_was_sent_what_came_back_and_where_it_first_differs() -> None:
    found = gate_evidence(GATE)

    assert found.head == ("Cached (tok)",)
    assert [(x.label, x.sent.head, x.came.head, x.figures, x.against) for x in found.exchanges] == [
        ("cold 1", "What?", "a b", ("0",), ""),
        ("warm 1", "as cold 1, without cache_prompt=no", "b b", ("64",), "token 1: 'b', first 'a', margin 0.100 nats"),
        ("other", "Who?", "c", ("0",), ""),
    ]
    assert found.measured == (("largest_shift_nats", "0.25"),)
    assert [(t.title, t.head, t.rows) for t in found.tables] == [
        ("prompts", ("kind", "margin"), (("near-tie", "0.1"),))
    ]


def test_a_long_prompt_shows_its_head_and_opens_whole() -> None:
    kept = {"sha256": "s", "chars": 9000, "head": "word " * 80, "tail": "the end"}
    gate = GateRecord(
        name="g",
        status="pass",
        summary="",
        evidence=(exchange("cold", kept, "a", 0, []),),
    )

    (found,) = gate_evidence(gate).exchanges

    assert found.sent.head.endswith(" word …")
    assert len(found.sent.head) <= 92
    assert "[… 9000 characters in all …]\nthe end" in found.sent.whole
    assert found.sent.whole.endswith("max_tokens: 8")


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"label": 3, "request": None, "reply": "x"},
        {"label": "l", "request": {"messages": "x", "prompt": {"a": [1]}}, "reply": {"text": ["a"], "usage": 3}},
        {"label": "l", "reply": {"logprobs": [1, {"token": 1}], "tool_calls": [{"name": "f"}], "error": "refused"}},
    ],
    ids=["empty", "nothing", "odd", "half"],
)
def test_evidence_of_another_gates_shape_is_shown_all_the_same(evidence: dict[str, Any]) -> None:
    found = gate_evidence(GateRecord(name="g", status="pass", summary="", evidence=(evidence, evidence)))

    assert len(found.exchanges) == 2


HOST: dict[str, Any] = {
    "name": "spark01",
    "before": {
        "host": "spark01",
        "home": "/home/me",
        "read_at": "1",
        "kernel": "6.11",
        "memory": {"available_bytes": 8 << 30},
        "disk_free_bytes": {"/home/me": 1 << 30},
        "gpus": [{"driver": "580.1", "temperature_c": 40.0}],
        "watchdogs": [],
    },
    "after": {
        "host": "spark01",
        "home": "/home/me",
        "read_at": "2",
        "kernel": "6.11",
        "memory": {"available_bytes": 7 << 30},
        "disk_free_bytes": {"/home/me": 1 << 30},
        "gpus": [{"driver": "580.1", "temperature_c": 71.5}],
        "watchdogs": [],
    },
}


def test_what_changed_of_a_host_stands_apart_and_its_home_is_not_told() -> None:
    (found,) = host_facts(row(run("a", hosts=(HOST,))))

    assert [(f.name, f.before, f.after) for f in found.changed] == [
        ("memory.available_bytes", "8.00 GiB", "7.00 GiB"),
        ("gpus.0.temperature_c", "40", "71.5"),
    ]
    assert [f.name for f in found.same] == ["kernel", "disk_free_bytes.~", "gpus.0.driver"]


def test_provenance_names_image_driver_kernel_client_and_the_time_as_measured(tmp_path: Path) -> None:
    other = {**HOST, "name": "spark02", "before": {**HOST["before"], "kernel": "6.14"}}
    record = run(
        "a",
        hosts=(HOST, other),
        image="vllm/vllm-openai:v0.31.0",
        image_digest="sha256:abc",
        duration_s=576.0,
        attempts=2,
        tool_version="0.1.0",
        git_revision="abc",
        memory_returned={"spark01": {"returned_bytes": 3 << 29, "missing_bytes": 1 << 30}},
        added=({"words": ["--metrics"], "reason": "counters"},),
    )

    found = dict(provenance(write(tmp_path, record, {1: 31})))

    assert {k: found[k] for k in ("Image", "Digest", "Driver", "Kernel", "Client error", "Wall time", "Tool")} == {
        "Image": "vllm/vllm-openai:v0.31.0",
        "Digest": "sha256:abc",
        "Driver": "580.1",
        "Kernel": "6.11 (spark01), 6.14 (spark02)",
        "Client error": "client error unknown: not calibrated",
        "Wall time": "9.6 min (measured, over 2 attempts)",
        "Tool": "gate0 0.1.0, revision abc",
    }
    assert found["Memory given back"] == "spark01: 1.50 GiB, 1.00 GiB missing"
    assert found["Added by gate0"] == "--metrics (counters)"


def written(folder: Path, **changes: Any) -> RunRow:
    writer = Store(folder).new_run("a")
    writer.write_run(run("a", gates={"determinism": "unstable"}, **changes))
    writer.write_gate(GATE)
    return run_row(Store(folder).find("a"))


def test_the_command_and_the_profile_can_be_copied(tmp_path: Path) -> None:
    lines = ("docker run -d a", "docker run -d b")
    root = tree([written(tmp_path, command=lines, profile_source="name: a\nimage: <b>\n")])

    copied = {
        b.attributes["aria-label"]: root.the(id=b.attributes["data-copy"]).text
        for b in root.every("button")
        if "data-copy" in b.attributes
    }

    assert copied == {
        "Copy: Command of rank 0": "docker run -d a",
        "Copy: Command of rank 1": "docker run -d b",
        "Copy: Profile as written": "name: a\nimage: <b>\n",
    }


def test_a_gate_shows_its_verdict_first_and_its_evidence_below(tmp_path: Path) -> None:
    gate = tree([written(tmp_path)]).the("details", cls="gate")

    assert gate.every("summary")[0].words == "determinism unstable near-tie"
    table = gate.the("table", cls="exchanges")
    assert [th.words for th in table.every("thead")[0].every("th")] == [
        "Request",
        "Sent",
        "Came back",
        "Cached (tok)",
        "Against the first",
    ]
    assert "token 1: 'b', first 'a', margin 0.100 nats" in table.words


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ({"value": 203.4, "unit": "tok/s"}, "203.4 tok/s"),
        (
            {"mean": 1370, "sd": 520, "unit": "ms", "printed": {"mean": "1.37", "sd": "0.52", "unit": "s"}},
            "1.37 ± 0.52 s",
        ),
        ({"low": 25, "high": 28, "unit": "tok/s"}, "25-28 tok/s"),
        ({"value": 22, "about": True, "unit": "tok/s"}, "~22 tok/s"),
        ({"high": 63000, "unit": "ms", "printed": {"high": "63", "unit": "s"}}, "up to 63 s"),
        ({"value": 3, "of": 8, "unit": ""}, "3 of 8"),
        ({"p50": 10, "p95": 20, "p99": 30, "unit": "ms"}, "10, p95 20, p99 30 ms"),
        ({"value": 0.992, "unit": "", "printed": {"value": "99.2", "unit": "%"}}, "99.2%"),
        ({"not_measured": True}, "not measured"),
    ],
    ids=["value", "spread", "range", "about", "most", "of", "percentiles", "share", "not-measured"],
)
def test_a_stated_figure_reads_as_it_was_printed(figure: dict[str, Any], words: str) -> None:
    assert figure_words(figure) == words


def test_every_value_that_a_report_gives_is_listed_with_its_place() -> None:
    also = {"value": 39, "unit": "tok/s", "definition": "report/y", "place": "note", "about": True, "note": "first run"}
    first = {"value": 29.4, "unit": "tok/s", "definition": "report/x", "place": "table 1"}
    own = point(1, source={"tool": "t", "extra": {}}, stated={"output_tok_per_s": {**first, "also": [also]}})
    projected = {"batch": {"value": 534, "unit": "tok/s", "basis": "projected", "place": "text"}}
    record = foreign("a", source={"title": "a report", "stated": projected})

    lines = stated_lines(row(record, own))

    assert lines == [
        ["concurrency/c1", "output_tok_per_s", "29.4 tok/s", "stated", "report/x", "table 1", ""],
        ["concurrency/c1", "output_tok_per_s (also)", "~39 tok/s", "stated", "report/y", "note", "first run"],
        ["configuration", "batch", "534 tok/s", "projected", "", "text", ""],
    ]


HOSTILE = "<script>alert(1)</script>"
EFFECTIVE: dict[str, Any] = {
    "compared": (
        {"path": "served_name", "declared": "m", "agreement": "same", "running": "m", "source": "/v1/models"},
        {
            "path": f"flags.{HOSTILE}",
            "declared": True,
            "agreement": "ignored",
            "quote": f"{HOSTILE} | is inert",
        },
    ),
    "readings": ({"name": "backend", "value": HOSTILE, "source": "log"},),
    "catalogue": {"engine": "vllm", "version": "0.31.0", "note": "nearest lower"},
}


def test_declared_and_running_stand_side_by_side_and_nothing_of_them_is_markup(tmp_path: Path) -> None:
    page = tree([write(tmp_path, run("a", effective=EFFECTIVE), {1: 100})])

    (table,) = [t for t in page.every("table") if "Agreement" in t.words]
    assert [[c.words for c in line.every("th") + line.every("td")] for line in table.every("tr")[1:]] == [
        [f"flags.{HOSTILE}", "on", "–", "ignored", ""],
        [f"{HOSTILE} | is inert"],
        ["served_name", "m", "m", "same", "/v1/models"],
    ]
    assert [e.words for e in table.every("span")] == ["ignored", "same"]
    assert "Declared and running: 1 ignored, 1 same" in page.words
    assert "compared by the flags of vllm 0.31.0 (nearest lower)" in page.words
    assert not any(e.text == "alert(1)" for e in page.every("script"))


def test_a_run_of_which_nothing_was_read_has_no_such_table(tmp_path: Path) -> None:
    assert "Declared and running" not in tree([write(tmp_path, run("a"), {1: 100})]).words


def test_markdown_and_json_hold_the_comparison_too(tmp_path: Path) -> None:
    found = write(tmp_path, run("a", effective=EFFECTIVE), {1: 100})

    text = report([found])
    assert "### Declared and running: 1 ignored, 1 same" in text
    assert "| flags.&lt;script>alert(1)&lt;/script> | on | – | ignored |  | &lt;script>" in text
    assert "\\| is inert |" in text
    assert found.as_json()["effective"] == list(EFFECTIVE["compared"])


def test_the_rows_of_the_gates_evidence_are_no_exchanges() -> None:
    gate = GateRecord(name="effective", status="pass", summary="", evidence=(*EFFECTIVE["compared"], *GATE.evidence))

    assert [x.label for x in gate_evidence(gate).exchanges] == ["cold 1", "warm 1", "other"]
