"""Words as flags and values, as each engine's parser takes them: tests/cases/flags/reading.yaml."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given as random
from hypothesis import settings
from hypothesis import strategies as st

from orchestrator.engines.flags.loading import ENGINES, load, versions
from orchestrator.engines.flags.reading import Given, find_spelling, read_words

CASES = Path(__file__).parents[1] / "cases" / "flags" / "reading.yaml"


def rows() -> Iterator[tuple[str, str, str, list[str]]]:
    for group in yaml.safe_load(CASES.read_text()):
        for words, expected in group["rows"].items():
            yield group["engine"], group["version"], words, expected


def shown(given: Given) -> str:
    marks = (f".{given.dotted}" if given.dotted else "", "!" if given.is_negative else "")
    return " ".join((given.match, given.name, *(mark for mark in marks if mark), f"[{', '.join(given.values)}]"))


@pytest.mark.parametrize(("engine", "version", "words", "expected"), list(rows()))
def test_words_are_read_as_the_engine_reads_them(engine: str, version: str, words: str, expected: list[str]) -> None:
    assert [shown(given) for given in read_words(load(engine, version), shlex.split(words))] == expected


def test_a_list_written_with_a_plus_is_marked() -> None:
    (given,) = read_words(load("vllm", "0.32.0"), ("-cc.cudagraph_capture_sizes+", "1,2"))

    assert (given.is_added, given.dotted) == (True, "cudagraph_capture_sizes")


def test_candidates_of_an_ambiguous_name_are_told() -> None:
    given = find_spelling(load("sglang", "0.5.23"), "--cuda-graph-max-bs")

    assert given.candidates == ("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs-prefill")


WORDS = st.lists(
    st.sampled_from(
        [
            *("m", "8", "-1", "--", "--port", "--port=1", "-tp", "-cc.mode", "-O3", "--no-enable-prefix-caching"),
            *(
                "--served-model-name",
                "--kv",
                "--hf-token",
                "--nope",
                "-fa",
                "--fit",
                "on",
                "{}",
                "a b",
                "-",
                "",
                "-x=1",
            ),
        ]
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@random(words=WORDS, engine=st.sampled_from(ENGINES))
def test_every_word_is_in_exactly_one_place(words: list[str], engine: str) -> None:
    givens = read_words(load(engine, versions(engine)[-1]), words)

    assert [index for given in givens for index in range(given.index, given.index + given.count)] == [
        *range(len(words))
    ]
    assert all(
        given.values[int(given.is_joined) :] == tuple(words[given.index + 1 : given.index + given.count])
        for given in givens
        if given.match != "positional"
    )
