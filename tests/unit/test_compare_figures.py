"""One figure of two cells: what it is by repeat, its change with the interval worked out by hand, and its verdict."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.figures.cell import cell_figures
from orchestrator.figures.change import Form, change_of
from orchestrator.figures.definitions import definitions
from orchestrator.figures.samples import Sample, cell_samples, slope_sample
from orchestrator.records.exchange.definitions import definition_of
from orchestrator.report.figure_change import FigureChange, Verdict, figure_change
from orchestrator.report.headlines import HEADLINES, Headline, find_headlines
from tests.unit.figure_cases import cell_of, requests_of
from tests.unit.test_report_kinds import stored

CASES = Path(__file__).parents[1] / "cases" / "compare"
CHANGES = json.loads((CASES / "changes.json").read_text())
VERDICTS = json.loads((CASES / "verdicts.json").read_text())
SAMPLES = json.loads((CASES / "samples.json").read_text())
FIGURES = {"ttft_p50": "ttft_ms", "ttft_p95": "ttft_ms", "tpot_p50": "tpot_ms", "attainment": "goodput"}
OPPOSITE = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


def names(case: dict[str, Any]) -> str:
    return str(case["name"]).replace(" ", "-")


def number(value: float | str) -> float:
    return math.inf if value == "inf" else float(value)


def sample(raw: dict[str, Any] | None, key: str = "output_tok_per_s") -> Sample | None:
    if raw is None:
        return None
    values = tuple(number(v) for v in raw.get("values", ()))
    return Sample(**{"key": key, "figure": FIGURES.get(key, key), **raw, "values": values})


def headline(key: str) -> Headline:
    (found,) = (h for h in HEADLINES if h.key == key)
    return found


def judged(case: dict[str, Any], *, is_swapped: bool = False) -> FigureChange:
    sides = [(cell_of(case.get(f"cell_{s}", {})), sample(case[s], case["figure"])) for s in ("a", "b")]
    (cell_a, of_a), (cell_b, of_b) = reversed(sides) if is_swapped else sides
    return figure_change(cell_a, cell_b, headline(case["figure"]), of_a, of_b, force=case.get("force", False))


@pytest.mark.parametrize("case", CHANGES, ids=names)
def test_a_change_has_the_value_and_the_interval_of_its_formula(case: dict[str, Any]) -> None:
    a, b = sample(case["a"]), sample(case["b"])
    assert a is not None
    assert b is not None

    found = change_of(a, b, is_share=case.get("is_share", False))

    if case["form"] is None:
        assert found is None
        return
    assert found is not None
    assert found.form.value == case["form"]
    assert found.value == pytest.approx(number(case["value"]), rel=1e-6)
    if case["interval"] is None:
        assert found.interval is None
    else:
        assert found.interval is not None
        ends = [number(v) for v in case["interval"]]
        assert [found.interval.low, found.interval.high] == pytest.approx(ends, rel=1e-6)
    if "means" in case:
        assert [found.a, found.b] == pytest.approx(case["means"])


@pytest.mark.parametrize("case", VERDICTS, ids=names)
def test_a_figure_is_judged_or_refused_with_its_reason(case: dict[str, Any]) -> None:
    found = judged(case)

    assert (found.verdict.value, found.reason) == (case["verdict"], case.get("reason", ""))


@pytest.mark.parametrize("case", [c for c in VERDICTS if c["verdict"] != "not comparable"], ids=names)
def test_swapping_a_and_b_turns_the_verdict_round(case: dict[str, Any]) -> None:
    found, swapped = judged(case), judged(case, is_swapped=True)

    assert swapped.verdict is OPPOSITE.get(found.verdict, found.verdict)


@pytest.mark.parametrize("case", SAMPLES, ids=names)
def test_a_cell_gives_one_value_a_repeat(case: dict[str, Any]) -> None:
    """A number instead of a list: it is known of all repeats together only. `all`: there is no other sample."""
    cell, requests = cell_of(case["cell"]), requests_of(case["requests"])
    found = {f"{s.lane} {s.key}".strip(): s for s in cell_figures(cell, requests).samples}

    for key, expected in case["samples"].items():
        if isinstance(expected, list):
            assert list(found[key].values) == pytest.approx([number(v) for v in expected]), key
            assert found[key].pooled is None
        else:
            assert found[key].values == (), key
            assert found[key].pooled == pytest.approx(expected), key
    for key, figure in case.get("figure", {}).items():
        assert found[key].figure == figure
    if case.get("all"):
        assert set(found) == set(case["samples"])


def test_every_sample_of_ours_is_found_under_a_definition_of_the_manual() -> None:
    known = definitions()
    for case in SAMPLES:
        if "source" not in case["cell"]:
            cell = cell_of({**case["cell"], "definitions": known})
            for s in cell_samples(cell, requests_of(case["requests"]), None):
                assert definition_of(cell, s.figure) in known.values(), s.figure


def test_prefill_by_slope_has_one_value_a_repeat_at_its_own_concurrency() -> None:
    """1000 and 3000 cold tokens: 100 and 300 ms in the first repeat (10000 tok/s), 100 and 500 in the second (5000)."""
    fresh = {"nonce": "n", "expected_cached_tok": 0}
    cells = []
    for prompt, waits in ((1000, (100, 100)), (3000, (300, 500))):
        raw = [
            {"repeat": i, "prompt_tok": prompt, "events": [[wait, 1], [wait + 10, 1]], **fresh}
            for i, wait in enumerate(waits)
        ]
        cell = {"id": f"p{prompt}", "prompt_tok": prompt, "spans_ms": [[0, 1000], [1000, 2000]]}
        cells.append(cell_figures(cell_of(cell), requests_of(raw)))

    found = slope_sample(cells[0], cells)

    assert found is not None
    assert found.values == pytest.approx((10_000.0, 5_000.0))
    assert found.method == "slope: 1000 to 3000 tokens at 1"


def test_a_slope_belongs_to_the_level_that_it_was_taken_at() -> None:
    (first, *others) = [
        cell_figures(c.cell, c.requests)
        for c in stored(json.loads((CASES.parent / "report" / "prefill_slope.json").read_text()))
    ]
    points = [first, *others]

    shown = {p.cell.concurrency for p in points if slope_sample(p, points) is not None}

    assert shown == {1}


POSITIVE = st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=1, max_size=6)
SHARES = st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(a=POSITIVE, b=POSITIVE)
def test_swapping_a_and_b_inverts_a_ratio_and_its_interval(a: list[float], b: list[float]) -> None:
    one = Sample(key="output_tok_per_s", figure="output_tok_per_s", values=tuple(a))
    other = Sample(key="output_tok_per_s", figure="output_tok_per_s", values=tuple(b))

    there, back = change_of(one, other), change_of(other, one)

    assert there is not None
    assert back is not None
    assert there.form is back.form is Form.RATIO
    assert there.value == pytest.approx(1 / back.value, rel=1e-9)
    assert (there.interval is None) == (min(len(a), len(b)) < 2) == (back.interval is None)
    if there.interval is not None and back.interval is not None and math.isfinite(there.interval.high):
        assert math.log(there.interval.low) == pytest.approx(-math.log(back.interval.high), rel=1e-6, abs=1e-6)
        assert there.value >= there.interval.low
        assert there.is_none is back.is_none


@settings(max_examples=100, deadline=None)
@given(a=SHARES, b=SHARES)
def test_swapping_a_and_b_negates_a_difference_and_its_interval(a: list[float], b: list[float]) -> None:
    one = Sample(key="cached_share", figure="cached_share", values=tuple(a))
    other = Sample(key="cached_share", figure="cached_share", values=tuple(b))

    there, back = change_of(one, other, is_share=True), change_of(other, one, is_share=True)

    assert there is not None
    assert back is not None
    assert there.form is back.form is Form.DIFFERENCE
    assert there.value == pytest.approx(-back.value, abs=1e-12)
    if there.interval is not None and back.interval is not None:
        assert there.interval.low == pytest.approx(-back.interval.high, abs=1e-9)


@pytest.mark.parametrize(
    ("figure", "a", "b", "share", "is_beyond"),
    [
        ("output_tok_per_s", [100, 100], [96, 96], 0.05, False),
        ("output_tok_per_s", [100, 100], [94, 94], 0.05, True),
        ("output_tok_per_s", [100, 104], [90, 94], 0.05, False),
        ("ttft_p50", [100, 100], [104, 104], 0.05, False),
        ("ttft_p50", [100, 100], [106, 106], 0.05, True),
        ("ttft_p50", [100, 100], [94, 94], 0.05, False),
        ("cached_share", [0.99, 0.99], [0.95, 0.95], 0.05, False),
        ("cached_share", [0.99, 0.99], [0.93, 0.93], 0.05, True),
        ("reread_tok", [0, 0], [1, 1], 0.05, True),
        ("ttft_p50", [100, 100], ["inf", "inf"], 0.5, True),
    ],
)
def test_worse_by_more_than_a_share_needs_the_whole_interval_beyond(
    figure: str, a: list[float], b: list[float], share: float, is_beyond: bool
) -> None:
    found = judged({"figure": figure, "a": {"values": a}, "b": {"values": b}})

    assert found.is_worse_by(share) is is_beyond


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        (["ttft"], ["ttft_p50", "ttft_p95"]),
        (["TTFT-p50"], ["ttft_p50"]),
        (["output", "cached"], ["output_tok_per_s", "cached_share"]),
        ([], [h.key for h in HEADLINES]),
    ],
)
def test_a_figure_is_named_by_its_key_or_the_beginning_of_it(asked: list[str], keys: list[str]) -> None:
    assert [h.key for h in find_headlines(asked)] == keys


def test_a_figure_that_is_none_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError) as raised:
        find_headlines(["tpott"])

    assert raised.value.hint == "did you mean `tpot`?"
