"""The page's answers: uses, changes and roofline of the shipped field reports, and of records that mean harm."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from orchestrator.records.exchange.importing import read_files, write_foreign
from orchestrator.records.store import Store
from orchestrator.report.lineage import steps
from orchestrator.report.notebook.book import Book
from orchestrator.report.notebook.page import page, sections
from orchestrator.report.recommend import recommend
from orchestrator.report.roofline import gains
from orchestrator.report.step_words import effect_words
from orchestrator.report.tables import RunRow, run_row
from tests.unit.test_report import Seen
from tests.unit.use_records import row_of

REPORTS = Path(__file__).parents[2] / "samples" / "reports"
NAMES = ("uses", "changes", "roofline")


@cache
def reports() -> tuple[RunRow, ...]:
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for run in (run for path in sorted(REPORTS.glob("*.yaml")) for run in read_files([path])):
            write_foreign(store, run)
        return tuple(run_row(stored) for stored in store.runs()[0])


@pytest.mark.parametrize(
    ("use", "answer", "profile"),
    [
        ("office", "yes", "gemma-4-26b-a4b-bf16"),
        ("rag-8k", "yes", "gemma-4-26b-a4b-bf16"),
        ("long-output", "yes", "gemma-4-26b-a4b-bf16"),
        ("long-context", "no", "gemma-4-26b-a4b-bf16"),
        ("lead-agent", "yes", "qwen3.8-flash-next-exl3-velogb10"),
        ("swarm-32", "yes", "qwen3.8-27b-nvfp4-mtp1-checkpoint"),
    ],
)
def test_the_reports_figures_give_the_verdicts_that_their_authors_wrote(use: str, answer: str, profile: str) -> None:
    (found,) = (r for r in recommend(reports()) if r.use.key == use)

    assert found.best is not None
    assert (found.best.answer.value, found.best.row.run.profile_name) == (answer, profile)
    assert found.best.is_foreign


def test_the_shared_prefix_checkpoint_did_what_the_report_says() -> None:
    (step,) = (s for s in steps(reports()) if s.after.run.profile_name == "qwen3.8-27b-nvfp4-mtp2-checkpoint")

    assert step.before.run.profile_name == "qwen3.8-27b-nvfp4-mtp2"
    assert step.headline is not None
    assert effect_words(step.headline) == "at 32: 83.2 → 180.0 tok/s, +116 %, first token 60.2 → 12.9 s"


@pytest.mark.parametrize(
    ("profile", "gain", "at"),
    [
        ("gpt-oss-120b-sglang", 42.7, 128),
        ("qwen3.6-35b-a3b-nvfp4", 23.4, 128),
        ("gemma-4-26b-a4b-fp8-mtp4", 22.0, 128),
        ("qwen3.8-flash-next-iq1s-llamacpp", 2.9, 8),
    ],
)
def test_batching_gains_what_the_reports_say(profile: str, gain: float, at: int) -> None:
    (found,) = (g for g in gains(reports()) if g.row.run.profile_name == profile)

    assert (round(found.value, 1), found.point.figures.cell.concurrency) == (gain, at)


def test_without_records_there_is_nothing_to_answer() -> None:
    assert sections(Book(rows=()), NAMES) == ()


def test_nothing_in_a_record_acts_on_the_page() -> None:
    harm = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    cell = {"users": 8, "tok_per_s": 100, "ttft_s": 0.5, "rounds": 3, "workload": harm, "id": "c8"}
    single = {**cell, "users": 1, "id": "c1"}
    base = {"profile_title": harm, "model": harm, "engine": harm, "cells": [cell, single]}
    changed = {"profile_json": {"name": "b", "serve": {harm: harm}}, "lineage": ["a"]}
    rows = (row_of("a", base), row_of("b", {**base, **changed}))

    text = page(Book(rows=rows), NAMES)

    clean = page(Book(rows=(row_of("a", {"cells": [cell | {"workload": "w"}]}),)), NAMES)
    assert Seen(text).tags.count("script") == Seen(clean).tags.count("script")
    assert "img" not in Seen(text).tags
    assert harm in Seen(text).text
