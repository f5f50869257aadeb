"""Workloads: files, overrides, cells, estimates."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from orchestrator.errors import InputError, InvalidFile
from orchestrator.records.slo_presets import PRESETS
from orchestrator.sweep.estimate import cell_seconds, estimate
from orchestrator.sweep.lengths import Lengths, fixed
from orchestrator.sweep.loading import list_workloads, load_workload, search_path, workload_schema
from orchestrator.sweep.overrides import parse_overrides
from orchestrator.sweep.workload import Kind, LaneLoad, Search, Slo, SwarmCell, Workload

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "profiles" / "workloads" / "samples"
CASES = Path(__file__).parents[1] / "cases" / "workload" / "invalid"
RENAMED = {"kinds": "kind", "cells_of_swarm": "cells"}
READ_FROM_FILE = {"conversations", "conversations_digest", "left_out", "cut"}
KINDS = {k.value for k in Kind}


def load(name: str, *overrides: str) -> Workload:
    return load_workload(name, search=search_path(), changes=parse_overrides(overrides))


def written(tmp_path: Path, text: str, **files: str) -> str:
    for name, content in files.items():
        (tmp_path / name.replace("__", ".")).write_text(content)
    path = tmp_path / "w.yaml"
    path.write_text(f"name: w\n{text}\n")
    return str(path)


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_mistake_is_named_with_its_line(path: Path) -> None:
    with pytest.raises(InvalidFile) as refused:
        load_workload(str(path), search=())

    places = [f"{p.line or '-'}: {p.path or '-'}" for p in refused.value.problems]
    assert places == path.with_suffix(".txt").read_text().splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("concurrency: 1.5", "expected a whole number or a list of them, got `1.5`"),
        ("concurrency: 2.0", "expected a whole number or a list of them, got `2.0`: write 2"),
        ("kind: mixed\nlanes: [{name: a, concurrency: 1}]", "expected at least 2 entries, got 1"),
        ("kind: mixed\nlanes: []", "expected at least 2 entries, got an empty list"),
    ],
)
def test_a_message_says_what_was_found_and_no_way_that_is_refused_too(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as refused:
        load_workload(written(tmp_path, text), search=())

    assert [p.message for p in refused.value.problems] == [said]


def test_a_key_of_another_kind_says_whose_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, "kind: [closed, batch]\ncap: 25")

    with pytest.raises(InvalidFile) as refused:
        load_workload(path, search=())

    assert str(refused.value) == f"{path}:3: cap: not a key of kind closed, batch; it belongs to open, replay"


def test_schema_describes_every_key_and_no_other() -> None:
    properties = workload_schema()["properties"]

    names = {RENAMED.get(f.name, f.name) for f in fields(Workload)} - READ_FROM_FILE
    assert set(properties) == names
    assert all(p["description"] and p["examples"] for p in properties.values())
    assert {k for p in properties.values() for k in p.get("x-kinds", ())} == KINDS


NEEDED = {
    "swarm": "agents: 8",
    "replay": f"file: {SAMPLES / 'conversations.json'}",
    "mixed": "lanes: [{name: a, rate: 1}, {name: b, concurrency: 2}]",
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_loads_with_what_it_needs_and_is_estimated(kind: str, tmp_path: Path) -> None:
    w = load(written(tmp_path, f"kind: {kind}\n{NEEDED.get(kind, '')}"))

    assert w.kinds == (Kind(kind),)
    assert {c.kind for c in w.cells()} == {Kind(kind)}
    assert all(cell_seconds(c, tok_per_s=20) > cell_seconds(c, tok_per_s=200) > 0 for c in w.cells())


def test_file_becomes_values(tmp_path: Path) -> None:
    text = """
kind: open
prompt_tokens: [100, {median: 300, sigma: 1, most: 8000}, {around: 4000, spread: 0.9}]
output_tokens: {file: answers__csv, column: out, least: 4}
ramp: {from: 1, to: 3}
burstiness: [1, 2]
temperature: 1
slo: office
""".replace("answers__csv", "answers.csv")
    w = load(written(tmp_path, text, answers__csv="in,out\n7,3\n8,9\n"))

    assert w.prompt_tokens == (
        fixed(100),
        Lengths(median=300, sigma=1, most=8000),
        Lengths(around=4000, spread=0.9),
    )
    assert w.output_tokens == (Lengths(table=(3, 9), least=4),)
    assert (w.rate, w.burstiness, w.temperature) == ((2.0,), (1.0, 2.0), 1.0)
    assert isinstance(w.temperature, float)
    assert w.slo == Slo(name="office", ttft_s=3.0, share=0.95)
    assert len(w.cells()) == 6


def test_search_of_a_rate_has_levels_and_a_service_level_of_its_own(tmp_path: Path) -> None:
    w = load(written(tmp_path, "kind: open\nslo: office\nsearch: {slo: {ttft_s: 2, share: 1}, high: 8}"))

    assert w.search == Search(over="rate", slo=Slo(ttft_s=2.0, share=1.0), high=8.0)
    assert [cell.slo for cell in w.cells()] == [w.search.slo]


def test_lanes_and_swarm_cells_become_values(tmp_path: Path) -> None:
    w = load(
        written(
            tmp_path,
            """
kind: [swarm, mixed]
agents: [8, 32]
cells: [cold, single]
lanes:
  - {name: a, concurrency: 2, prompt_tokens: 64, think_s: 3, priority: -1}
  - {name: b, rate: 1, burstiness: 2, output_tokens: {around: 9, spread: 0.5}, extra_body: {top_k: 1}}
""",
        )
    )

    assert w.cells_of_swarm == (SwarmCell.COLD, SwarmCell.SINGLE)
    assert w.agents == (8, 32)
    assert w.lanes == (
        LaneLoad(name="a", concurrency=2, prompt=fixed(64), think_s=3.0, priority=-1),
        LaneLoad(name="b", rate=1.0, burstiness=2.0, output=Lengths(around=9, spread=0.5), extra_body={"top_k": 1}),
    )


def test_search_takes_the_workloads_slo_where_it_has_none(tmp_path: Path) -> None:
    w = load(written(tmp_path, "slo: chat\nsearch: {high: 16}"))

    assert w.search == Search(over="concurrency", high=16.0, slo=Slo(name="chat", ttft_s=1.0))


def test_presets_are_these() -> None:
    assert {p.name: (p.ttft_s, p.tpot_ms, p.e2e_s, p.share) for p in PRESETS.values()} == {
        "chat": (1.0, None, None, 0.95),
        "office": (3.0, None, None, 0.95),
        "voice": (0.5, 100.0, None, 0.95),
        "agent": (5.0, 50.0, None, 0.95),
        "batch": (None, None, 600.0, 0.99),
    }


SHIPPED: Mapping[str, tuple[Kind, int]] = {
    "batching": (Kind.CLOSED, 8),
    "batching-mixed": (Kind.MIXED, 4),
    "concurrency": (Kind.CLOSED, 16),
    "eight-users-mixed": (Kind.MIXED, 3),
    "ingest": (Kind.INGEST, 4),
    "overload": (Kind.OVERLOAD, 1),
    "quick": (Kind.CLOSED, 3),
    "run-a": (Kind.BATCH, 12),
    "run-b": (Kind.BATCH, 3),
    "run-c": (Kind.BATCH, 3),
    "run-e": (Kind.SESSIONS, 3),
    "run-e-as-run": (Kind.BATCH, 3),
    "run-f": (Kind.BATCH, 3),
    "run-g": (Kind.BATCH, 3),
    "swarm-54k": (Kind.SWARM, 10),
    "test-h": (Kind.OPEN, 1),
    "test-i": (Kind.REPLAY, 1),
    "test-j": (Kind.OPEN, 1),
    "trace": (Kind.REPLAY, 1),
}


def test_shipped_workloads_are_these() -> None:
    shipped = {f.name: load(f.name) for f in list_workloads(search_path())}

    assert {n: (w.kinds[0], len(w.cells())) for n, w in shipped.items()} == SHIPPED
    assert all(name == w.name for name, w in shipped.items())
    assert all(w.title and estimate(w).minutes > 0 for w in shipped.values())


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_workload_begins_with_its_question(name: str) -> None:
    lines = (ROOT / "profiles" / "workloads" / f"{name}.yaml").read_text().splitlines()

    assert lines[0].startswith("# ")
    assert lines[1].startswith("# ")
    assert "?" in lines[0] + lines[1]


@pytest.mark.parametrize(
    ("name", "prompts", "output", "users"),
    [
        ("run-a", (4096, 8192, 16384, 25000), 256, (1, 5, 10)),
        ("run-b", (25000,), 256, (5, 10, 20)),
        ("run-c", (1024,), 1024, (1, 5, 10)),
        ("run-e-as-run", (2048,), 512, (1, 5, 10)),
        ("run-e", (2048,), 512, (1, 5, 10)),
        ("run-f", (8192,), 512, (5, 10, 20)),
        ("run-g", (256,), 4096, (1, 5, 10)),
        ("batching", (128,), 256, (1, 4, 8, 16, 32, 48, 64, 128)),
        ("concurrency", (128,), 256, (1, 2, 3, 4, 5, 6, 7, 8)),
    ],
)
def test_shipped_sizes_are_the_reports(
    name: str, prompts: tuple[int, ...], output: int, users: tuple[int, ...]
) -> None:
    w = load(name)

    assert w.prompt_tokens == tuple(fixed(p) for p in prompts)
    assert (w.output_tokens, w.concurrency) == ((fixed(output),), users)


def test_the_office_tests_are_the_reports() -> None:
    h, i, j = load("test-h"), load("test-i"), load("test-j")

    sizes = ((Lengths(around=4000, spread=0.9),), (Lengths(around=500, spread=0.9),))
    assert (h.prompt_tokens, h.output_tokens) == (j.prompt_tokens, j.output_tokens) == sizes
    assert (h.rate, h.burstiness, h.requests, h.cap) == ((0.3,), (0.7,), 200, None)
    assert (j.rate, j.burstiness, j.requests, j.cap) == ((1.5,), (1.0,), 300, 25)
    assert (i.rate, i.burstiness, i.limit, i.history) == ((0.3,), (0.7,), 250, "scripted")
    assert load("run-e-as-run").depth == (4,)
    assert load("run-e").turns == 5
    assert load("swarm-54k").prefix_tokens == (54282,)
    assert [lane.concurrency for lane in load("batching-mixed").lanes] == [16, 8, 1]


def test_the_samples_are_what_their_generator_writes() -> None:
    written_anew = runpy.run_path(str(ROOT / "tools" / "samples.py"))["samples"]()

    assert {p.name: p.read_text() for p in SAMPLES.iterdir()} == written_anew


def test_nearer_directory_wins(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    for directory, title in ((near, "near"), (far, "far")):
        directory.mkdir()
        (directory / "w.yaml").write_text(f"name: w\ntitle: {title}\n")

    assert load_workload("w", search=(near, far)).title == "near"
    assert [w.title for w in list_workloads((near, far))] == ["near"]


def test_unknown_name_says_what_is_near() -> None:
    with pytest.raises(InputError) as refused:
        load("concurency")

    assert "did you mean 'concurrency'" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("quick", "concurrency=1,4", "concurrency", (1, 4)),
        ("quick", "concurrency=[2]", "concurrency", (2,)),
        ("quick", "concurrency=null", "concurrency", (1, 2, 4, 8)),
        ("quick", "kind=batch", "kinds", (Kind.BATCH,)),
        ("quick", "kind=closed,batch", "kinds", (Kind.CLOSED, Kind.BATCH)),
        ("concurrency", "kind=batch", "kinds", (Kind.BATCH,)),
        ("quick", "prompt_tokens=64", "prompt_tokens", (fixed(64),)),
        ("quick", "repeats=1", "repeats", 1),
        ("quick", "ignore_eos=false", "ignore_eos", False),
        ("quick", "request_timeout_s=30", "request_timeout_s", 30.0),
        ("quick", "extra_body={top_k: 1, n: 2}", "extra_body", {"top_k": 1, "n": 2}),
        ("quick", "extra_body.chat_template_kwargs.x=1", "extra_body", {"chat_template_kwargs": {"x": 1}}),
        ("quick", "slo.tpot_ms=50", "slo", Slo(tpot_ms=50.0)),
        ("test-h", "rate=0.1,2", "rate", (0.1, 2.0)),
        ("test-h", "cap=25", "cap", 25),
        ("test-j", "cap=null", "cap", None),
        ("test-h", "prompt_tokens.spread=0.5", "prompt_tokens", (Lengths(around=4000, spread=0.5),)),
        (
            "test-h",
            "prompt_tokens={median: 300, sigma: 1.5}",
            "prompt_tokens",
            (Lengths(median=300, sigma=1.5),),
        ),
        ("swarm-54k", "cells=cold,primed", "cells_of_swarm", (SwarmCell.COLD, SwarmCell.PRIMED)),
        ("swarm-54k", "agents=8", "agents", (8,)),
        ("test-i", "limit=3", "limit", 3),
    ],
)
def test_set_reads_a_value_as_a_file_would(name: str, text: str, key: str, value: object) -> None:
    assert getattr(load(name, text), key) == value


def test_set_goes_inside_by_dots() -> None:
    searched = load("quick", "search.high=64", "search.slo=chat", "search.low=2")
    by_name = load("eight-users-mixed", "lanes.batch.concurrency=3")
    by_number = load("eight-users-mixed", "lanes.1.concurrency=3")

    assert searched.search == Search(low=2.0, high=64.0, slo=Slo(name="chat", ttft_s=1.0))
    assert [lane.concurrency for lane in by_name.lanes] == [1, 3]
    assert by_name == by_number


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [
        ("quick", "concurency=1", "concurency"),
        ("quick", "concurrency=0", "concurrency"),
        ("quick", "repeats=x", "repeats"),
        ("quick", "kind=opne", "kind"),
        ("quick", "concurrency={", ""),
        ("quick", "search.high=64", "search"),
        ("quick", "cap=4", "cap"),
        ("quick", "agents=4", "agents"),
        ("eight-users-mixed", "lanes.batch.concurrency=x", "lanes[1].concurrency"),
        ("test-i", "file=nowhere.json", "file"),
        ("test-i", "speed=2", "speed"),
        ("trace", "burstiness=2", "burstiness"),
    ],
)
def test_set_names_the_override_that_is_wrong(name: str, text: str, path: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        load(name, text)

    places = [(p.file, p.line, p.path) for p in refused.value.problems]
    assert places == [(f"--set {text}", None, path)]


def test_set_of_another_kind_finds_what_the_file_says_for_the_old_one() -> None:
    with pytest.raises(InvalidFile) as refused:
        load("quick", "kind=open")

    assert [(Path(p.file).name, p.line, p.path) for p in refused.value.problems] == [("quick.yaml", 8, "concurrency")]
    assert "`--set concurrency=null` leaves it out" in str(refused.value)
    assert load("quick", "kind=open", "concurrency=null").kinds == (Kind.OPEN,)


def test_set_of_an_unknown_lane_says_which_there_are() -> None:
    with pytest.raises(InputError) as refused:
        load("eight-users-mixed", "lanes.persn.concurrency=3")

    assert refused.value.hint == "there are: person, batch"


@pytest.mark.parametrize("text", ["concurrency", "=1", "concurrency="])
def test_set_needs_key_and_value(text: str) -> None:
    with pytest.raises(InputError, match="KEY=VALUE"):
        parse_overrides([text])


def test_a_path_of_an_override_starts_where_gate0_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.csv").write_text("timestamp_s,input_length,output_length\n5,100,10\n7,200,20\n")
    monkeypatch.chdir(tmp_path)

    w = load_workload("trace", search=search_path(), changes={"file": "mine.csv"})

    assert w.file == "mine.csv"
    assert [c.at_s for c in w.conversations] == [0.0, 2.0]
    assert [c.id for c in w.cells()] == ["replay-trace"]


def test_a_rate_replays_a_trace_without_its_times() -> None:
    w = load("trace", "rate=2")

    assert {c.at_s for c in w.conversations} == {None}
    assert [(c.id, c.rate_rps) for c in w.cells()] == [("replay-r2", 2.0)]


def test_a_record_keeps_no_place_of_a_recording() -> None:
    load_of = load("test-i", f"file={SAMPLES / 'conversations.json'}").cells()[0].load()

    assert load_of["file"] == "conversations.json"
    assert load_of["conversations"] == load("test-i").conversations_digest
    assert load_of["prompt_tokens"] is None


def test_grid_unfolds_into_every_combination_once() -> None:
    w = Workload(
        name="w",
        kinds=(Kind.CLOSED, Kind.BATCH),
        prompt_tokens=(fixed(1), fixed(2)),
        output_tokens=(fixed(3),),
        depth=(0, 9),
        concurrency=(4, 5),
    )

    ids = [c.id for c in w.cells()]

    assert len(ids) == len(set(ids)) == 16
    assert ids[:3] == ["closed-p1-o3-c4", "closed-p1-o3-c5", "closed-p1-o3-d9-c4"]


def test_only_a_closed_loop_has_several_requests_for_a_user() -> None:
    w = Workload(name="w", kinds=(Kind.CLOSED, Kind.BATCH, Kind.INGEST), concurrency=(4,), requests_per_user=3)

    assert [c.requests_per_repeat for c in w.cells()] == [12, 4, 12]


def test_an_overload_counts_the_calm_parts_at_half_its_capacity() -> None:
    w = Workload(name="w", kinds=(Kind.OVERLOAD,), rate=(2.0,), factor=3.0, duration_s=10.0, recovery_s=20.0)

    (cell,) = w.cells()
    assert cell.overload_requests == (20, 60, 20)
    assert cell.requests_per_repeat == 100


def test_digest_follows_what_changes_the_load_and_nothing_else() -> None:
    base, renamed, hotter = Workload(name="w"), Workload(name="v", title="t"), Workload(name="w", temperature=1.0)

    assert base.cells()[0].load_digest() == renamed.cells()[0].load_digest()
    assert base.cells()[0].load_digest() != hotter.cells()[0].load_digest()


def test_estimate_states_its_assumption_and_follows_it() -> None:
    w = load("batching")

    slow, fast = estimate(w, tok_per_s=10), estimate(w, tok_per_s=100)

    assert slow.minutes > fast.minutes > 0
    assert "10 tok/s for one user" in slow.assumption


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        # one user: 2 prompts of 500 tokens at 1000 tok/s, 2 answers of 100 at 20 tok/s
        ("prompt_tokens: 500\noutput_tokens: 100\nconcurrency: 1\nrequests_per_user: 2", 2 * (0.5 + 5)),
        # two users: prompts one after the other, answers at 71 % each
        ("prompt_tokens: 500\noutput_tokens: 100\nconcurrency: 2", 1 + 100 / 14.2),
        ("kind: batch\nprompt_tokens: 500\noutput_tokens: 100\nconcurrency: 1\ndepth: 1500", 2 + 5),
        # three turns with two pauses, twice over
        (
            "kind: sessions\nprompt_tokens: 500\noutput_tokens: 100\nconcurrency: 1\nturns: 3\nthink_s: 4\nsessions: 2",
            2 * (3 * 5.5 + 8),
        ),
        # the schedule and the last answer
        ("kind: open\nprompt_tokens: 500\noutput_tokens: 100\nrate: 0.1\nrequests: 10", 100 + 5.5),
        # past a cap of one: the work itself
        ("kind: open\nprompt_tokens: 500\noutput_tokens: 100\nrate: 10\nrequests: 10\ncap: 1", 55),
        ("kind: swarm\nprompt_tokens: 500\noutput_tokens: 100\ncells: single\nprefix_tokens: 7000", 7 + 5.5),
    ],
)
def test_estimate_by_hand(text: str, seconds: float, tmp_path: Path) -> None:
    w = load(written(tmp_path, f"repeats: 1\nwarmup: 0\n{text}"))

    (cell,) = w.cells()
    assert cell_seconds(cell, tok_per_s=20) - 3.0 == pytest.approx(seconds)
