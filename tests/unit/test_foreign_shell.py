"""Shell text read without running it: what the server's command comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.foreign.shell import Served, find_servers, read_script, split_words

CASES = Path(__file__).parents[1] / "cases" / "foreign" / "shell"


def cases(name: str) -> list[Any]:
    loaded = yaml.safe_load((CASES / name).read_text())
    return [pytest.param(case, id=case["name"]) for case in loaded]


@pytest.mark.parametrize("case", cases("servers.yaml"))
def test_the_serving_command_is_found_with_its_words_and_environment(case: dict[str, Any]) -> None:
    script = read_script(case["text"], values=case.get("values"))
    found = find_servers(script)

    told = [
        {"program": s.program, "words": [w.text for w in s.words], "env": {k: w.text for k, w in s.env.items()}}
        for s in found
    ]
    expected = [{"env": {}, **server} for server in case["servers"]]

    assert told == expected


@pytest.mark.parametrize("case", cases("notes.yaml"))
def test_what_was_changed_or_left_out_is_noted_on_its_line(case: dict[str, Any]) -> None:
    found = find_servers(read_script(case["text"]))

    told = [[n.fate.value, n.where, n.what] for n in found[0].notes]

    assert told == case["notes"]


@pytest.mark.parametrize("case", cases("refused.yaml"))
def test_a_text_that_never_ends_is_refused_with_its_line(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        read_script(case["text"])

    assert caught.value.message == case["message"]


@pytest.mark.parametrize("case", cases("split.yaml"))
def test_a_text_that_no_shell_reads_is_split_at_blanks_and_quotes_alone(case: dict[str, Any]) -> None:
    assert [word.text for word in split_words(case["text"])] == case["words"]


def test_every_word_knows_its_line() -> None:
    (served,) = find_servers(read_script("export A=1\n\nvllm serve m \\\n  --x 1 \\\n  --y '{\n}' \\\n  --z\n"))

    assert [(w.text, w.line) for w in served.words] == [
        ("vllm", 3),
        ("serve", 3),
        ("m", 3),
        ("--x", 4),
        ("1", 4),
        ("--y", 5),
        ("{\n}", 5),
        ("--z", 7),
    ]


def test_what_a_variable_waits_for_stays_with_the_word() -> None:
    (served,) = find_servers(read_script('vllm serve "$MODEL" --name "x-$(date)" --port $PORT\n'))

    assert [(w.text, w.missing, w.code, w.reference) for w in served.words[2:]] == [
        ("${MODEL}", ("MODEL",), (), "MODEL"),
        ("--name", (), (), None),
        ("x-$(date)", (), ("$(date)",), None),
        ("--port", (), (), None),
        ("${PORT}", ("PORT",), (), "PORT"),
    ]


FRAGMENTS = """
$( $(( ${ ${A:- EOF if then fi case in esac for do done A= A=( vllm serve docker run bash -c -x export [[ ]] function
f() { } x ü ;; $' \\u12 && || ! [ ] "$@" ${A[@]} ${A##*/}
"""
SHELLISH = st.lists(
    st.sampled_from([*"\\\n \t'\"`$(){};&|<>#!=*[]", *FRAGMENTS.split(), "<<EOF\n", "\r\n"]), max_size=40
).map("".join)


@settings(max_examples=400, deadline=None)
@given(SHELLISH | st.text(max_size=60))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    refused = "line 1"
    found: tuple[Served, ...] = ()
    try:
        found = find_servers(read_script(text))
    except InputError as exc:
        refused = exc.message

    assert "line " in refused
    assert all(served.words for served in found)
