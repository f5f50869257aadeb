"""What a change did: hand-made records of parents and children, with answers that can be worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.report.lineage import Step, steps
from orchestrator.report.step_words import changed, effect_words, main_figure, method, names, verdict_words
from tests.unit.use_records import row_of

CASES = sorted((Path(__file__).parents[1] / "cases" / "changes").glob("*.yaml"))


def seen(step: Step) -> dict[str, Any]:
    """All that a case can expect."""
    before, after = names(step)
    cell = step.headline
    return {
        "before": before,
        "after": after,
        "path": [a.name if a.configuration is not None else f"{a.name}?" for a in step.path],
        "changed": {c.kind: list(c.words) for c in changed(step) if not c.is_aside},
        "effect": None if cell is None else effect_words(cell),
        "verdict": None if cell is None else verdict_words(main_figure(cell)),
        "method": None if cell is None else method(cell),
        "overall": None if step.overall is None else effect_words(step.overall),
        "hidden": step.hidden,
        "levels": [c.cells[0].concurrency for c in step.comparison.cells],
    }


@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_a_change_does_what_the_records_tell(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    rows = [row_of(name, raw) for name, raw in case["runs"].items()]

    found = steps(rows)

    assert len(found) == len(case["steps"])
    for step, expected in zip(found, case["steps"], strict=True):
        assert {key: value for key, value in seen(step).items() if key in expected} == expected
