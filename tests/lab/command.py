"""`gate0` as a person runs it: a process of its own, in a folder of its own, against the lab's hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.running import RunningLab

GATE0 = Path(sys.executable).with_name("gate0")
DEADLINE_S = 240.0


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Workplace:
    """A folder with profiles and results, and the lab's hosts."""

    def __init__(self, folder: Path, lab: RunningLab) -> None:
        self.folder = folder
        self.lab = lab
        self.hosts_file = lab.hosts_yaml

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "LC_ALL")}
        return {**kept, "HOME": str(home), "COLUMNS": "200", "GATE0_TRACE": "1"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `gate0 WORDS --hosts …` and do not wait."""
        return subprocess.Popen(
            (str(GATE0), *words),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, deadline_s: float = DEADLINE_S) -> Ended:
        return finished(self.start(*words), deadline_s=deadline_s)

    def on_hosts(self, verb: str, *words: str, on: str = "spark01", deadline_s: float = DEADLINE_S) -> Ended:
        return self.run(verb, *words, "--on", on, "--hosts", str(self.hosts_file), deadline_s=deadline_s)

    def write_profile(self, name: str, text: str) -> str:
        """Write profiles/NAME.yaml; returns its path from the folder."""
        path = self.folder / "profiles" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"name: {name}\n{text}")
        return f"profiles/{name}.yaml"

    def runs(self) -> list[dict[str, object]]:
        """All run.json of this folder, oldest first."""
        return [json.loads(p.read_text()) for p in sorted(self.folder.glob("results/*/run.json"))]

    def the_run(self) -> dict[str, object]:
        (found,) = self.runs()
        return found

    def wait_for_stage(
        self, process: subprocess.Popen[str], stage: str, *, attempt: int, deadline_s: float = 120
    ) -> bool:
        """True once the newest run has begun the stage in that attempt; False when the process ended before."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            if (stage, attempt) in self._stages_begun():
                return True
            if process.poll() is not None:
                return (stage, attempt) in self._stages_begun()
            time.sleep(0.02)
        process.kill()
        raise AssertionError(f"{stage} was not begun within {deadline_s} s")

    def _stages_begun(self) -> set[tuple[str, int]]:
        begun = set()
        for path in sorted(self.folder.glob("results/*/events.jsonl"))[-1:]:
            for line in path.read_text().splitlines():
                try:
                    event = json.loads(line)
                except json.JSONDecodeError:
                    continue
                if event.get("event") == "stage":
                    begun.add((event["stage"], event["attempt"]))
        return begun


def finished(process: subprocess.Popen[str], *, deadline_s: float = DEADLINE_S) -> Ended:
    """Wait for the end; a process that outlives the deadline is a failure."""
    try:
        out, err = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"gate0 did not end within {deadline_s} s\n{out}\n{err}") from None
    return Ended(process.returncode, out, err)


def lines_of(mapping: Mapping[str, object]) -> Sequence[str]:
    """A profile's lines from plain values, as JSON is YAML."""
    return [f"{key}: {json.dumps(value)}" for key, value in mapping.items()]
