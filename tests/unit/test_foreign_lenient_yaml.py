"""YAML that PyYAML reads, and YAML that it does not: values, lines, and what was odd."""

from __future__ import annotations

import pytest

from orchestrator.errors import InvalidFile
from orchestrator.foreign.lenient_yaml import read_lenient


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: on\nb: 010\n", {"a": True, "b": 8}),
        ("base: &b {x: 1}\nmore:\n  <<: *b\n  y: 2\n", {"base": {"x": 1}, "more": {"x": 1, "y": 2}}),
        ("a: 1\na: 2\n", {"a": 2}),
        ("a: 1\n  prose: here: too\nb: 2\n", {"a": 1, "b": 2}),
        ("a:\n  some prose, of\n  two: lines\n  k: 1\nb: 2\n", {"a": {"two": "lines", "k": 1}, "b": 2}),
        ("", None),
    ],
)
def test_values(text: str, value: object) -> None:
    assert read_lenient(text, "f").value == value


def test_each_value_has_its_line() -> None:
    read = read_lenient("a: 1\nb:\n  c:\n    - x\n    - y\ntext: |\n  one\n  two\n", "f")

    assert [read.where(*steps) for steps in (("a",), ("b", "c", 1), ("b", "nowhere"), ("zzz",))] == [
        "line 1",
        "line 5",
        "line 2",
        "zzz",
    ]
    assert read.texts[("text",)] == 7


def test_a_key_written_twice_is_told_with_both_lines() -> None:
    (note,) = read_lenient("e:\n  A: 1\n  B: 2\n  A: 3\n", "f").notes

    assert (note.what, note.where) == ("e.A", "line 2")
    assert note.why == "written twice, lines 2 and 4: the last one counts, as PyYAML reads it"


def test_prose_that_is_no_yaml_is_told_with_its_line() -> None:
    (note,) = read_lenient("a: 1\nm:\n    Prose, and\n    so: on\n  k: 1\nb: 2\n", "f").notes

    assert (note.what, note.where) == ("Prose, and", "line 3")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a, *a]\n" * 2,
        "x: [\n",
        "- " * 3000 + "x\n",
        "".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9) if n else 'x'}]\n" for n in range(12)),
        "a: !!python/object/apply:os.system [ls]\n",
        "x" * 1_000_001,
    ],
    ids=["recursive", "open", "deep", "bomb", "tag", "large"],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidFile):
        read_lenient(text, "f")
