"""YAML reading: what a word means, where it was written, and that no text can do worse than be refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.profile.checking import require
from orchestrator.profile.loading import load_file
from orchestrator.profile.schemas import profile_schema
from orchestrator.profile.yaml_lines import MAX_CHARACTERS, load_document, merge, read_document

SCHEMA = profile_schema()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("8", 8),
        ("-1", -1),
        ("0.70", 0.7),
        (".5", 0.5),
        ("1.0e-3", 0.001),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("on", "on"),
        ("No", "No"),
        ("y", "y"),
        ("22:22", "22:22"),
        ("010", "010"),
        ("0o10", "0o10"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("1e-3", "1e-3"),
        (".inf", ".inf"),
        ("1.0e999", "1.0e999"),
        ("12345678901234567890", "12345678901234567890"),
        ("2026-11-30", "2026-11-30"),
        ('"8"', "8"),
        ("'true'", "true"),
        ("!!str 8", "8"),
        ("~/.cache", "~/.cache"),
        ("=", "="),
    ],
)
def test_a_word_is_a_number_a_boolean_null_or_itself(written: str, value: object) -> None:
    read = load_document(f"key: {written}", "f").value

    assert read == {"key": value}
    assert type(read["key"]) is type(value)  # type: ignore[index,call-overload]


def test_keys_are_text_as_written() -> None:
    assert load_document("on: 1\n010: 2\n1.50: 3\ntrue: 4\n", "f").value == {"on": 1, "010": 2, "1.50": 3, "true": 4}


def test_lines_are_those_of_keys_and_items() -> None:
    document = load_document("a:\n\n  b:\n    - 1\n    -\n      c: 2\n", "f")

    lines = [document.line_of(path) for path in [(), ("a",), ("a", "b"), ("a", "b", 0), ("a", "b", 1, "c")]]
    assert lines == [1, 1, 3, 4, 6]


def test_the_line_of_what_is_absent_is_its_nearest_ancestors() -> None:
    assert load_document("a: 1\nb:\n  c: 2\n", "f").line_of(("b", "missing", 3)) == 2


def test_a_merged_document_remembers_both_files() -> None:
    base = load_document("a: {x: 1, y: 2}\nb: [1]\n", "base")
    over = load_document("\na:\n  y: 3\nb: [2]\n", "over")

    merged = merge(base, over)

    assert merged.value == {"a": {"x": 1, "y": 3}, "b": [2]}
    assert [str(merged.place_of(p)) for p in [("a", "x"), ("a", "y"), ("b", 0)]] == ["base:1", "over:3", "over:4"]


def test_an_anchor_is_read_again_where_it_is_named() -> None:
    document = load_document("a: &x {k: 1}\nb: *x\n", "f")

    assert document.value == {"a": {"k": 1}, "b": {"k": 1}}
    assert (document.line_of(("b",)), document.line_of(("b", "k"))) == (2, 1)


def test_chained_anchors_cannot_nest_deeper_than_written_ones() -> None:
    deep = "[" * 30 + "]" * 30
    text = f"a: &a {deep}\nb: {'[' * 30}*a{']' * 30}\n"

    with pytest.raises(InvalidFile, match="f:2: nested deeper than 40 levels"):
        load_document(text, "f")


def test_a_file_beyond_reason_is_refused_unread() -> None:
    with pytest.raises(InvalidFile, match="too large"):
        load_document("x" * (MAX_CHARACTERS + 1), "f")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")

    assert read_document(path).value == {"a": 1, "b": 2}


def test_a_file_that_is_not_there_is_the_users_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*absent\.yaml: No such file"):
        read_document(tmp_path / "absent.yaml")


OUR_WORDS = ("name", "engine", "vllm", "serve", "flags", "env", "container", "mounts", "ports", "model", "extends")
YAML_WORDS = ("null", "on", "1e-3", "010", "8000", "&a", "*a", "<<", "!!str", "!x", "---", "...", "~nobody", "\\ud800")
YAML_SIGNS = (*"'\"\\%[]{}?|>#@é\t\x00\ud800", ": ", ":\n  ", "\n- ", "\n", ", ")
WORDS = st.sampled_from([*OUR_WORDS, *YAML_WORDS, *YAML_SIGNS])
TEXTS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=25).map("".join))


def problems_of(read: Callable[[], object]) -> tuple[Problem, ...] | None:
    """What is wrong, None when it was read; any other exception than InvalidFile fails the test."""
    try:
        read()
    except InvalidFile as refused:
        return refused.problems
    return None


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_any_text_is_read_or_refused_with_its_problems(text: str) -> None:
    assert problems_of(lambda: require(load_document(text, "f"), SCHEMA, "f")) != ()


KEYS = st.sampled_from([*SCHEMA["properties"], *SCHEMA["properties"]["serve"]["properties"], "suite", "secret", "x"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), WORDS)
TREES = st.recursive(SCALARS, lambda t: st.lists(t, max_size=3) | st.dictionaries(KEYS, t, max_size=4), max_leaves=12)


@settings(max_examples=300, deadline=None)
@given(tree=st.dictionaries(KEYS, TREES, max_size=8))
def test_any_tree_of_our_keys_is_a_profile_or_refused_with_its_problems(
    tmp_path_factory: pytest.TempPathFactory, tree: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "tree.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")

    assert problems_of(lambda: load_file(path, search=[])) != ()
