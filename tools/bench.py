"""`make bench`: what gate0's own machinery costs, beside its peers in the same run.

    load       the mock in a process of its own, one step clock for all streams, each chunk stamped just before the
               kernel gets it; every client in a process of its own; one round to warm up, then ROUNDS bursts of
               all streams at once: each figure is the median over the rounds, for other jobs hit single bursts
      TTFT error   (client's first token - client's first byte sent) - (mock's first token - mock's whole request in
                   hand): all that a client adds to the true figure, dispatch and stamp together
      event lag    client's stamp - mock's stamp of the same chunk
      cost         the client's processor time per token while the round runs. aiohttp and httpx split lines and parse
                   JSON as they go, as benchmark tools do with them; gate0 parses when the clock has stopped
    start-up   `gate0 --help` against `python -c pass`
    deploy     tools/bench_deploy.py, if it is there and the lab runs

The mock is Python and shares the machine: its own burst of writes is in everyone's lag alike.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parents[1]
STREAMS = (32, 128, 256)
OUTPUT_TOK = 64
ROUNDS = 5
STEP_S = 0.02
TTFT_S = 0.1
CLIENTS = ("gate0", "aiohttp", "httpx")
TARGET_STREAMS = 128
TARGET_TTFT_MS, TARGET_TOK_PER_S, TARGET_HELP_MS = 1.0, 60_000, 150
CHILD_TIMEOUT_S = 300
RECEIVED = "x-mock-received-ns"

Stamped = list[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Trace:
    """One request of one client: when it says it sent, when the mock had it, and each read with its stamp."""

    sent_ns: int
    received_ns: int
    reads: Stamped


@dataclass(frozen=True, slots=True)
class Round:
    """What one client did at one number of streams."""

    client: str
    streams: int
    ttft_error_ms: tuple[float, float]
    lag_ms: tuple[float, float]
    cost_us: float
    tokens: int

    @property
    def tok_per_s_per_core(self) -> float:
        return 1e6 / self.cost_us


def bodies(n: int) -> list[bytes]:
    message = {"role": "user", "content": "How does a river find its way?"}
    body = {
        "model": "mock-model",
        "messages": [message],
        "max_tokens": OUTPUT_TOK,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return [orjson.dumps(body)] * n


# --- the clients: each runs one round and gives its traces -----------------------------------------------------------


async def gate0_rounds(url: str, streams: int, rounds: int) -> list[tuple[list[Trace], float]]:
    from orchestrator.sweep.http1 import endpoint_of, post_bytes, read_response
    from orchestrator.sweep.load import Load

    endpoint = endpoint_of(url)
    requests = [post_bytes(endpoint, "/chat/completions", body) for body in bodies(streams)]
    done = []
    for _ in range(rounds):
        outcome = await Load(endpoint, request_timeout_s=60.0).run(requests, concurrency=streams)
        answers = [(e.sent_ns or 0, read_response(e.chunks)) for e in outcome.exchanges]
        traces = [Trace(sent, int(a.headers[RECEIVED]), list(a.pieces)) for sent, a in answers]
        done.append((traces, outcome.cpu_s))
    return done


async def timed(one: Callable[[], Awaitable[Trace]], streams: int) -> tuple[list[Trace], float]:
    cpu_s = time.process_time()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for _ in range(streams)]  # type: ignore[arg-type]
    return [t.result() for t in tasks], time.process_time() - cpu_s


async def aiohttp_rounds(url: str, streams: int, rounds: int) -> list[tuple[list[Trace], float]]:
    import aiohttp

    body = bodies(1)[0]
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:

        async def one() -> Trace:
            sent = monotonic_ns()
            reads: Stamped = []
            async with session.post(f"{url}/chat/completions", data=body) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        reads.append((monotonic_ns(), line))
                        orjson.loads(line[6:])
                received = int(response.headers[RECEIVED])
            return Trace(sent, received, reads)

        return [await timed(one, streams) for _ in range(rounds)]


async def httpx_rounds(url: str, streams: int, rounds: int) -> list[tuple[list[Trace], float]]:
    import httpx

    body = bodies(1)[0]
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=120.0, trust_env=False) as client:

        async def one() -> Trace:
            sent = monotonic_ns()
            reads: Stamped = []
            async with client.stream("POST", f"{url}/chat/completions", content=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        reads.append((monotonic_ns(), line.encode()))
                        json.loads(line[6:])
                received = int(response.headers[RECEIVED])
            return Trace(sent, received, reads)

        return [await timed(one, streams) for _ in range(rounds)]


# --- the judge -------------------------------------------------------------------------------------------------------


def judge(client: str, streams: int, traces: Sequence[Trace], cpu_s: float) -> Round:
    """Client stamps against the mock's own, chunk by chunk."""
    errors, lags, tokens = [], [], 0
    for trace in traces:
        events = [(t, s, is_token) for t, s, is_token in stamped_events(trace.reads)]
        lags += [(t - s) / 1e6 for t, s, _ in events]
        carrying = [(t, s) for t, s, is_token in events if is_token]
        tokens += len(carrying)
        first_t, first_s = carrying[0]
        errors.append(((first_t - trace.sent_ns) - (first_s - trace.received_ns)) / 1e6)
    return Round(client, streams, spread(errors), spread(lags), cpu_s / tokens * 1e6, tokens)


def stamped_events(reads: Stamped) -> list[tuple[int, int, bool]]:
    """Client stamp, mock stamp, and whether it carried a token, of every event."""
    found = []
    for t, piece in reads:
        for line in piece.split(b"\n"):
            if line.startswith(b"data: {"):
                chunk = orjson.loads(line[6:])
                choices = chunk["choices"]
                is_token = bool(choices and choices[0]["delta"].get("content"))
                found.append((t, int(chunk["mock_ns"]), is_token))
    return found


def spread(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


# --- processes -------------------------------------------------------------------------------------------------------


def run_client(client: str, url: str, streams: int) -> Round:
    """A warm-up round and `ROUNDS` measured ones in this process."""
    pin(0, 1)
    runner = {"gate0": gate0_rounds, "aiohttp": aiohttp_rounds, "httpx": httpx_rounds}[client]
    if client == "httpx":
        rounds = asyncio.run(runner(url, streams, 1 + ROUNDS))
    else:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            rounds = loop.run(runner(url, streams, 1 + ROUNDS))
    return middle([judge(client, streams, traces, cpu_s) for traces, cpu_s in rounds[1:]])


def middle(rounds: Sequence[Round]) -> Round:
    """The median over rounds, figure by figure."""

    def pair(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
        return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)

    return Round(
        client=rounds[0].client,
        streams=rounds[0].streams,
        ttft_error_ms=pair([r.ttft_error_ms for r in rounds]),
        lag_ms=pair([r.lag_ms for r in rounds]),
        cost_us=statistics.median(r.cost_us for r in rounds),
        tokens=sum(r.tokens for r in rounds),
    )


def pin(pid: int, core: int) -> None:
    """One core for the mock, one for the client, where there are two. `pid` 0: this process."""
    if hasattr(os, "sched_setaffinity") and len(cores := sorted(os.sched_getaffinity(0))) > 1:
        os.sched_setaffinity(pid, {cores[core % len(cores)]})


def measure_load(streams: Sequence[int]) -> list[Round]:
    settings = {"ttft_s": TTFT_S, "step_s": STEP_S, "slots": 1024, "has_stamps": True, "prefix_caching": False}
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator.mock", json.dumps(settings)],
        stdout=subprocess.PIPE,
        text=True,
    ) as mock:
        assert mock.stdout is not None
        try:
            pin(mock.pid, 0)
            url = mock.stdout.readline().strip()
            return [client_process(client, url, n) for n in streams for client in CLIENTS]
        finally:
            mock.terminate()


def client_process(client: str, url: str, streams: int) -> Round:
    command = [sys.executable, __file__, "--client", client, "--url", url, "--streams", str(streams)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {client} at {streams} streams failed:\n{done.stderr[-2000:]}")
    raw: dict[str, Any] = json.loads(done.stdout)
    raw["ttft_error_ms"], raw["lag_ms"] = tuple(raw["ttft_error_ms"]), tuple(raw["lag_ms"])
    return Round(**raw)


# --- the other figures -----------------------------------------------------------------------------------------------


def median_ms(command: Sequence[str], times: int = 10) -> float:
    """Wall time of a command, median, ms."""
    walls = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=60)
        walls.append((time.perf_counter() - start) * 1000)
    return statistics.median(walls)


def show_load(rounds: Sequence[Round]) -> None:
    busy = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"\nload path: {OUTPUT_TOK} tokens a stream, a step of {STEP_S * 1000:.0f} ms for all streams at once,")
    print(f"median of {ROUNDS} bursts; load average of this machine {busy}")
    print("streams  client   TTFT error ms p50/p99   event lag ms p50/p99   us/token   tokens/s/core   x gate0's cost")
    for streams in sorted({r.streams for r in rounds}):
        group = [r for r in rounds if r.streams == streams]
        own = next(r for r in group if r.client == "gate0")
        for r in group:
            ttft, lag = (f"{a:9.2f} /{b:9.2f}" for a, b in (r.ttft_error_ms, r.lag_ms))
            ratio = r.cost_us / own.cost_us
            print(
                f"{r.streams:7d}  {r.client:7s}  {ttft}    {lag}    {r.cost_us:7.1f}   "
                f"{r.tok_per_s_per_core:13,.0f}   {ratio:14.1f}"
            )
    show_targets(rounds)


def show_targets(rounds: Sequence[Round]) -> None:
    own = next((r for r in rounds if r.client == "gate0" and r.streams == TARGET_STREAMS), None)
    if own is None:
        return
    is_exact, is_cheap = own.ttft_error_ms[0] <= TARGET_TTFT_MS, own.tok_per_s_per_core >= TARGET_TOK_PER_S
    print(f"target at {TARGET_STREAMS}: TTFT error p50 <= {TARGET_TTFT_MS} ms: {verdict(is_exact)}")
    print(f"target at {TARGET_STREAMS}: >= {TARGET_TOK_PER_S:,} tokens/s/core: {verdict(is_cheap)}")


def show_start_up() -> None:
    gate0 = Path(sys.executable).with_name("gate0")
    bare_ms = median_ms([sys.executable, "-c", "pass"])
    help_ms = median_ms([str(gate0), "--help"])
    more = help_ms - bare_ms
    print("\nstart-up, median of 10")
    print(f"  python -c pass {bare_ms:6.0f} ms\n  gate0 --help   {help_ms:6.0f} ms   {more:.0f} ms more")
    print(f"target: <= {TARGET_HELP_MS} ms more: {verdict(more <= TARGET_HELP_MS)}")


def show_deploy() -> None:
    path = ROOT / "tools" / "bench_deploy.py"
    print("\ndeploy overhead")
    if not path.exists():
        print("  not measured: tools/bench_deploy.py is not there")
        return
    spec = importlib.util.spec_from_file_location("bench_deploy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()


def verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="what gate0's own machinery costs, beside its peers")
    parser.add_argument("--only", choices=("load", "startup", "deploy"))
    parser.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.client:
        print(orjson.dumps(run_client(args.client, args.url, args.streams[0])).decode())
        return
    if args.only in {None, "load"}:
        show_load(measure_load(args.streams))
    if args.only in {None, "startup"}:
        show_start_up()
    if args.only in {None, "deploy"}:
        show_deploy()


if __name__ == "__main__":
    main()
