"""How wrong this machine's own clock is: the load process against a mock whose truth is known, at several levels.

Client and mock run on the same machine and read the same monotonic clock, so each request's error is exact: what the
client says of its first token, minus what was true. The mock takes processor time too, which a server elsewhere would
not: the error is an upper bound for a load from this machine.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator import __version__
from orchestrator.errors import BoxError, StoreError
from orchestrator.figures.stats import percentile
from orchestrator.records.record import RequestRecord
from orchestrator.sweep.guards.cell import mapping, number
from orchestrator.sweep.outcome import Heard, Lap
from orchestrator.sweep.process import LoadProcess
from orchestrator.sweep.spec import Job, Lane, LoadSpec, Message, Phase, Track
from orchestrator.values import Json, utc_now
from orchestrator.wire.chat import Claims
from orchestrator.wire.target import HttpTarget

FORMAT = "gate0-calibration/1"
LEVELS = (1, 8, 32, 64, 128, 256)
QUICK_LEVELS = (1, 8, 32)
ROUNDS = 5
QUICK_ROUNDS = 2
OUTPUT_TOK = 64
STEP_S = 0.02
TTFT_S = 0.2
AUDIT_EVERY = 8
START_TIMEOUT_S = 20.0
TIMEOUT_S = 60.0
MODEL = "mock-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of one error over all requests, ms. Percentiles are None where there are too few."""

    mean: float
    p50: float | None
    p95: float | None
    p99: float | None
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The client at one number of streams, all of them started at once.

    Attributes:
        ttft_error_ms: Client's TTFT minus the true one: dispatch and stamp together.
        dispatch_ms: From "first byte sent" to the whole request in the server's hand.
        stamp_ms: From the server's write of the first token to our stamp.
        decode_error_ms: Client's first-to-last-token time minus the true one.
        kernel_lag_ms: Our stamp minus the kernel's receive stamp, of the audited reads; None: no kernel stamps.
        cost_us: Processor time of the load process a token, microseconds.
    """

    concurrency: int
    requests: int
    ttft_error_ms: Spread
    dispatch_ms: Spread
    stamp_ms: Spread
    decode_error_ms: Spread
    kernel_lag_ms: Mapping[str, Json] | None
    cost_us: float

    def as_json(self) -> dict[str, Json]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What is stored, and attached to every record."""

    at: str
    machine: Mapping[str, Json]
    levels: tuple[Level, ...]

    def as_json(self) -> dict[str, Json]:
        levels: list[Json] = [level.as_json() for level in self.levels]
        return {"format": FORMAT, "at": self.at, "machine": dict(self.machine), "levels": levels}


def calibrate(levels: Sequence[int], *, rounds: int, on_level: Callable[[int], None]) -> Calibration:
    """Measure each level; takes about two seconds a round.

    Raises:
        BoxError: The mock did not start, or the load process failed.
    """
    settings = {"ttft_s": TTFT_S, "step_s": STEP_S, "slots": max(levels) + 8, "prefix_caching": False}
    found: list[Level] = []
    with mock_process(settings) as url, HttpTarget(url, MODEL, Claims(engine="endpoint")) as control:
        for concurrency in levels:
            on_level(concurrency)
            laps = [_round(url, control, concurrency) for _ in range(rounds + 1)]
            found.append(level_of(concurrency, laps[1:]))
    return Calibration(at=utc_now(), machine=this_machine(), levels=tuple(found))


@contextmanager
def mock_process(settings: Mapping[str, Json]) -> Iterator[str]:
    """The mock in a process of its own; gives its base URL, ends it for certain.

    Raises:
        BoxError: It said no address in time.
    """
    words = [sys.executable, "-m", "orchestrator.mock", json.dumps(settings)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                process.wait(START_TIMEOUT_S)
                words_of = process.stderr.read() if process.stderr is not None else ""
                raise BoxError(f"the mock server did not start: {words_of[-500:]}")
            yield url
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)
            process.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One burst: what we say, what was true (by prompt length, which no two requests share), what it cost."""

    requests: tuple[RequestRecord, ...]
    epoch_ns: int
    truths: Mapping[int, Mapping[str, int]]
    cpu_s: float
    kernel_lag_ms: Mapping[str, Json] | None


def _round(url: str, control: HttpTarget, concurrency: int) -> Round:
    control.post("/mock/truth")
    jobs = [
        Job(messages=(Message(parts=("word " * (8 + k),)),), output_tok=OUTPUT_TOK, nonce=str(k))
        for k in range(concurrency)
    ]
    body: dict[str, Json] = {
        "endpoint": "chat",
        "model": MODEL,
        "length_fields": {},
        "stream_fields": {"return_token_ids": True},
    }
    lane = Lane(tracks=tuple(Track(jobs=(job,), number=i) for i, job in enumerate(jobs)), body=body, users=concurrency)
    spec = LoadSpec(
        base_url=url,
        api_key=None,
        phases=(Phase(lanes=(lane,)),),
        request_timeout_s=TIMEOUT_S,
        audit=AUDIT_EVERY,
    )
    heard = Heard()
    with LoadProcess(spec) as process:
        for message in process.messages(lambda: False):
            heard.take(message, lambda _: None)
    lap = heard.lap(0, started_at=utc_now(), duration_s=0.0)
    truths, cpu_s = control.get_json("/mock/truth"), number(lap.record, "cpu_s")
    assert cpu_s is not None, "every repeat tells what it cost"
    return Round(
        requests=lap.requests,
        epoch_ns=_epoch_ns(lap),
        truths={t["prompt_tok"]: t for t in truths} if isinstance(truths, list) else {},
        cpu_s=cpu_s,
        kernel_lag_ms=mapping(lap.record, "stamp_lag_ms"),
    )


def _epoch_ns(lap: Lap) -> int:
    phases = lap.record["phases"]
    assert isinstance(phases, list)
    assert isinstance(phases[0], Mapping)
    return int(phases[0]["epoch_ns"])


def level_of(concurrency: int, rounds: Sequence[Round]) -> Level:
    """All requests of all rounds against their truth.

    Raises:
        BoxError: A request failed, or has no truth: this machine cannot even load a mock.
    """
    ttft, dispatch, stamp, decode = [], [], [], []
    tokens, lags = 0, [r.kernel_lag_ms for r in rounds if r.kernel_lag_ms is not None]
    for round_ in rounds:
        for r in round_.requests:
            true = round_.truths.get(r.prompt_tok or 0)
            if true is None or r.sent_ns is None or r.first_token_ns is None or r.last_token_ns is None:
                raise BoxError(
                    f"a request to the mock failed at {concurrency} streams: {r.failure or 'no truth'} {r.error or ''}",
                    hint="is this machine out of memory, ports or file descriptors (`ulimit -n`)?",
                )
            ttft.append((r.first_token_ns - r.sent_ns - true["first_ns"] + true["received_ns"]) / 1e6)
            dispatch.append((true["received_ns"] - r.sent_ns - round_.epoch_ns) / 1e6)
            stamp.append((r.first_token_ns + round_.epoch_ns - true["first_ns"]) / 1e6)
            decode.append((r.last_token_ns - r.first_token_ns - true["last_ns"] + true["first_ns"]) / 1e6)
            tokens += r.output_tok or 0
    return Level(
        concurrency=concurrency,
        requests=len(ttft),
        ttft_error_ms=_spread(ttft),
        dispatch_ms=_spread(dispatch),
        stamp_ms=_spread(stamp),
        decode_error_ms=_spread(decode),
        kernel_lag_ms=max(lags, key=lambda found: number(found, "p99") or 0.0, default=None),
        cost_us=sum(r.cpu_s for r in rounds) / tokens * 1e6,
    )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(
        mean=sum(values) / len(values),
        p50=percentile(values, 0.5),
        p95=percentile(values, 0.95),
        p99=percentile(values, 0.99),
        worst=max(values, key=abs),
    )


def this_machine() -> dict[str, Json]:
    """What a calibration holds for."""
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "tool_version": __version__,
    }


def calibration_file() -> Path:
    """`$XDG_STATE_HOME/gate0/calibration.json`, in `~/.local/state` without it."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "gate0" / "calibration.json"


def store_calibration(calibration: Calibration) -> Path:
    """
    Raises:
        StoreError: It cannot be written.
    """
    path = calibration_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(calibration.as_json(), indent=1) + "\n")
        part.replace(path)
    except OSError as exc:
        raise StoreError(f"{path}: {exc.strerror}", hint="set XDG_STATE_HOME to a folder that can be written") from exc
    return path


def read_calibration() -> Mapping[str, Json] | None:
    """What was stored, as JSON; None: never calibrated, or by a program that wrote it otherwise."""
    try:
        found = json.loads(calibration_file().read_text())
    except (OSError, ValueError):
        return None
    is_ours = isinstance(found, dict) and found.get("format") == FORMAT and isinstance(found.get("levels"), list)
    return found if is_ours else None


def error_at(calibration: Mapping[str, Json], concurrency: int) -> dict[str, Json]:
    """The lowest calibrated level that is at least `concurrency`, else the highest: a cell's error bar."""
    levels = calibration.get("levels")
    found = [v for v in levels if isinstance(v, Mapping)] if isinstance(levels, list | tuple) else []
    if not found:
        return {}
    at_least = [v for v in found if int(v["concurrency"]) >= concurrency]
    chosen = at_least[0] if at_least else found[-1]
    return {"at": calibration.get("at"), "is_beyond": not at_least, **chosen}


def doubts(calibration: Mapping[str, Json] | None, concurrency: int) -> str | None:
    """What stands against the error bar for a load of so many streams, in a sentence; None: nothing."""
    if calibration is None:
        return "this machine's own client error is unknown; `gate0 calibrate` measures it in a minute"
    machine, now = calibration.get("machine"), this_machine()
    if isinstance(machine, Mapping) and machine.get("system") != now["system"]:
        return f"calibrated as {machine.get('system')}, this is {now['system']}; run `gate0 calibrate` again"
    error = error_at(calibration, concurrency)
    if error.get("is_beyond"):
        return (
            f"{concurrency} streams are more than were calibrated ({error.get('concurrency')}); "
            f"`gate0 calibrate --concurrency {concurrency}` measures them"
        )
    return None
