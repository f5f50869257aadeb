"""One cell in a process of its own: start it, follow it, end it, and judge what it brought."""

from __future__ import annotations

import contextlib
import platform
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import orjson

from orchestrator.errors import Gate0Error
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.sweep.guards import GuardInput, broken_guards
from orchestrator.sweep.prompts import CellPrompts
from orchestrator.sweep.spec import CANCEL, CellProgress, LoadSpec
from orchestrator.sweep.workload import Cell
from orchestrator.values import Json, Secret, utc_now

POLL_S = 0.1
STALL_S = 60.0
"""The load process speaks five times a second, but not while it parses a repeat."""
CANCEL_GRACE_S = 10.0
EXIT_GRACE_S = 5.0

DEFINITIONS: Mapping[str, str] = {
    "ttft": "first token (content, reasoning, tool call or token id) - first byte sent",
    "tpot": "(last token - first token) / tokens after the first token event",
    "itl": "gap between events that carried tokens",
    "e2e": "end of response - first byte sent",
    "clock": "monotonic, user space, at socket read",
}


class LoadFailed(Gate0Error):
    """The load process died or hung: no figure of this cell can be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    """The server under load. What `sweep.probe.load_target` finds out, or what a caller declares.

    Attributes:
        stream_fields, length_fields: Body fields that this server accepts (`sweep.body.BodyShape`).
        slots: Requests that run at once; None unknown. slots_source: `server`, `declared` or `unknown`.
        vantage: Where this process stands: `local`, `lan`, `tailnet`, `tunnel`.
        template_overhead_tok: Prompt tokens around the user's text; those before the nonce may come from the cache.
        cache_unit_tok: The prefix cache's granularity.
    """

    base_url: str
    model: str
    api_key: Secret | None = None
    stream_fields: Mapping[str, Json] = field(default_factory=dict)
    length_fields: Mapping[str, Json] = field(default_factory=dict)
    slots: int | None = None
    slots_source: str = "unknown"
    vantage: str = "local"
    template_overhead_tok: int | None = None
    cache_unit_tok: int = 16
    is_ungated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """A cell as it is written down."""

    record: CellRecord
    requests: tuple[RequestRecord, ...]

    @property
    def is_cancelled(self) -> bool:
        return self.record.status == "cancelled"


def _never() -> bool:
    return False


def _ignore(progress: CellProgress) -> None:
    pass


def run_cell(
    target: LoadTarget,
    cell: Cell,
    *,
    prompts: CellPrompts,
    warmup: int = 0,
    on_progress: Callable[[CellProgress], None] = _ignore,
    is_cancelled: Callable[[], bool] = _never,
) -> CellOutcome:
    """Run one cell to its end, or until `is_cancelled` says so (then its status is `cancelled`).

    Args:
        prompts: Of `PromptBook.for_cell(cell, warmup=warmup)`.
        on_progress: Called about five times a second, from this thread.

    Raises:
        LoadFailed: The load process died or hung.
    """
    started_at, start_s = utc_now(), time.monotonic()
    spec = load_spec(target, cell, prompts, warmup=warmup)
    heard = _Heard()
    with LoadProcess(spec) as process:
        for message in process.messages(is_cancelled):
            heard.take(message, on_progress)
    return cell_outcome(
        target, cell, heard, warmup=warmup, started_at=started_at, duration_s=time.monotonic() - start_s
    )


def load_spec(target: LoadTarget, cell: Cell, prompts: CellPrompts, *, warmup: int) -> LoadSpec:
    """What the load process needs to know."""
    w = cell.workload
    return LoadSpec(
        base_url=target.base_url,
        api_key=target.api_key,
        body={
            "endpoint": w.endpoint,
            "model": target.model,
            "output_tok": cell.output_tok,
            "temperature": w.temperature,
            "ignore_eos": w.ignore_eos,
            "length_fields": dict(target.length_fields),
            "stream_fields": dict(target.stream_fields),
            "extra": dict(w.extra_body),
        },
        concurrency=cell.concurrency,
        repeats=w.repeats,
        requests_per_repeat=cell.requests_per_repeat,
        request_timeout_s=w.request_timeout_s,
        passages=prompts.passages,
        nonces=prompts.nonces,
        warmup=warmup,
        expected_prompt_tok=cell.prompt_tok,
        expected_cached_tok=expected_cached_tok(target),
    )


def expected_cached_tok(target: LoadTarget) -> int | None:
    """Cached tokens a fresh prompt may show: the template before the nonce, in whole cache units."""
    if target.template_overhead_tok is None:
        return None
    return target.template_overhead_tok // target.cache_unit_tok * target.cache_unit_tok


class LoadProcess:
    """The child, from start to certain end: leaving the `with` block kills what still runs."""

    def __init__(self, spec: LoadSpec, *, stall_s: float = STALL_S) -> None:
        self._spec = spec
        self._stall_s = stall_s
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=20)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> LoadProcess:
        # A session of its own: Ctrl-C reaches the tool alone, which then cancels and still gets the records.
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.sweep.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        for pump, pipe in ((self._pump_lines, self._popen.stdout), (self._pump_stderr, self._popen.stderr)):
            thread = threading.Thread(target=pump, args=(pipe,), daemon=True)
            thread.start()
            self._threads.append(thread)
        self._tell(self._spec.to_line())
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._popen.wait(EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait(EXIT_GRACE_S)
        for thread in self._threads:
            thread.join(EXIT_GRACE_S)
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def messages(self, is_cancelled: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        """What the child says, up to and including its `done`.

        Raises:
            LoadFailed: It died, or said nothing for too long.
        """
        heard_s = time.monotonic()
        cancelled_s: float | None = None
        while True:
            if cancelled_s is None and is_cancelled():
                cancelled_s = time.monotonic()
                self._tell(CANCEL)
            try:
                line = self._lines.get(timeout=POLL_S)
            except queue.Empty:
                self._refuse_to_hang(heard_s, cancelled_s)
                continue
            if line is None:
                raise self._death()
            heard_s = time.monotonic()
            message: dict[str, Any] = orjson.loads(line)
            yield message
            if "done" in message:
                return

    def _refuse_to_hang(self, heard_s: float, cancelled_s: float | None) -> None:
        now = time.monotonic()
        if cancelled_s is not None and now - max(cancelled_s, heard_s) > CANCEL_GRACE_S:
            self._popen.kill()
            raise LoadFailed(f"the load process did not stop within {CANCEL_GRACE_S:.0f} s of being told to")
        if now - heard_s > self._stall_s:
            self._popen.kill()
            raise LoadFailed(
                f"the load process said nothing for {self._stall_s:.0f} s and was ended",
                hint="is this machine out of memory or suspended?",
            )

    def _death(self) -> LoadFailed:
        try:
            code: int | None = self._popen.wait(EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            code = None
        self._threads[1].join(EXIT_GRACE_S)
        tail = "\n".join(self._stderr)
        hint = "killed: look for the out-of-memory killer (`dmesg`)" if code == -9 else None
        return LoadFailed(f"the load process ended with exit code {code}" + (f":\n{tail}" if tail else ""), hint=hint)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._popen.stdin is not None
        return self._popen.stdin

    def _tell(self, line: bytes) -> None:
        # A child that is gone shows in its output's end, with its exit code and last words.
        with contextlib.suppress(OSError):
            self._stdin.write(line)
            self._stdin.flush()

    def _pump_lines(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._lines.put(line)
        self._lines.put(None)

    def _pump_stderr(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._stderr.append(line.decode(errors="replace").rstrip())


@dataclass(slots=True)
class _Heard:
    """What the child has said so far."""

    requests: list[RequestRecord] = field(default_factory=list)
    spans_ns: list[tuple[int, int]] = field(default_factory=list)
    lags_ns: list[int] = field(default_factory=list)
    cpu_s: float = 0.0
    is_cancelled: bool = False

    def take(self, message: Mapping[str, Any], on_progress: Callable[[CellProgress], None]) -> None:
        if (progress := message.get("progress")) is not None:
            on_progress(CellProgress(**progress))
        elif (request := message.get("request")) is not None:
            request["events"] = tuple((t, n) for t, n in request["events"])
            self.requests.append(RequestRecord.from_json(request))
        elif (repeat := message.get("repeat")) is not None:
            if repeat["span_ns"] is not None:
                self.spans_ns.append((repeat["span_ns"][0], repeat["span_ns"][1]))
            self.lags_ns += repeat["lags_ns"]
            self.cpu_s += repeat["cpu_s"]
        elif (done := message.get("done")) is not None:
            self.is_cancelled = done["is_cancelled"]


def cell_outcome(
    target: LoadTarget, cell: Cell, heard: _Heard, *, warmup: int, started_at: str, duration_s: float
) -> CellOutcome:
    """The records, with the guards that were broken."""
    w, requests = cell.workload, tuple(heard.requests)
    lag_p99 = lag_ms(heard.lags_ns, 0.99)
    guards = broken_guards(
        GuardInput(
            requests=requests,
            requests_expected=w.repeats * cell.requests_per_repeat,
            output_tok=cell.output_tok,
            is_length_fixed=w.ignore_eos,
            cache_unit_tok=target.cache_unit_tok,
            lag_ms_p99=lag_p99,
        )
    )
    record = CellRecord(
        id=cell.id,
        workload=w.name,
        kind=cell.kind.value,
        concurrency=cell.concurrency,
        prompt_tok=cell.prompt_tok,
        output_tok=cell.output_tok,
        repeats=w.repeats,
        requests_per_repeat=cell.requests_per_repeat,
        digest=cell.load_digest(),
        status="cancelled" if heard.is_cancelled else "measured",
        started_at=started_at,
        duration_s=duration_s,
        spans_ns=tuple(heard.spans_ns),
        warmup_requests=warmup,
        slots=target.slots,
        slots_source=target.slots_source,
        is_queueing=target.slots is not None and cell.concurrency > target.slots,
        guards=tuple(g.as_json() for g in guards),
        vantage=target.vantage,
        is_ungated=target.is_ungated,
        temperature=w.temperature,
        endpoint=w.endpoint,
        seed=w.seed,
        client=_client(heard, lag_p99),
        definitions=dict(DEFINITIONS),
    )
    return CellOutcome(record=record, requests=requests)


def _client(heard: _Heard, lag_p99: float | None) -> dict[str, Json]:
    """The load generator's own cost and lateness."""
    return {
        "cpu_s": heard.cpu_s,
        "wall_s": sum(end - start for start, end in heard.spans_ns) / 1e9,
        "tokens": sum(r.output_tok or 0 for r in heard.requests),
        "events": sum(len(r.events) for r in heard.requests),
        "loop_lag_ms_p50": lag_ms(heard.lags_ns, 0.5),
        "loop_lag_ms_p99": lag_p99,
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def lag_ms(lags_ns: list[int], share: float) -> float | None:
    """Nearest-rank percentile; None with fewer than ten samples (a p99 of those is their maximum)."""
    if len(lags_ns) < 10:
        return None
    ordered = sorted(lags_ns)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6
