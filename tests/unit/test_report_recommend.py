"""Which configuration for what: hand-made records with answers that can be worked out by hand, one a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.report.recommend import Recommendation, recommend
from orchestrator.report.use_figures import USE_FIGURES
from orchestrator.report.use_rules import Use
from orchestrator.report.use_words import answer_words, asides, because, command, figures_words, lost_words
from orchestrator.report.uses import USES
from tests.unit.use_records import row_of

CASES = sorted((Path(__file__).parents[1] / "cases" / "uses").glob("*.yaml"))


def use(key: str) -> Use:
    return next(u for u in USES if u.key == key)


def seen(found: Recommendation) -> dict[str, Any]:
    """All that a case can expect."""
    return {
        "answer": answer_words(found),
        "best": None if found.best is None else found.best.row.run.id,
        "cell": None if found.best is None else found.best.point.figures.cell.id,
        "second": None if found.second is None else found.second.row.run.id,
        "lost": lost_words(found),
        "because": [] if found.best is None else list(because(found.best)),
        "figures": [f"{w.text} [{w.method}]" for w in figures_words(found)],
        "asides": list(asides(found)),
        "command": command(found),
    }


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_the_recommendation_is_what_the_records_give(path: Path) -> None:
    case = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
    rows = [row_of(name, raw) for name, raw in yaml.safe_load(path.read_text())["runs"].items()]
    expected = {**yaml.safe_load(path.read_text()), "answer": case["answer"]}
    del expected["runs"], expected["use"]

    (found,) = recommend(rows, [use(case["use"])])

    assert {key: value for key, value in seen(found).items() if key in expected} == expected


def test_every_rule_names_figures_that_there_are() -> None:
    named = {key for u in USES for r in u.rules for key in (*r.ranks, *r.shows, *(x.figure for x in r.limits))}

    assert named <= set(USE_FIGURES)
    assert all(USE_FIGURES[r.ranks[0]].headline for u in USES for r in u.rules)


def test_every_limit_is_kept_before_it_is_missed() -> None:
    limits = [limit for u in USES for r in u.rules for limit in r.limits]
    signs = [1 if USE_FIGURES[limit.figure].is_less_good else -1 for limit in limits]

    assert all(sign * x.yes <= sign * x.careful for sign, x in zip(signs, limits, strict=True))


def test_each_use_is_measured_by_a_shipped_workload() -> None:
    shipped = {p.stem for p in (Path(__file__).parents[2] / "profiles" / "workloads").glob("*.yaml")}

    assert {u.workload for u in USES} <= shipped


def test_no_rows_give_an_answer_for_every_use() -> None:
    assert [answer_words(r) for r in recommend([])] == ["no data"] * len(USES)
