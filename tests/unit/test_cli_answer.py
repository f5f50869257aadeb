"""What a run answers at its end: where the key is, what to type next, and no secret."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import compose
from orchestrator.cli.commands.run import show_roads
from orchestrator.cli.main import main
from orchestrator.cli.printer import Printer
from orchestrator.errors import BoxError, InputError, InvalidFile, PortTaken, Problem, ServerDied
from orchestrator.pipeline.events import Cancel
from orchestrator.pipeline.road import Options, Road
from orchestrator.profile.model import GeneratedKey, Serve
from orchestrator.records.store import Store
from orchestrator.values import Secret
from tests.unit.road_fakes import World, profile

KEY = "sk-live-0123456789"
GENERATED = profile(serve=Serve(api_key=GeneratedKey()))


def ended(folder: Path, *, error: BoxError | InputError | None = None, **job: Any) -> Road:
    """A road at its end, its record written as `compose` has it written."""
    world = World(folder)
    road = compose.make_road(
        replace(world.job(), **job), world.tools(), store=Store(folder), observer=world, cancel=Cancel()
    )
    road.error = error
    tail = error.log_tail if isinstance(error, ServerDied) else ()
    told = None if error is None else {"kind": "ServerDied", "message": error.message, "log_tail": [*tail]}
    road.save(status="passed" if error is None else "failed", error=told)
    return road


def shown(road: Road, *, is_json: bool = False) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    show_roads(Printer(is_json=is_json, stdout=out, stderr=err), Store(road.writer.directory.parent), [road])
    return out.getvalue(), err.getvalue()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_key_of_a_server_left_up_is_in_a_file_of_its_owner_and_stays_the_same(state: Path) -> None:
    first, second = (compose.api_key(GENERATED, is_kept=True) for _ in range(2))

    file = state / "gate0/keys/fake"
    assert first is not None
    assert first == second
    assert file.read_text() == f"{first.value}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert [p.name for p in file.parent.iterdir()] == ["fake"]


def test_a_server_that_is_stopped_at_the_end_leaves_no_key(state: Path) -> None:
    first, second = (compose.api_key(GENERATED) for _ in range(2))

    assert first != second
    assert not state.exists()


def test_the_job_of_a_kept_server_has_the_kept_key(state: Path, tmp_path: Path) -> None:
    made = [
        compose.make_job(
            GENERATED,
            resolved={},
            text="",
            boxes=(),
            suite=World(tmp_path).job().suite,
            workloads=(),
            options=Options(keep=True),
        ).api_key
        for _ in range(2)
    ]

    assert made[0] is not None
    assert made[0] == made[1]


@pytest.mark.parametrize("is_json", [False, True])
def test_where_the_key_is_stands_in_the_answer_of_a_server_left_up(is_json: bool, state: Path, tmp_path: Path) -> None:
    out, _ = shown(ended(tmp_path / "r", profile=GENERATED, options=Options(keep=True)), is_json=is_json)

    file = str(state / "gate0/keys/fake")
    assert json.loads(out)["runs"][0]["api_key_file"] == file if is_json else f"api key: {file}\n" in out


@pytest.mark.parametrize(
    "changes",
    [
        {"profile": GENERATED},
        {"options": Options(keep=True)},
        {
            "profile": GENERATED,
            "options": Options(keep=True),
            "error": ServerDied("died", exit_code=1, log_tail=(), cause=None),
        },
    ],
    ids=["stopped", "without a generated key", "failed"],
)
def test_no_key_is_named_where_there_is_none_to_use(changes: dict[str, Any], state: Path, tmp_path: Path) -> None:
    assert "api key" not in shown(ended(tmp_path / "r", **changes))[0]


@pytest.mark.parametrize(
    ("line", "following"),
    [
        ("gate0 run p --on a", "gate0 run p --on a --resume"),
        ("gate0 run p --resume --on a", "gate0 run p --on a --resume"),
        ("gate0 deploy p --on a", "gate0 deploy p --on a"),
        ("gate0 check --url http://h/v1", "gate0 check --url http://h/v1"),
        ("gate0 sweep --url http://h/v1 --workload w", "gate0 sweep --url http://h/v1 --workload w --resume"),
    ],
)
def test_after_a_failure_the_same_line_comes_next_and_resumes_where_that_exists(
    line: str, following: str, tmp_path: Path
) -> None:
    error = ServerDied("died", exit_code=1, log_tail=(), cause=None)

    out, _ = shown(ended(tmp_path / "r", error=error, invocation=tuple(line.split())))

    assert f"next: {following}\n" in out


@pytest.mark.parametrize(
    ("error", "is_repeated"),
    [
        (InvalidFile([Problem(file="p.yaml", line=1, path="flags.x", message="no flag")]), False),
        (InputError("http://h/v1 serves no 'nope'"), False),
        (ServerDied("died", exit_code=1, log_tail=(), cause="unknown_flag"), False),
        (ServerDied("died", exit_code=1, log_tail=(), cause="no_mtp_layers"), False),
        (ServerDied("died", exit_code=137, log_tail=(), cause="out_of_memory"), True),
        (ServerDied("died", exit_code=1, log_tail=(), cause=None), True),
        (PortTaken("taken"), True),
    ],
)
def test_a_line_that_cannot_succeed_is_not_what_comes_next(
    error: BoxError | InputError, is_repeated: bool, tmp_path: Path
) -> None:
    out, _ = shown(ended(tmp_path / "r", error=error, invocation=("gate0", "run", "p")))

    following = "gate0 run p --resume" if is_repeated else "correct what the error names, then the same line again"
    assert f"next: {following}\n" in out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_ungated": True, "gates": {"effective": "fail"}}, "finished ungated, its suite failed: effective"),
        ({"is_ungated": True}, "passed, not gated"),
        ({"gates": {"effective": "pass"}}, "passed, its suite passed"),
    ],
)
def test_a_sweep_that_went_on_although_a_gate_said_no_has_not_passed(
    changes: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    road = ended(tmp_path / "r")
    road.save(suite="suite", **changes)

    out, _ = shown(road)
    main(["show", road.run.id, "--results", str(road.writer.directory.parent)])

    assert f"spark01: {words}\n" in out
    assert f"status    {words.partition(',')[0]}, " in capsys.readouterr().out


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("place", ["api_key", "env"])
def test_no_secret_is_shown_or_recorded_with_an_error(place: str, is_json: bool, tmp_path: Path) -> None:
    secret = Secret("KEY", KEY)
    error = ServerDied(f"died with {KEY}", exit_code=1, log_tail=[f"argv {KEY}"], cause=None, hint=f"not {KEY}")
    job = {"api_key": secret} if place == "api_key" else {"env": {"KEY": secret, "PLAIN": "x"}}

    road = ended(tmp_path / "r", error=error, **job)
    out, err = shown(road, is_json=is_json)

    assert "died with ***" in err
    assert "argv ***" in err
    assert "hint: not ***" in err
    files = [p.read_text() for p in road.writer.directory.rglob("*") if p.is_file()]
    assert files
    assert [text for text in (out, err, *files) if KEY in text] == []


def test_a_record_of_a_server_found_by_address_says_where_it_was_and_has_no_empty_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, url = Store(tmp_path), "http://box:8000/v1"
    world = World(tmp_path, profile=profile(engine="endpoint", image=None, attach=url), hosts=())
    road = compose.make_road(world.job(), world.tools(), store=store, observer=world, cancel=Cancel())
    road.save(status="passed", base_url=url)

    assert main(["results", "show", "latest", "--results", str(tmp_path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"endpoint at {url}: passed")
    assert not [line for line in lines if line.startswith(("image", "gate "))]


def test_a_list_of_nothing_says_where_it_looked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "list", "--results", str(tmp_path / "none")]) == 0

    assert f"no records in {tmp_path / 'none'}" in capsys.readouterr().err
