"""The mock in a process of its own on a core of its own, and the true figures of what it answered."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

MOCK_CORE, CLIENT_CORE = 0, 1
ANSWER_TIMEOUT_S = 20
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
"""Ours at the start: what keeps to one of them later does not change them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One streamed answer as the mock saw it; see `orchestrator.mock.engine.Truth`. Times monotonic ns."""

    received_ns: int
    first_ns: int
    last_ns: int
    events: int
    output_tok: int
    first_tok: int

    @property
    def ttft_ms(self) -> float:
        return (self.first_ns - self.received_ns) / 1e6

    @property
    def tpot_ms(self) -> float | None:
        """Time over the tokens that came after the first event; None: there were none."""
        later_tok = self.output_tok - self.first_tok
        return (self.last_ns - self.first_ns) / 1e6 / later_tok if later_tok else None


class Mock:
    """`with Mock({"step_s": 0.02}) as mock: mock.base_url`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        command = (sys.executable, "-m", "orchestrator.mock", json.dumps(dict(settings)))
        self._process = subprocess.Popen(on_core(MOCK_CORE, command), stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            raise SystemExit("bench: the mock did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()

    @property
    def root_url(self) -> str:
        return self.base_url.removesuffix("/v1")

    def take(self) -> list[Answer]:
        """What it answered since the last call, in the order of the requests."""
        request = urllib.request.Request(f"{self.root_url}/mock/truth", method="POST")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=ANSWER_TIMEOUT_S) as r:
            found = [Answer(**{name: raw[name] for name in Answer.__slots__}) for raw in json.load(r)]
        return sorted(found, key=lambda a: a.received_ns)


def measured(answers: Sequence[Answer], *, output_tok: int, requests: int) -> list[Answer]:
    """The last `requests` answers of the asked length: before them come a client's own probes and warm-ups."""
    return [a for a in answers if a.output_tok == output_tok][-requests:]


def mean_ttft_ms(answers: Sequence[Answer]) -> float:
    return statistics.fmean(a.ttft_ms for a in answers)


def mean_tpot_ms(answers: Sequence[Answer]) -> float:
    return statistics.fmean(t for a in answers if (t := a.tpot_ms) is not None)


def mean_gap_ms(answers: Sequence[Answer]) -> float:
    """Mean time between two events of one answer."""
    return sum(a.last_ns - a.first_ns for a in answers) / 1e6 / sum(a.events - 1 for a in answers)


def run_tok_per_s(answers: Sequence[Answer]) -> float:
    """All tokens over the time from the first request to the last token."""
    span_ns = max(a.last_ns for a in answers) - min(a.received_ns for a in answers)
    return sum(a.output_tok for a in answers) / span_ns * 1e9


def decode_tok_per_s(answers: Sequence[Answer], streams: int) -> float:
    """Mean over batches of `streams`: tokens after each stream's first event, over first to last token of the batch."""
    rates = []
    for start in range(0, len(answers), streams):
        batch = answers[start : start + streams]
        span_ns = max(a.last_ns for a in batch) - min(a.first_ns for a in batch)
        rates.append(sum(a.output_tok - a.first_tok for a in batch) / span_ns * 1e9)
    return statistics.fmean(rates)


def on_core(core: int, command: Sequence[str]) -> tuple[str, ...]:
    """The command bound to the core of that number among ours; as it is where there is one core or no `taskset`."""
    if len(CORES) < 2 or shutil.which("taskset") is None:
        return tuple(command)
    return ("taskset", "-c", str(CORES[core % len(CORES)]), *command)


def keep_to(core: int | None) -> None:
    """Bind this process to the core of that number; None: to all of ours again."""
    if len(CORES) > 1:
        os.sched_setaffinity(0, CORES if core is None else {CORES[core % len(CORES)]})


def say(text: str) -> None:
    """Progress."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
