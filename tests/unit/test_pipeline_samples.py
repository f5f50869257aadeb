"""Telemetry's samples: what a host is asked, and what of it a repeat is judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.fleet.facts.parse import clock_reasons, vmstat
from orchestrator.pipeline.hostview import SAMPLE_GPU, sample
from orchestrator.pipeline.run import travel
from orchestrator.pipeline.samples import KEPT, Samples
from orchestrator.sweep.workload import Cell
from tests.contract.fakes import FakeHost
from tests.unit.road_fakes import GIB, World, stored

GPU = "NVIDIA GB10, GPU-1, 580.142, 12.1, 41, 11.24, 2405, 3003, 96, P0"
MEMINFO = "MemTotal:       127600748 kB\nMemAvailable:   100000000 kB\n"
VMSTAT = "nr_free_pages 1\npswpin 12\npswpout 40\noom_kill 1\noom_kills_other 7\n"


def host(**files: str) -> FakeHost:
    return FakeHost(files={"/proc/meminfo": MEMINFO, "/proc/vmstat": VMSTAT, **files})


def test_a_sample_has_memory_pressure_and_why_the_clock_is_what_it_is() -> None:
    box = host()
    box.answer(SAMPLE_GPU, stdout=f"{GPU}, 0x0000000000000024\n")

    found: Any = sample(box, True)

    assert found["memory"]["available_bytes"] == 100000000 * 1024
    assert found["pressure"] == {"swapped_in_pages": 12, "oom_kills": 1}
    (gpu,) = found["gpus"]
    assert gpu["clock_reasons"] == ["sw_power_cap", "sw_thermal_slowdown"]
    assert gpu["sm_clock_mhz"] == 2405.0


def test_a_driver_that_does_not_know_the_reasons_tells_the_rest_all_the_same() -> None:
    box = host()
    box.answer(("nvidia-smi",), stdout=f"{GPU}\n")
    box.answer(SAMPLE_GPU, exit_code=2, stdout='Field "clocks_event_reasons.active" is not a valid field to query.\n')

    found: Any = sample(box, True)
    (gpu,) = found["gpus"]

    assert gpu["sm_clock_mhz"] == 2405.0
    assert "clock_reasons" not in gpu


def test_a_host_without_a_gpu_is_not_asked_for_one() -> None:
    box = host()

    assert set(sample(box, False)) == {"memory", "pressure"}
    assert all(argv[0] != "nvidia-smi" for argv in box.commands)


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        (" 0x0000000000000000", []),
        ("0x1", ["gpu_idle"]),
        ("0xe8", ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"]),
        ("[N/A]", None),
        ("", None),
    ],
)
def test_a_mask_says_its_reasons(mask: str, reasons: list[str] | None) -> None:
    assert clock_reasons(mask) == reasons


def test_what_vmstat_does_not_have_is_not_there() -> None:
    assert vmstat("pswpin 3\n") == {"swapped_in_pages": 3}


def test_samples_of_a_time_come_by_host_in_order_and_the_oldest_go_first() -> None:
    samples = Samples()
    for at_s in range(KEPT + 2):
        samples.add(float(at_s), "b" if at_s % 2 else "a", {"at": at_s})

    assert samples.between(0.0, 4.0) == {"a": [{"at": 2}, {"at": 4}], "b": [{"at": 3}]}


def test_a_repeat_is_judged_by_what_its_hosts_told_meanwhile(tmp_path: Path) -> None:
    world = World(tmp_path)
    road = world.road()

    def starve(cell: Cell) -> None:
        if cell.concurrency == 2:
            road.samples.add(world.time_s, "spark01", {"memory": {"available_bytes": GIB // 2}})
        world.time_s += 10.0

    world.on_cell = starve
    travel(road)

    first, second = stored(world).cells()
    assert (first.cell.is_valid, [g["name"] for g in second.cell.guards]) == (True, ["memory_exhausted"])
    assert second.cell.guards[0]["message"] == "spark01: only 512 MiB of memory were left in repeat 0"
