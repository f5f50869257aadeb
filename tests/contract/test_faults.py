"""What other tools got wrong, one file each (tests/cases/faults): the mock shows it, our reader must get it right.

The stamps are compared without a tolerance: each event carries the mock's own stamp, which tells in the raw bytes which
read brought the first token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.figures.request import itl_ms, itl_token_ms, tpot_ms
from orchestrator.records.record import RequestRecord
from tests.contract.fault_client import FaultCase, Seen, all_cases, run_case

CASES = all_cases()
RUNS = [
    pytest.param(case, variant, id=f"{case.name}[{variant}]" if variant else case.name)
    for case in CASES
    if case.level == "request"
    for variant in case.variants
]
NUMBERS = set(range(1, 75))
QUEUED_NS = 5_000_000


def test_every_fault_has_its_case() -> None:
    assert {n for case in CASES for n in case.number} == NUMBERS


@pytest.mark.parametrize(("case", "variant"), RUNS)
def test_the_fault_is_read_right(case: FaultCase, variant: str) -> None:
    seen = run_case(case, variant)

    assert len(seen) == len(case.expectations)
    found = [as_expected(s, want) for s, want in zip(seen, case.expectations, strict=True)]
    assert found == [dict(want) for want in case.expectations]
    for one, want in zip(seen, case.expectations, strict=True):
        assert_stamps(one, want)


def assert_stamps(seen: Seen, want: Mapping[str, Any]) -> None:
    """First and last token stand at the reads that brought them, and no stamp lies before its cause."""
    record, reads, truth = seen.record, seen.token_reads_ns, seen.truth
    if truth is None or want.get("first_token_ns", 0) is None:
        assert record.first_token_ns is None
        return
    first, last = reads[want.get("first_token_event", 0)], reads[want.get("last_token_event", -1)]
    assert (record.first_token_ns, record.last_token_ns) == (first, last)
    assert record.sent_ns is not None
    assert record.sent_ns <= truth.received_ns <= truth.started_ns <= truth.first_ns <= first


def as_expected(seen: Seen, want: Mapping[str, Any]) -> dict[str, Any]:
    """What was found under each name that the case has an opinion about, in the case's own words where it fits."""
    return {name: _found(name, value, seen) for name, value in want.items()}


def _found(name: str, want: Any, seen: Seen) -> Any:
    record = seen.record
    if name == "failure" and isinstance(want, list):
        return want if record.failure in want else record.failure
    if name == "error":
        return want if record.error is not None and want in record.error else record.error
    if name in {"first_token_event", "last_token_event"}:
        return want  # by `assert_stamps`
    if name in DERIVED:
        return DERIVED[name](seen, want)
    return getattr(record, name)


def _tpot(seen: Seen, want: Any) -> Any:
    """True: the time between the true reads over the tokens that came after the first of them."""
    found = tpot_ms(seen.record)
    if want is None or found is None:
        return found
    assert seen.truth is not None
    first, last = seen.token_reads_ns[0], seen.token_reads_ns[-1]
    with_first = sum(n or 0 for t, n in seen.record.events if t == first)
    true = (last - first) / 1e6 / (seen.truth.output_tok - with_first)
    return found == pytest.approx(true, rel=1e-9)


def _metrics(seen: Seen, _: Any) -> bool:
    truth, server = seen.truth, seen.record.server
    assert truth is not None
    told = [server[n] for n in ("queue_time_ms", "time_to_first_token_ms", "generation_time_ms")]
    true = [truth.started_ns - truth.received_ns, truth.first_ns - truth.started_ns, truth.last_ns - truth.first_ns]
    return told == pytest.approx([t / 1e6 for t in true])


def _timings(seen: Seen, _: Any) -> bool:
    truth, server = seen.truth, seen.record.server
    assert truth is not None
    true = [(truth.first_ns - truth.started_ns) / 1e6, (truth.last_ns - truth.first_ns) / 1e6, truth.output_tok]
    return [server[n] for n in ("prompt_ms", "predicted_ms", "predicted_n")] == pytest.approx(true)


def _server_ttft(seen: Seen) -> float:
    found = seen.record.server["time_to_first_token_ms"]
    assert isinstance(found, float)
    return found


def _gap_span(record: RequestRecord) -> bool:
    assert record.first_token_ns is not None
    assert record.last_token_ns is not None
    return sum(itl_ms(record)) == pytest.approx((record.last_token_ns - record.first_token_ns) / 1e6)


DERIVED: Mapping[str, Any] = {
    "tokens": lambda seen, _: [n for _, n in seen.record.events],
    "tpot": _tpot,
    "gaps": lambda seen, _: len(itl_ms(seen.record)),
    "gaps_span_tokens": lambda seen, _: _gap_span(seen.record),
    "itl_token_weights": lambda seen, _: [k for _, k in itl_token_ms(seen.record) or ()],
    "is_role_early": lambda seen, _: seen.record.first_event_ns < seen.truth.first_ns,
    "is_answer_later": lambda seen, _: seen.record.first_answer_ns > seen.record.first_token_ns,
    "is_answer_first": lambda seen, _: seen.record.first_answer_ns == seen.record.first_token_ns,
    "has_keepalives": lambda seen, _: seen.record.keepalives > 0,
    "has_queued": lambda seen, _: seen.truth.started_ns - seen.truth.received_ns > QUEUED_NS,
    "metrics_are_true": _metrics,
    "timings_are_true": _timings,
    "server_ttft_above_ms": lambda seen, want: want if _server_ttft(seen) > want else _server_ttft(seen),
    "server_ttft_below_ms": lambda seen, want: want if _server_ttft(seen) < want else _server_ttft(seen),
}
