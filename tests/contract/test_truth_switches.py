"""Every switch of the mock, at the level of a whole cell (tests/cases/truth/switches.yaml).

A switch may not change what is true of the load: what the record tells is the mock's own count or null, never another
number, and what cannot be known says so. The load runs in this process; `test_truth` runs it as it is run in earnest.
"""

from __future__ import annotations

import pytest
import yaml

from orchestrator.mock.settings import Cached, Fault, Flavour, Framing, MockSettings, Reasoning, UsageChoices, switches
from orchestrator.records.record import RequestRecord
from tests.contract.truth_client import CASES, CellRun, HereProcess, TruthCase, run_case
from tests.contract.truth_figures import as_expected

WORKLOAD = {
    "kind": "closed",
    "prompt_tokens": 48,
    "output_tokens": 12,
    "concurrency": [2],
    "requests_per_user": 2,
    "repeats": 1,
    "warmup": 0,
    "request_timeout_s": 20,
}


def rows() -> list[TruthCase]:
    raw = yaml.safe_load((CASES / "switches.yaml").read_text())
    return [
        TruthCase(
            name=_name(row["settings"]), **{"is_counted": False} | row | {"workload": merged(row.get("workload", {}))}
        )
        for row in raw
    ]


def merged(changes: dict[str, object]) -> dict[str, object]:
    found = WORKLOAD | changes
    unfit = {"sessions": {"requests_per_user"}, "batch": {"requests_per_user"}}.get(str(found["kind"]), set())
    return {k: v for k, v in found.items() if k not in unfit}


def _name(settings: dict[str, object]) -> str:
    return ",".join(f"{k}={v}" for k, v in settings.items())


ROWS = rows()


def test_every_switch_is_in_the_table() -> None:
    assert {name for row in ROWS for name in row.settings} == set(switches())


def test_every_word_of_a_switch_is_in_the_table() -> None:
    settings = [row.mock() for row in ROWS]

    assert {s.fault for s in settings} >= set(Fault)
    assert {s.flavour for s in settings} == set(Flavour)
    assert {s.reasoning for s in settings} == set(Reasoning)
    assert {s.cached for s in settings} == set(Cached)
    assert {s.usage_choices for s in settings} == set(UsageChoices)
    assert {s.framing for s in settings} == set(Framing)


def test_a_row_says_something_else_than_the_default() -> None:
    same = [row.name for row in ROWS if row.mock() == MockSettings() and not row.target]

    assert same == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_switch_leaves_what_is_true(row: TruthCase) -> None:
    (run,) = run_case(row, process=HereProcess).values()
    want = {"guards": [], "failures": {}, **row.expect}

    assert as_expected(run, want) == want
    assert len(run.pairs) == sum(r.first_token_ns is not None for r in run.outcome.requests)
    assert_told_is_true(run, row)


def assert_told_is_true(run: CellRun, row: TruthCase) -> None:
    """Null, or the server's own count; and no stamp before its cause."""
    for record, truth in ((p.record, p.truth) for p in run.pairs):
        told = {"prompt_tok": record.prompt_tok, "cached_tok": record.cached_tok, "output_tok": record.output_tok}
        true = {"prompt_tok": truth.prompt_tok, "cached_tok": truth.cached_tok, "output_tok": truth.output_tok}
        assert {k: v for k, v in told.items() if v is not None and v != true[k] and k not in row.lies} == {}
        assert_events_are_true(record, truth.events, truth.output_tok)
        assert record.sent_ns is not None
        assert record.first_token_ns is not None
        assert record.sent_ns <= truth.received_ns <= truth.started_ns <= truth.first_ns <= record.first_token_ns


def assert_events_are_true(record: RequestRecord, events: int, output_tok: int) -> None:
    counts = [n for _, n in record.events]
    assert len(counts) <= events, "an event without a token is none"
    if None not in counts:
        assert sum(n or 0 for n in counts) == output_tok
