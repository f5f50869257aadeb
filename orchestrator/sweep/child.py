"""`python -m orchestrator.sweep.child`: the load process. Reads a spec from stdin, writes JSON lines to stdout.

A process of its own, because a progress bar, an SSH connection or a garbage collection in the tool would otherwise sit
between the kernel and the stamp. It ends when its input does: it cannot outlive the tool that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic_ns
from typing import Any

import orjson

from orchestrator.records.record import Failure, RequestRecord
from orchestrator.sweep.body import PATHS, BodyShape, body_bytes
from orchestrator.sweep.http1 import End, Endpoint, Exchange, Response, endpoint_of, post_bytes, response_of
from orchestrator.sweep.load import LaneRun, Load, Outcome, Shot, TrackRun
from orchestrator.sweep.spec import CellProgress, Job, Lane, LoadSpec, Message, Phase
from orchestrator.sweep.timing import Answer, Expected, request_record
from orchestrator.wire.parse import read_stream
from orchestrator.wire.sse import parse_all

PROGRESS_PERIOD_S = 0.2
ORPHANED = 3
STDIN = 0
READY_BYTES = 192 * 1024 * 1024
"""Bodies made before the clock starts; beyond, a long one is put together when it is due."""

Say = Callable[[dict[str, Any]], None]

FAILURE_OF_END = {
    End.CONNECT: Failure.CONNECT,
    End.TIMEOUT: Failure.TIMEOUT,
    End.CANCELLED: Failure.CANCELLED,
    End.BROKEN: Failure.MALFORMED,
}


class CellLoad:
    """One repeat of a cell from spec to records."""

    def __init__(self, spec: LoadSpec, say: Say) -> None:
        self._spec = spec
        self._say = say
        self._endpoint: Endpoint = endpoint_of(spec.base_url)
        self._load = Load(
            self._endpoint,
            request_timeout_s=spec.request_timeout_s,
            backend=spec.backend,
            audit_every=spec.audit,
        )
        self._phase: Phase | None = None
        self._total = sum(p.requests for p in spec.phases if p.is_recorded)
        self._done_before = self._failed_before = 0
        self._ready_bytes = 0
        self._index = 0
        self._epoch_ns = self._phase_ns = monotonic_ns()
        self._loop = asyncio.get_running_loop()

    def cancel(self) -> None:
        self._load.cancel()

    async def run(self) -> None:
        """All phases, and everything that came of them."""
        self._tick()
        try:
            for phase in self._spec.phases:
                if phase.pause_s and not self._load.is_cancelled:
                    await asyncio.sleep(phase.pause_s)
                if self._load.is_cancelled:
                    break
                await self._run_phase(phase)
        finally:
            await self._load.close()
        self._say({"progress": self._progress().as_json()})
        self._say({"done": {"is_cancelled": self._load.is_cancelled}})

    async def _run_phase(self, phase: Phase) -> None:
        meter = self._load.meter
        if not phase.is_recorded:
            done, failed, events = meter.done, meter.failed, meter.events
        self._phase = phase
        lanes = [self._prepared(lane) for lane in phase.lanes]
        self._phase_ns = monotonic_ns()
        outcome = await self._load.run_lanes(lanes)
        if phase.is_recorded:
            self._report(phase, lanes, outcome)
        else:
            self._report_unrecorded(lanes)
            self._done_before += meter.done - done
            self._failed_before += meter.failed - failed
            meter.events = events

    def _prepared(self, lane: Lane) -> LaneRun:
        shape = BodyShape(**lane.body)  # type: ignore[arg-type]
        return LaneRun(
            tracks=[
                TrackRun(
                    shots=[self._shot(shape, track.jobs, i) for i in range(len(track.jobs))],
                    at_ns=round((track.at_s or 0.0) * 1e9),
                )
                for track in lane.tracks
            ],
            users=lane.users,
            cap=lane.cap,
            duration_ns=None if lane.duration_s is None else round(lane.duration_s * 1e9),
        )

    def _shot(self, shape: BodyShape, jobs: Sequence[Job], turn: int) -> Shot:
        job, exchange = jobs[turn], Exchange(scheduled_ns=0)
        think_ns = round(job.think_s * 1e9)

        def build(past: Sequence[Exchange]) -> bytes | None:
            return self._request(shape, job, past)

        if job.needs_answers or self._ready_bytes > READY_BYTES:
            return Shot(exchange=exchange, build=build, think_ns=think_ns)
        request = build(())
        self._ready_bytes += len(request or b"")
        return Shot(exchange=exchange, request=request, think_ns=think_ns)

    def _request(self, shape: BodyShape, job: Job, past: Sequence[Exchange]) -> bytes | None:
        """None: an answer that it goes on from did not come."""
        messages = [(m.role, self._content(m, past)) for m in job.messages]
        if any(m.answer_of is not None and not said for m, (_, said) in zip(job.messages, messages, strict=True)):
            return None
        body = body_bytes(shape, messages, job.output_tok)
        return post_bytes(self._endpoint, PATHS[shape.endpoint], body, api_key=self._spec.api_key)

    def _content(self, message: Message, past: Sequence[Exchange]) -> str:
        if message.answer_of is not None:
            return answer_text(response_of(past[message.answer_of]))
        texts = self._spec.texts
        return " ".join(part if isinstance(part, str) else texts[part] for part in message.parts)

    def _report(self, phase: Phase, lanes: Sequence[LaneRun], outcome: Outcome) -> None:
        epoch_ns = self._epoch_ns
        for lane, ran in zip(phase.lanes, lanes, strict=True):
            for track, track_ran in zip(lane.tracks, ran.tracks, strict=True):
                for turn, (job, shot) in enumerate(zip(track.jobs, track_ran.shots, strict=True)):
                    if shot.exchange.end is None:
                        continue
                    answer = replace(
                        answer_of(shot.exchange, repeat=self._spec.repeat, index=self._index, epoch_ns=epoch_ns),
                        phase=phase.name,
                        lane=lane.name,
                        track=track.number,
                        turn=turn,
                    )
                    self._say({"request": self._without_key(request_record(answer, self._expected(job)))})
                    self._index += 1
        span = outcome.span_ns
        lags = outcome.lags_ns
        stamps = [lag for e in outcome.exchanges for lag in e.kernel_lags_ns if lag is not None]
        self._say(
            {
                "phase": {
                    "name": phase.name,
                    "epoch_ns": epoch_ns,
                    "start_ns": outcome.start_ns - epoch_ns,
                    "span_ns": None if span is None else [span[0] - epoch_ns, span[1] - epoch_ns],
                    "cpu_s": outcome.cpu_s,
                    "lags_ns": lags,
                    "stamp_lags_ns": stamps,
                    "requests": self._index,
                    "hangups": self._load.hangups,
                }
            }
        )

    def _without_key(self, record: RequestRecord) -> RequestRecord:
        """A proxy's error page may show the headers that it got."""
        key = self._spec.api_key
        if key is None or not key.value or record.error is None or key.value not in record.error:
            return record
        return replace(record, error=record.error.replace(key.value, "<api key>"))

    def _expected(self, job: Job) -> Expected:
        return Expected(
            prompt_tok=job.expected_prompt_tok,
            cached_tok=job.expected_cached_tok,
            nonce=job.nonce,
            shared_tok=job.shared_tok,
            asked_output_tok=job.output_tok,
            is_length_fixed=self._spec.is_length_fixed,
            must_finish=self._spec.must_finish,
        )

    def _report_unrecorded(self, lanes: Sequence[LaneRun]) -> None:
        """What warm-up cost the server: it stands in its counters."""
        shots = [s for lane in lanes for t in lane.tracks for s in t.shots if s.exchange.end is not None]
        records: list[RequestRecord] = [
            request_record(answer_of(s.exchange, repeat=0, index=0, epoch_ns=self._epoch_ns)) for s in shots
        ]
        self._say(
            {
                "unrecorded": {
                    "requests": len(records),
                    "failed": sum(r.failure is not None for r in records),
                    "prompt_tok": sum(r.prompt_tok or 0 for r in records),
                    "output_tok": sum(r.output_tok or 0 for r in records),
                    "cached_tok": sum(r.cached_tok or 0 for r in records),
                    "is_complete": all(r.prompt_tok is not None and r.output_tok is not None for r in records),
                }
            }
        )

    def _progress(self) -> CellProgress:
        meter, phase = self._load.meter, self._phase
        is_unrecorded = phase is not None and not phase.is_recorded
        now_ns = monotonic_ns()
        return CellProgress(
            repeat=self._spec.repeat,
            phase="warmup" if phase is None else phase.name,
            done=meter.done - self._done_before,
            total=phase.requests if phase is not None and is_unrecorded else self._total,
            in_flight=meter.in_flight,
            failed=meter.failed - self._failed_before,
            events=meter.events,
            elapsed_s=(now_ns - self._phase_ns) / 1e9,
            share_of_time=self._share_of_time(now_ns),
        )

    def _share_of_time(self, now_ns: int) -> float | None:
        durations = [lane.duration_s for lane in self._phase.lanes if lane.duration_s] if self._phase else []
        return min(1.0, (now_ns - self._phase_ns) / 1e9 / max(durations)) if durations else None

    def _tick(self) -> None:
        self._say({"progress": self._progress().as_json()})
        self._loop.call_later(PROGRESS_PERIOD_S, self._tick)


def answer_of(exchange: Exchange, *, repeat: int, index: int, epoch_ns: int) -> Answer:
    """Take one exchange's framing off and put its times on the cell's clock."""
    response = response_of(exchange)

    def on_cell_clock(t_ns: int | None) -> int | None:
        return None if t_ns is None else t_ns - epoch_ns

    assert exchange.end is not None
    lags = {t: lag for (t, _), lag in zip(exchange.chunks, exchange.kernel_lags_ns, strict=False) if lag is not None}
    return Answer(
        repeat=repeat,
        index=index,
        scheduled_ns=exchange.scheduled_ns - epoch_ns,
        ready_ns=on_cell_clock(exchange.ready_ns),
        sent_ns=on_cell_clock(exchange.sent_ns),
        headers_ns=on_cell_clock(response.headers_ns),
        end_ns=on_cell_clock(exchange.end_ns),
        status=response.status,
        content_type=response.headers.get("content-type", "").lower(),
        pieces=[(t - epoch_ns, piece) for t, piece in response.pieces],
        read_lags_ns={t - epoch_ns: lag for t, lag in lags.items()},
        is_whole=response.is_whole,
        transport_failure=FAILURE_OF_END.get(exchange.end),
        transport_error=exchange.error,
    )


def answer_text(response: Response) -> str:
    """What the model said, for its next turn; as far as it came."""
    return read_stream(parse_all(piece for _, piece in response.pieces), http_status=response.status).text


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
    read: list[bytes] = []
    while True:
        piece = os.read(STDIN, 1 << 20)
        if not piece:
            return b"", b""
        read.append(piece)
        if b"\n" in piece:
            break
    line, _, rest = b"".join(read).partition(b"\n")
    return line, rest


def _say_to(fd: int) -> Say:
    def say(message: dict[str, Any]) -> None:
        rest = memoryview(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
        while rest:
            rest = rest[os.write(fd, rest) :]

    return say


def allow_connections() -> None:
    """As many open files as this process may have: most systems begin with 1024, an open loop may need more."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS says "unlimited" and takes less
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


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
    allow_connections()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_main(line, rest, _say_to(sys.stdout.fileno())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
