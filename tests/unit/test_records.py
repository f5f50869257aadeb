"""Records on disk: whole or not at all, and one bad one spoils nothing."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import InputError, StoreError
from orchestrator.records import store as store_module
from orchestrator.records.record import CellRecord, GateRecord, RequestRecord, RunRecord
from orchestrator.records.store import RunWriter, Store, write_atomically
from orchestrator.values import Secret


def run(run_id: str = "20261130T061756Z-smol-spark01-abc123", **changes: object) -> RunRecord:
    values: dict[str, object] = {
        "id": run_id,
        "status": "running",
        "created_at": "2026-11-30T06:17:56.000Z",
        "updated_at": "2026-11-30T06:17:56.000Z",
        "profile_name": "smol",
        "profile_title": "SmolLM2",
        "profile_digest": "abc",
        "engine": "llamacpp",
        "hosts": ({"name": "spark01"},),
        "invocation": ("gate0", "run", "smol"),
    }
    return RunRecord(**{**values, **changes})  # type: ignore[arg-type]


def cell() -> CellRecord:
    return CellRecord(
        id="closed-p8-o8-c1",
        workload="quick",
        kind="closed",
        concurrency=1,
        prompt_tok=8,
        output_tok=8,
        repeats=1,
        requests_per_repeat=1,
        digest="d",
        spans_ns=((0, 5),),
    )


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    writer = store.new_run(run().id)
    request = RequestRecord(repeat=0, index=0, scheduled_ns=1, events=((2, 1), (3, None)))
    gate = GateRecord(name="coherence", status="pass", summary="3/3", evidence=({"asked": "2+2"},))

    writer.write_run(run())
    writer.write_gate(gate)
    writer.write_cell(cell(), [request])

    stored = store.find("smol")
    assert stored.run.profile_name == "smol"
    assert [g.summary for g in stored.gates()] == ["3/3"]
    assert [c.requests for c in stored.cells()] == [(request,)]
    found = writer.find_cell("quick", "closed-p8-o8-c1")
    assert found is not None
    assert found.cell.digest == "d"


def test_a_list_where_a_mapping_belongs_is_no_record() -> None:
    with pytest.raises(TypeError, match="effective is not a mapping"):
        RunRecord.from_json({"effective": []})


def test_a_corrupt_record_is_a_warning_and_the_others_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.new_run("a-run").write_run(run("a-run"))
    for name, text in {
        "b": "{",
        "c": "[]",
        "d": '{"format": "gate0-record/1"}',
        "e": '{"format": "gate0-record/9"}',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)

    good, bad = store.runs()

    assert [g.run.id for g in good] == ["a-run"]
    assert [b.path.name for b in bad] == ["b", "c", "d", "e"]
    assert "newer" in bad[3].reason


def test_a_cell_without_its_requests_is_not_a_finished_cell(tmp_path: Path) -> None:
    writer = Store(tmp_path).new_run("r")
    writer.write_cell(cell(), [])
    (tmp_path / "r/sweeps/quick/closed-p8-o8-c1.requests.jsonl").unlink()

    assert writer.find_cell("quick", "closed-p8-o8-c1") is None


def test_keys_of_a_newer_minor_format_are_ignored(tmp_path: Path) -> None:
    Store(tmp_path).new_run("r").write_run(run("r"))
    path = tmp_path / "r/run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "invented_later": 1}))

    assert Store(tmp_path).find("r").run.id == "r"


def test_an_unknown_and_an_ambiguous_name_are_the_users_errors(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("x-smol-1", "x-smol-2"):
        store.new_run(name).write_run(run(name))

    with pytest.raises(InputError, match="no run named 'nothing'") as refused:
        store.find("nothing")
    assert refused.value.hint == f"`gate0 results list --results {tmp_path}` shows them"
    with pytest.raises(InputError, match="fits 2 runs"):
        store.find("smol")
    assert store.find("latest").run.id == "x-smol-2"


def test_an_empty_place_is_told_from_a_wrong_name(tmp_path: Path) -> None:
    for reference in ("latest", "x-smol"):
        with pytest.raises(InputError, match="no records in") as refused:
            Store(tmp_path / "results").find(reference)
        assert "--results DIR" in (refused.value.hint or "")


def test_the_newest_run_is_found_by_profile_and_exact_hosts(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.new_run("1").write_run(run("1"))
    store.new_run("2").write_run(run("2", hosts=({"name": "spark01"}, {"name": "spark02"})))

    found = store.newest(profile_name="smol", hosts=["spark01"])

    assert found is not None
    assert found.run.id == "1"
    assert store.newest(profile_name="other", hosts=["spark01"]) is None


@pytest.mark.parametrize("verb", ["deploy", "check"])
def test_only_what_can_go_on_is_gone_on_with(verb: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.new_run("1").write_run(run("1"))
    store.new_run("2").write_run(run("2", invocation=("gate0", verb, "smol")))

    found = store.newest(profile_name="smol", hosts=["spark01"])

    assert found is not None
    assert found.run.id == "1"


SECRETS = (
    Secret("API_KEY", 'sk-"quoted"-ünd'),
    Secret("API_KEY_2", 'sk-"quoted"-ünd-longer'),
    Secret("SHORT", "EMPTY"),
)


def write_everything(writer: RunWriter, text: str) -> None:
    writer.write_run(run(error={"message": text, "log_tail": [text]}, profile_source=text))
    writer.write_gate(GateRecord(name="coherence", status="fail", summary=text, evidence=({"answer": [text]},)))
    broken = replace(cell(), guards=({"message": text},))
    writer.write_cell(broken, [RequestRecord(repeat=0, index=0, scheduled_ns=1, failure="http", error=text)])
    writer.write_text("container-0.log", f"key is {text}\nescaped {json.dumps(text)}\n")
    writer.append_event("notice", {"text": text})
    writer.append_line("telemetry.jsonl", {"nested": [{"text": json.dumps({"key": text})}]})


@pytest.mark.parametrize("secret", SECRETS[:2], ids=lambda s: s.name)
def test_no_secret_reaches_any_file_of_a_record(secret: Secret, tmp_path: Path) -> None:
    write_everything(Store(tmp_path).writer("r", secrets=SECRETS), f"before {secret.value} after")

    files = [p for p in (tmp_path / "r").rglob("*") if p.is_file()]
    texts = {p.name: p.read_text() for p in files}
    assert len(texts) == 7
    assert {name: t.count("before *** after") for name, t in texts.items()} == dict.fromkeys(texts, 1) | {
        "run.json": 3,
        "coherence.json": 2,
        "container-0.log": 2,
    }
    assert [name for name, text in texts.items() if "quoted" in text or "longer" in text] == []


def test_a_secret_that_reads_like_a_key_of_the_record_leaves_it_readable(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.writer("r", secrets=[Secret("K", "profile_name")]).write_run(run("r", profile_title="a profile_name"))

    stored = store.find("r").run

    assert (stored.profile_name, stored.profile_title) == ("smol", "a ***")


def test_a_short_word_is_no_secret_worth_hiding(tmp_path: Path) -> None:
    writer = Store(tmp_path).writer("r", secrets=SECRETS)

    writer.write_text("x.log", "the cache is EMPTY")

    assert (tmp_path / "r/x.log").read_text() == "the cache is EMPTY"


def test_a_failed_write_leaves_the_old_content_and_no_scrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")

    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_says_so_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    writer = store_module.RunWriter(tmp_path)

    with pytest.raises(StoreError, match="no space left") as caught:
        writer.append_event("x", {})

    assert "--resume" in str(caught.value.hint)
