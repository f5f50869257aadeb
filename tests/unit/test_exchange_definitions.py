"""Which figures may be compared: the same formula, the same load, the same place, or a reason why not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.records.exchange.definitions import MEANINGS, comparable, definition_of
from orchestrator.records.exchange.importing import read_file
from orchestrator.records.record import CellRecord

CASES = Path(__file__).parents[1] / "cases" / "exchange"
OURS = CellRecord(
    id="ours",
    workload="chat",
    kind="closed",
    concurrency=8,
    prompt_tok=1024,
    output_tok=512,
    repeats=3,
    requests_per_repeat=8,
    digest="d",
    definitions={"ttft": "first token - first byte sent"},
)
THEIRS = replace(
    OURS,
    id="theirs",
    vantage="unknown",
    source={"tool": "vllm"},
    stated={"ttft_ms": {"p50": 1.0, "unit": "ms", "definition": "vllm/ttft"}},
    definitions={"ttft_ms": "vllm/ttft"},
)


def changed(cell: CellRecord, **changes: Any) -> CellRecord:
    return replace(cell, **changes)


@pytest.mark.parametrize(
    ("other", "figure", "force", "reason"),
    [
        (OURS, "ttft_ms", False, None),
        (OURS, "output_tok_per_s", False, None),
        (THEIRS, "ttft_ms", False, "other definitions of ttft_ms: first token - first byte sent and vllm/ttft"),
        (THEIRS, "ttft_ms", True, None),
        (THEIRS, "itl_ms", False, "theirs has no itl_ms"),
        (THEIRS, "itl_ms", True, "theirs has no itl_ms"),
        (changed(OURS, vantage="tunnel"), "ttft_ms", False, "load from other places: local and tunnel"),
        (changed(OURS, vantage="tunnel"), "ttft_ms", True, None),
        (changed(OURS, concurrency=4), "ttft_ms", False, "another load: concurrency 8 and 4"),
        (changed(OURS, output_tok=64), "ttft_ms", True, "another load: output_tok 512 and 64"),
        (changed(OURS, kind="batch"), "ttft_ms", False, "another load: kind closed and batch"),
        (changed(OURS, rate_rps=2.0), "ttft_ms", False, "another load: rate None and 2.0"),
        (
            changed(OURS, id="late", guards=({"name": "client_lag", "message": "m"},)),
            "ttft_ms",
            True,
            "late is invalid: client_lag broken",
        ),
        (
            changed(OURS, definitions={"ttft": "first token - scheduled"}),
            "ttft_ms",
            False,
            "other definitions of ttft_ms: first token - first byte sent and first token - scheduled",
        ),
    ],
)
def test_a_comparison_is_allowed_or_refused_with_its_reason(
    other: CellRecord, figure: str, force: bool, reason: str | None
) -> None:
    assert comparable(OURS, other, figure, force=force) == reason


def test_two_records_of_one_tool_may_be_compared() -> None:
    assert comparable(THEIRS, changed(THEIRS, id="later"), "ttft_ms") is None


@pytest.mark.parametrize(
    ("cell", "figure", "tag"),
    [
        (OURS, "ttft_ms", "first token - first byte sent"),
        (OURS, "output_tok_per_s", "gate0/output_tok_per_s"),
        (THEIRS, "ttft_ms", "vllm/ttft"),
        (THEIRS, "output_tok_per_s", None),
        (changed(THEIRS, definitions={"itl": "aiperf/inter_chunk_latency"}), "itl_ms", "aiperf/inter_chunk_latency"),
    ],
)
def test_a_figure_has_the_tag_of_its_formula(cell: CellRecord, figure: str, tag: str | None) -> None:
    assert definition_of(cell, figure) == tag


def test_every_tag_that_is_explained_is_one_that_an_importer_gives() -> None:
    given = set()
    for case in json.loads((CASES / "cases.json").read_text()):
        for name in case["files"]:
            for point in read_file(CASES / name).content.points:
                given |= set(point.cell.definitions.values())

    assert sorted(set(MEANINGS) - given) == []
