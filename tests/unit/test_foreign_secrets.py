"""Secrets of a source: none of their values is in anything that an import writes or says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.engines.registry import load_engines
from orchestrator.errors import InputError
from orchestrator.foreign.carrying import MARK
from orchestrator.foreign.hiding import hidden, is_secret_key
from orchestrator.foreign.importing import import_text
from orchestrator.foreign.withholding import has_secret
from tests.unit.foreign_launches import foreign_cases

ENGINES = load_engines()
SECRET = "Hunter2"
CASES = foreign_cases("import", "secrets.yaml")


@pytest.mark.parametrize("case", CASES)
def test_a_secret_becomes_a_reference_or_is_left_out(case: dict[str, Any]) -> None:
    outcome = import_text(case["text"], source="s.sh", engines=ENGINES)

    (one,) = outcome.profiles
    assert {key: one.draft.document.get(key) for key in case["entries"]} == case["entries"]
    told = [note.what for note in one.draft.notes if note.fate.value == "person"]
    assert case["person"] is None or sorted(set(told)) == sorted(case["person"])
    assert SECRET not in f"{one.text}{one.draft}{outcome.notes}{outcome.refused}"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_no_output_of_the_command_holds_a_secret(
    case: dict[str, Any], options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "s.sh"
    source.write_text(case["text"])

    main(["import", str(source), *options])

    out, err = capsys.readouterr()
    assert SECRET not in out + err
    assert options == () or json.loads(out)["profiles"][0]["text"]


def test_a_key_in_variable_and_flag_passes_the_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "s.sh"
    source.write_text("docker run -e VLLM_API_KEY=Hunter2env vllm/vllm-openai:v0.31.0 org/m --api-key Hunter2sk\n")

    code = main(["import", str(source)])

    assert code == 0
    assert "env.VLLM_API_KEY" in capsys.readouterr().err


def test_an_export_that_carries_a_secret_is_read_again_without_it() -> None:
    carried = {
        "name": "m",
        "engine": "vllm",
        "runtime": "process",
        "model": "org/m",
        "args": ["--my-password", "Hunter2pw"],
    }
    text = f"# {MARK} {json.dumps(carried)}\nvllm serve org/m --my-password Hunter2pw\n"

    (one,) = import_text(text, source="s.sh", engines=ENGINES).profiles

    assert SECRET not in f"{one.text}{one.draft}"


@pytest.mark.parametrize(
    ("document", "is_there"),
    [
        ({"serve": {"api_key": "generate"}, "env": {"HF_TOKEN": {"secret": "X"}}}, False),
        ({"env": {"HF_TOKEN": "hf"}}, True),
        ({"args": ["--x", "1", "--my-password", "a"]}, True),
        ({"flags": {"x": {"y": "redis://a:b@h"}}}, True),
    ],
)
def test_a_document_with_a_secret_in_it(document: dict[str, Any], is_there: bool) -> None:
    assert has_secret(document) is is_there


@pytest.mark.parametrize(
    "text",
    [
        "docker run -p 1:1 img foo --api-key Hunter2pw",
        "docker run ollama/ollama --password=Hunter2pw serve",
        "vllm serve ... --my-password Hunter2pw",
        "docker run -e A http://u:Hunter2pw@h/img:1 vllm serve m",
        "recipe_version: '2'\nname: r\nmodel: o/m\npassword: [Hunter2pw\ncontainer: x\ncommand: vllm serve {model}\n",
        "recipe_version: '2'\nname: 5\nmodel: {password: Hunter2pw}\ncommand: 7\ncontainer: http://a:Hunter2pw@h/x",
        "docker run -e URL=http://a:Hunter2pw@h img foo --x http://a:Hunter2pw@h",
    ],
)
def test_nothing_is_said_of_a_secret_in_an_odd_place(text: str) -> None:
    said = ""
    try:
        (one,) = import_text(text, source="s.sh", engines=ENGINES).profiles
        said = f"{one.text}{one.draft}"
    except InputError as exc:
        said = f"{exc.message}{exc.hint}"

    assert said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--enable-x --api-key sk", "--enable-x --api-key ***"),
        ("['--ssl-keyfile-password', 'pw']", "['--ssl-keyfile-password', '***']"),
        ('{"password": 12, "key": "v", "n": "x"}', '{"password": ***, "key": "v", "n": "x"}'),
        (r'"{\"password\": \"a\"}"', r'"{\"password\": \"***\"}"'),
        ("redis://:pw@h https://token@h ssh://git@h", "redis://***@h https://***@h ssh://git@h"),
        ("http://u:$PW@h --token $T", "http://u:$PW@h --token $T"),
        (
            "--max-num-batched-tokens 8 --tokenizer t --api-key-file f",
            "--max-num-batched-tokens 8 --tokenizer t --api-key-file f",
        ),
    ],
)
def test_what_is_shown_of_a_text(text: str, shown: str) -> None:
    assert hidden(text) == shown


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *(
            (name, True)
            for name in ("--hf-token", "password", "a.b.apiKey", "AWS_SECRET_ACCESS_KEY", "client_secret", "--token")
        ),
        *(
            (name, False)
            for name in ("key", "tokenizer", "token_ids", "--max-num-batched-tokens", "pad_token", "--api-key-file")
        ),
        *((name, False) for name in ("--ssl-keyfile", "monkey", "bypass", "--speculative-token-map", "passes")),
    ],
)
def test_names_that_say_secret(name: str, is_one: bool) -> None:
    assert is_secret_key(name) is is_one


@pytest.mark.parametrize("part", ["a.", "a+", "http://", "http://a:", "\\", '"password":"', "a://:", "- x: "])
def test_a_secret_behind_a_long_text_is_hidden(part: str) -> None:
    assert SECRET not in hidden(f"{part * 20_000} --token Hunter2pw")
