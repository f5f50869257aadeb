"""`gate0 show`: a run at a glance, what its server said of itself, its gates' evidence and its logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.records.record import GateRecord, RunRecord
from orchestrator.records.store import Store
from orchestrator.report.effective import counted_words, effective_lines, told_lines
from tests.unit.test_report import run


def setting(path: str, declared: Any, agreement: str, running: Any = None, **more: Any) -> dict[str, Any]:
    return {"path": path, "declared": declared, "agreement": agreement, "running": running, **more}


COMPARED = (
    setting("serve.max_model_len", 8192, "same", 8192, source="/v1/models max_model_len"),
    setting("serve.seed", 1, "unconfirmed"),
    setting(
        "serve.kv_cache_dtype", "fp8", "changed", "auto", source="log", quote="kv cache dtype auto", is_weaker=True
    ),
    setting("serve.max_num_batched_tokens", 1000, "changed", 2048, source="log", quote="raised to 2048"),
    setting("flags.mamba-cache-mode", "align", "ignored", source="log", why="not among its settings"),
)
READINGS = (
    {"name": "max_model_len", "value": 8192, "source": "/v1/models max_model_len", "quote": None},
    {"name": "attention_backend", "value": "FLASH_ATTN", "source": "log", "quote": "Using FLASH_ATTN"},
)
GATE = GateRecord(
    name="effective",
    status="fail",
    summary="flags.mamba-cache-mode: declared align, not there",
    evidence=(*COMPARED, setting("behaviour.speculation", "drafts are accepted", "contradicted", "drafts 3")),
)


def record(**changes: Any) -> RunRecord:
    told = {"compared": COMPARED, "readings": READINGS, "catalogue": {"engine": "vllm", "version": "0.31.0"}}
    return run("20261130T061756Z-p-spark01-abc123", effective=told, gates={"effective": "fail"}, **changes)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    writer = Store(tmp_path).new_run(record().id)
    writer.write_run(
        record(stages=({"name": "ready", "status": "passed", "duration_s": 41.25, "detail": "first token"},))
    )
    writer.write_gate(GATE)
    writer.write_text("container-0.log", "hello\n")
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], results: Path, *words: str) -> str:
    assert main(["show", *words, "--results", str(results)]) == 0
    return capsys.readouterr().out


def test_failing_settings_come_first_then_changes_then_the_rest() -> None:
    lines = effective_lines(record(), [GATE])

    assert [(x.path, x.is_failing) for x in lines] == [
        ("behaviour.speculation", True),
        ("flags.mamba-cache-mode", True),
        ("serve.kv_cache_dtype", True),
        ("serve.max_num_batched_tokens", False),
        ("serve.seed", False),
        ("serve.max_model_len", False),
    ]
    assert counted_words(lines) == ("1 contradicted, 1 ignored, 2 changed by the engine, 1 not confirmable, 1 same")


def test_what_no_setting_was_compared_with_is_also_told() -> None:
    assert told_lines(record()) == (("attention_backend", "FLASH_ATTN", "log"),)


def test_of_a_long_text_that_was_told_the_beginning_is_shown() -> None:
    long = {"name": "chat_template", "value": "x" * 500, "source": "/props"}

    ((_, value, _),) = told_lines(run("a", effective={"readings": (long,)}))

    assert value == "x" * 159 + "…"


@pytest.mark.parametrize("name", ["last", "latest", "20261130T061756Z", "p@spark01"])
def test_a_run_is_named_as_for_the_other_verbs(name: str, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = Store(results).new_run("x")
    writer.write_run(record(profile_name="p", id="x", invocation=("gate0", "run")))

    out = shown(capsys, results, name, "--json")

    assert json.loads(out)["run"] == ("x" if name != "20261130T061756Z" else record().id)


def test_the_effective_table_says_where_each_setting_was_read(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, results, "last", "--effective").splitlines()

    assert lines[0].endswith("1 contradicted, 1 ignored, 2 changed by the engine, 1 not confirmable, 1 same")
    assert lines[1] == "compared by the flags of vllm 0.31.0"
    assert lines[2].split() == ["setting", "declared", "running", "agreement", "where", "it", "was", "read"]
    assert lines[3].startswith("behaviour.speculation")
    assert any(x.split()[:4] == ["serve.max_model_len", "8192", "8192", "same"] for x in lines)
    assert any("not among its settings" in x for x in lines)
    assert lines[lines.index("also told") + 2].split() == ["attention_backend", "FLASH_ATTN", "log"]


def test_the_effective_settings_as_json_are_the_records(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, results, "last", "--effective", "--json"))["effective"]

    assert [c["path"] for c in found["compared"]] == [c["path"] for c in COMPARED]
    assert [b["path"] for b in found["behaviours"]] == ["behaviour.speculation"]
    assert found["readings"] == list(READINGS)


def test_a_run_at_a_glance_names_stages_gates_and_what_does_not_agree(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "last", "--results", str(results)]) == 0
    seen = capsys.readouterr()

    words = [line.split() for line in seen.out.splitlines()]
    assert ["ready", "passed", "41.2", "first", "token"] in words
    assert "gates: Gate 0 failed: effective" in seen.out
    assert ["cells", "0"] in words
    assert "warning: serve.kv_cache_dtype: declared fp8, running auto" in seen.err
    assert "serve.seed" not in seen.err


def test_logs_and_gates_are_found(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, results, "last", "--log").split() == [str(results / record().id / "container-0.log")]
    assert "-- effective: fail: flags.mamba-cache-mode" in shown(capsys, results, "last", "--gates")


def test_an_older_record_reads_as_one_of_which_nothing_was_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = {k: v for k, v in run("old").as_json().items() if k != "effective"}
    Store(tmp_path).new_run("old")
    (tmp_path / "old" / "run.json").write_text(json.dumps(raw))

    assert shown(capsys, tmp_path, "old", "--effective") == "old: nothing was read back from its server\n"
    assert "nothing was read back" in shown(capsys, tmp_path, "old")


def test_of_a_server_taken_as_it_is_stands_what_it_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(tmp_path).new_run("a").write_run(run("a", effective={"compared": (), "readings": READINGS}))

    words = "nothing to compare: the server was taken as it is"
    assert shown(capsys, tmp_path, "a", "--effective").splitlines()[:3] == [f"a: {words}", "", "also told"]
    assert f"declared  {words}\n" in shown(capsys, tmp_path, "a")


def test_of_a_foreign_run_only_what_is_known_stands_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = Store(tmp_path).new_run("f")
    bare = record(source={"tool": "t"}, served_name="", image=None, image_digest=None, runtime="", stages=())
    writer.write_run(replace(bare, id="f", status="imported", model="m", hosts=({"name": "box"},)))

    lines = shown(capsys, tmp_path, "f").splitlines()

    words = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:] if len(line.split()) > 1}
    assert words["status"] == "imported"
    assert words["model"] == "m"
    assert words["hosts"] == "box"
    assert {"image", "stage"} & {*words} == set()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x" * 5000,), "no run or profile named 'xxx"),
        (("last", "--results", "x" * 5000), "cannot look into xxx"),
        (("last", "--results", "nowhere"), "no records in nowhere"),
        (("a\0b",), "no run or profile named 'a\\x00b'"),
    ],
)
def test_a_name_that_no_folder_can_have_is_the_users_mistake(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["show", *words]) == 2

    assert capsys.readouterr().err.startswith(f"error: {said}")
