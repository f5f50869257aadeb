"""The whole road on two real hosts: records, resume after every kind of end, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.command import Workplace, finished
from tests.lab.running import RunningLab

ROOT = Path(__file__).resolve().parents[2]
LAB_PROFILE = str(ROOT / "profiles" / "lab" / "smollm2-llamacpp.yaml")
STAGES = ("preflight", "pull", "start", "ready", "effective", "gates", "sweeps")
SMALL = ("--set", "concurrency=1,2", "--set", "repeats=1", "--set", "output_tokens=16")


@pytest.fixture
def place(tmp_path: Path, lab: RunningLab) -> Iterator[Workplace]:
    yield Workplace(tmp_path, lab)
    for host in lab.host_names:
        lab.assert_clean(host)


def quick(place: Workplace, *, slots: int = 4) -> str:
    """The lab's profile with the quick suite."""
    return place.write_profile(
        "smol",
        f"extends: {LAB_PROFILE}\n"
        "gates: {suite: quick, params: null, optional: null}\n"
        f"serve: {{tool_call_parser: null, max_num_seqs: {slots}}}\n",
    )


def test_one_line_takes_two_hosts_down_the_whole_road(place: Workplace, lab: RunningLab) -> None:
    ended = place.on_hosts("run", LAB_PROFILE, "--workload", "quick", *SMALL, "--json", on="spark01,spark02")

    document = json.loads(ended.out)
    assert ended.code == 0, ended.err
    assert [r["hosts"] for r in document["runs"]] == [["spark01"], ["spark02"]]
    for run, record in zip(document["runs"], place.runs(), strict=True):
        assert run["gates"]["prefix_cache"] == "pass", ended.err
        assert record["image_digest"].startswith("sha256:")  # type: ignore[attr-defined]
        assert record["slots"] == 4
        assert record["slots_source"] == "server"
        assert record["memory_returned"]
        assert [(p["concurrency"], p["good"]) for p in run["points"]] == [(1, 1), (2, 2)]
        assert all(h["before"] and h["after"] for h in record["hosts"])  # type: ignore[attr-defined]
    for directory in place.folder.glob("results/*"):
        assert (directory / "container-0.log").stat().st_size > 1000
        assert (directory / "metrics-after.txt").is_file()
    assert ended.err.count("gate coherence") >= 2


def test_a_sweep_on_a_gated_server_is_measured_and_not_ungated(place: Workplace) -> None:
    ended = place.on_hosts("run", quick(place), "--workload", "quick", *SMALL)

    assert ended.code == 0, ended.err
    run = place.the_run()
    assert run["status"] == "passed"
    cells = sorted(p.stem for p in place.folder.glob("results/*/sweeps/quick/*.json"))
    assert len(cells) == 2
    for path in place.folder.glob("results/*/sweeps/quick/*.json"):
        cell = json.loads(path.read_text())
        assert [g for g in cell["guards"] if g["name"] != "client_lag"] == []  # others share this machine
        assert cell["is_ungated"] is False
    assert "record: results/" in ended.out
    assert "next: gate0 report" in ended.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "sigkill"])
def test_an_end_at_every_stage_is_resumed_into_one_record(
    place: Workplace, lab: RunningLab, number: signal.Signals
) -> None:
    profile = quick(place)
    words = ("run", profile, "--workload", "quick", *SMALL, "--on", "spark01", "--hosts", str(place.hosts_file))
    for attempt, stage in enumerate(STAGES, start=1):
        if stage == "pull":
            lab.docker("spark01", "rmi", "-f", lab.llama_image)
        process = place.start(*words, *(("--resume",) if attempt > 1 else ()))
        assert place.wait_for_stage(process, stage, attempt=attempt), finished(process).err
        os.kill(process.pid, number)
        ended = finished(process)
        assert ended.code == (130 if number is signal.SIGINT else -signal.SIGKILL), ended.err
        if number is signal.SIGINT:
            assert "--resume" in ended.out
            lab.assert_clean("spark01")

    last = place.run(*words, "--resume")

    assert last.code == 0, last.err
    run = place.the_run()
    assert run["status"] == "passed"
    assert run["attempts"] == len(STAGES) + 1
    assert len(list(place.folder.glob("results/*/sweeps/quick/*.requests.jsonl"))) == 2


def test_finished_cells_and_verdicts_stand_on_resume(place: Workplace) -> None:
    profile = quick(place)
    words = ("run", profile, "--workload", "quick", *SMALL)
    first = place.on_hosts(*words)
    before = {p.name: p.read_bytes() for p in place.folder.glob("results/*/sweeps/quick/*")}

    second = place.on_hosts(*words, "--resume")

    assert (first.code, second.code) == (0, 0), second.err
    after = {p.name: p.read_bytes() for p in place.folder.glob("results/*/sweeps/quick/*")}
    cells = [json.loads(text) for name, text in before.items() if not name.endswith(".requests.jsonl")]
    valid = {cell["id"] for cell in cells if not cell["guards"]}  # an invalid one (a late client) is measured again
    assert {n: t for n, t in before.items() if n.split(".")[0] in valid} == {
        n: t for n, t in after.items() if n.split(".")[0] in valid
    }
    assert second.err.count("kept from an earlier attempt") >= len(valid)
    assert "skipped     spark01: gates" in second.err


def test_a_second_gate0_is_told_who_holds_the_host(place: Workplace) -> None:
    profile = quick(place)
    first = place.start("deploy", profile, "--on", "spark01", "--hosts", str(place.hosts_file))
    assert place.wait_for_stage(first, "ready", attempt=1), finished(first).err

    second = place.on_hosts("deploy", profile)

    assert finished(first).code == 0
    assert second.code == 3
    assert f"{os.uname().nodename}" in second.err
    assert place.on_hosts("stop", "--all").code == 0


def test_a_server_that_was_left_up_is_found_logged_and_stopped_by_its_labels(
    place: Workplace, tmp_path_factory: pytest.TempPathFactory, lab: RunningLab
) -> None:
    profile = quick(place)
    assert place.on_hosts("deploy", profile).code == 0
    again = place.on_hosts("deploy", profile)
    elsewhere = Workplace(tmp_path_factory.mktemp("elsewhere"), lab)

    listed = elsewhere.on_hosts("ps", "--json", on="spark01,spark02")
    logged = elsewhere.on_hosts("logs", "smol", "--tail", "0")
    stopped = elsewhere.on_hosts("stop", "smol")

    assert again.code == 0
    assert "the same digest runs already" in again.err
    (server,) = json.loads(listed.out)["servers"]
    assert (server["host"], server["profile"], server["is_running"]) == ("spark01", "smol", True)
    assert "listening on" in logged.out
    assert stopped.code == 0, stopped.err
    (log,) = elsewhere.folder.glob("results/stopped/*.log")
    assert "listening on" in log.read_text()


def test_another_digest_replaces_only_what_gate0_owns(place: Workplace, lab: RunningLab) -> None:
    assert place.on_hosts("deploy", quick(place)).code == 0
    quick(place, slots=2)

    changed = place.on_hosts("deploy", "profiles/smol.yaml")

    assert changed.code == 0, changed.err
    assert "replaces gate0-smol" in changed.err
    assert len(lab.containers("spark01")) == 1
    (log,) = place.folder.glob("results/*/replaced-gate0-smol.log")
    assert "listening on" in log.read_text()
    assert place.on_hosts("stop", "smol").code == 0


def test_a_server_that_is_already_there_is_gated_and_swept_by_its_url(place: Workplace, lab: RunningLab) -> None:
    profile = quick(place)
    assert place.on_hosts("deploy", profile).code == 0
    url = f"http://{lab.address('spark01')}:{json.loads(place.on_hosts('ps', '--json').out)['servers'][0]['port']}"

    checked = place.run("check", "--url", url, "--gates", "quick", "--json", "--results", "other")
    swept = place.run("sweep", "--url", url, "--workload", "quick", *SMALL, "--json", "--results", "other")

    assert checked.code == 0, checked.err
    (gated,) = json.loads(checked.out)["runs"]
    assert gated["engine"] == "llamacpp"
    assert gated["gates"]["coherence"] == "pass"
    assert swept.code == 0, swept.err
    (run,) = json.loads(swept.out)["runs"]
    assert [p["is_ungated"] for p in run["points"]] == [True, True]
    assert [p["slots"] for p in run["points"]] == [4, 4]
    assert place.on_hosts("stop", "smol").code == 0


def test_a_native_binary_behind_a_tunnel_is_gated_with_a_key_that_shows_nowhere(
    place: Workplace, lab: RunningLab
) -> None:
    profile = place.write_profile(
        "native",
        "engine: llamacpp\nruntime: process\nbinary: /run/parts/llama/llama-server\nserved_name: smol\nport: 8099\n"
        "expose: loopback\nmodel: {path: /run/parts/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}\n"
        "serve: {max_model_len: 1024, max_num_seqs: 2, api_key: {secret: SMOL_KEY}}\ngates: quick\n",
    )
    secret = "a-key-that-must-show-nowhere"
    home = Path(place.environment()["HOME"])
    (home / ".config" / "gate0").mkdir(parents=True)
    secrets = home / ".config" / "gate0" / "secrets"
    secrets.write_text(f"SMOL_KEY={secret}\n")
    secrets.chmod(0o600)
    words = ("run", profile, "--workload", "quick", *SMALL, "--on", "spark01", "--hosts", str(place.hosts_file))
    process = place.start(*words)
    assert place.wait_for_stage(process, "sweeps", attempt=1), finished(process).err

    listing = lab.exec("spark01", "ps", "-eo", "args=", "-ww")
    listening = lab.exec("spark01", "ss", "-ltn")
    ended = finished(process)

    assert ended.code == 0, ended.err
    assert "127.0.0.1:8099" in listening
    assert "0.0.0.0:8099" not in listening
    run = place.the_run()
    assert (run["vantage"], run["runtime"]) == ("tunnel", "process")
    assert "llama-server" in listing
    written = [p.read_text(errors="replace") for p in place.folder.glob("results/**/*") if p.is_file()]
    assert not any(secret in text for text in [listing, ended.out, ended.err, *written])
