"""Suites: read with every mistake named, run with a broken plugin contained, summed up in one honest line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from orchestrator.errors import InputError, Interrupted, InvalidFile
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.plugins import BrokenGate, load_gates
from orchestrator.gating.suite import (
    GateEvent,
    Suite,
    SuiteItem,
    SuiteOutcome,
    adjust_suite,
    load_suite,
    run_suite,
)
from orchestrator.gating.suite_file import parse_suite, shipped_suites
from orchestrator.values import Json
from orchestrator.wire.chat import Target
from tests.unit.gate_fakes import FakeTarget

BUILT_IN = {
    *("effective", "prefix_cache", "prefix_sharing", "determinism", "tool_call", "coherence", "context", "concurrency"),
}


@dataclass(frozen=True)
class Saying:
    """A gate that gives one verdict, or raises."""

    name: str = "saying"
    status: Status = Status.PASS
    error: Exception | None = None
    title: str = "says what it is told"
    defaults: Mapping[str, Json] = field(default_factory=lambda: {"count": 3, "share": 0.5, "words": ["a"], "on": True})

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        if self.error is not None:
            raise self.error
        return Verdict(status=self.status, summary=f"count {params['count']}")


GATES = {"saying": Saying(), "other": Saying(name="other")}


def suite(*gates: Saying, name: str = "gate0", is_shipped: bool = True, optional: tuple[str, ...] = ()) -> Suite:
    items = tuple(SuiteItem(gate=g, is_required=g.name not in optional, params=g.defaults) for g in gates)
    return Suite(name=name, items=items, is_shipped=is_shipped)


def outcome(*gates: Saying, **changes: Any) -> SuiteOutcome:
    made = suite(*gates, **changes)
    return SuiteOutcome(suite=made, results=run_suite(made, FakeTarget()))


@pytest.mark.parametrize("name", shipped_suites())
def test_shipped_suites_are_valid_and_fit_their_schema(name: str) -> None:
    loaded = load_suite(name, load_gates())

    root = Path(__file__).resolve().parents[2]
    schema = yaml.safe_load((root / "orchestrator/gating/suite.schema.json").read_text())
    jsonschema.validate(yaml.safe_load((root / f"gates/suites/{name}.yaml").read_text()), schema)
    assert loaded.is_shipped
    assert {i.gate.name for i in loaded.items} <= BUILT_IN


def test_gate0_runs_every_built_in_gate_and_only_sharing_may_fail() -> None:
    loaded = load_suite("gate0", load_gates())

    assert {i.gate.name for i in loaded.items} == BUILT_IN
    assert loaded.items[0].gate.name == "effective"
    assert [i.gate.name for i in loaded.items if not i.is_required] == ["prefix_sharing"]


def test_suite_fills_in_the_defaults() -> None:
    loaded = parse_suite("gates: [{gate: saying, params: {count: 5}}]", GATES, name="s", file="s.yaml")

    assert loaded.items[0].params == {"count": 5, "share": 0.5, "words": ["a"], "on": True}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gates: [", "s.yaml:1"),
        ("- saying", "a mapping is expected, not a list"),
        ("gates: []", "a list with at least one gate is expected"),
        ("{}", "gates: a list with at least one gate is expected, not nothing"),
        ("gates: [saying]", "gates[0]: a mapping with `gate` is expected, not a text"),
        ("gates: [{gate: sayng}]", "no gate is named 'sayng', did you mean 'saying'?"),
        ("gates: [{gate: 5}]", "a gate's name is expected, not a whole number"),
        ("gates: [{gate: saying, requird: true}]", "gates[0].requird: unknown key, did you mean 'required'?"),
        ("gates: [{gate: saying, required: 1}]", "true or false is expected, not a whole number"),
        ("gates: [{gate: saying, params: [1]}]", "gates[0].params: a mapping is expected, not a list"),
        ("gates: [{gate: saying, params: {cuont: 1}}]", "unknown parameter, did you mean 'count'?"),
        ("gates: [{gate: saying, params: {zzz: 1}}]", "saying takes count, share, words, on"),
        ("gates: [{gate: saying, params: {count: 1.5}}]", "a whole number is expected, not a number: 1.5"),
        ("gates: [{gate: saying, params: {count: true}}]", "a whole number is expected, not true or false"),
        ("gates: [{gate: saying, params: {count: -1}}]", "a whole number is expected"),
        ("gates: [{gate: saying, params: {words: a}}]", "a list is expected, not a text"),
        ("gates: [{gate: saying, params: {'on': 1}}]", "true or false is expected"),
        ("title: 5\ngates: [{gate: saying}]", "title: a text is expected"),
        ("gate: x\ngates: [{gate: saying}]", "unknown key, did you mean 'gates'?"),
        ("gates: [{gate: saying}, {gate: saying}]", "'saying' is listed twice"),
        ("gates: []\ntitle: a\ngates: [{gate: saying}]", "s.yaml:3: key `gates` is written twice: lines 1 and 3"),
        (
            "gates:\n- gate: saying\n  params:\n    count: 1\n    count: 2",
            "s.yaml:5: key `count` is written twice: lines 4 and 5",
        ),
    ],
)
def test_mistake_in_a_suite_is_named(text: str, words: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_suite(text, GATES, name="s", file="s.yaml")

    assert words in str(caught.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_suite("gates: [{gate: x}, {gate: saying, params: {y: 1}}]", GATES, name="s", file="s.yaml")

    assert len(caught.value.problems) == 2


def test_whole_number_stands_for_a_fraction() -> None:
    loaded = parse_suite("gates: [{gate: saying, params: {share: 1}}]", GATES, name="s", file="s.yaml")

    assert loaded.items[0].params["share"] == 1


def test_unknown_suite_names_the_nearest() -> None:
    with pytest.raises(InputError, match="no suite is named 'gate1', did you mean 'gate0'"):
        load_suite("gate1", load_gates())


def test_suite_from_a_file_is_not_the_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "gate0.yaml"
    path.write_text("gates: [{gate: coherence}]")

    loaded = load_suite(str(path), load_gates())

    assert (loaded.name, loaded.is_main) == ("gate0", False)


def test_missing_suite_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the suite"):
        load_suite(str(tmp_path / "none.yaml"), load_gates())


def test_override_of_a_gate_that_the_suite_does_not_run_is_refused() -> None:
    with pytest.raises(InputError, match="runs no gate 'sayin', did you mean 'saying'"):
        adjust_suite(suite(Saying()), params={"sayin": {}}, optional=())


def test_override_with_an_unknown_parameter_is_refused_before_any_gate_runs() -> None:
    events: list[GateEvent] = []

    with pytest.raises(InputError, match=r"gates\.params\.saying\.cont: unknown parameter, did you mean 'count'"):
        run_suite(suite(Saying()), FakeTarget(), overrides={"saying": {"cont": 1}}, on_event=events.append)

    assert events == []


def test_override_that_changes_nothing_leaves_the_suite_unmodified() -> None:
    same = adjust_suite(suite(Saying()), params={"saying": {"count": 3}}, optional=())
    other = adjust_suite(suite(Saying()), params={"saying": {"count": 4}}, optional=())

    assert (same.is_main, other.is_main) == (True, False)


def test_results_come_in_order_with_events_around_them() -> None:
    events: list[GateEvent] = []

    results = run_suite(suite(Saying(), Saying(name="b")), FakeTarget(), on_event=events.append)

    assert [r.name for r in results] == ["saying", "b"]
    assert [(e.kind, e.name, e.index, e.total) for e in events] == [
        ("started", "saying", 1, 2),
        ("finished", "saying", 1, 2),
        ("started", "b", 2, 2),
        ("finished", "b", 2, 2),
    ]
    assert events[1].result == results[0]


def test_gate_that_raises_is_an_error_with_its_traceback_and_the_rest_runs() -> None:
    results = run_suite(suite(Saying(error=KeyError("oops")), Saying(name="b")), FakeTarget())

    assert [r.verdict.status for r in results] == [Status.ERROR, Status.PASS]
    assert "KeyError: 'oops'" in results[0].verdict.summary
    assert "Traceback" in str(results[0].verdict.evidence)


def test_interruption_is_no_verdict() -> None:
    with pytest.raises(Interrupted):
        run_suite(suite(Saying(error=Interrupted("stop"))), FakeTarget())


def test_cancelled_suite_leaves_the_rest_out() -> None:
    asked = iter([False, True])
    made = suite(Saying(), Saying(name="b"))

    results = run_suite(made, FakeTarget(), is_cancelled=lambda: next(asked))

    found = SuiteOutcome(suite=made, results=results)
    assert (len(results), found.is_complete, found.passed) == (1, False, False)
    assert found.label == "Gate 0 not finished: 1 of 2 gates ran"


def test_duration_is_measured() -> None:
    ticks = iter([10.0, 12.5])

    results = run_suite(suite(Saying()), FakeTarget(), clock=lambda: next(ticks))

    assert results[0].duration_s == 2.5


@pytest.mark.parametrize(
    ("statuses", "optional", "passed", "is_clean", "label"),
    [
        (["pass", "pass"], (), True, True, "Gate 0 passed"),
        (["pass", "skip"], (), True, True, "Gate 0 passed"),
        (["skip", "skip"], (), True, True, "Gate 0 skipped: no gate applies"),
        (["pass", "unstable"], (), True, False, "Gate 0 unstable: g1"),
        (["pass", "fail"], (), False, False, "Gate 0 failed: g1"),
        (["error", "fail"], (), False, False, "Gate 0 failed: g0, g1"),
        (["pass", "fail"], ("g1",), True, False, "Gate 0 passed"),
        (["pass", "unstable"], ("g1",), True, False, "Gate 0 passed"),
    ],
)
def test_outcome_is_summed_up(
    statuses: list[str], optional: tuple[str, ...], passed: bool, is_clean: bool, label: str
) -> None:
    found = outcome(*(Saying(name=f"g{i}", status=Status(s)) for i, s in enumerate(statuses)), optional=optional)

    assert (found.passed, found.is_clean, found.label) == (passed, is_clean, label)


def test_only_the_shipped_unmodified_suite_reads_gate_0() -> None:
    assert outcome(Saying(), is_shipped=False).label == "suite gate0 passed"
    assert outcome(Saying(), name="quick").label == "suite quick passed"
    modified = replace(suite(Saying()), is_modified=True)
    results = run_suite(modified, FakeTarget())
    assert SuiteOutcome(suite=modified, results=results).label == "suite gate0 (modified) passed"


def test_built_in_gates_come_through_the_public_door() -> None:
    gates = load_gates()

    assert set(gates) >= BUILT_IN
    assert all(name == gate.name and gate.title for name, gate in gates.items())


def test_broken_plugin_is_contained_and_says_why() -> None:
    points = [
        EntryPoint(name="gone", value="no_such_package:GATE", group="gate0.gates"),
        EntryPoint(name="bare", value="builtins:object", group="gate0.gates"),
        EntryPoint(name="coherence", value="gates.coherence:GATE", group="gate0.gates"),
    ]

    gates = load_gates(points)

    assert isinstance(gates["gone"], BrokenGate)
    assert "ModuleNotFoundError" in gates["gone"].check(FakeTarget(), {}).summary
    assert "has no name, title, defaults, check" in gates["bare"].check(FakeTarget(), {}).summary
    assert not isinstance(gates["coherence"], BrokenGate)


def test_broken_plugin_in_a_suite_is_an_error_verdict_not_a_bad_file() -> None:
    gates = load_gates([EntryPoint(name="gone", value="no_such_package:GATE", group="gate0.gates")])

    loaded = parse_suite("gates: [{gate: gone, params: {depth: 3}}]", gates, name="s", file="s.yaml")

    assert run_suite(loaded, FakeTarget())[0].verdict.status is Status.ERROR


def test_two_packages_with_one_gate_name_are_refused() -> None:
    points = [EntryPoint(name="x", value=f"gates.{m}:GATE", group="gate0.gates") for m in ("coherence", "context")]

    with pytest.raises(InputError, match="two packages bring a gate named 'x'"):
        load_gates(points)


def test_result_has_the_fields_of_a_gate_record() -> None:
    plain = run_suite(suite(Saying()), FakeTarget())[0].as_json()

    assert set(plain) == {
        "name",
        "status",
        "summary",
        "is_required",
        "measured",
        "evidence",
        "params",
        "hint",
        "started_at",
        "duration_s",
    }
