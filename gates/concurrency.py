"""Do as many requests run at once as are declared, or do they queue?

Proof is either the engine's own gauges, sampled while the requests are in flight, or the token streams themselves:
requests whose tokens arrive in overlapping spans run at once. A queued request's stream starts when another ends.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.gating.counters import metric
from orchestrator.gating.evidence import exchange
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.params import number, whole
from orchestrator.gating.prompts import Nonce, fresh_nonce
from orchestrator.gating.sizing import user
from orchestrator.gating.verdicts import not_answered, skip, skip_unless_generating
from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target

SHOWN_REPLIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was seen while the requests were in flight. None: not seen at all.

    Attributes:
        running, waiting: Peaks of the engine's gauges.
        overlap: Most requests whose token streams overlap.
        late_starts: Requests whose first token came after another request had ended.
    """

    running: int | None = None
    waiting: int | None = None
    overlap: int | None = None
    late_starts: int = 0

    @property
    def at_once(self) -> int | None:
        """The largest number that is proven to have run at once."""
        known = [n for n in (self.running, self.overlap) if n is not None]
        return max(known) if known else None


def overlap_of(replies: Sequence[Reply]) -> tuple[int | None, int]:
    """Most streams that overlap, and how many started after another had ended."""
    spans = [(r.first_token_s, r.total_s) for r in replies if r.first_token_s is not None and r.total_s is not None]
    if len(spans) < len(replies) or not spans:
        return None, 0
    first_end = min(end for _, end in spans)
    most = max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)
    return most, sum(start >= first_end for start, _ in spans)


def judge(seen: Observed, *, declared: int, asked: int) -> Verdict:
    """Judge what ran at once against what was declared and asked."""
    measured: dict[str, Json] = {
        "declared": declared,
        "asked": asked,
        "running_peak": seen.running,
        "waiting_peak": seen.waiting,
        "streams_overlapping": seen.overlap,
        "late_starts": seen.late_starts,
    }
    at_once = seen.at_once
    of = f"{asked} of {declared} declared" if asked < declared else f"{declared} declared"
    if at_once is None:
        return Verdict(
            status=Status.ERROR,
            summary="could not tell: neither metrics nor token streams show what runs at once",
            measured=measured,
            hint="start the server with its metrics on, and let it stream",
        )
    if at_once >= asked:
        return Verdict(status=Status.PASS, summary=f"{asked} requests ran at once ({of})", measured=measured)
    queued = max(seen.waiting or 0, seen.late_starts)
    if queued:
        return Verdict(
            status=Status.FAIL,
            summary=f"queueing: {asked} requests sent ({of}), {at_once} ran at once, {queued} waited",
            measured=measured,
            hint="fewer slots run than are declared: see max_num_seqs, KV cache size, and the engine's slot count",
        )
    return Verdict(
        status=Status.UNSTABLE,
        summary=f"{at_once} of {asked} requests were seen at once, and no queue either",
        measured=measured,
        hint="raise the gate's output_tokens so that the requests overlap for longer",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """The gate. `max_requests` caps how many are sent; `sample_s` is the pause between two looks at the metrics."""

    nonce: Nonce = fresh_nonce
    name: str = "concurrency"
    title: str = "as many requests run at once as are declared"
    defaults: Mapping[str, Json] = field(
        default_factory=lambda: {"max_requests": 64, "output_tokens": 128, "sample_s": 0.1, "timeout_s": 900.0}
    )

    def check(self, target: Target, params: Mapping[str, Json]) -> Verdict:
        """Send all at once, watch, judge."""
        claims = target.claims
        if (skipped := skip_unless_generating(claims)) is not None:
            return skipped
        if not claims.slots:
            return skip("no number of parallel requests is declared")
        asked = max(1, min(claims.slots, whole(params, "max_requests")))
        bodies = [_body(self.nonce(), whole(params, "output_tokens")) for _ in range(asked)]
        replies, running, waiting = _send_and_watch(
            target, bodies, sample_s=number(params, "sample_s"), timeout_s=number(params, "timeout_s")
        )
        pairs = list(zip(bodies, replies, strict=True))
        evidence = tuple(exchange(f"request {i + 1}", b, r) for i, (b, r) in enumerate(pairs[:SHOWN_REPLIES]))
        refused = [r for r in replies if not r.is_ok]
        if refused and refused[0].http_status == 0:
            return not_answered(f"{len(refused)} of {asked} requests at once", refused[0], evidence=evidence)
        if refused:
            return Verdict(
                status=Status.FAIL,
                summary=f"{len(refused)} of {asked} requests at once were refused: HTTP {refused[0].http_status}: "
                f"{refused[0].error}",
                measured={"declared": claims.slots, "asked": asked, "refused": len(refused)},
                evidence=(exchange("refused", bodies[0], refused[0]), *evidence),
            )
        overlap, late = overlap_of(replies)
        seen = Observed(running=running, waiting=waiting, overlap=overlap, late_starts=late)
        verdict = judge(seen, declared=claims.slots, asked=asked)
        return replace(verdict, evidence=evidence)


def _send_and_watch(
    target: Target, bodies: Sequence[Mapping[str, Json]], *, sample_s: float, timeout_s: float
) -> tuple[tuple[Reply, ...], int | None, int | None]:
    """Replies, and the peaks of the gauges `running` and `waiting` while they were in flight."""
    finished = threading.Event()
    peaks: dict[str, int] = {}

    def watch() -> None:
        while not finished.is_set():
            for name in ("running", "waiting"):
                value = metric(target, name)
                if value is not None:
                    peaks[name] = max(peaks.get(name, 0), round(value))
            finished.wait(sample_s)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        replies = target.chat_many(bodies, timeout_s=timeout_s)
    finally:
        finished.set()
        watcher.join(30.0)
    return replies, peaks.get("running"), peaks.get("waiting")


def _body(nonce: str, output_tokens: int) -> Mapping[str, Json]:
    ask = f"{nonce}: count from 1 to 500, each number on a line of its own, nothing else."
    return {"messages": user(ask), "max_tokens": output_tokens}


GATE = Concurrency()
