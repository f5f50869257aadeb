"""What a box's facts give rise to, and what two boxes do not have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.fleet.facts import Docker, Gpu, GpuProcess, HostFacts, Memory, concerns, differences, same_machine

GIB = 2**30
HEALTHY = HostFacts(
    host="spark01",
    read_at="2026-11-30T06:00:00Z",
    hostname="spark01",
    boot_id="boot-1",
    kernel="6.17.0-1014-nvidia",
    arch="aarch64",
    dgx_release="7.2.3",
    cpu_count=20,
    cpu_max_khz=(3_900_000, 3_900_000),
    clock_ahead_s=0.01,
    memory=Memory(
        total_bytes=121 * GIB,
        available_bytes=115 * GIB,
        swap_total_bytes=16 * GIB,
        cma_total_bytes=128 * 2**20,
        cma_free_bytes=120 * 2**20,
        hugepages=0,
    ),
    gpus=(Gpu(name="NVIDIA GB10", driver="580.142", temperature_c=41.0, sm_clock_mhz=2405.0, utilization_percent=3.0),),
    gpu_processes=(),
    docker=Docker(version="28.5.1", runtimes=("nvidia", "runc"), root="/var/lib/docker"),
    disk_free_bytes={"/var/lib/docker": 900 * GIB},
    watchdogs=(),
    firmware={"bios": "5.36"},
)
GPU = HEALTHY.gpus[0]


def changed(**fields: Any) -> HostFacts:
    return replace(HEALTHY, **fields)


def memory(**fields: Any) -> HostFacts:
    return replace(HEALTHY, memory=replace(HEALTHY.memory, **fields))


def gpu(**fields: Any) -> HostFacts:
    return replace(HEALTHY, gpus=(replace(GPU, **fields),))


CASES = [
    ("docker", "blocker", changed(docker=Docker(problem="absent"))),
    ("docker", "blocker", changed(docker=Docker(problem="not_running"))),
    ("docker", "blocker", changed(docker=Docker(problem="no_permission"), user="me")),
    ("docker", "blocker", changed(docker=Docker(problem="error during connect"))),
    ("no_nvidia_runtime", "warning", changed(docker=Docker(version="28", runtimes=("runc",)))),
    ("gpu_driver", "warning", changed(gpus=(), gpu_problem="NVIDIA-SMI has failed")),
    ("kernel", "warning", changed(kernel="7.0.0-1019-nvidia")),
    ("driver", "warning", gpu(driver="590.44.01")),
    ("cma_anomaly", "warning", memory(cma_total_bytes=0)),
    ("memory_in_use", "warning", memory(available_bytes=40 * GIB)),
    ("gpu_process", "warning", changed(gpu_processes=(GpuProcess(pid=7, name="VLLM::EngineCore", memory_bytes=GIB),))),
    ("low_clock", "warning", gpu(utilization_percent=96.0, sm_clock_mhz=799.0)),
    ("hot", "warning", gpu(temperature_c=91.0)),
    ("hot", "warning", changed(temperatures_c={"acpitz": 93.0})),
    ("cpu_capped", "warning", changed(cpu_max_khz=(1_500_000, 3_900_000))),
    ("disk", "warning", changed(disk_free_bytes={"/var/lib/docker": 12 * GIB})),
    ("watchdog", "note", changed(watchdogs=("earlyoom",))),
    ("hugepages", "note", memory(hugepages=512)),
    ("no_swap", "note", memory(swap_total_bytes=0)),
    ("clock", "note", changed(clock_ahead_s=-95.0)),
]


def test_a_healthy_spark_is_of_no_concern() -> None:
    assert concerns(HEALTHY) == ()


@pytest.mark.parametrize(("code", "level", "facts"), CASES, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(CASES)])
def test_a_rule_finds_its_case_and_only_it(code: str, level: str, facts: HostFacts) -> None:
    assert [(c.code, c.level.value) for c in concerns(facts)] == [(code, level)]


@pytest.mark.parametrize(("code", "level", "facts"), CASES, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(CASES)])
def test_every_concern_says_what_to_do(code: str, level: str, facts: HostFacts) -> None:
    assert [c for c in concerns(facts) if not c.hint or c.message.endswith(".")] == []


def test_what_is_not_told_is_of_no_concern() -> None:
    told_nothing = HostFacts(host="h", read_at="now", gpus=(Gpu(name="NVIDIA GB10"),))

    assert concerns(told_nothing) == ()


def test_a_machine_that_is_no_spark_is_not_held_to_a_sparks_swap_and_memory() -> None:
    plain = replace(memory(swap_total_bytes=0, available_bytes=GIB), gpus=(replace(GPU, name="NVIDIA H200"),))

    assert concerns(plain) == ()


def test_the_worst_comes_first() -> None:
    both = changed(docker=Docker(problem="absent"), watchdogs=("earlyoom",), kernel="7.0.0-1019-nvidia")

    assert [c.level.value for c in concerns(both)] == ["blocker", "warning", "note"]


def test_equal_hosts_do_not_differ() -> None:
    assert differences(HEALTHY, changed(host="spark02")) == ()


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (changed(kernel="6.17.0-1018-nvidia"), "kernel: spark01 6.17.0-1014-nvidia, spark02 6.17.0-1018-nvidia"),
        (gpu(driver="580.95"), "driver: spark01 580.142, spark02 580.95"),
        (changed(dgx_release="7.4.0"), "DGX OS: spark01 7.2.3, spark02 7.4.0"),
        (changed(firmware={"bios": "5.37"}), "firmware bios: spark01 5.36, spark02 5.37"),
        (memory(total_bytes=90 * GIB), "memory: spark01 121.0 GiB, spark02 90.0 GiB"),
        (memory(swap_total_bytes=0), "swap: spark01 on, spark02 off"),
        (changed(gpus=()), "GPUs: spark01 1, spark02 0"),
        (changed(clock_ahead_s=5.01), "clock: spark01 is 5.0 s behind spark02"),
    ],
)
def test_a_difference_is_named_with_both_values(other: HostFacts, line: str) -> None:
    assert differences(HEALTHY, replace(other, host="spark02")) == (line,)


@pytest.mark.parametrize(
    "other",
    [changed(kernel=None), memory(total_bytes=None), memory(total_bytes=120 * GIB), changed(clock_ahead_s=None)],
)
def test_what_one_does_not_tell_or_a_hairs_breadth_is_no_difference(other: HostFacts) -> None:
    assert differences(HEALTHY, replace(other, host="spark02")) == ()


def test_one_boot_under_one_host_name_is_one_machine() -> None:
    assert same_machine(HEALTHY, changed(host="spark02"))
    assert not same_machine(HEALTHY, changed(host="spark02", hostname="spark02"))
    assert not same_machine(changed(boot_id=None), changed(boot_id=None))
