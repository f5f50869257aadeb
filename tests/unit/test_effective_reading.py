"""What running servers tell of themselves, read as it should be: whole captures, and each line pattern alone."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from orchestrator.engines.effective import llamacpp, sglang, vllm, vllm_lines
from orchestrator.engines.effective.model import Telling, Told
from orchestrator.engines.effective.reading import ORDER, VOICES, find_notices, notable, read

from .effective_cases import engine_of, load, told, told_names

LINES = load("lines.json")
PATTERNS = {
    "vllm": (*vllm_lines.TELLS, *vllm_lines.ADMITS),
    "llamacpp": (*llamacpp.TELLS, *llamacpp.ADMITS),
    "sglang": (*sglang.TELLS, *sglang.ADMITS),
}


def line_cases() -> list[Any]:
    return [pytest.param(engine, *case, id=f"{engine}-{case[1][:60]}") for engine in PATTERNS for case in LINES[engine]]


@pytest.mark.parametrize("name", told_names())
def test_a_server_is_read_as_it_should_be(name: str) -> None:
    heard, engine, expected = told(name), engine_of(name), load(f"readings/{name}.json")

    seen = [[r.name, r.value, r.telling.value, r.source] for r in notable(read(engine, heard))]
    notices = [[n.kind.value, n.about, n.value] for n in find_notices(engine, heard)]

    assert json.dumps(seen) == json.dumps(expected["notable"])
    assert json.dumps(notices) == json.dumps(expected["notices"])


@pytest.mark.parametrize(("engine", "origin", "line", "readings", "notices"), line_cases())
def test_one_line_tells_and_admits(
    engine: str, origin: str, line: str, readings: dict[str, Any], notices: list[Any]
) -> None:
    heard = Told(log=("something else", line))

    told_here = {r.name: r.value for r in read(engine, heard)}
    admitted = [[n.kind.value, n.about, n.value] for n in find_notices(engine, heard)]

    assert origin in LINES["origins"]
    assert told_here == readings
    assert admitted == notices


@pytest.mark.parametrize("engine", sorted(PATTERNS))
def test_every_pattern_has_a_line_of_known_origin(engine: str) -> None:
    lines = [case[1] for case in LINES[engine]]

    without = [rule.pattern for rule in PATTERNS[engine] if not any(re.search(rule.pattern, line) for line in lines)]

    assert without == []


def test_the_log_line_is_kept_beside_what_was_read_from_it() -> None:
    heard = {name: told(name) for name in told_names()}

    from_log = [(h, r) for name, h in heard.items() for r in read(engine_of(name), h) if r.source == "log"]

    assert len(from_log) > 100
    quotes = [(h, r.quote.removesuffix(" […]")) for h, r in from_log if r.quote]
    assert len(quotes) == len(from_log)
    assert [quote for h, quote in quotes if not any(quote in line for line in h.log)] == []


def test_credentials_are_never_read() -> None:
    heard = told("sglang-mtp-hybrid", more_log=("non-default args: {'api_key': ['sk-not-to-be-shown']}",))

    texts = [str(r.value) for engine in VOICES for r in read(engine, heard)]

    assert texts != []
    assert [text for text in texts if "sk-not" in text] == []


def test_labels_that_lie_about_hybrids_are_left_out() -> None:
    names = {r.name for r in read("vllm", told("vllm-hybrid-dev-mode"))}

    assert names & {"mamba_block_size", "hash_block_size", "cache_hit_alignment_tokens"} == set()


def test_the_text_form_of_server_info_is_read_like_the_json() -> None:
    text = "model='/m', max_seq_len=4096, speculative_config=SpeculativeConfig(method='mtp', num_spec_tokens=2)"
    heard = Told(documents={"/server_info": {"vllm_config": text}})

    found = {r.name: r.value for r in read("vllm", heard)}

    assert found == {"model": "/m", "max_model_len": 4096, "speculative": {"method": "mtp", "num_tokens": 2}}


def test_a_cut_line_of_arguments_gives_what_stands_before_the_cut() -> None:
    heard = Told(log=("non-default args: {'model_tag': '/m', 'max_model_len': 8192, 'served_model_na […]",))

    found = {(r.name, r.value, r.telling) for r in read("vllm", heard)}

    assert found == {("model", "/m", Telling.ECHOED), ("max_model_len", 8192, Telling.ECHOED)}
    assert not vllm.has_echo(heard)


def test_of_one_name_the_surest_comes_first() -> None:
    found = read("vllm", told("vllm-hybrid-dev-mode"))

    lengths = [r.telling for r in found if r.name == "max_model_len"]

    assert lengths == [Telling.SEEN, Telling.RESOLVED, Telling.ECHOED]


def test_an_unknown_engine_gives_its_list_of_models() -> None:
    found = read("ollama", told("llamacpp-quiet"))

    assert [(r.name, r.value) for r in found] == [("served_name", ["smol"])]
    assert find_notices("ollama", told("llamacpp-quiet")) == ()


@pytest.mark.parametrize("document", [None, [], "text", {"data": None}, {"data": [1, {"id": None}]}])
@pytest.mark.parametrize("engine", sorted(VOICES))
def test_answers_of_another_shape_tell_nothing_and_break_nothing(engine: str, document: Any) -> None:
    paths = ("/v1/models", "/props", "/slots", "/server_info", "/version")

    found = read(engine, Told(documents=dict.fromkeys(paths, document)))

    assert {r.name for r in found} <= {"served_name", "data"}


def test_no_name_stands_twice_in_the_order() -> None:
    assert len(set(ORDER)) == len(ORDER)
