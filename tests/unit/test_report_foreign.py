"""What a table shows of figures that another's report states: ranges, approximations, and what it did not measure."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.figures.cell import cell_figures
from orchestrator.report import foreign
from orchestrator.report.columns import Line
from orchestrator.report.kinds.common import RATE, TTFT_P50, cached, per_user
from orchestrator.report.tables import point_row
from tests.unit.figure_cases import cell_of


def line(stated: dict[str, Any], **source: Any) -> Line:
    cell = cell_of({"stated": stated, "source": {"tool": "report", "extra": {}, **source}})
    figures = cell_figures(cell, [])
    return Line(point=point_row(figures, [figures]))


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ({"value": 203.4}, "203.4†"),
        ({"mean": 24.08, "sd": 0.02}, "24.1†"),
        ({"p50": 31.0}, "31.0†"),
        ({"low": 25, "high": 28}, "25.0-28.0†"),
        ({"high": 7}, "up to 7.0†"),
        ({"low": 3}, "from 3.0†"),
        ({"value": 22, "about": True}, "~22.0†"),
        ({"not_measured": True}, "not measured"),
        ({"value": 534, "basis": "projected"}, "–"),
        ({"value": 534, "basis": "derived"}, "–"),
        ({"unit": "tok/s"}, "–"),
    ],
    ids=[
        "value",
        "mean",
        "median",
        "range",
        "most",
        "least",
        "about",
        "not-measured",
        "projected",
        "derived",
        "nothing",
    ],
)
def test_a_stated_rate_stands_as_it_was_stated(figure: dict[str, Any], words: str) -> None:
    assert RATE.words(line({"output_tok_per_s": figure})) == words


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ({"p50": 12900}, "12.9†"),
        ({"mean": 1370, "sd": 520}, "1.37†"),
        ({"low": 3000, "high": 3500}, "3.00-3.50†"),
        ({"not_measured": True}, "not measured"),
        ({"value": 500, "basis": "derived"}, "–"),
    ],
    ids=["median", "mean", "range", "not-measured", "derived"],
)
def test_a_stated_first_token_stands_as_it_was_stated(figure: dict[str, Any], words: str) -> None:
    assert TTFT_P50.words(line({"ttft_ms": figure})) == words


def test_the_first_of_several_rates_that_was_measured_is_shown() -> None:
    stated = {"output_tok_per_s": {"value": 9, "basis": "derived"}, "total_decode_tok_per_s": {"value": 7}}

    assert RATE.words(line(stated)) == "7.0†"


def test_per_user_speed_and_cached_share_are_shown_where_only_stated() -> None:
    stated = line({"per_user_tok_per_s": {"value": 11.2}, "cached_share": {"value": 0.992}})

    assert (per_user(stated), cached(stated)) == ("11.2†", "99.2%†")


@pytest.mark.parametrize(
    ("name", "figure", "words"),
    [
        ("output_tok_per_s", {"low": 25, "high": 28, "unit": "tok/s", "place": "table 2"}, "25-28†"),
        ("output_tok_per_s", {"value": 9, "unit": "tok/s", "place": "text", "about": True}, "~9†"),
        ("output_tok_per_s", {"value": 24.080, "unit": "tok/s"}, "24.1†"),
        ("ttft_ms", {"p50": 5100, "printed": {"p50": "5.1", "unit": "s"}, "unit": "ms", "place": "table"}, "5.1†"),
        ("ttft_ms", {"p50": 390, "unit": "ms", "place": "text"}, "0.39†"),
    ],
    ids=["range", "about", "of-a-tool", "in-the-columns-unit", "in-another-unit"],
)
def test_what_was_printed_stands_with_the_digits_that_it_was_printed_with(
    name: str, figure: dict[str, Any], words: str
) -> None:
    column = RATE if name == "output_tok_per_s" else TTFT_P50

    assert column.words(line({name: figure})) == words


def test_a_range_is_no_number() -> None:
    figures = line({"output_tok_per_s": {"low": 25, "high": 28}, "ttft_ms": {"low": 1, "high": 2}}).figures

    assert foreign.output_tok_per_s(figures) is None
    assert foreign.latency_ms(figures, "ttft_ms", "p50") is None
