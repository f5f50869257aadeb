"""Deploy overhead: from the command to the container's start, against `ssh HOST docker run`, on a lab host.

Both start the same image with the same words, already pulled, from nothing to the container's own StartedAt as the
engine tells it; host and measuring machine share one clock here. Interleaved, medians over the rounds.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOST = "spark01"
ROUNDS = 5
TARGET_RATIO = 2.0
NAME = "gate0-bench"
SCRIPT = "trap 'exit 0' TERM; sleep 600 & wait"
COMMAND = ("-c", SCRIPT)
READY_S = 1


def main() -> int:
    """Print the medians and their ratio; 3 when the lab is not up."""
    sys.path.insert(0, str(ROOT))
    from tools.lab import FAULTY_IMAGE, Lab

    lab = Lab.of(ROOT)
    if not lab.paths.hosts_yaml.is_file():
        print("  skipped, the lab is not up (`make lab`)")
        return 3
    with tempfile.TemporaryDirectory() as folder:
        ssh = ("ssh", "-F", str(lab.paths.ssh_config), HOST)
        profile = Path(folder) / "bench.yaml"
        profile.write_text(
            f"name: bench\nengine: generic\nimage: {FAULTY_IMAGE}\ncommand: {json.dumps(list(COMMAND))}\n"
            f"served_name: nobody\nport: 8222\nready: {{timeout_s: {READY_S}}}\ncontainer: {{network: bridge}}\n"
        )
        gate0 = (
            *(str(Path(sys.executable).with_name("gate0")), "deploy", str(profile), "--on", HOST, "-q"),
            *("--hosts", str(lab.paths.hosts_yaml), "--results", f"{folder}/results"),
        )
        plain = (*ssh, *map(shlex.quote, ("docker", "run", "-d", "--name", NAME, FAULTY_IMAGE, *COMMAND)))
        subprocess.run((*ssh, "docker", "pull", "-q", FAULTY_IMAGE), check=True, capture_output=True)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(started_after(lambda: run(plain), ssh, NAME))
            subprocess.run((*ssh, "docker", "rm", "-f", NAME), check=True, capture_output=True)
            ours.append(started_by_gate0(gate0, Path(folder)))
    mine, plain_s = statistics.median(ours), statistics.median(theirs)
    verdict = "met" if mine <= TARGET_RATIO * plain_s else "MISSED"
    print(
        f"  to the container's start, median of {ROUNDS}: gate0 {mine:.2f} s, `ssh {HOST} docker run` {plain_s:.2f} s\n"
        f"  ratio {mine / plain_s:.2f}, target at most {TARGET_RATIO:g}: {verdict}"
    )
    return 0


def run(argv: tuple[str, ...]) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def started_after(act: Callable[[], None], ssh: tuple[str, ...], name: str) -> float:
    """Seconds from the call to the container's StartedAt."""
    began = time.time()
    act()
    told = subprocess.run(
        (*ssh, "docker", "inspect", "-f", "{{.State.StartedAt}}", name), check=True, capture_output=True, text=True
    )
    return epoch(told.stdout.strip()) - began


def started_by_gate0(gate0: tuple[str, ...], folder: Path) -> float:
    """Seconds from the command to the start that the record's event tells; the server never answers, which is fine."""
    before = set(folder.glob("results/*"))
    began = time.time()
    subprocess.run(gate0, check=False, capture_output=True, env={**os.environ, "HOME": str(folder)})
    (made,) = set(folder.glob("results/*")) - before
    for line in (made / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "started":
            return epoch(event["started_at"]) - began
    raise SystemExit(f"deploy overhead: gate0 started nothing, see {made}")


def epoch(stamp: str) -> float:
    """Seconds since 1970 of an ISO-8601 UTC time with up to nine decimals."""
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp() + float(f"0.{rest or 0}")


if __name__ == "__main__":
    sys.exit(main())
