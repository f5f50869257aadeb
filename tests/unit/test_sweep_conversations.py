"""Recordings: ShareGPT's untidy JSON and traces, read into what can be replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InvalidFile
from orchestrator.sweep.conversations import Recording, read_recording
from orchestrator.sweep.rows import read_lengths
from orchestrator.sweep.workload import Conversation

CASES = Path(__file__).parents[1] / "cases" / "workload" / "recordings"
WRONG = sorted(p for p in CASES.glob("bad-*") if p.suffix != ".txt")
SAMPLES = Path(__file__).parents[2] / "profiles" / "workloads" / "samples"


def read(name: str, **asked: Any) -> Recording:
    return read_recording((CASES / name).read_text(), name, **asked)


@pytest.mark.parametrize("path", WRONG, ids=lambda p: p.name)
def test_every_mistake_is_named_with_its_line_and_key(path: Path) -> None:
    with pytest.raises(InvalidFile) as refused:
        read(path.name)

    (problem,) = refused.value.problems
    assert problem.file == path.name
    assert f"{problem.line or '-'}: {problem.path or '-'}" == path.with_suffix(".txt").read_text().strip()


def test_sharegpt_is_read_into_questions_with_their_answers() -> None:
    found = read("untidy.json")

    assert found.form == "sharegpt"
    assert found.conversations == (
        Conversation(prompts=("one", "two"), answers=("first", "second")),
        Conversation(prompts=("a\n\nb",), answers=("c\n\nd",)),
        Conversation(prompts=("q",), answers=("r",), system="be brief"),
        Conversation(prompts=("q",), answers=("r",)),
    )
    assert (found.left_out, found.cut) == (2, 1)


def test_sharegpt_may_be_one_conversation_a_line() -> None:
    entries = json.loads((CASES / "untidy.json").read_text())
    lines = "\n".join(json.dumps(entry) for entry in entries)

    assert read_recording(lines, "lines.jsonl") == read("untidy.json")


def test_mooncake_is_in_milliseconds_and_sorted() -> None:
    found = read("mooncake.jsonl")

    assert found.form == "trace"
    assert found.conversations == (
        Conversation(prompts=(600,), answers=(1,), at_s=0.0, blocks=(46, 50)),
        Conversation(prompts=(1300,), answers=(52,), at_s=0.482, blocks=(46, 47, 48)),
    )
    assert found.left_out == 1


def test_burstgpt_is_in_seconds_without_its_failures() -> None:
    found = read("burstgpt.csv")

    assert [(c.at_s, c.prompts, c.answers) for c in found.conversations] == [
        (0.0, (472,), (18,)),
        (40.5, (1087,), (230,)),
    ]
    assert found.left_out == 1


def test_any_table_with_seconds_is_a_trace() -> None:
    assert [(c.at_s, c.prompts, c.answers) for c in read("plain.csv").conversations] == [
        (0.0, (30,), (40,)),
        (1.0, (10,), (20,)),
    ]


def test_limit_takes_the_first_or_picks_by_the_seed() -> None:
    whole = read_recording((SAMPLES / "conversations.json").read_text(), "x").conversations

    first = read_recording((SAMPLES / "conversations.json").read_text(), "x", limit=7).conversations
    picked = [
        read_recording((SAMPLES / "conversations.json").read_text(), "x", limit=7, pick="random", seed=s).conversations
        for s in (1, 1, 2)
    ]

    assert first == whole[:7]
    assert picked[0] == picked[1] != picked[2]
    places = [whole.index(c) for c in picked[0]]
    assert places == sorted(places)
    assert len(set(places)) == 7


def test_conversations_end_at_the_limits() -> None:
    one = read("untidy.json", most_turns=1)
    short = read("untidy.json", most_prompt=3)

    assert [len(c.prompts) for c in one.conversations] == [1, 1, 1, 1]
    assert one.cut == 2
    # "one first two" is 3.9 by estimate, "be brief q" too: the first loses a turn, the third all it has.
    assert [c.prompts for c in short.conversations] == [("one",), ("a\n\nb",), ("q",)]
    assert (short.left_out, short.cut) == (3, 2)


def test_rows_that_ask_for_too_much_are_left_out_and_counted() -> None:
    found = read("burstgpt.csv", most_prompt=500)

    assert [c.prompts for c in found.conversations] == [(472,)]
    assert found.left_out == 2


def test_digest_is_of_what_is_replayed() -> None:
    assert read("untidy.json").digest == "7093104c73e969b9"
    assert read("untidy.json").digest == read("untidy.json", limit=40).digest
    assert read("untidy.json").digest != read("untidy.json", most_turns=1).digest
    assert read("mooncake.jsonl").digest != read("mooncake.jsonl").without_times().digest


def test_the_samples_hold_what_replays_need() -> None:
    words = read_recording((SAMPLES / "conversations.json").read_text(), "x")
    mooncake = read_recording((SAMPLES / "trace-mooncake.jsonl").read_text(), "x")
    burst = read_recording((SAMPLES / "trace-burstgpt.csv").read_text(), "x")

    assert len(words.conversations) == 40
    assert {len(c.prompts) for c in words.conversations} >= {1, 2, 3, 4}
    assert any(c.system for c in words.conversations)
    assert len(mooncake.conversations) == 60
    assert len({c.blocks[0] for c in mooncake.conversations}) == 5
    assert (len(burst.conversations), burst.left_out) == (57, 3)


@pytest.mark.parametrize(
    ("text", "column", "lengths"),
    [
        ("3\n\n4\n", None, (3, 4)),
        ("a,b\n1,2\n3,4\n", "b", (2, 4)),
        ('{"n": 7}\n{"n": 9}\n', "n", (7, 9)),
    ],
)
def test_lengths_are_read_from_a_table(text: str, column: str | None, lengths: tuple[int, ...]) -> None:
    assert read_lengths(text, "x", column) == lengths


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("3\nx\n", None, "x:2: expected a number of zero or more, got `x`"),
        ("3\n0\n", None, "x:2: expected at least 1 token, got 0"),
        ("", None, "x: no lengths in it"),
        ("a,b\n1,2\n", "c", "x:2: c: no such column; there are: a, b"),
        ("a,b\n1,2.5\n", "b", "x:2: b: expected a whole number, got `2.5`"),
    ],
)
def test_a_length_that_is_none_is_named(text: str, column: str | None, message: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        read_lengths(text, "x", column)

    assert str(refused.value) == message
