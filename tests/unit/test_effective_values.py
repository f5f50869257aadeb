"""Python's printed values read back, values written in two ways, words of a command line, counters judged."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.engines.effective.model import Agreement
from orchestrator.engines.effective.reprs import parse_fields, parse_repr
from orchestrator.engines.effective.sameness import kv_bits, liken, number
from orchestrator.engines.effective.speculation import judge_speculation
from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.flags.model import Catalogue, Flag, ValueKind
from orchestrator.engines.given import given, given_words
from orchestrator.engines.vllm import PARSER


@pytest.mark.parametrize(
    ("text", "value", "is_whole"),
    [
        ("{'a': 1, 'b': [1, 'x'], 'c': (True, None)} rest", {"a": 1, "b": [1, "x"], "c": [True, None]}, True),
        ("{'mode': <CompilationMode.NONE: 0>, 't': <T.B: 'backed'>}", {"mode": 0, "t": "backed"}, True),
        ("{'o': <object at 0x7f>, 'd': torch.bfloat16}", {"o": "<object at 0x7f>", "d": "torch.bfloat16"}, True),
        ("{'s': SpeculativeConfig(method='mtp', model=None)}", {"s": {"method": "mtp", "model": None}}, True),
        ("{'p': PosixPath('/x'), 'e': set(), 'm': {1, 2}, 'n': {}}", {"p": "/x", "e": [], "m": [1, 2], "n": {}}, True),
        ("{'q': 'it\\'s', 'r': \"two\"}", {"q": "it's", "r": "two"}, True),
        ("{'f': -0.5, 'g': 1e-06, 'i': inf}", {"f": -0.5, "g": 1e-06, "i": "inf"}, True),
        ("{'a': 1, 'b': 'cut her", {"a": 1}, False),
        ("{'a': {'b': 1, 'c", {"a": {"b": 1}}, False),
        ("", None, False),
    ],
)
def test_a_printed_value_is_read_back(text: str, value: Any, is_whole: bool) -> None:
    parsed = parse_repr(text)

    assert (parsed.value, parsed.is_whole) == (value, is_whole)


@pytest.mark.parametrize("opening", ["[", "{'a': ", "X(a=", "("])
def test_a_line_nested_without_end_is_read_as_one_that_was_cut(opening: str) -> None:
    assert not parse_repr(opening * 5000).is_whole


@pytest.mark.parametrize(
    ("text", "value", "is_whole"),
    [
        ("model='/m', dtype=torch.bfloat16, q=compressed-tensors, n=Qwen/Qwen3:x, z=None", 5, True),
        ("a=1, b=X(c=2, d=[1]), e=", 2, False),
        ("no fields at all", 0, False),
    ],
)
def test_fields_are_read_up_to_the_end(text: str, value: int, is_whole: bool) -> None:
    parsed = parse_fields(text)

    assert isinstance(parsed.value, dict)
    assert (len(parsed.value), parsed.is_whole) == (value, is_whole)


@pytest.mark.parametrize(
    ("declared", "running", "verdict"),
    [
        ("8k", 8000, "same"),
        ("8K", 8192, "same"),
        ("8k", 8192, "different"),
        (0.7, "0.7", "same"),
        (0.7, 0.71, "different"),
        (True, "True", "same"),
        ("on", True, "same"),
        ("off", "true", "different"),
        (True, 0, "different"),
        ("None", None, "same"),
        ("x", None, "different"),
        (["a"], "a", "same"),
        ("a,b", ["a", "b"], "same"),
        (["a", "b"], ["b", "a"], "different"),
        ('{"a":1}', {"a": 1, "b": 2}, "same"),
        ({"a": 1}, {"a": 2}, "different"),
        ({"a": 1, "z": 1}, {"a": 1}, "incomparable"),
        ({"a": 1}, None, "different"),
        ("NONE", 0, "incomparable"),
        ("/m", "/n", "different"),
        ("Flashinfer", "FLASHINFER", "different"),
    ],
)
def test_values_are_alike_however_they_are_written(declared: Any, running: Any, verdict: str) -> None:
    assert liken(declared, running).value == verdict


@pytest.mark.parametrize(
    ("declared", "running", "verdict"),
    [
        ("flashinfer", "FLASHINFER", "same"),
        ("fp8", "torch.float8_e4m3fn", "same"),
        ("fp8_e4m3", "fp8", "same"),
        ("fp8_e5m2", "fp8", "different"),
        ("bfloat16", "torch.bfloat16", "same"),
        ("half", "torch.float16", "same"),
        ("compressed-tensors", "compressed_tensors", "same"),
        ("auto", "fp8", "different"),
    ],
)
def test_words_of_a_choice_are_alike_in_any_case(declared: str, running: str, verdict: str) -> None:
    assert liken(declared, running, is_word=True).value == verdict


def test_numbers_and_bits_are_told_from_words() -> None:
    assert [number(v) for v in ("16k", 4, "x", True, None)] == [16000.0, 4.0, None, None, None]
    assert [kv_bits(d) for d in ("auto", "bfloat16", "fp8", "nvfp4", "q8_0", "q4_0")] == [
        None,
        16.0,
        8.0,
        4.5,
        8.5,
        4.5,
    ]


@pytest.mark.parametrize(
    ("counters", "options", "agreement"),
    [
        ((10, 40, 25), {}, Agreement.SAME),
        ((10, 40, 0), {}, Agreement.CONTRADICTED),
        ((2, 8, 0), {}, Agreement.UNCONFIRMED),
        ((0, 0, 0), {}, Agreement.UNCONFIRMED),
        ((0, 0, 0), {"always_drafts": True}, Agreement.IGNORED),
        ((None, None, None), {"always_drafts": True}, Agreement.UNCONFIRMED),
        ((40, None, None), {"acceptance_length": 1.0}, Agreement.CONTRADICTED),
        ((40, None, None), {"acceptance_length": 2.4}, Agreement.SAME),
        ((3, None, None), {"acceptance_length": 1.0}, Agreement.UNCONFIRMED),
    ],
)
def test_speculation_is_judged_by_its_counters(
    counters: tuple[float | None, ...], options: dict[str, Any], agreement: Agreement
) -> None:
    verdict = judge_speculation(*counters, **options)

    assert verdict.agreement is agreement
    assert verdict.why


def test_words_become_flags_at_their_places() -> None:
    command = EngineCommand(
        argv=(
            "serve",
            "/m",
            "--max-num-seqs",
            "4",
            "-tp",
            "2",
            "--no-enable-prefix-caching",
            "--x.y.z",
            "3",
            "--l",
            "a",
        ),
        origins=(
            "",
            "model",
            *["serve.max_num_seqs"] * 2,
            *["flags.tp"] * 2,
            "flags.p",
            *["flags.x"] * 2,
            "args[0]",
            "args[1]",
        ),
        port=8000,
    )

    found = [(g.path, g.name, g.value) for g in given(PARSER, command)]

    assert found == [
        ("serve.max_num_seqs", "max-num-seqs", "4"),
        ("flags.tp", "tensor-parallel-size", "2"),
        ("flags.p", "enable-prefix-caching", False),
        ("flags.x", "x", {"y": {"z": "3"}}),
        ("args[0]", "l", "a"),
    ]


def test_a_list_knows_spellings_that_we_do_not() -> None:
    flag = Flag(name="--canonical", kind=ValueKind.BOOL, aliases=("--other",), negatives=("--disable-it",))
    catalogue = Catalogue(engine="vllm", version="0.33.0", flags={flag.name: flag})

    words = (
        "--other",
        "--disable-it",
        "--disable-prefix-caching",
        "--lists",
        "a",
        "b",
        "--eq=5",
        "--empty=",
        "-short.key",
        "v",
    )
    found = [(g.name, g.value) for g in given_words(PARSER, words, "flags.x", catalogue)]

    assert found == [
        ("canonical", True),
        ("canonical", False),
        ("enable-prefix-caching", False),
        ("lists", ["a", "b"]),
        ("eq", "5"),
        ("empty", ""),
        ("short", {"key": "v"}),
    ]
