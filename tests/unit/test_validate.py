"""`gate0 validate` and what `plan` says: every finding at its file and line, counted, in three forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.inspecting import Diagnostic, github_line, shown_path
from orchestrator.cli.main import main
from orchestrator.deploy.own_flags import FORMAT, flags_folder, keep
from orchestrator.engines.flags.document import encode
from orchestrator.engines.flags.loading import load
from orchestrator.engines.flags.model import Flag, ValueKind
from orchestrator.profile.digest import profile_digest
from orchestrator.profile.loading import load_profile
from orchestrator.records.record import RunRecord
from orchestrator.records.store import Store

BASE = "name: p\nengine: vllm\nimage: vllm/vllm-openai:v0.31.0\nmodel: unsloth/Qwen3.8-27B-NVFP4\nserved_name: m\n"
QUIET = "expose: loopback\nworkloads: []\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def document(capsys: pytest.CaptureFixture[str]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_an_unknown_flag_is_an_error_at_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "flags:\n  max-num-sequences: 4\n")

    assert main(["validate", "p.yaml", "--least", "error"]) == 2

    found = lines(capsys)
    assert found[0].startswith("p.yaml:9: error unknown_flag: flags.max-num-sequences: ")
    assert found[1].startswith("  hint: ")
    assert "--max-num-seqs" in found[1]
    assert found[-1].startswith("0 of 1 profiles are valid: 1 error, 0 warnings, ")


def test_the_same_error_stops_a_plan_by_file_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "flags:\n  max-num-sequences: 4\n")

    assert main(["plan", "p.yaml", "--on", "local"]) == 2

    assert "p.yaml:9: flags.max-num-sequences: " in capsys.readouterr().err


def test_a_setting_that_the_engine_lacks_hides_no_bad_flag(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(
        "name: p\nengine: llamacpp\nruntime: process\nbinary: llama-server\nengine_version: b10434\n"
        "model: {path: /m.gguf}\nserve: {kv_cache_dtype: fp8, seed: 1}\nflags:\n  flash-attn: maybe\n  threads: lots\n"
        'args: ["--seed", "2", "--no-such-flag"]\nenv: {LLAMA_ARG_CTX_SIZ: "1"}\n' + QUIET
    )

    assert main(["validate", "p.yaml", "--least", "warning"]) == 2

    assert [line.split(": ")[:3] for line in lines(capsys) if line.startswith("p.yaml")] == [
        ["p.yaml:7", "error profile", "serve.kv_cache_dtype"],
        ["p.yaml:9", "error flag_choice", "flags.flash-attn"],
        ["p.yaml:10", "error flag_value", "flags.threads"],
        ["p.yaml:11", "error profile", "args[0]"],
        ["p.yaml:11", "error unknown_flag", "args[2]"],
        ["p.yaml:12", "warning unknown_variable", "env.LLAMA_ARG_CTX_SIZ"],
    ]


def test_an_allowed_flag_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "flags:\n  own-patch: 4\nallow_unknown_flags: [own-patch]\n")

    assert main(["validate", "p.yaml"]) == 0


PINNED = BASE.replace("v0.31.0", f"v0.31.0@sha256:{'a' * 64}")


@pytest.fixture
def own_list(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image's own list as an earlier run kept it: one flag more, one less."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    flags = dict(load("vllm", "0.31.0").flags)
    del flags["--max-num-seqs"]
    flags["--own-patch"] = Flag(name="--own-patch", kind=ValueKind.INT)
    catalogue = replace(load("vllm", "0.31.0"), version="0.31.0+patched", flags=flags, is_own=True)
    keep(flags_folder() / f"vllm-sha256-{'a' * 64}.json", {"format": FORMAT, "catalogue": encode(catalogue)})


@pytest.mark.usefixtures("own_list")
def test_a_pinned_image_is_held_against_its_own_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(PINNED + QUIET + "flags:\n  own-patch: 4\n")
    assert main(["validate", "p.yaml"]) == 0
    assert any(
        line.startswith("p.yaml:3: advice flag_list: image: held against this image's own flag list (0.31.0+patched)")
        for line in lines(capsys)
    )
    assert main(["plan", "p.yaml", "--on", "local"]) == 0
    assert any(line.startswith("advice flag_list: held against this image's own") for line in lines(capsys))

    Path("p.yaml").write_text(PINNED + QUIET + "serve: {max_num_seqs: 4}\n")
    assert main(["validate", "p.yaml", "--least", "error"]) == 2
    what = "error unknown_flag: serve.max_num_seqs: --max-num-seqs is no flag of this image (vllm 0.31.0+patched)"
    assert lines(capsys)[0] == f"p.yaml:8: {what}"
    assert main(["plan", "p.yaml", "--on", "local"]) == 2
    assert "no flag of this image" in capsys.readouterr().err


@pytest.mark.usefixtures("own_list")
def test_a_tag_is_held_against_the_shipped_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "flags:\n  own-patch: 4\n")

    assert main(["validate", "p.yaml", "--least", "error"]) == 2

    assert "--own-patch is no flag of vllm 0.31.0" in lines(capsys)[0]


def test_an_allowed_key_and_an_idle_allowance_are_at_their_lines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BASE.replace("v0.31.0", "v0.33.0") + QUIET + "engine_version: 0.31.0\n"
    text += "flags: {speculative-config: {method: mtp, num_speculative_tokens: 1, draft_x: 1}}\n"
    Path("p.yaml").write_text(text + "allow_unknown_flags:\n  - speculative-config.draft_x\n  - nothing-at-all\n")

    assert main(["validate", "p.yaml", "--least", "warning"]) == 0

    found = [line for line in lines(capsys) if not line.startswith("  ")]
    assert [line.split(": ")[:3] for line in found[:2]] == [
        ["p.yaml:8", "warning version_mismatch", "engine_version"],
        ["p.yaml:12", "warning idle_allowance", "allow_unknown_flags[1]"],
    ]


def test_an_inherited_error_is_at_the_parents_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("parent.yaml").write_text(BASE + QUIET + "args: [--max-num-seqs, lots]\n")
    Path("child.yaml").write_text("name: c\nextends: parent.yaml\n")

    assert main(["validate", "child.yaml", "--json"]) == 2

    (profile,) = document(capsys)["profiles"]
    (error,) = [one for one in profile["problems"] if one["severity"] == "error"]
    assert (error["file"], error["line"], error["code"]) == ("parent.yaml", 8, "flag_value")
    assert error["path"] in {"args[0]", "args[1]"}


def test_a_warning_ends_the_check_only_when_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BASE.replace("v0.31.0", "v0.33.0") + QUIET + "flags:\n  mamba-cache-mode: align\n"
    Path("p.yaml").write_text(text)

    assert main(["validate", "p.yaml", "--least", "warning"]) == 0
    found = lines(capsys)
    assert found[0].startswith("p.yaml:9: warning ")
    assert main(["validate", "p.yaml", "--strict"]) == 2


def test_advice_carries_its_evidence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "serve:\n  prefix_caching: true\n")

    assert main(["validate", "p.yaml", "--json"]) == 0

    (profile,) = document(capsys)["profiles"]
    cache = next(one for one in profile["problems"] if one["code"] == "GB10-CACHE-01")
    assert (cache["line"], cache["path"], cache["severity"]) == (9, "serve.prefix_caching", "advice")
    assert "vllm-project/vllm#55600" in cache["evidence"]
    assert cache["standing"].startswith("several reports")
    assert profile["is_valid"] is True


def test_silenced_codes_are_counted_and_unknown_ones_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "silence: [GB10-CACHE-01, GB10-CASHE-02]\n")

    assert main(["validate", "p.yaml", "--least", "warning"]) == 0

    found = lines(capsys)
    what = "no advisory has the code GB10-CASHE-02; did you mean `GB10-CACHE-02`?"
    assert found[0] == f"p.yaml:8: warning unknown_code: silence[1]: {what}"
    assert found[-1].endswith(", 1 silenced")


def test_a_missing_workload_and_suite_are_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + "gates: none-such\nworkloads: [none-such]\n")

    assert main(["validate", "p.yaml", "--least", "error"]) == 2

    assert [line.split(": ")[1:3] for line in lines(capsys) if not line.startswith(" ")][:2] == [
        ["error gates", "gates"],
        ["error workload", "workloads[0]"],
    ]


def test_a_profile_that_is_not_there_is_an_error_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "none-such.yaml", "--json"]) == 2

    (problem,) = document(capsys)["profiles"][0]["problems"]
    assert (problem["file"], problem["line"], problem["severity"]) == ("none-such.yaml", None, "error")


def test_what_two_children_inherit_is_said_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("parent.yaml").write_text(BASE + QUIET + "container: {restart: always}\n")
    for name in ("a", "b"):
        Path(f"{name}.yaml").write_text(f"name: {name}\nextends: parent.yaml\n")

    assert main(["validate", "a.yaml", "b.yaml"]) == 0

    assert sum("GB10-START-05" in line for line in lines(capsys)) == 1


def test_a_workflow_gets_annotations(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "flags:\n  max-num-sequences: 4\n")

    assert main(["validate", "p.yaml", "--format", "github", "--least", "error"]) == 2

    assert lines(capsys)[0].startswith("::error file=p.yaml,line=9,title=unknown_flag::flags.max-num-sequences: ")


def test_an_annotation_is_one_line_whatever_it_says() -> None:
    one = Diagnostic(
        severity="advice", code="A", file="a,b:c.yaml", line=None, path="", message="100 %\nof it", hint="wait"
    )

    assert github_line(one) == "::notice file=a%2Cb%3Ac.yaml,title=A::100 %25%0Aof it%0Ahint: wait"


def test_files_elsewhere_keep_their_path(folder: Path) -> None:
    assert shown_path(str(folder / "x" / "p.yaml")) == "x/p.yaml"
    assert shown_path("/elsewhere/p.yaml") == "/elsewhere/p.yaml"


def stored(folder: Path, gates: dict[str, str]) -> None:
    profile = load_profile("p.yaml", search=[]).profile
    digest = profile_digest(profile)
    run = RunRecord(
        id=f"20261101T000000Z-p-spark01-{digest[:6]}",
        status="passed",
        created_at="2026-11-01T00:00:00Z",
        updated_at="2026-11-01T00:00:00Z",
        profile_name="p",
        profile_title="p",
        profile_digest=digest,
        engine="vllm",
        model=profile.model.display,
        image_digest="sha256:e31",
        gates=gates,
    )
    Store(folder / "results").writer(run.id).write_run(run)


def test_a_plan_says_what_an_earlier_run_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "serve: {prefix_caching: true}\nsilence: [GB10-CACHE-09]\n")
    assert main(["plan", "p.yaml", "--on", "local"]) == 0
    assert any(line.startswith("advice GB10-CACHE-01: ") for line in lines(capsys))

    stored(folder, {"prefix_cache": "pass", "determinism": "pass"})
    assert main(["plan", "p.yaml", "--on", "local"]) == 0

    found = lines(capsys)
    at = next(index for index, line in enumerate(found) if line.startswith("answered GB10-CACHE-01: "))
    assert "prefix_cache and determinism passed on sha256:e31" in found[at + 1]
    assert any(line.startswith("advice GB10-CACHE-12: ") for line in found)
    assert "1 silenced: GB10-CACHE-09" in found


def test_a_plan_for_a_program_has_evidence_and_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(BASE + QUIET + "serve: {prefix_caching: true}\n")
    stored(folder, {"prefix_cache": "pass", "determinism": "fail"})

    assert main(["plan", "p.yaml", "--on", "local", "--json"]) == 0

    cache = next(a for a in document(capsys)["advisories"] if a["code"] == "GB10-CACHE-01")
    assert cache["answer"] is None
    assert cache["seen"].endswith("determinism failed on sha256:e31")
    assert cache["answered_by"] == ["prefix_cache", "determinism"]


def test_the_rules_have_a_manual(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "rules"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Rules")
    assert "| `GB10-CACHE-01` | vLLM >=0.28,<0.32 | " in text
    assert "vllm-project/vllm#55600" in text

    assert main(["docs", "rules", "gb10-cache", "--json"]) == 0
    codes = [rule["code"] for rule in document(capsys)["rules"]]
    assert codes[0] == "GB10-CACHE-01"
    assert all(code.startswith("GB10-CACHE") for code in codes)

    assert main(["docs", "rules", "GB10-CASHE-01"]) == 2
    assert "did you mean" in capsys.readouterr().err
