"""The bare load engine beside aiohttp and httpx: what each adds to a server's true times, and what a token costs it.

Every client in a process of its own; one round to warm up, then ROUNDS bursts of all streams at once: each figure is
the median over the rounds, for other jobs hit single bursts.

    TTFT error   (client's first token - client's first byte sent) - (mock's first token - mock's whole request in
                 hand): all that a client adds to the true figure, dispatch and stamp together
    event lag    client's stamp - mock's stamp of the same chunk
    cost         the client's processor time per token while the round runs. aiohttp and httpx split lines and parse
                 JSON as they go, as benchmark tools do with them; gate0 parses when the clock has stopped
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any

import orjson

CHECKOUT = Path(__file__).resolve().parent.parent
if str(CHECKOUT) not in sys.path:  # run as a script: its own folder is there, the checkout is not
    sys.path.insert(0, str(CHECKOUT))

from tools.bench_mock import CLIENT_CORE, Mock, on_core, say  # noqa: E402
from tools.bench_show import table  # noqa: E402

OUTPUT_TOK = 64
ROUNDS = 3
STEP_S = 0.02
TTFT_S = 0.1
CLIENTS = ("gate0", "aiohttp", "httpx")
HTTPX_MOST = 128
"""At 256 streams httpx takes seconds to dispatch one burst."""
CHILD_TIMEOUT_S = 120
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


async def timed(one: Callable[[], Coroutine[Any, Any, Trace]], streams: int) -> tuple[list[Trace], float]:
    cpu_s = time.process_time()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for _ in range(streams)]
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


def run_client(client: str, url: str, streams: int) -> Round:
    """A warm-up round and `ROUNDS` measured ones in this process."""
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


def measure(streams: Sequence[int]) -> list[Round]:
    """Every client at every number of streams, against one mock."""
    settings = {"ttft_s": TTFT_S, "step_s": STEP_S, "slots": 1024, "has_stamps": True, "prefix_caching": False}
    rounds = []
    with Mock(settings) as mock:
        for n in streams:
            for client in CLIENTS if n <= HTTPX_MOST else CLIENTS[:-1]:
                say(f"load engine: {client}, {n} streams")
                rounds.append(client_process(client, mock.base_url, n))
    return rounds


def client_process(client: str, url: str, streams: int) -> Round:
    command = on_core(CLIENT_CORE, (sys.executable, __file__, client, url, str(streams)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {client} at {streams} streams failed:\n{done.stderr[-2000:]}")
    raw: dict[str, Any] = json.loads(done.stdout)
    raw["ttft_error_ms"], raw["lag_ms"] = tuple(raw["ttft_error_ms"]), tuple(raw["lag_ms"])
    return Round(**raw)


def lines(rounds: Sequence[Round]) -> list[str]:
    """The table."""
    head = (
        *("streams", "client", "TTFT error ms p50", "p99", "event lag ms p50", "p99"),
        *("us/token", "tokens/s/core", "x gate0's cost"),
    )
    own = {r.streams: r.cost_us for r in rounds if r.client == "gate0"}
    rows = []
    for r in rounds:
        lags = tuple(f"{ms:.2f}" for ms in (*r.ttft_error_ms, *r.lag_ms))
        cost = (f"{r.cost_us:.1f}", f"{r.tok_per_s_per_core:,.0f}", f"{r.cost_us / own[r.streams]:.1f}")
        rows.append((str(r.streams), r.client, *lags, *cost))
    what = f"{OUTPUT_TOK} tokens a stream, a step of {STEP_S * 1000:.0f} ms for all streams at once"
    return [f"load engine: {what}, median of {ROUNDS} bursts", *table(head, rows)]


if __name__ == "__main__":
    print(orjson.dumps(run_client(sys.argv[1], sys.argv[2], int(sys.argv[3]))).decode())
