"""Open loop: did the requests leave when they were to? Judged by when the mock had them, not by what a client says.

rate         requests - 1 over the time between the first and the last
dispersion   variance / mean of the counts in windows of 50 ms: 1 for a Poisson process
burstiness   1 / CV^2 of the gaps: the shape of a gamma process, 1 for Poisson, less is burstier
late         sent more than 5 ms after its time, as gate0's own records have it
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools.bench_install import OUT, environment
from tools.bench_meter import CommandFailed, run_metered
from tools.bench_mock import CLIENT_CORE, Mock, measured, on_core, say
from tools.bench_peers import PROMPT_TOK, gate0_sweep, vllm_bench
from tools.bench_show import table

RATE_RPS = 200.0
OUTPUT_TOK = 8
WINDOW_NS = 50_000_000
LATE_NS = 5_000_000
SPARE_S = 60.0
SETTINGS: dict[str, Any] = {"ttft_s": 0.02, "step_s": 0.005, "slots": 1024, "prefix_caching": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How the requests of one run came. `late`: share of sends, None where the client keeps no schedule."""

    client: str
    asked_burstiness: float
    requests: int
    rate_rps: float
    dispersion: float
    burstiness: float
    late: float | None
    wall_s: float
    others: float

    @property
    def rate_error(self) -> float:
        return self.rate_rps / RATE_RPS - 1


def measure(*, duration_s: float, short_s: float, has_vllm: bool) -> tuple[list[Arrivals], dict[str, str]]:
    """gate0 at burstiness 1 for `duration_s`; at 0.5 and 2, and vLLM's bench, for `short_s`. And what failed, why."""
    plan = [("gate0", 1.0, duration_s), ("gate0", 0.5, short_s), ("gate0", 2.0, short_s)]
    if has_vllm:
        plan.append(("vllm", 1.0, short_s))
    done: list[Arrivals] = []
    failed: dict[str, str] = {}
    with Mock(SETTINGS) as mock:
        for client, burstiness, run_s in plan:
            key = f"{client} at {RATE_RPS:g} req/s, burstiness {burstiness:g}"
            say(f"open loop: {key}, {run_s:.0f} s")
            try:
                done.append(_run(client, mock, burstiness, round(run_s * RATE_RPS)))
            except (CommandFailed, OSError, ValueError) as failure:
                failed[key] = str(failure)
                say(f"{key}: not available: {failure}")
    return done, failed


def _run(client: str, mock: Mock, burstiness: float, requests: int) -> Arrivals:
    folder = OUT / client / f"open-b{burstiness:g}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if client == "gate0":
        command = gate0_sweep(mock.base_url, _workload(folder, burstiness, requests), folder)
    else:
        common = vllm_bench(mock.base_url, folder, output_tok=OUTPUT_TOK, requests=requests)
        command = (*common, "--request-rate", f"{RATE_RPS:g}", "--burstiness", f"{burstiness:g}")
    mock.take()
    meter = run_metered(
        on_core(CLIENT_CORE, command),
        log=folder / "log.txt",
        answer=folder / "answer.txt",
        deadline_s=requests / RATE_RPS + SPARE_S,
        env=environment(),
    )
    answers = measured(mock.take(), output_tok=OUTPUT_TOK, requests=requests)
    if len(answers) != requests:
        raise ValueError(f"the mock answered {len(answers)} requests, {requests} were asked for")
    times_ns = [a.received_ns for a in answers]
    return Arrivals(
        client=client,
        asked_burstiness=burstiness,
        requests=requests,
        rate_rps=rate_rps(times_ns),
        dispersion=dispersion(times_ns),
        burstiness=burstiness_of(times_ns),
        late=_late_share(folder) if client == "gate0" else None,
        wall_s=meter.wall_s,
        others=meter.others_share(times_ns[0], times_ns[-1]),
    )


def _workload(folder: Path, burstiness: float, requests: int) -> Path:
    path = folder / "bench-open.yaml"
    path.write_text(
        f"name: bench-open\nkind: open\nrate: {RATE_RPS:g}\nburstiness: {burstiness:g}\nrequests: {requests}\n"
        f"prompt_tokens: {PROMPT_TOK}\noutput_tokens: {OUTPUT_TOK}\nrepeats: 1\n"
    )
    return path


def _late_share(folder: Path) -> float | None:
    """Of the requests in gate0's own records that were sent."""
    waits_ns = []
    for path in folder.glob("*/sweeps/*/*.requests.jsonl"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if record["sent_ns"] is not None:
                waits_ns.append(record["sent_ns"] - record["scheduled_ns"])
    return sum(wait > LATE_NS for wait in waits_ns) / len(waits_ns) if waits_ns else None


def rate_rps(times_ns: Sequence[int]) -> float:
    return (len(times_ns) - 1) / (times_ns[-1] - times_ns[0]) * 1e9


def dispersion(times_ns: Sequence[int]) -> float:
    """Of the whole windows between the first and the last."""
    windows = (times_ns[-1] - times_ns[0]) // WINDOW_NS
    counts = Counter((t - times_ns[0]) // WINDOW_NS for t in times_ns)
    sizes = [counts[w] for w in range(windows)]
    return statistics.pvariance(sizes) / statistics.fmean(sizes)


def burstiness_of(times_ns: Sequence[int]) -> float:
    gaps = [b - a for a, b in pairwise(times_ns)]
    return statistics.fmean(gaps) ** 2 / statistics.pvariance(gaps)


def lines(runs: Sequence[Arrivals], failed: dict[str, str]) -> list[str]:
    """The table, and what was not available."""
    head = (
        *("client", "requests", "req/s", "rate error", "dispersion index", "burstiness asked", "seen", "late > 5 ms"),
        "others on the core",
    )
    rows = [
        (
            *(r.client, str(r.requests), f"{r.rate_rps:.2f}", f"{r.rate_error:+.2%}", f"{r.dispersion:.2f}"),
            *(f"{r.asked_burstiness:g}", f"{r.burstiness:.2f}", "not told" if r.late is None else f"{r.late:.2%}"),
            f"{r.others:.0%}",
        )
        for r in runs
    ]
    told = [f"open loop at {RATE_RPS:g} req/s, {OUTPUT_TOK} tokens an answer, arrivals as the mock saw them"]
    told += table(head, rows) if rows else []
    return told + [f"  not available: {key}: {why}" for key, why in failed.items()]
