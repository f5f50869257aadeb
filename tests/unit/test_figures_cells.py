"""Small cells whose figures can be worked out by hand: one file each under `tests/cases/figures/cells`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.figures.cell import cell_figures
from tests.unit.figure_cases import CASES, cell_of, look_up, requests_of

FILES = sorted((CASES / "cells").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_cell_has_the_figures_worked_out_by_hand(path: Path) -> None:
    case = json.loads(path.read_text())
    document = json.loads(
        json.dumps(cell_figures(cell_of(case["cell"]), requests_of(case["requests"])).as_json(), allow_nan=False)
    )

    found = {key: look_up(document, key) for key in case["expected"]}

    assert found == {key: close(value) for key, value in case["expected"].items()}


def close(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return pytest.approx(value, rel=1e-9) if is_number else value
