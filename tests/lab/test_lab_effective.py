"""What is declared is what runs, on the real llama-server: confirmed, or caught with its own words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.command import Ended, Workplace
from tests.lab.running import RunningLab

SUITE = "title: what runs\ngates:\n  - gate: effective\n"
FAILING = ("ignored", "contradicted")


@pytest.fixture
def place(tmp_path: Path, lab: RunningLab) -> Iterator[Workplace]:
    found = Workplace(tmp_path, lab)
    (tmp_path / "runs.yaml").write_text(SUITE)
    yield found
    for host in lab.host_names:
        lab.assert_clean(host)


def head(lab: RunningLab, more: str) -> str:
    return (
        f"engine: llamacpp\nimage: {lab.llama_image}\nmodel: {{path: {lab.model_path}}}\nserved_name: smollm2\n"
        "port: 8080\ncontainer: {network: host, ipc: private, gpus: none}\nready: {timeout_s: 120}\n"
        f"gates: {{suite: runs.yaml}}\n{more}"
    )


def all_runs(place: Workplace) -> list[dict[str, Any]]:
    return list(place.runs())


def rows(place: Workplace) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in all_runs(place)[-1]["effective"]["compared"]}


def go(place: Workplace, lab: RunningLab, more: str) -> Ended:
    return place.on_hosts("run", place.write_profile("smol", head(lab, more)))


def test_each_portable_setting_is_confirmed_or_said_not_to_be(place: Workplace, lab: RunningLab) -> None:
    ended = go(
        place,
        lab,
        "serve: {max_model_len: 1024, max_num_seqs: 2, max_num_batched_tokens: 512, prefix_caching: true, seed: 7,\n"
        "  kv_cache_dtype: q8_0, tool_call_parser: built-in, reasoning_parser: deepseek, max_output: 256,\n"
        "  thinking: false, speculative: {method: ngram, num_tokens: 4}}\n",
    )

    found = rows(place)
    assert ended.code == 0, ended.err
    for path in ("max_model_len", "max_num_seqs", "prefix_caching", "seed", "speculative"):
        assert found[f"serve.{path}"]["agreement"] == "same", found[f"serve.{path}"]
    assert {r["agreement"] for r in found.values()} <= {"same", "unconfirmed"}
    assert all(r["source"] for r in found.values() if r["agreement"] == "same")
    assert (found["model"]["running"], found["served_name"]["running"]) == (lab.model_path, ["smollm2"])
    assert "pass        spark01: gate effective:" in ended.err


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            "serve: {max_model_len: 1024}\nflags: {swa-full: true}\n",
            ("flags.swa-full", "ignored", "swa_full is not supported by this model"),
        ),
        (
            "serve: {max_model_len: 16384, max_num_seqs: 1}\n",
            ("serve.max_model_len", "changed", "exceeds the training context of the model (8192) - capping"),
        ),
    ],
    ids=["inert-flag", "clamped-context"],
)
def test_a_setting_that_does_not_hold_fails_with_the_engines_own_line(
    place: Workplace, lab: RunningLab, more: str, expected: tuple[str, str, str]
) -> None:
    path, agreement, words = expected
    ended = go(place, lab, more)

    assert ended.code == 1, ended.err
    assert rows(place)[path]["agreement"] == agreement
    assert words in rows(place)[path]["quote"]
    assert f"warning: spark01: {path}: declared" in ended.err
    assert f"error: spark01: effective did not pass: {path}" in ended.err
    assert next(line for line in place.run("show", "last", "--effective").out.splitlines() if line.startswith(path))


def test_speculation_that_never_drafts_is_caught_although_the_server_says_that_it_speculates(
    place: Workplace, lab: RunningLab
) -> None:
    more = "serve: {max_model_len: 2048}\nflags: {spec-type: ngram-simple, spec-ngram-simple-size-m: 4}\n"

    ended = go(place, lab, more)

    assert ended.code == 1
    assert rows(place)["flags.spec-type"]["agreement"] == "same"
    assert "behaviour.speculation: speculation is declared, and no draft was made" in ended.err


SERVER = "theirs"
"""A container that somebody else started: its context is whatever `--fit` leaves of it."""


@pytest.fixture
def theirs(place: Workplace, lab: RunningLab) -> Iterator[str]:
    words = f"-m {lab.model_path} --alias smollm2 -np 1 --fit-target 10000000 -lv 4 --port 8080 --host 0.0.0.0"
    entry = ("docker", "run", "-d", "--name", SERVER, "--network", "host", lab.llama_image)
    lab.exec("spark01", *entry, *words.split(), "--metrics")
    try:
        lab.exec("spark01", "sh", "-c", "until curl -sf http://127.0.0.1:8080/health; do sleep 0.2; done")
        yield f"http://{lab.address('spark01')}:8080"
    finally:
        lab.docker("spark01", "rm", "-f", SERVER)


def attach(place: Workplace, url: str, more: str = "") -> str:
    return place.write_profile("theirs", f"engine: endpoint\nattach: {url}/v1\ngates: {{suite: runs.yaml}}\n{more}")


def test_a_server_of_somebody_else_is_held_to_what_is_declared_and_stays_as_it_was(
    place: Workplace, lab: RunningLab, theirs: str
) -> None:
    before = lab.docker("spark01", "inspect", "-f", "{{.State.StartedAt}} {{.RestartCount}}", SERVER)
    profile = attach(place, theirs, "served_name: smollm2\nserve: {max_model_len: 4096, max_num_seqs: 1}\n")

    held = place.on_hosts("run", profile)
    clamped = place.on_hosts("run", attach(place, theirs, "serve: {max_model_len: 8192}\n"))
    found = rows(place)["serve.max_model_len"]

    assert held.code == 0, held.err
    assert (clamped.code, found["running"]) == (1, 4096), clamped.err
    assert "context size reduced from 8192 to 4096" in str(found["quote"])
    for run in all_runs(place):
        (host,) = run["hosts"]
        assert str(run["image_digest"]).startswith("sha256:")
        assert (bool(host["before"]), bool(host["after"]), host["role"]) == (True, True, "evidence")
    assert all(p.stat().st_size > 1000 for p in place.folder.glob("results/*/container-0.log"))
    assert len(list(place.folder.glob("results/*/container-0.log"))) == 2
    assert lab.docker("spark01", "inspect", "-f", "{{.State.StartedAt}} {{.RestartCount}}", SERVER) == before


def test_without_its_host_a_server_is_held_to_what_it_answers(place: Workplace, theirs: str) -> None:
    clamped = place.run("run", attach(place, theirs, "serve: {max_model_len: 8192}\n"))
    bare = place.run("check", "--url", theirs, "--gates", "runs.yaml", "--json")
    misnamed = place.run("run", attach(place, theirs, "served_name: other\n"))

    assert clamped.code == 1
    assert "serve.max_model_len: declared 8192, runs 4096" in clamped.err
    assert json.loads(bare.out)["runs"][0]["gates"] == {"effective": "skip"}
    assert misnamed.code == 2
    assert "serves no 'other'" in misnamed.err
    assert "it lists: smollm2" in misnamed.err
