"""The exact command of every shipped profile, word by word, and the two that a report printed."""

from __future__ import annotations

import shlex
from collections import defaultdict
from pathlib import Path

import pytest

from orchestrator.deploy.launch import docker_run_argv, server_spec
from orchestrator.deploy.runtime import ServerSpec
from orchestrator.engines.engine import EngineCommand, Placement
from orchestrator.engines.registry import load_engines
from orchestrator.profile.finding import list_files
from orchestrator.profile.loading import load_file
from orchestrator.profile.model import Profile

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles"
CASES = ROOT / "tests" / "cases" / "argv"
ENGINES = load_engines()
LINK = ("192.168.100.11", "192.168.100.12")
SHIPPED = tuple(e.path for e in list_files((PROFILES,), other_folders=frozenset({"workloads"})))
REPORTED = tuple(sorted((CASES / "reported").glob("*.txt")))
OURS_ALONE = {"--name", "--restart", "--label"}


def load(path: Path) -> Profile:
    return load_file(path, search=(PROFILES,), engines=ENGINES).profile


def start(profile: Profile, rank: int = 0) -> tuple[ServerSpec, EngineCommand]:
    place = Placement(rank=rank, nodes=profile.nodes, address=LINK[rank], master_address=LINK[0])
    command = ENGINES[profile.engine].command(profile, place)
    env = {name: value for name, value in {**command.env, **profile.env}.items() if isinstance(value, str)}
    spec = server_spec(profile, command, rank=rank, run_id="run", digest="0" * 16, env=env, gpus=True, home="~")
    return spec, command


def rendered(spec: ServerSpec, command: EngineCommand) -> str:
    facts = {
        "name": [spec.name],
        "image or binary": [spec.image],
        "network": [spec.network],
        "ipc": [spec.ipc or "-"],
        "gpus": ["all" if spec.gpus else "none"],
        "mounts": [f"{m.source}:{m.target}" for m in spec.mounts],
        "ports": [f"{p.host}:{p.container}" for p in spec.ports],
        "ulimits": [f"{name}={limit}" for name, limit in spec.ulimits.items()],
        "env": [f"{name}={value}" for name, value in spec.env.items()],
        "added by gate0": [shlex.join(item.words) for item in command.added],
        "words": list(spec.command),
    }
    return "".join(f"# {head}\n" + "".join(f"{line}\n" for line in lines) for head, lines in facts.items() if lines)


RANKS = [(path, rank) for path in SHIPPED for rank in range(load(path).nodes)]


@pytest.mark.parametrize(("path", "rank"), RANKS, ids=[f"{p.parent.name}-{p.stem}-{r}" for p, r in RANKS])
def test_a_shipped_profile_comes_to_exactly_these_words(path: Path, rank: int) -> None:
    spec, command = start(load(path), rank)

    assert rendered(spec, command) == (CASES / f"{spec.name}.txt").read_text()


def test_no_case_is_left_of_a_profile_that_is_gone() -> None:
    expected = {f"{start(load(path), rank)[0].name}.txt" for path, rank in RANKS}

    assert {case.name for case in CASES.glob("*.txt")} == expected


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_a_shipped_profile_has_no_problem(path: Path) -> None:
    profile = load(path)

    assert ENGINES[profile.engine].problems(profile) == ()


def parsed(words: list[str], added: set[str]) -> dict[str, object]:
    """A docker run line as what it means: order left out, `--model X` the same as a leading X."""
    assert words[:3] == ["docker", "run", "-d"]
    options: dict[str, set[str]] = defaultdict(set)
    rest = words[3:]
    while rest[0].startswith("-"):
        name, has_equals, inline = rest[0].partition("=")
        if name not in OURS_ALONE:
            options[name].add(inline if has_equals else rest[1])
        rest = rest[1:] if has_equals else rest[2:]
    options.setdefault("--network", {"bridge"})
    image, *engine_words = rest
    flags: dict[str, list[str]] = {}
    name = "--model"
    for word in engine_words:
        if word.startswith("--"):
            name = word
            flags[name] = []
        else:
            flags.setdefault(name, []).append(word)
    kept = {flag: values for flag, values in flags.items() if flag not in added}
    return {"image": image, "options": dict(options), "flags": kept}


@pytest.mark.parametrize("case", REPORTED, ids=lambda c: c.stem)
def test_a_reported_docker_run_is_reproduced_but_for_what_gate0_adds(case: Path) -> None:
    spec, command = start(load(PROFILES / f"{case.stem}.yaml"))
    added = {word for item in command.added for word in item.words if word.startswith("--")}

    ours = parsed(list(docker_run_argv(spec)), added)

    assert ours == parsed(shlex.split(case.read_text().replace("\\\n", " ")), set())


def test_the_winning_configuration_needs_nothing_added_but_the_address_and_the_servers_times() -> None:
    _, command = start(load(PROFILES / "qwen3.8-27b-nvfp4-mtp1-checkpoint.yaml"))

    assert [item.words for item in command.added] == [("--host", "0.0.0.0"), ("--enable-per-request-metrics",)]
