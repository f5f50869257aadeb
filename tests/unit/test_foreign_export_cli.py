"""`gate0 export-config` from the command line."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.foreign.carrying import find
from orchestrator.profile.building import build_profile
from orchestrator.profile.digest import profile_digest
from orchestrator.records.record import RunRecord
from orchestrator.records.store import Store
from tests.unit.export_cases import PROFILES, load

NAME = "qwen3.8-27b-nvfp4-mtp1-checkpoint"
TWO = "qwen3.8-flash-next-nvfp4-tp2-mtp3"
RAN = f"sha256:{'ab' * 32}"


def test_stdout_is_the_file_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export-config", NAME, "--to", "compose"]) == 0

    out, err = capfd.readouterr()
    assert out.startswith(f"# {NAME}: ")
    assert out.endswith("                - gpu\n")
    assert err == ""


def test_what_the_form_cannot_say_is_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export-config", NAME, "--to", "k8s"]) == 0

    assert capfd.readouterr().err.splitlines() == [
        "warning: container.mounts: put a home directory in the place of /HOME",
        "warning: container.restart: no: a Deployment always starts its server again",
    ]


def test_a_file_for_each_host_takes_the_rank_into_its_name(tmp_path: Path) -> None:
    assert main(["export-config", TWO, "--to", "compose", "-o", str(tmp_path / "x.yaml")]) == 0
    assert main(["export-config", TWO, "--to", "compose", "-o", f"{tmp_path}/folder/"]) == 0

    assert sorted(p.name for p in tmp_path.rglob("*.yaml")) == [
        *(f"{TWO}-0.compose.yaml", f"{TWO}-1.compose.yaml", "x-0.yaml", "x-1.yaml")
    ]
    assert "VLLM_HOST_IP: node1" in (tmp_path / "x-1.yaml").read_text()


def test_a_profile_or_its_parent_is_never_written_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parent, child = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    parent.write_text("name: base\nengine: vllm\nimage: vllm/vllm-openai:v0.31.0\nmodel: a/b\n")
    child.write_text("name: mine\nextends: base.yaml\n")
    written = [path.read_text() for path in (parent, child)]

    codes = [main(["export-config", str(child), "--to", "compose", "-o", str(path)]) for path in (parent, child)]
    codes.append(main(["export-config", str(child), "--to", "sparkrun", "-o", f"{tmp_path}/"]))

    assert codes == [2, 2, 0]
    assert f"error: {child} is the profile itself" in capfd.readouterr().err
    assert [path.read_text() for path in (parent, child)] == written
    assert (tmp_path / "mine.sparkrun.yaml").is_file()


def test_named_hosts_give_their_addresses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("hosts:\n  a: {address: 10.0.0.1, link: {ip: 192.168.9.1}}\n  b: {address: 10.0.0.2}\n")

    assert main(["export-config", TWO, "--to", "docker-run", "--on", "a,b", "--hosts", str(hosts)]) == 0

    out, err = capfd.readouterr()
    assert out.count("--master-addr 192.168.9.1 ") == 2
    assert "-e VLLM_HOST_IP=10.0.0.2 " in out
    assert err == ""


def test_json_is_one_document(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export-config", NAME, "--to", "docker-run", "--bare", "--json"]) == 0

    said = json.loads(capfd.readouterr().out)
    assert said["profile"] == NAME
    assert said["digest"] == profile_digest(load(PROFILES / f"{NAME}.yaml"))
    assert [(f["name"], f["path"]) for f in said["files"]] == [(f"{NAME}.sh", None)]
    assert said["files"][0]["text"].endswith("--host 0.0.0.0\n")
    assert [a["words"] for a in said["added"]] == [["--host", "0.0.0.0"]]
    assert said["unsaid"] == []


def run_of(stamp: str, status: str, image_digest: str | None, digest: str) -> RunRecord:
    return RunRecord(
        id=f"{stamp}-x",
        status=status,
        created_at=stamp,
        updated_at=stamp,
        profile_name=NAME,
        profile_title="",
        profile_digest=digest,
        engine="vllm",
        image_digest=image_digest,
    )


def test_the_image_is_pinned_as_the_newest_passing_run_had_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    profile = load(PROFILES / f"{NAME}.yaml")
    store, digest = Store(tmp_path), profile_digest(profile)
    runs = (
        run_of("20260101", "passed", f"sha256:{'00' * 32}", digest),
        run_of("20260102", "passed", RAN, digest),
        run_of("20260103", "failed", f"sha256:{'11' * 32}", digest),
        run_of("20260104", "passed", f"sha256:{'22' * 32}", "another"),
        run_of("20260105", "passed", None, digest),
    )
    for run in runs:
        store.new_run(run.id).write_run(run)

    assert main(["export-config", NAME, "--to", "docker-run", "--with-digest", "--results", str(tmp_path)]) == 0

    out, err = capfd.readouterr()
    pinned = dataclasses.replace(profile, image=f"vllm/vllm-openai:v0.31.0@{RAN}")
    assert f"\n  vllm/vllm-openai:v0.31.0@{RAN} \\\n" in out
    assert f"image pinned as 20260102-x ran it: {RAN}" in err
    carried = find(out)
    assert carried is not None
    assert profile_digest(build_profile(carried)) == profile_digest(pinned)


def test_without_such_a_run_the_tag_stays_and_that_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export-config", NAME, "--to", "docker-run", "--with-digest", "--results", str(tmp_path)]) == 0

    out, err = capfd.readouterr()
    assert "\n  vllm/vllm-openai:v0.31.0 \\\n" in out
    assert "no run of this profile that passed" in err


REFUSED = {
    "form": ([NAME, "--to", "compse"], "no form is named `compse`; did you mean `compose`?"),
    "profile": (["qwen3.8-27b-nvfp", "--to", "compose"], "did you mean `qwen3.8-27b-nvfp4`?"),
    "process": (["demo/smollm2-llamacpp", "--to", "compose"], "runtime: process has no image"),
    "hosts": ([TWO, "--to", "compose", "--on", "local"], "spans 2 hosts"),
    "no form": ([NAME], "--to"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_call_ends_with_2_and_says_why(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    words, message = REFUSED[case]

    assert main(["export-config", *words]) == 2
    assert message in capfd.readouterr().err


def test_a_server_of_someone_elses_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "there.yaml"
    path.write_text("name: there\nengine: endpoint\nattach: http://box:8000\n")

    assert main(["export-config", str(path), "--to", "systemd"]) == 2
    assert "attaches to http://box:8000, which someone else started" in capfd.readouterr().err
