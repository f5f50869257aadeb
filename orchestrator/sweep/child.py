"""`python -m orchestrator.sweep.child`: the load process. Reads a spec from stdin, writes JSON lines to stdout.

A process of its own, because a progress bar, an SSH connection or a garbage collection in the tool would otherwise sit
between the kernel and the stamp. It ends when its input does: it cannot outlive the tool that started it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from time import monotonic_ns
from typing import Any

import orjson

from orchestrator.records.record import Failure
from orchestrator.sweep.body import PATHS, BodyShape, body_bytes
from orchestrator.sweep.http1 import End, Endpoint, Exchange, endpoint_of, post_bytes, read_response
from orchestrator.sweep.load import Load, Repeat
from orchestrator.sweep.spec import CellProgress, LoadSpec
from orchestrator.sweep.timing import Answer, Expected, request_record

PROGRESS_PERIOD_S = 0.2
ORPHANED = 3
STDIN = 0

Say = Callable[[dict[str, Any]], None]

FAILURE_OF_END = {
    End.CONNECT: Failure.CONNECT,
    End.TIMEOUT: Failure.TIMEOUT,
    End.CANCELLED: Failure.CANCELLED,
    End.BROKEN: Failure.MALFORMED,
}


class CellLoad:
    """One cell from spec to records."""

    def __init__(self, spec: LoadSpec, say: Say) -> None:
        self._spec = spec
        self._say = say
        self._endpoint: Endpoint = endpoint_of(spec.base_url)
        self._load = Load(self._endpoint, request_timeout_s=spec.request_timeout_s)
        self._repeat = -1
        self._done_before = self._failed_before = 0
        self._epoch_ns = monotonic_ns()
        self._loop = asyncio.get_running_loop()

    def cancel(self) -> None:
        self._load.cancel()

    async def run(self) -> None:
        """Warm up, run all repeats, say everything."""
        self._tick()
        spec, shape = self._spec, BodyShape(**self._spec.body)  # type: ignore[arg-type]
        if spec.warmup:
            short = replace(shape, output_tok=min(shape.output_tok, spec.warmup_output_tok))
            await self._load.run(self._requests(short, 0, spec.warmup), concurrency=spec.concurrency)
            self._done_before, self._failed_before = self._load.meter.done, self._load.meter.failed
            self._load.meter.events = 0
        self._epoch_ns = monotonic_ns()
        for repeat in range(spec.repeats):
            if self._load.is_cancelled:
                break
            self._repeat = repeat
            first = spec.warmup + repeat * spec.requests_per_repeat
            requests = self._requests(shape, first, spec.requests_per_repeat)
            self._report(repeat, first, await self._load.run(requests, concurrency=spec.concurrency))
        self._say({"progress": self._progress().as_json()})
        self._say({"done": {"is_cancelled": self._load.is_cancelled}})

    def _requests(self, shape: BodyShape, first: int, n: int) -> list[bytes]:
        spec, path = self._spec, PATHS[shape.endpoint]
        texts = (f"{spec.nonces[k]} {spec.passages[k % len(spec.passages)]}" for k in range(first, first + n))
        return [post_bytes(self._endpoint, path, body_bytes(shape, t), api_key=spec.api_key) for t in texts]

    def _report(self, repeat: int, first: int, outcome: Repeat) -> None:
        spec, epoch_ns = self._spec, self._epoch_ns
        for index, exchange in enumerate(outcome.exchanges):
            if exchange.end is None:
                continue
            expected = Expected(
                prompt_tok=spec.expected_prompt_tok,
                cached_tok=spec.expected_cached_tok,
                nonce=spec.nonces[first + index],
            )
            answer = answer_of(exchange, repeat=repeat, index=index, epoch_ns=epoch_ns)
            self._say({"request": request_record(answer, expected)})
        span = outcome.span_ns
        self._say(
            {
                "repeat": {
                    "span_ns": None if span is None else [span[0] - epoch_ns, span[1] - epoch_ns],
                    "cpu_s": outcome.cpu_s,
                    "lags_ns": outcome.lags_ns,
                }
            }
        )

    def _progress(self) -> CellProgress:
        meter, spec = self._load.meter, self._spec
        is_warming = self._repeat < 0
        return CellProgress(
            repeat=self._repeat,
            done=0 if is_warming else meter.done - self._done_before,
            total=spec.repeats * spec.requests_per_repeat,
            in_flight=meter.in_flight,
            failed=meter.failed if is_warming else meter.failed - self._failed_before,
            events=meter.events,
            elapsed_s=(monotonic_ns() - self._epoch_ns) / 1e9,
        )

    def _tick(self) -> None:
        self._say({"progress": self._progress().as_json()})
        self._loop.call_later(PROGRESS_PERIOD_S, self._tick)


def answer_of(exchange: Exchange, *, repeat: int, index: int, epoch_ns: int) -> Answer:
    """Take one exchange's framing off and put its times on the cell's clock."""
    response = read_response(exchange.chunks)

    def on_cell_clock(t_ns: int | None) -> int | None:
        return None if t_ns is None else t_ns - epoch_ns

    assert exchange.end is not None
    return Answer(
        repeat=repeat,
        index=index,
        scheduled_ns=exchange.scheduled_ns - epoch_ns,
        sent_ns=on_cell_clock(exchange.sent_ns),
        headers_ns=on_cell_clock(response.headers_ns),
        end_ns=on_cell_clock(exchange.end_ns),
        status=response.status,
        content_type=response.headers.get("content-type", "").lower(),
        pieces=[(t - epoch_ns, piece) for t, piece in response.pieces],
        is_whole=response.is_whole,
        transport_failure=FAILURE_OF_END.get(exchange.end),
        transport_error=exchange.error,
    )


async def _main(line: bytes, rest: bytes, say: Say) -> None:
    load = CellLoad(LoadSpec.from_line(line), say)
    if rest:
        load.cancel()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_obey, args=(loop, load), daemon=True).start()
    await load.run()


def _obey(loop: asyncio.AbstractEventLoop, load: CellLoad) -> None:
    """Wait in a blocking read (free for the loop): bytes cancel, the end of input ends the process at once."""
    while os.read(STDIN, 1024):
        loop.call_soon_threadsafe(load.cancel)
    os._exit(ORPHANED)


def _read_line() -> tuple[bytes, bytes]:
    """The spec's line, and what came with it: a cancel that was sent before this process could listen.

    Unbuffered: what follows belongs to `_obey`, whose thread must hold no lock when we exit.
    """
    read = b""
    while b"\n" not in read:
        piece = os.read(STDIN, 1 << 20)
        if not piece:
            return b"", b""
        read += piece
    line, _, rest = read.partition(b"\n")
    return line, rest


def _say_to(fd: int) -> Say:
    def say(message: dict[str, Any]) -> None:
        rest = memoryview(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
        while rest:
            rest = rest[os.write(fd, rest) :]

    return say


def new_loop() -> asyncio.AbstractEventLoop:
    """A uvloop where there is one."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def main() -> int:
    line, rest = _read_line()
    if not line:
        return ORPHANED
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_main(line, rest, _say_to(sys.stdout.fileno())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
