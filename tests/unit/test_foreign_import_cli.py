"""`gate0 import` of configurations from the command line: where the profile goes, what is said, the exit code."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from orchestrator.cli.main import main

GOOD = (
    'recipe_version: "2"\nname: good\nmodel: org/M\ncontainer: vllm/vllm-openai:v0.31.0\ncommand: vllm serve {model}\n'
)
BAD = GOOD.replace("good", "bad").replace("serve {model}", "serve {model} --unheard-of 1")
TWO = """services:
  one:
    image: vllm/vllm-openai:v0.31.0
    command: org/One --port 8001
  two:
    image: vllm/vllm-openai:v0.31.0
    command: org/Two --port 8002
  redis:
    image: redis
"""


def file(folder: Path, text: str, name: str = "source.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_the_profile_is_on_stdout_and_the_report_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["import", file(tmp_path, GOOD)])

    out, err = capsys.readouterr()
    assert code == 0
    assert out.startswith("name: good\nengine: vllm\nimage: vllm/vllm-openai:v0.31.0\nmodel: org/M\n")
    assert err.startswith(f"{tmp_path}/source.yaml: recipe, sparkrun -> profile good\n")
    assert "translated" in err
    assert "good passes validate" in err


def test_a_form_that_is_the_kind_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["import", file(tmp_path, "docker run vllm/vllm-openai:v0.31.0 org/m\n", "a.sh")])
    main(["import", file(tmp_path, "vllm serve org/m\n", "b.sh")])

    heads = [line for line in capsys.readouterr().err.splitlines() if "-> profile" in line]
    assert heads == [f"{tmp_path}/a.sh: docker-run -> profile m", f"{tmp_path}/b.sh: command -> profile m"]


def test_a_profile_with_something_against_it_is_written_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["import", file(tmp_path, BAD), "-o", str(tmp_path / "bad.yaml")])

    assert code == 1
    assert "unheard-of" in (tmp_path / "bad.yaml").read_text()
    assert "bad does not pass validate: 1 error" in capsys.readouterr().err


def test_the_written_file_validates_as_it_was_said(tmp_path: Path) -> None:
    assert main(["import", file(tmp_path, GOOD), "-o", f"{tmp_path}/out/"]) == 0
    assert main(["validate", str(tmp_path / "out" / "good.yaml")]) == 0


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "mine.yaml"
    target.write_text("mine")

    assert main(["import", file(tmp_path, GOOD), "-o", str(target)]) == 2
    assert target.read_text() == "mine"
    assert "mine.yaml is there already" in capsys.readouterr().err
    assert main(["import", file(tmp_path, GOOD), "-o", str(target), "--force"]) == 0
    assert target.read_text().startswith("name: good\n")


def test_several_servers_are_chosen_by_name_or_go_to_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = file(tmp_path, TWO)

    assert main(["import", source]) == 2
    assert "2 servers: one, two" in capsys.readouterr().err
    assert main(["import", source, "--service", "two"]) == 0
    assert "model: org/Two" in capsys.readouterr().out
    assert main(["import", source, "--service", "three"]) == 2
    assert main(["import", source, "-o", f"{tmp_path}/all/"]) == 0
    assert sorted(p.name for p in (tmp_path / "all").iterdir()) == ["one.yaml", "two.yaml"]


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"vllm serve org/M --max-num-seqs 4\n")))

    assert main(["import", "-", "--image", "vllm/vllm-openai:v0.31.0"]) == 0
    assert "serve: {max_num_seqs: 4}" in capsys.readouterr().out


def test_one_json_document_holds_profile_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", file(tmp_path, BAD), "--json"]) == 1

    (one,) = json.loads(capsys.readouterr().out)["profiles"]
    assert (one["profile"], one["form"], one["is_valid"]) == ("bad", "sparkrun", False)
    assert one["counts"]["person"] == 1
    assert ("person", "--unheard-of 1", "line 5") in [(n["fate"], n["what"], n["where"]) for n in one["report"]]
    assert [p["code"] for p in one["problems"] if p["severity"] == "error"] == ["unknown_flag"]


@pytest.mark.parametrize("text", ["no such thing\n", "a: 1\n", "", '{"x": 1}'])
def test_what_is_neither_is_refused(tmp_path: Path, text: str) -> None:
    assert main(["import", file(tmp_path, text)]) == 2


def test_results_and_configurations_do_not_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = file(tmp_path, '{"x": 1}', "result.json")

    assert main(["import", file(tmp_path, GOOD), result]) == 2
    assert "result.json is no configuration" in capsys.readouterr().err


def test_what_is_neither_is_told_what_it_seems_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = "INFO 08-01 12:00:00 [core.py:1] loading\n" * 60_000

    told = []
    for name, text in (("a.log", log), ("b.yaml", "x: [1,\n"), ("c.ini", "[m]\nmodel = /x.gguf\n"), ("d.json", "{1")):
        assert main(["import", file(tmp_path, text, name)]) == 2
        told.append(capsys.readouterr().err.splitlines()[0].replace(f"{tmp_path}/", ""))

    assert told == [
        "error: a.log is no configuration and no result that gate0 knows: it seems to be a log",
        "error: b.yaml is no configuration and no result that gate0 knows: it seems to be broken YAML, line 2: "
        "expected the node content, but found '<stream end>'",
        "error: c.ini is no configuration and no result that gate0 knows: it seems to be a preset file of "
        "llama-server's router",
        "error: d.json is broken JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ]


def test_a_folder_an_empty_pipe_and_powershells_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder\nhint: name the files in it: {tmp_path}/*.yaml" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    assert main(["import", "-"]) == 2
    assert "standard input is no configuration and no result that gate0 knows: it is empty" in capsys.readouterr().err
    (tmp_path / "ps.sh").write_bytes("vllm serve org/M\r\n".encode("utf-16"))
    assert main(["import", str(tmp_path / "ps.sh")]) == 0
    assert "model: org/M" in capsys.readouterr().out


def test_two_files_that_would_become_one_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (file(tmp_path, f"vllm serve {org}/M\n", f"{org}.sh") for org in ("a", "b"))

    assert main(["import", one, two, "-o", f"{tmp_path}/all/"]) == 2
    assert f"{one} and {two} would both be written to {tmp_path}/all/m.yaml" in capsys.readouterr().err
