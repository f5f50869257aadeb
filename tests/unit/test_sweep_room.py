"""What surely does not fit into a server's context is refused before a host or a server is troubled with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.errors import InputError
from orchestrator.profile.model import Serve
from orchestrator.sweep.loading import load_workload, search_path
from orchestrator.sweep.overrides import parse_overrides
from orchestrator.sweep.room import require_room, sure_tok
from tests.unit.gate_fakes import Truth
from tests.unit.road_fakes import QUICK, World, profile

PROFILE = "name: p\nengine: vllm\nimage: vllm/vllm-openai:v0.31.0\nmodel: some/model\nserve: {max_model_len: 16384}\n"


@pytest.mark.parametrize(
    ("name", "overrides", "tok"),
    [
        ("quick", (), 64 + 32),
        ("quick", ("depth=1000",), 1000 + 64 + 32),
        ("run-a", (), 25_000 + 256),
        ("swarm-54k", (), 54_282 + 128 + 512),
        ("run-e", (), 5 * (2048 + 512)),
        ("run-e", ("history=model",), 5 * 2048 + 512),
        ("test-h", (), 399 + 49),
        ("test-h", ("prompt_tokens={median: 300, sigma: 2}", "output_tokens=8"), 1 + 8),
        ("batching-mixed", (), 6000 + 1024),
        ("overload", (), 1024 + 256),
        ("test-i", (), 0),
    ],
)
def test_the_longest_request_that_is_sure_to_come(name: str, overrides: tuple[str, ...], tok: int) -> None:
    workload = load_workload(name, search=search_path(), changes=parse_overrides(overrides))

    assert max(sure_tok(cell) for cell in workload.cells()) == tok
    require_room([workload], tok)
    require_room([workload], None)
    if tok:
        with pytest.raises(InputError, match=f"{tok} tokens .* the server's {tok - 1}:"):
            require_room([workload], tok - 1)


def test_the_cells_that_do_not_fit_are_named_and_counted() -> None:
    with pytest.raises(InputError) as refused:
        require_room([load_workload("run-a", search=search_path())], 16_384)

    assert str(refused.value) == (
        "workload run-a: 25256 tokens of prompt and answer do not fit into the server's 16384: "
        "batch-p16384-o256-c1, batch-p16384-o256-c5, batch-p16384-o256-c10, … (6 of 12 cells)"
    )


@pytest.mark.parametrize("verb", [["plan"], ["run"]])
def test_a_profile_that_promises_less_is_refused_before_a_host_is_asked(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text(PROFILE)
    words = [str(tmp_path / "p.yaml"), "--on", "nobody@192.0.2.1", "--workload", "run-b"]

    assert main([*verb, *words]) == 2

    assert "do not fit into the server's 16384" in capsys.readouterr().err


def test_a_server_that_takes_less_is_sent_nothing(tmp_path: Path) -> None:
    short = profile(serve=Serve(max_model_len=100))
    world = World(tmp_path, profile=short, truth=Truth(listed_len=100), workloads=(QUICK,))

    road = world.go()

    assert isinstance(road.error, InputError)
    assert "do not fit into the server's 100" in road.error.message
    assert world.cells_run == []
