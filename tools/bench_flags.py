"""What the flag check costs: a typical command line against every list that was read whole, in a fresh process.

A fresh one each time, since a list is read once a process. The process is timed from its start to its end, so Python,
the imports and 15 lists are in it; what is its own of that is told beside it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tools.bench_show import Target

LIMIT_S = 1.0
PROGRAM = """
import json, time
begun = time.perf_counter()
from orchestrator.engines.flags.checking import check_words
from orchestrator.engines.flags.history import load_history
from orchestrator.engines.flags.loading import choose
imported = time.perf_counter()
LINES = {
    "vllm": ("org/model", "--max-model-len", "131072", "--max-num-seqs", "32", "--gpu-memory-utilization", "0.7",
             "--enable-prefix-caching", "--kv-cache-dtype", "fp8", "--max-num-batched-tokens", "8192",
             "--speculative-config", '{"method":"mtp","num_speculative_tokens":2}', "--enable-auto-tool-choice",
             "--tool-call-parser", "qwen3_coder", "--reasoning-parser", "qwen3", "--no-such-flag", "1"),
    "sglang": ("--model-path", "org/model", "--context-length", "131072", "--max-running-requests", "32",
               "--mem-fraction-static", "0.7", "--attention-backend", "flashinfer", "--tp", "2",
               "--cuda-graph-max-bs", "32", "--no-such-flag", "1"),
    "llamacpp": ("-m", "model.gguf", "-c", "131072", "-np", "4", "-fa", "on", "-ngl", "all", "--jinja",
                 "--no-such-flag", "1"),
}
walls, findings = {}, 0
for engine, words in LINES.items():
    for version in load_history(engine).whole:
        start = time.perf_counter()
        findings += len(check_words(choose(engine, version), words, ()))
        walls[engine + " " + version] = (time.perf_counter() - start) * 1000
print(json.dumps({"import_ms": (imported - begun) * 1000, "walls": walls, "findings": findings}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Medians over fresh processes, ms: whole process, its imports, all checks; and the dearest list of them."""

    processes: int
    lists: int
    findings: int
    process_ms: float
    import_ms: float
    checks_ms: float
    dearest: str
    dearest_ms: float


def measure(*, times: int) -> Measured:
    """Run the check in so many fresh processes."""
    walls, told = [], []
    for _ in range(times):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
        walls.append((time.perf_counter() - start) * 1000)
        told.append(json.loads(done.stdout))
    each = {name: statistics.median(one["walls"][name] for one in told) for name in told[0]["walls"]}
    dearest = max(each, key=lambda name: each[name])
    return Measured(
        processes=times,
        lists=len(each),
        findings=told[0]["findings"],
        process_ms=statistics.median(walls),
        import_ms=statistics.median(one["import_ms"] for one in told),
        checks_ms=statistics.median(sum(one["walls"].values()) for one in told),
        dearest=dearest,
        dearest_ms=each[dearest],
    )


def lines(measured: Measured) -> Sequence[str]:
    return (
        f"flag check against {measured.lists} lists, each read once, median of {measured.processes} fresh processes",
        f"  process {measured.process_ms:6.0f} ms, of it imports {measured.import_ms:.0f} ms, "
        f"checks {measured.checks_ms:.0f} ms ({measured.findings} findings)",
        f"  dearest {measured.dearest_ms:6.1f} ms: {measured.dearest}",
    )


def target(measured: Measured) -> Target:
    name = f"flag check of {measured.lists} lists in a fresh process"
    return Target(name=name, value=measured.process_ms / 1000, limit=LIMIT_S, unit=" s")
