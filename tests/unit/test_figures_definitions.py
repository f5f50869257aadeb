"""What figures mean: the registry, its tags, the service levels that ship, and others' stated figures."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.errors import InputError
from orchestrator.figures.definitions import all_definitions, definitions, find_definition
from orchestrator.figures.plain import plain
from orchestrator.figures.slo import PRESETS, Slo, find_slo
from orchestrator.figures.stated import stated
from tests.unit.figure_cases import cell_of


def test_every_figure_has_a_tag_of_its_own() -> None:
    names = [d.name for d in all_definitions()]
    tags = [d.tag for d in all_definitions()]

    assert len(set(names)) == len(names)
    assert len(set(tags)) == len(tags)
    assert [t for t in tags if not re.fullmatch(r"[a-z0-9_]+/v[1-9]\d*", t)] == []


def test_every_figure_is_explained_in_three_lines() -> None:
    assert [d.name for d in all_definitions() if not (d.meaning and d.formula and d.peers)] == []
    assert {len(d.lines) for d in all_definitions()} == {3}


def test_a_record_carries_the_tags_of_all_figures_and_of_its_clock() -> None:
    found = definitions()

    assert found["ttft"] == "first_token_from_send/v1"
    assert found["clock"] == "monotonic_user_at_socket_read/v1"
    assert definitions(clock="kernel")["clock"] == "monotonic_kernel_at_socket_read/v1"
    assert len(found) == len(all_definitions()) + 1


@pytest.mark.parametrize("asked", ["ttft", "TTFT", "ttft_ms", "ttft-ms", "first_token_from_send/v1"])
def test_a_figure_is_found_by_the_name_it_has_anywhere(asked: str) -> None:
    assert find_definition(asked).name == "ttft"


def test_the_manual_explains_one_figure_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "metrics", "tpot"]) == 0
    one = capsys.readouterr().out
    assert main(["docs", "metrics"]) == 0
    everything = capsys.readouterr().out

    assert "(last_token_ns - first_token_ns) / (output_tok - tokens of the first event)" in one
    assert one.count("\n## ") == 1
    assert everything.count("\n## ") == len(all_definitions())


def test_the_manual_is_a_document_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "metrics", "goodput", "--json"]) == 0

    (found,) = json.loads(capsys.readouterr().out)["definitions"]
    assert (found["name"], found["tag"], found["unit"]) == ("goodput", "slo_errors_are_misses/v1", "req/s")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docs", "metrics", "tpott"], "did you mean `tpot`?"),
        (["docs", "metrics", "--schema"], "no schema"),
        (["docs", "profile", "tpot"], "takes no name"),
    ],
)
def test_what_the_manual_does_not_have(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_chat_and_office_are_what_their_names_promise() -> None:
    assert PRESETS["chat"].words == "95 % first token within 1 s"
    assert PRESETS["office"].words == "95 % first token within 3 s"
    assert [s.name for s in PRESETS.values() if not s.reason] == []


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_comes_back_from_a_record(name: str) -> None:
    preset = find_slo(name)

    found = Slo.from_json(preset.as_json())

    assert found.as_json() == preset.as_json()
    assert found.words == preset.words


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"name": "x"}, "no limit"),
        ({"ttft_s": 0}, "ttft_s: 0"),
        ({"ttft_s": "1"}, "ttft_s: '1'"),
        ({"ttft_s": 1, "share": 0}, "share: 0"),
        ({"ttft_s": 1, "share": True}, "share: True"),
        ({"ttft_s": 1, "from": "arrival"}, "from: 'arrival'"),
    ],
)
def test_a_service_level_that_is_none_is_refused(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        Slo.from_json(raw)


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError) as caught:
        find_slo("chatt")

    assert "chat, office" in str(caught.value.hint)


def test_a_stated_figure_keeps_its_tools_definition() -> None:
    cell = cell_of(
        {"stated": {"ttft_ms": {"mean": 12.5, "p99": 40, "p50": 11.0, "sd": None, "unit": "ms", "definition": "d"}}}
    )

    found = stated(cell, "ttft_ms")

    assert found is not None
    assert (dict(found.values), found.unit, found.definition, found.value) == (
        {"mean": 12.5, "p99": 40.0, "p50": 11.0},
        "ms",
        "d",
        11.0,
    )
    assert stated(cell, "tpot_ms") is None


def test_plain_values_say_infinity_and_refuse_what_json_cannot() -> None:
    assert plain({"a": (1.0, float("inf"), float("nan"), None)}) == {"a": [1.0, "inf", None, None]}
    with pytest.raises(TypeError, match="object"):
        plain(object())
