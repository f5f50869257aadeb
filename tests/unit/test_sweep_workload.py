"""Workloads: files, overrides, cells, estimates."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from orchestrator.errors import InputError, InvalidFile
from orchestrator.sweep.estimate import estimate
from orchestrator.sweep.loading import (
    as_mapping,
    list_workloads,
    load_workload,
    parse_overrides,
    search_path,
    with_overrides,
    workload_schema,
)
from orchestrator.sweep.workload import Kind, Workload

CASES = Path(__file__).parents[1] / "cases" / "workload" / "invalid"


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_mistake_is_named_with_its_line(path: Path) -> None:
    with pytest.raises(InvalidFile) as refused:
        load_workload(str(path), search=())

    places = [f"{p.line or '-'}: {p.path or '-'}" for p in refused.value.problems]
    assert places == path.with_suffix(".txt").read_text().splitlines()


def test_schema_describes_every_key_and_no_other() -> None:
    properties = workload_schema()["properties"]

    assert set(properties) == {f.name for f in fields(Workload)}
    assert all(p["description"] for p in properties.values())


def test_shipped_workloads_load() -> None:
    loaded = {f.name: load_workload(f.name, search=search_path()) for f in list_workloads(search_path())}

    assert {"concurrency", "batching", "quick"} <= set(loaded)
    assert all(name == w.name for name, w in loaded.items())


def test_concurrency_is_the_eight_user_measurement() -> None:
    w = load_workload("concurrency", search=search_path())

    assert set(w.kinds) == {Kind.CLOSED, Kind.BATCH}
    assert w.concurrency == tuple(range(1, 9))
    assert (w.prompt_tokens, w.output_tokens, w.repeats, w.batch_answers) == ((128,), (256,), 5, 200)


def test_batching_has_the_levels_of_the_batching_measurement() -> None:
    assert load_workload("batching", search=search_path()).concurrency == (1, 4, 8, 16, 32, 48, 64, 128)


def test_nearer_directory_wins(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    for directory, title in ((near, "near"), (far, "far")):
        directory.mkdir()
        (directory / "w.yaml").write_text(f"name: w\ntitle: {title}\n")

    assert load_workload("w", search=(near, far)).title == "near"
    assert [w.title for w in list_workloads((near, far))] == ["near"]


def test_unknown_name_says_what_is_near() -> None:
    with pytest.raises(InputError) as refused:
        load_workload("concurency", search=search_path())

    assert "did you mean 'concurrency'" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("concurrency=1,4", "concurrency", (1, 4)),
        ("concurrency=[2]", "concurrency", (2,)),
        ("kinds=batch", "kinds", (Kind.BATCH,)),
        ("prompt_tokens=64", "prompt_tokens", (64,)),
        ("repeats=1", "repeats", 1),
        ("ignore_eos=false", "ignore_eos", False),
        ("request_timeout_s=30", "request_timeout_s", 30.0),
        ("extra_body={top_k: 1}", "extra_body", {"top_k": 1}),
    ],
)
def test_set_reads_a_value_as_a_file_would(text: str, key: str, value: object) -> None:
    changed = with_overrides(Workload(name="w"), parse_overrides([text]))

    assert getattr(changed, key) == value


@pytest.mark.parametrize("text", ["concurency=1", "concurrency=0", "repeats=x", "kinds=open", "concurrency={"])
def test_set_refuses_what_a_file_would(text: str) -> None:
    with pytest.raises(InvalidFile):
        with_overrides(Workload(name="w"), parse_overrides([text]))


@pytest.mark.parametrize("text", ["concurrency", "=1", "concurrency="])
def test_set_needs_key_and_value(text: str) -> None:
    with pytest.raises(InputError, match="KEY=VALUE"):
        parse_overrides([text])


def test_workload_survives_its_own_mapping() -> None:
    w = load_workload("concurrency", search=search_path())

    assert with_overrides(w, {"name": w.name}) == w
    assert as_mapping(w)["kinds"] == ["closed", "batch"]


def test_grid_unfolds_into_every_combination_once() -> None:
    w = Workload(
        name="w", kinds=(Kind.CLOSED, Kind.BATCH), prompt_tokens=(1, 2), output_tokens=(3,), concurrency=(4, 5)
    )

    ids = [c.id for c in w.cells()]

    assert len(ids) == len(set(ids)) == 8
    assert ids[0] == "closed-p1-o3-c4"


def test_only_a_closed_loop_has_several_requests_for_a_user() -> None:
    w = Workload(name="w", kinds=(Kind.CLOSED, Kind.BATCH), concurrency=(4,), requests_per_user=3)

    assert [c.requests_per_repeat for c in w.cells()] == [12, 4]


def test_digest_follows_what_changes_the_load_and_nothing_else() -> None:
    base, renamed, hotter = Workload(name="w"), Workload(name="v", title="t"), Workload(name="w", temperature=1.0)

    assert base.cells()[0].load_digest() == renamed.cells()[0].load_digest()
    assert base.cells()[0].load_digest() != hotter.cells()[0].load_digest()


def test_estimate_states_its_assumption_and_follows_it() -> None:
    w = load_workload("batching", search=search_path())

    slow, fast = estimate(w, tok_per_s=10), estimate(w, tok_per_s=100)

    assert slow.minutes > fast.minutes > 0
    assert "10 tok/s for one user" in slow.assumption
