"""The judgement over counters alone, with the counters that real engines were seen to give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gates.prefix_cache import Series, judge, unit_of

CASES = sorted((Path(__file__).resolve().parents[1] / "cases" / "gates" / "prefix_cache_judge").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_counters_are_judged(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    series = [Series(**{k: tuple(v) if isinstance(v, list) else v for k, v in s.items()}) for s in case["series"]]

    verdict = judge(series, **case["options"])

    assert (verdict.status.value, verdict.summary) == (case["status"], verdict.summary)
    assert all(words in verdict.summary for words in case["summary_has"]), verdict.summary


@pytest.mark.parametrize(
    ("hits", "declared", "unit"),
    [
        ((), None, 1),
        ((), 16, 16),
        ((19999,), None, 1),
        ((16384,), None, 16384),
        ((2304, 2304), None, 256),
        ((16384, 12288), None, 4096),
        ((16384, 12288), 16, 4096),
        ((19999, 12999), 16, 16),
    ],
)
def test_unit_is_what_the_hits_share_or_the_engine_declares(
    hits: tuple[int, ...], declared: int | None, unit: int
) -> None:
    assert unit_of(hits, declared) == unit
