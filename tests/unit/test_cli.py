"""The terminal: what is imported when, what goes where, and which exit code ends it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli import compose
from orchestrator.cli.live import LiveView
from orchestrator.cli.main import VERBS, Verbs, gate0, main
from orchestrator.cli.printer import Printer
from orchestrator.pipeline.events import (
    CellBegan,
    CellEnded,
    CellMoved,
    GateBegan,
    GateEnded,
    LapEnded,
    Notice,
    StageBegan,
    StageEnded,
    StageMoved,
)
from orchestrator.profile.building import build_profile
from orchestrator.records.record import CellRecord, GateRecord
from orchestrator.records.store import StoredCell

PROFILE = "name: p\nengine: vllm\nimage: vllm/vllm-openai:v0.31.0\nmodel: some/model\nserved_name: m\n"


def test_help_imports_no_heavy_library() -> None:
    code = (
        "import sys\nfrom orchestrator.cli.main import main\nmain(['--help'])\n"
        "heavy = {'docker', 'paramiko', 'httpx', 'uvloop', 'jsonschema', 'jinja2', 'yaml', 'rich.progress'}\n"
        "sys.stderr.write(','.join(sorted(heavy & set(sys.modules))))"
    )

    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert done.stderr == ""
    assert all(verb in done.stdout for verb in VERBS)


def test_a_deploy_dials_its_host_before_it_reads_what_comes_later(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PROFILE)
    code = (
        "import os, sys\nfrom orchestrator.cli import compose\nfrom orchestrator.cli.main import main\n"
        "def dial(entries):\n"
        "    late = {'docker', 'httpx', 'numpy', 'orchestrator.pipeline.run'}\n"
        "    print(len(entries), sorted(late & set(sys.modules)), flush=True)\n"
        "    os._exit(0)\n"
        "compose.open_hosts = dial\nmain(['deploy', 'p.yaml', '--on', 'me@127.0.0.9'])"
    )

    done = subprocess.run((sys.executable, "-c", code), check=True, capture_output=True, text=True, cwd=tmp_path)

    assert done.stdout == "1 []\n"


def test_a_start_waits_for_nothing_that_only_a_sweep_needs() -> None:
    code = "import sys, orchestrator.pipeline.campaign\nprint(sorted({'httpx', 'numpy'} & set(sys.modules)))"

    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_plan_needs_no_store_that_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.yaml").write_text(PROFILE)

    assert main(["plan", str(tmp_path / "p.yaml"), "--on", "local", "--results", "x" * 5000]) == 0

    assert "docker run" in capsys.readouterr().out


def test_a_plan_for_an_attached_server_names_one_host_at_most(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text("name: p\nengine: endpoint\nattach: http://127.0.0.1:9/v1\n")

    assert main(["plan", str(tmp_path / "p.yaml"), "--on", "me@10.0.0.1,me@10.0.0.2"]) == 2

    assert "looked at on one host, `--on` names 2" in capsys.readouterr().err


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_its_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0

    assert "Usage: gate0" in capsys.readouterr().out


def test_the_verbs_are_what_the_table_says() -> None:
    assert isinstance(gate0, Verbs)
    assert set(gate0.list_commands(None)) == set(VERBS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "did you mean `run`?"),
        (["run"], "Missing argument 'PROFILE'"),
        (["run", "p", "--bogus"], "No such option"),
        (["run", "no-such-profile", "--on", "local"], "no-such-profile"),
        (["check"], "--url"),
        (["check", "--url", "ftp://x"], "not a server's address"),
        (["sweep", "--url", "http://127.0.0.1:1"], "no workload named"),
        (["stop", "--on", "local"], "nothing named to stop"),
        (["docs", "nothing"], "nothing"),
        (["results", "show", "nothing"], "no records in results"),
    ],
)
def test_bad_input_is_exit_2_with_what_to_do(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    code = main(words)

    err = capsys.readouterr().err
    assert code == 2
    assert said in err
    assert "hint:" in err or "did you mean" in err


def test_a_malformed_profile_names_file_line_value_and_fix(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(PROFILE + "serve: {max_model_len: 128k, max_num_seq: 4}\n")

    code = main(["plan", "p.yaml", "--on", "local"])

    err = capsys.readouterr().err
    assert code == 2
    assert "p.yaml:6: serve.max_model_len" in err
    assert "128k" in err
    assert "max_num_seqs" in err


def test_plan_shows_the_line_the_additions_the_gates_and_the_cells_without_a_host(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(PROFILE + "env: {HF_TOKEN: {secret: HF_TOKEN}}\n")

    code = main(["plan", "p.yaml", "--on", "me@10.0.0.1,me@10.0.0.2", "--workload", "quick"])

    out = capsys.readouterr().out
    assert code == 0
    assert out.count("docker run -d --name gate0-p --gpus all") == 2
    assert "-e HF_TOKEN " in out
    assert "--enable-prompt-tokens-details:" in out
    assert "quick/closed-p64-o32-c1" in out
    assert "minutes of sweep" in out


def test_validate_lists_the_problems_of_all_profiles(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.yaml").write_text(PROFILE)
    Path("bad.yaml").write_text("name: bad\nengine: vlm\n")

    code = main(["validate", "good.yaml", "bad.yaml", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 2
    assert [p["is_valid"] for p in document["profiles"]] == [True, False]
    where = [(p["file"], p["line"], p["path"], p["severity"]) for p in document["profiles"][1]["problems"]]
    assert ("bad.yaml", 2, "engine", "error") in where


def test_every_shipped_profile_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 0


@pytest.mark.parametrize("topic", ["profile", "workload", "hosts", "suite"])
def test_every_format_has_a_manual_and_a_schema(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", topic]) == 0
    assert capsys.readouterr().out.startswith("# ")

    assert main(["docs", topic, "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/draft/2020-12")


def test_a_report_of_nothing_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--results", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 0

    assert "No runs yet" in (tmp_path / "page.html").read_text()


def test_json_leaves_stdout_to_the_document() -> None:
    out, err = io.StringIO(), io.StringIO()
    printer = Printer(is_json=True, stdout=out, stderr=err)

    printer.answer("for people")
    printer.table(("a",), [("b",)])
    printer.progress("going on")
    printer.document({"a": [1]})

    assert json.loads(out.getvalue()) == {"a": [1]}
    assert err.getvalue() == "going on\n"


def test_an_error_has_its_hint_on_a_line_of_its_own_and_no_colour_off_a_terminal() -> None:
    err = io.StringIO()

    Printer(stderr=err).error("what [failed]", "what to do")

    assert err.getvalue() == "error: what [failed]\nhint: what to do\n"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[1;36m(EngineCore)\x1b[0m KV cache", "(EngineCore) KV cache"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x1b[2J\x1b(Bb\x9b31mc\x08\x7f\r", "aBb31mc"),
        ("line\nends stay", "line\nends stay"),
    ],
)
def test_what_would_steer_a_terminal_is_not_printed(text: str, seen: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    printer = Printer(stdout=out, stderr=err)

    printer.answer(text)
    printer.progress(text)
    printer.warning(text)
    printer.error("one", text)
    printer.table(("a",), [(text,)])

    assert out.getvalue().startswith(f"{seen}\n")
    assert err.getvalue() == f"{seen}\nwarning: {seen}\nerror: one\nhint: {seen}\n"
    assert not {"\x1b", "\x9b", "\x07"} & {*out.getvalue()}


def test_quiet_shows_warnings_and_errors_only() -> None:
    err = io.StringIO()
    printer = Printer(is_quiet=True, stderr=err)

    printer.progress("going on")
    printer.warning("careful")

    assert err.getvalue() == "warning: careful\n"


def test_every_event_has_its_words_off_a_terminal() -> None:
    err = io.StringIO()
    cell = CellRecord(
        id="closed-p8-o8-c1",
        workload="quick",
        kind="closed",
        concurrency=1,
        prompt_tok=8,
        output_tok=8,
        repeats=1,
        requests_per_repeat=1,
        digest="",
    )
    gate = GateRecord(name="coherence", status="fail", summary="2 of 3", hint="try this")
    with LiveView(Printer(stderr=err)) as view:
        for event in (
            StageBegan(where="a", stage="ready"),
            StageMoved(where="a", stage="ready", text="loading 10%"),
            StageMoved(where="a", stage="ready", text="loading 20%"),
            StageEnded(where="a", stage="ready", status="passed", detail="first token", duration_s=1.0),
            GateBegan(where="a", gate="coherence", title="sense"),
            GateEnded(where="a", gate=gate),
            CellBegan(where="a", cell="quick/c1", index=0, total=1),
            CellMoved(where="a", cell="quick/c1", index=0, total=1, share=0.5, text="half"),
            CellEnded(where="a", cell=cell, index=0, total=1, text="31.0 tok/s"),
            Notice(where="a", text="note"),
            Notice(where="a", text="careful", is_warning=True),
        ):
            view.on(event)

    lines = err.getvalue().splitlines()
    assert lines == [
        "a: ready: loading 10%",
        "passed      a: ready: first token (1.0 s)",
        "a: gate coherence: sense",
        "fail        a: gate coherence: 2 of 3",
        "            try this",
        "a: 1/1 quick/closed-p8-o8-c1: 31.0 tok/s",
        "a: note",
        "warning: a: careful",
    ]


def lap(cell: str, done: int, *, repeats: int = 5) -> LapEnded:
    record = CellRecord(
        id=cell,
        workload="w",
        kind="closed",
        concurrency=1,
        prompt_tok=8,
        output_tok=8,
        repeats=repeats,
        repeats_done=done,
        requests_per_repeat=1,
        digest="",
    )
    return LapEnded(where="a", cell=f"w/{cell}", repeat=done - 1, stored=StoredCell(cell=record, requests=()))


def test_off_a_terminal_a_long_sweep_says_once_a_minute_where_it_is() -> None:
    err, now_s = io.StringIO(), 0.0
    moved = CellMoved(where="a", cell="w/c4", index=2, total=3, share=0.5, text="repeat 2/5: 7 answers", left_s=720.0)
    with LiveView(Printer(stderr=err), clock=lambda: now_s) as view:
        for at_s in (1.0, 59.0, 60.0, 61.0, 119.0, 125.0):
            now_s = at_s
            view.on(moved)

    assert err.getvalue().splitlines() == ["a: about 12 min left, 3/3 w/c4: repeat 2/5: 7 answers"] * 2


def test_the_bar_grows_with_the_repeats_done_whichever_cell_is_on() -> None:
    shown: list[float | None] = []

    class Recording(LiveView):
        def _move(self, where: str, text: str, share: float | None, *, is_cell: bool = False) -> None:
            shown.append(share)

    def moved(index: int) -> CellMoved:
        return CellMoved(where="a", cell=f"w/c{index}", index=index, total=2, share=0.9, text="")

    with Recording(Printer(stderr=io.StringIO())) as view:
        for event in (moved(1), lap("c1", 1), moved(0), lap("c0", 1), moved(1), lap("c1", 5), moved(0)):
            view.on(event)

    assert shown == pytest.approx([0.0, 0.1, 0.2, 0.6])


def test_a_suites_path_is_looked_for_beside_the_profile_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "profiles", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "mine.yaml").write_text("title: mine\ngates: [{gate: coherence}]\n")
    (elsewhere / "mine.yaml").write_text("title: another\ngates: [{gate: tool_call}]\n")
    (elsewhere / "other.yaml").write_text("title: other\ngates: [{gate: context}]\n")
    monkeypatch.chdir(elsewhere)

    found = {}
    for suite in ("./mine.yaml", "./other.yaml"):
        profile = build_profile({"name": "p", "engine": "vllm", "gates": suite}, source=str(folder / "p.yaml"))
        found[suite] = [item.gate.name for item in compose.load_suite(profile).items]

    assert found == {"./mine.yaml": ["coherence"], "./other.yaml": ["context"]}


def test_parameters_of_gates_that_the_suite_does_not_run_are_left_aside(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(PROFILE + "gates: {suite: quick, params: {prefix_sharing: {prompt_tokens: 400}}}\n")
    Path("q.yaml").write_text(PROFILE + "gates: {suite: quick, params: {prefix_sharin: {prompt_tokens: 400}}}\n")

    assert main(["plan", "p.yaml", "--on", "local"]) == 0
    assert main(["plan", "p.yaml", "--on", "local", "--gates", "gate0"]) == 0
    assert main(["plan", "q.yaml", "--on", "local"]) == 2
    assert "prefix_sharin" in capsys.readouterr().err
