"""The judgement over counters alone, with the counters that real engines were seen to give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gates.prefix_cache import Series, bounds_of, judge, unit_of

CASES = sorted((Path(__file__).resolve().parents[1] / "cases" / "gates" / "prefix_cache_judge").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_counters_are_judged(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    series = [Series(**{k: tuple(v) if isinstance(v, list) else v for k, v in s.items()}) for s in case["series"]]

    verdict = judge(series, **case["options"])

    assert (verdict.status.value, verdict.summary) == (case["status"], verdict.summary)
    assert all(words in verdict.summary for words in case["summary_has"]), verdict.summary


@pytest.mark.parametrize(
    ("hits", "unit"),
    [((), 1), ((19999,), 1), ((16384,), 16384), ((2304, 2304), 256), ((16384, 12288), 4096), ((3840, 768), 768)],
)
def test_unit_is_what_the_hits_share(hits: tuple[int, ...], unit: int) -> None:
    assert unit_of(hits) == unit


@pytest.mark.parametrize(
    ("declared", "unit"),
    [(384, 384), (16, 768), (None, 768), (1024, 1024)],
    ids=["explains the hits", "too small", "unknown", "larger than shown"],
)
def test_declared_block_counts_where_it_explains_the_hits(declared: int | None, unit: int) -> None:
    series = [Series(prompt_tok=4050, cold=0, repeats=(3840,)), Series(prompt_tok=965, cold=0, repeats=(768,))]

    assert bounds_of(series, declared, head_tok=128, has_drop=False).unit_tok == unit
