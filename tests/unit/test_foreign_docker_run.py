"""`docker run` lines and launch scripts as launches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.foreign.docker_options import take_apart
from orchestrator.foreign.docker_run import looks_like_docker_run, read_docker_run
from orchestrator.foreign.found import Found
from orchestrator.foreign.model import Fate
from orchestrator.foreign.shell import split_words
from tests.unit.foreign_launches import foreign_cases, plain_found, plain_notes


def read(case: dict[str, Any]) -> Found:
    files = case.get("files", {})
    return read_docker_run(case["text"], source="run.sh", values=case.get("values"), read_file=files.get)


@pytest.mark.parametrize("case", foreign_cases("docker_run", "launches.yaml"))
def test_a_line_becomes_a_launch_with_its_container(case: dict[str, Any]) -> None:
    assert plain_found(read(case)) == case["launches"]


@pytest.mark.parametrize("case", foreign_cases("docker_run", "notes.yaml"))
def test_what_has_no_place_is_noted_on_its_line(case: dict[str, Any]) -> None:
    (launch,) = read(case).launches

    assert plain_notes(launch.notes) == case["notes"]


@pytest.mark.parametrize("case", foreign_cases("docker_run", "options.yaml"))
def test_options_are_taken_apart_as_docker_does(case: dict[str, Any]) -> None:
    line = take_apart(split_words(case["text"]))

    told = [[option.name, option.value.text if option.value is not None else None] for option in line.options]

    assert told == case["options"]
    assert [line.image.text if line.image is not None else None, *(word.text for word in line.words)] == case["rest"]


@pytest.mark.parametrize("case", foreign_cases("docker_run", "recognised.yaml"))
def test_a_text_that_starts_containers_is_recognised(case: dict[str, Any]) -> None:
    assert looks_like_docker_run(case["text"]) is case["is_docker_run"]


def test_no_secret_of_the_text_is_left_in_what_was_read() -> None:
    text = (
        "API=sk-abcdefghijklmnopqrstu\nexport HF_TOKEN=hf_abcdefghijklmnopqrst\nX=$HF_TOKEN\n"
        'docker run -e MY_KEY=verysecret -e A=$X -e "B=$API" --label k=$HF_TOKEN img bash -c '
        "'vllm serve m --api-key verysecret --hf-token=verysecret --name $MY_KEY'\n"
    )

    shown = str(read_docker_run(text, source="run.sh"))

    assert [part for part in ("verysecret", "hf_abcdef", "sk-abcdef") if part in shown] == []


def test_an_unknown_option_asks_for_a_person_and_stops_nothing() -> None:
    (launch,) = read_docker_run("docker run --brand-new 5 --other org/img:1 --model m", source="x").launches

    assert (launch.image, launch.words) == ("org/img:1", ("--model", "m"))
    assert [note.fate for note in launch.notes] == [Fate.PERSON, Fate.PERSON]


OPTIONS = "-e A=b -e $X -p 1:2 -v a:b:ro -v ~:/x --gpus all --mount type=bind,src=a --ulimit n=1 --entrypoint bash"
WORDS = [*OPTIONS.split(), "docker", "run", "podman", "exec", "img", "bash", "-c", "'vllm serve m'", "vllm", "serve"]
SIGNS = ["\\\n", "\n", "'", '"', "--", "-", "--net", ":", "=", "${A:-b}", "#"]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*WORDS, "\\\n", "\n", "'", '"', "--", "-", "--net", ":", "=", "${A:-b}", "#"]), max_size=25
    )
)
def test_any_line_is_read_or_refused_and_nothing_else(words: list[str]) -> None:
    refused = "line 1"
    try:
        read_docker_run("docker run " + " ".join(words), source="x", read_file=lambda path: path)
    except InputError as exc:
        refused = exc.message

    assert "line " in refused
