"""The lab is what the other lab tests take it for."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.lab.running import RUN_LABEL, RunningLab
from tools.lab import CHECKOUT
from tools.labkit.base import run
from tools.labkit.host import daemon_pids, find_init

HOSTS = ("spark01", "spark02")


def lab_py(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run the command that `make lab` runs."""
    command = [sys.executable, str(CHECKOUT / "tools" / "lab.py"), *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def init_pids(lab: RunningLab) -> dict[str, int | None]:
    """Return what a host that was not rebuilt keeps."""
    return {host.name: find_init(host, lab.lab.paths) for host in lab.lab.paths.hosts}


def kill_daemon(lab: RunningLab, host: str, name: str) -> None:
    """Kill a daemon as a crash does."""
    pids = daemon_pids(lab.lab.host(host), lab.lab.paths, name)
    assert pids, f"no {name} runs on {host}"
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def repaired(lab: RunningLab) -> Iterator[RunningLab]:
    """Leave a whole lab to the next test, also after a failure."""
    yield lab
    lab.lab.up()


def test_a_second_up_reuses_what_stands_in_under_two_seconds(lab: RunningLab) -> None:
    before = init_pids(lab)

    begin_s = time.monotonic()
    done = lab_py("up")
    elapsed_s = time.monotonic() - begin_s

    assert done.returncode == 0, done.stderr
    assert init_pids(lab) == before
    assert elapsed_s < 2


def test_without_root_up_says_why_and_exits_3() -> None:
    if os.geteuid() != 0:
        pytest.skip("drops root, and has none to drop")
    program = "import os, sys; from tools import lab; os.setuid(65534); sys.exit(lab.main(['up']))"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False, cwd=CHECKOUT
    )

    assert done.returncode == 3, done.stderr
    assert "needs root" in done.stderr


def test_status_says_that_everything_answers(lab: RunningLab) -> None:
    done = lab_py("status", "--json")

    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["up"] is True


@pytest.mark.parametrize("daemon", ["dockerd", "sshd"])
def test_a_killed_daemon_is_started_again_on_its_host_alone(repaired: RunningLab, daemon: str) -> None:
    before = init_pids(repaired)
    kill_daemon(repaired, "spark02", daemon)

    assert lab_py("status").returncode == 1
    repaired.lab.up()

    assert repaired.lab.status().is_up
    assert init_pids(repaired) == before


def test_a_lost_namespace_is_built_again(repaired: RunningLab) -> None:
    run(["ip", "netns", "del", "spark02"])

    repaired.lab.up()

    assert repaired.ssh("spark02", "hostname").strip() == "spark02"


def test_a_lost_bridge_is_plugged_together_again(repaired: RunningLab) -> None:
    before = init_pids(repaired)
    run(["ip", "link", "del", "gate0lab"])

    repaired.lab.up()

    assert repaired.lab.status().is_up
    assert init_pids(repaired) == before


def test_two_ups_at_once_do_not_disturb_each_other(repaired: RunningLab) -> None:
    kill_daemon(repaired, "spark01", "dockerd")
    command = [sys.executable, str(CHECKOUT / "tools" / "lab.py"), "up"]

    both = [subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) for _ in range(2)]
    ends = [(one.communicate(timeout=120)[1], one.returncode) for one in both]

    assert [code for _, code in ends] == [0, 0], ends


@pytest.mark.parametrize(("host", "other"), [HOSTS, HOSTS[::-1]])
def test_hosts_find_each_other_by_name_and_reach_each_other(lab: RunningLab, host: str, other: str) -> None:
    assert lab.ssh(host, "getent", "hosts", other).split()[0] == lab.address(other)

    greeting = lab.ssh(host, f"timeout 5 bash -c 'exec 3<>/dev/tcp/{other}/22; head -c 4 <&3'")

    assert greeting == "SSH-"


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_has_its_own_name_home_tmp_and_engine(lab: RunningLab, host: str) -> None:
    other = next(name for name in HOSTS if name != host)
    lab.exec(host, "touch", "/tmp/mine", "/root/mine")
    ids = {lab.docker(name, "info", "--format", "{{.ID}}") for name in HOSTS}

    seen = [lab.has(other, path) for path in ("/tmp/mine", "/root/mine")]

    lab.exec(host, "rm", "/tmp/mine", "/root/mine")
    assert lab.ssh(host, "hostname").strip() == host
    assert seen == [False, False]
    assert len(ids) == 2


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_pulls_an_image_in_layers_from_the_registry(lab: RunningLab, host: str) -> None:
    lab.docker(host, "rmi", "-f", lab.llama_image)

    lab.docker(host, "pull", lab.llama_image, deadline_s=120)

    layers = json.loads(lab.docker(host, "image", "inspect", "--format", "{{json .RootFS.Layers}}", lab.llama_image))
    assert len(layers) == 3


@pytest.mark.parametrize("host", HOSTS)
def test_the_llama_image_serves_a_completion(lab: RunningLab, host: str) -> None:
    start = ("run", "-d", "--name=lab-itself", "--network=host", lab.llama_image)
    lab.docker(host, *start, "-m", lab.model_path, "--host", "0.0.0.0", "--port", "8099", "-c", "1024", "--jinja")

    try:
        answer = _ask(lab.address(host), 8099, "What is the capital of France? Answer with one word.", deadline_s=60)
        apps = lab.ssh(host, "nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits")
    finally:
        lab.docker(host, "rm", "-f", "lab-itself")

    assert "Paris" in answer
    assert int(apps.split(", ")[1]) > 50


def test_the_faulty_image_does_as_told(lab: RunningLab) -> None:
    done = lab.lab.exec("spark01", ["docker", "run", "--rm", lab.faulty_image, "-c", "echo no kernel >&2; exit 17"])

    assert (done.returncode, done.stderr.strip()) == (17, "no kernel")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name,driver_version,compute_cap", "NVIDIA GB10, 580.178, 12.1"),
        ("memory.total,memory.used,memory.free", "[N/A], [N/A], [N/A]"),
        ("power.limit,fan.speed,clocks.mem,temperature.memory", "[N/A], [N/A], [N/A], [N/A]"),
        ("power.draw,clocks.sm,utilization.gpu", "11.24, 2405, 3"),
    ],
)
def test_nvidia_smi_answers_as_on_a_gb10(lab: RunningLab, query: str, expected: str) -> None:
    answer = lab.ssh("spark01", f"nvidia-smi --query-gpu={query} --format=csv,noheader,nounits")

    assert answer.strip() == expected


def test_the_hosts_say_they_are_dgx_sparks(lab: RunningLab) -> None:
    assert 'DGX_NAME="DGX Spark"' in lab.ssh("spark02", "cat", "/etc/dgx-release")


def test_a_host_at_rest_is_clean(lab: RunningLab) -> None:
    for host in HOSTS:
        lab.assert_clean(host)


def test_what_is_left_behind_is_found(lab: RunningLab) -> None:
    labelled = ("run", "-d", "--name=left", "--label", f"{RUN_LABEL}=r1", lab.faulty_image, "-c", "sleep 60")
    lab.docker("spark01", *labelled)
    lab.exec("spark01", "mkdir", "/tmp/gate0.lock")
    session = subprocess.Popen(["ssh", "-F", str(lab.ssh_config), "spark01", "sleep 61"], stdin=subprocess.DEVNULL)

    try:
        with pytest.raises(AssertionError) as caught:
            lab.assert_clean("spark01", deadline_s=1)
    finally:
        session.kill()
        session.wait()
        lab.exec("spark01", "kill", *[str(one.pid) for one in lab.processes("spark01") if one.command == "sleep 61"])
        lab.exec("spark01", "rmdir", "/tmp/gate0.lock")
        lab.docker("spark01", "rm", "-f", "left")

    assert [word in str(caught.value) for word in ("container left", "lock /tmp", "sleep 61", "sshd:")] == [True] * 4
    lab.assert_clean("spark01")


def test_hosts_yaml_names_files_that_exist(lab: RunningLab) -> None:
    hosts = yaml.safe_load(lab.hosts_yaml.read_text())["hosts"]

    assert {name: entry["address"] for name, entry in hosts.items()} == {name: lab.address(name) for name in HOSTS}
    assert all(Path(entry[key]).is_file() for entry in hosts.values() for key in ("key_file", "known_hosts"))


def _ask(address: str, port: int, question: str, *, deadline_s: float) -> str:
    """Ask until the server has loaded its model (503 until then, refused before that)."""
    body = json.dumps({"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 16})
    end_s = time.monotonic() + deadline_s
    while time.monotonic() < end_s:
        connection = http.client.HTTPConnection(address, port, timeout=30)
        try:
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if reply.status == 200:
                return str(json.load(reply)["choices"][0]["message"]["content"])
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.2)
    raise AssertionError(f"no answer from {address}:{port} within {deadline_s} s")
