"""Each fault ends in the right exit code and message, with nothing left behind on the host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.command import Workplace, finished
from tests.lab.running import RunningLab

HOST = "spark01"
IDLE = "trap 'exit 0' TERM; sleep 600 & wait"
"""A server that never answers, and ends when it is told to."""


@pytest.fixture
def place(tmp_path: Path, lab: RunningLab) -> Iterator[Workplace]:
    yield Workplace(tmp_path, lab)
    lab.assert_clean(HOST)


def faulty(lab: RunningLab, script: str, **more: object) -> str:
    """A profile whose container runs a shell script instead of a server."""
    import json

    lines = {
        "engine": "generic",
        "image": lab.faulty_image,
        "command": ["-c", script],
        "served_name": "nobody",
        "port": 8111,
        "ready": {"timeout_s": 60},
        **more,
    }
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in lines.items())


def hosts_yaml(place: Workplace, **changes: str) -> None:
    """The lab's first host with something wrong in it."""
    fields = {
        "address": place.lab.address(HOST),
        "user": "root",
        "key_file": str(place.lab.key),
        "known_hosts": str(place.lab.known_hosts),
        **changes,
    }
    body = ", ".join(f"{k}: {v}" for k, v in fields.items())
    place.hosts_file = place.folder / "hosts.yaml"
    place.hosts_file.write_text(f"hosts:\n  {HOST}: {{{body}}}\n")


def test_an_unreachable_host_is_named_with_what_to_do(place: Workplace, lab: RunningLab) -> None:
    hosts_yaml(place, address="10.66.0.99")
    profile = place.write_profile("p", faulty(lab, "exit 0"))

    ended = place.on_hosts("run", profile)

    assert ended.code == 3
    assert HOST in ended.err
    assert "10.66.0.99" in ended.err
    assert "hint:" in ended.err


def test_a_wrong_key_is_refused_and_the_message_names_the_user_and_the_keys(place: Workplace, lab: RunningLab) -> None:
    key = place.folder / "id_other"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)), check=True)
    hosts_yaml(place, key_file=str(key))
    profile = place.write_profile("p", faulty(lab, "exit 0"))

    ended = place.on_hosts("run", profile)

    assert ended.code == 3
    assert "root" in ended.err
    assert "id_other" in ended.err


def test_a_changed_host_key_is_refused_with_both_fingerprints(place: Workplace, lab: RunningLab) -> None:
    key = place.folder / "host_key"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)), check=True)
    public = key.with_suffix(".pub").read_text().split()[:2]
    (place.folder / "known_hosts").write_text(f"{lab.address(HOST)} {' '.join(public)}\n")
    hosts_yaml(place, known_hosts=str(place.folder / "known_hosts"))
    profile = place.write_profile("p", faulty(lab, "exit 0"))

    ended = place.on_hosts("run", profile)

    assert ended.code == 3
    assert ended.err.count("SHA256:") >= 2
    assert "ssh-keygen -R" in ended.err


def test_an_unknown_host_key_names_the_command_that_trusts_it(place: Workplace, lab: RunningLab) -> None:
    (place.folder / "known_hosts").write_text("")
    hosts_yaml(place, known_hosts=str(place.folder / "known_hosts"))
    profile = place.write_profile("p", faulty(lab, "exit 0"))

    ended = place.on_hosts("run", profile)

    assert ended.code == 3
    assert f"gate0 hosts trust {HOST}" in ended.err


def test_a_docker_daemon_that_is_down_is_said_with_the_remedy(place: Workplace, lab: RunningLab) -> None:
    profile = place.write_profile("p", faulty(lab, "exit 0"))
    lab.exec(HOST, "sh", "-c", "kill -STOP $(cat /run/docker.pid); mv /run/docker.sock /run/docker.sock.away")
    try:
        ended = place.on_hosts("run", profile)
    finally:
        lab.exec(HOST, "sh", "-c", "mv /run/docker.sock.away /run/docker.sock; kill -CONT $(cat /run/docker.pid)")

    assert ended.code == 3
    assert "docker" in ended.err.lower()
    assert "systemctl start docker" in ended.err


def test_an_image_that_is_nowhere_is_named_with_the_registrys_words(place: Workplace) -> None:
    profile = place.write_profile("p", faulty(place.lab, "exit 0", image="10.66.0.1:5000/nothing:1"))

    ended = place.on_hosts("run", profile)

    assert ended.code == 3
    assert "10.66.0.1:5000/nothing:1" in ended.err


def test_a_taken_port_is_seen_before_anything_starts(place: Workplace, lab: RunningLab) -> None:
    profile = place.write_profile("p", faulty(lab, "exit 0"))
    holder = lab.docker(HOST, "run", "-d", "--network", "host", lab.faulty_image, "-c", "httpd -f -p 8111")
    try:
        lab.exec(HOST, "sh", "-c", "for i in $(seq 100); do ss -ltn | grep -q :8111 && exit 0; sleep 0.1; done; exit 1")
        ended = place.on_hosts("run", profile)
    finally:
        lab.docker(HOST, "rm", "-f", holder.strip())

    assert ended.code == 3
    assert "8111" in ended.err
    assert "start" not in [s["name"] for s in place.the_run()["stages"] if s["status"] == "passed"]  # type: ignore[index, attr-defined]


def test_a_container_of_someone_else_with_our_name_is_left_alone(place: Workplace, lab: RunningLab) -> None:
    profile = place.write_profile("p", faulty(lab, IDLE))
    lab.docker(HOST, "run", "-d", "--name", "gate0-p", lab.faulty_image, "-c", "sleep 600")
    try:
        ended = place.on_hosts("run", profile)
        still_there = lab.docker(HOST, "ps", "-q", "--filter", "name=gate0-p")
    finally:
        lab.docker(HOST, "rm", "-f", "gate0-p")

    assert ended.code == 3
    assert "gate0-p" in ended.err
    assert still_there.strip()


def test_a_container_that_exits_at_once_shows_its_code_and_last_words(place: Workplace, lab: RunningLab) -> None:
    profile = place.write_profile("p", faulty(lab, "echo the last words; exit 17"))

    ended = place.on_hosts("run", profile)

    assert ended.code == 3
    assert "exit code 17" in ended.err
    assert "the last words" in ended.err
    (log,) = place.folder.glob("results/*/container-0.log")
    assert "the last words" in log.read_text()


def test_a_death_while_loading_is_reported_at_once_with_its_diagnosis(place: Workplace, lab: RunningLab) -> None:
    script = "echo Loading weights; sleep 2; echo 'torch.OutOfMemoryError: CUDA out of memory.'; exit 137"
    profile = place.write_profile("p", faulty(lab, script, ready={"timeout_s": 600}))

    ended = place.on_hosts("run", profile, deadline_s=60)

    assert ended.code == 3
    assert "memory" in ended.err
    assert "hint:" in ended.err


def test_a_server_that_never_answers_ends_at_the_deadline(place: Workplace, lab: RunningLab) -> None:
    profile = place.write_profile("p", faulty(lab, IDLE, ready={"timeout_s": 4}))

    ended = place.on_hosts("run", profile)

    assert ended.code == 3
    assert "no first token" in ended.err


def test_a_disk_that_fills_up_while_the_server_starts_says_so_and_stops_it(place: Workplace, lab: RunningLab) -> None:
    results = place.folder / "results"
    results.mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(results)), check=True)
    try:
        profile = place.write_profile("p", faulty(lab, IDLE, ready={"timeout_s": 6}))
        process = place.start("run", profile, "--on", HOST, "--hosts", str(place.hosts_file))
        assert place.wait_for_stage(process, "ready", attempt=1)
        assert lab.containers(HOST) == ("gate0-p",)
        with pytest.raises(OSError, match="No space left"):
            (results / "ballast").write_bytes(b"0" * 1_000_000)
        ended = finished(process)
    finally:
        subprocess.run(("umount", "-l", str(results)), check=True)

    assert ended.code == 3
    assert "no space left" in ended.err
    assert "--resume" in ended.err + ended.out
    lab.assert_clean(HOST)


def test_a_malformed_profile_touches_no_host(place: Workplace) -> None:
    profile = place.write_profile("p", "engine: vlm\nimage: x:1\nserve: {max_model_len: 128k}\n")

    ended = place.on_hosts("run", profile)

    assert ended.code == 2
    assert "profiles/p.yaml:2:" in ended.err
    assert "did you mean" in ended.err
    assert place.runs() == []
