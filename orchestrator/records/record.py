"""What was seen, as plain values: the shapes of the files in a run directory.

Knows nothing of profiles, engines or hosts; whoever reads a record needs this module alone. Raw stamps and counts are
the truth, rates are derived when reading (`orchestrator.figures`). Format: `FORMAT`; a reader refuses a newer major.

    results/<UTC>-<profile>-<hosts>-<digest6>/
      run.json                      RunRecord, rewritten atomically after each stage
      events.jsonl                  what happened when, one JSON object a line
      gates/<name>.json             GateRecord
      sweeps/<workload>/<cell>.json                 CellRecord
      sweeps/<workload>/<cell>.requests.jsonl       RequestRecord, one a line
      telemetry.jsonl               each host and the engine once a second: what was not told is null or missing
      container-<rank>.log, metrics-before.txt, metrics-after.txt
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

from orchestrator.values import Json

FORMAT = "gate0-record/1"


class RunStatus(StrEnum):
    """How a run stands. RUNNING in a file whose program is gone means it was killed: `--resume` goes on.

    IMPORTED: what another tool measured, read whole; nothing of ours ran, so nothing passed.
    """

    RUNNING = "running"
    PASSED = "passed"
    GATE_FAILED = "gate_failed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    IMPORTED = "imported"


class StageStatus(StrEnum):
    """How a stage ended. SKIPPED: an earlier attempt passed with the same digest, and the box still agrees."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"


class Failure(StrEnum):
    """Why a request gave no valid answer. Each is a class of its own in every table.

    CUT_REASONING: max_tokens ended it while it still reasoned, there is no answer. CUT: max_tokens ended an answer that
    the workload wants whole (`must_finish`). Neither is said of a cell that fixes the length (`ignore_eos`).
    """

    CONNECT = "connect"
    HTTP_400 = "http_400"
    HTTP_4XX = "http_4xx"
    HTTP_5XX = "http_5xx"
    STREAM_ERROR = "stream_error"
    NO_DONE = "no_done"
    CLOSED_EARLY = "closed_early"
    NO_TOKENS = "no_tokens"
    TIMEOUT = "timeout"
    MALFORMED = "malformed"
    CUT_REASONING = "cut_reasoning"
    CUT = "cut"
    CANCELLED = "cancelled"


class TokenSource(StrEnum):
    """Where a request's token counts come from, best first. UNKNOWN: per-token figures are null."""

    TOKEN_IDS = "token_ids"
    CUMULATIVE_USAGE = "cumulative_usage"
    ONE_PER_EVENT = "one_per_event"
    USAGE_TOTAL = "usage_total"
    UNKNOWN = "unknown"


class _Plain:
    """JSON in and out for the flat records below; unknown keys of a newer minor format are ignored."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """
        Raises:
            KeyError, TypeError, ValueError: The mapping is not such a record.
        """
        known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
        for name, f in known.items():
            if f.default_factory is dict and not isinstance(raw.get(name, {}), Mapping):
                raise TypeError(f"{name} is not a mapping")
        return cls(**{k: v for k, v in raw.items() if k in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord(_Plain):
    """One request. All times are integer nanoseconds of one monotonic clock, relative to the cell's start.

    Attributes:
        repeat, index: 0-based; warm-up requests are not recorded here.
        phase: `main`, or what came before or after it in the cell (`prime`, `context`, `before`, `after`).
        lane: Its lane in a mixed cell, empty otherwise.
        track, turn: 0-based: which session (or agent, or place) it belongs to, and which of its turns it is.
        scheduled_ns: When it was due; for a closed loop the moment its place became free.
        ready_ns: When it could be sent: due, and with a cap a place was free. `sent_ns - ready_ns` is the client's own
            lateness, `ready_ns - scheduled_ns` the wait at the cap. None: an older record.
        sent_ns: First byte handed to the kernel. headers_ns: response status line seen.
        first_event_ns: First SSE data event. first_token_ns: first *token* (content, reasoning or tool call).
        last_token_ns, end_ns: Last token; end of the response.
        events: `[t_ns, tokens]` for each event that carried tokens, in order; tokens None when unknown.
        prompt_tok, output_tok, cached_tok, reasoning_tok: The server's count; None: it did not say.
        asked_output_tok: The limit it was sent with.
        expected_cached_tok: What the workload expects from the cache (0 for fresh prompts); None: no expectation.
        shared_tok: Tokens at its head that other requests of the cell have too (a swarm's prefix, a session's history).
        nonce: What made this prompt its own.
        stamp_lag_ns: User-space stamp minus the kernel's receive stamp, for the read with the first token; None: no
            kernel stamps (TLS, or not Linux).
        server: The server's own timings of this request, as it sent them.
    """

    repeat: int
    index: int
    scheduled_ns: int
    sent_ns: int | None = None
    headers_ns: int | None = None
    first_event_ns: int | None = None
    first_token_ns: int | None = None
    first_answer_ns: int | None = None
    last_token_ns: int | None = None
    end_ns: int | None = None
    events: tuple[tuple[int, int | None], ...] = ()
    http_status: int = 0
    failure: str | None = None
    error: str | None = None
    prompt_tok: int | None = None
    output_tok: int | None = None
    cached_tok: int | None = None
    reasoning_tok: int | None = None
    expected_cached_tok: int | None = None
    expected_prompt_tok: int | None = None
    asked_output_tok: int | None = None
    shared_tok: int | None = None
    token_source: str = TokenSource.UNKNOWN.value
    finish_reason: str | None = None
    nonce: str | None = None
    keepalives: int = 0
    server: Mapping[str, Json] = field(default_factory=dict)
    phase: str = "main"
    lane: str = ""
    track: int | None = None
    turn: int = 0
    ready_ns: int | None = None
    stamp_lag_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard(_Plain):
    """A rule that a cell broke; a cell with one is invalid, not footnoted."""

    name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord(_Plain):
    """One point of a sweep: the same load, `repeats` times.

    Attributes:
        id: File name, unique in the workload (`closed-p128-o256-c4`).
        kind: `closed` (c kept in flight), `batch` (c at once, wait for all), `ingest`, `swarm`, `open`, `overload`,
            `sessions`, `replay`, `mixed`.
        variant: Which of its kind's cells: a swarm's `cold`, `primed`, `evicting`, `single`; a mixed cell's `together`
            or `alone-<lane>`; empty where the kind has one only.
        concurrency: Users at the same time; agents of a swarm; an open loop's cap, 0 without one.
        prompt_tok, output_tok: Asked of each request; the mean where lengths are drawn.
        repeats, repeats_done: Planned, and run. stop_reason: why there are no more: `all`, `tight` (the interval is
            narrow enough), `budget`, `interrupted`.
        requests_per_repeat: How many requests of phase `main` make one repeat; 0: as many as fitted in its time.
        rate_rps, burstiness: Arrivals of an open loop, requests/s and the Gamma shape (1: Poisson).
        load: All that was asked for, as the workload's file says it, this cell's point of each axis chosen.
        slo: `{"name", "ttft_s", "tpot_ms", "e2e_s", "share"}`, those that are set.
        laps: One mapping a repeat: `repeat`, `order` (its place among all laps of the sweep), `started_at`,
            `server_before` / `server_after` (the engine's counters by our names), `lags_ns`-derived figures, `notes`.
        server: What the server says of the whole cell beside the client: counter deltas, speculative acceptance,
            its own TTFT and queue times, and the gap to ours.
        client_error: `gate0 calibrate`'s figures for this machine at the nearest calibrated concurrency, `{}` without.
        batch_answers: For how many answers the workload wants its batch time.
        digest, serving_digest: Identity of load and serving together, and of the serving alone.
        spans_ns: `[start, end]` of each repeat, first byte sent to last response ended, on the cell's clock.
        slots: Parallel requests the server runs at once; None unknown. slots_source: `server`, `declared`, `unknown`.
        is_queueing: concurrency exceeds the slots.
        guards: As Guard mappings.
        vantage: Where the load ran from: `local`, `lan`, `tailnet`, `tunnel`; of a foreign record `unknown`.
        source: Of a foreign record: `{"tool", "extra"}`, extra being what of its point we have no word for; else empty.
        stated: Of a foreign record: figures that its tool gives without raw data, by our name: `{"mean", "p50", …,
            "unit", "definition"}`, a single number as "value", a range as "low" and "high" (or one of them); they are
            shown with their definition and never mixed with ours. Of a transcript also "place" (where in the report),
            "printed" (`{"mean": "1.37", "unit": "s"}` where the number alone does not say it), "about", "basis"
            (`derived`, `projected`), "against" (what a ratio is to), "of", "note", "also" (a list of further such
            mappings: other values that the report gives for the same figure; "rounded" where it is the same one with
            fewer digits), and "not_measured": true in place of numbers.
        client: The load generator's own error: `{"cpu_s", "wall_s", "tokens", "loop_lag_ms_p99", …}`.
        definitions: Tags of what the stamps mean, so that others' figures are never mixed in.
    """

    id: str
    workload: str
    kind: str
    concurrency: int
    prompt_tok: int
    output_tok: int
    repeats: int
    requests_per_repeat: int
    digest: str
    serving_digest: str = ""
    depth_tok: int = 0
    status: str = "measured"
    started_at: str = ""
    duration_s: float = 0.0
    spans_ns: tuple[tuple[int, int], ...] = ()
    warmup_requests: int = 0
    slots: int | None = None
    slots_source: str = "unknown"
    is_queueing: bool = False
    guards: tuple[Mapping[str, str], ...] = ()
    vantage: str = "local"
    is_ungated: bool = False
    temperature: float = 0.0
    endpoint: str = "chat"
    seed: int = 0
    batch_answers: int = 200
    variant: str = ""
    rate_rps: float | None = None
    burstiness: float | None = None
    prefix_tok: int = 0
    repeats_done: int = 0
    stop_reason: str = "all"
    load: Mapping[str, Json] = field(default_factory=dict)
    slo: Mapping[str, Json] = field(default_factory=dict)
    laps: tuple[Mapping[str, Json], ...] = ()
    server: Mapping[str, Json] = field(default_factory=dict)
    client_error: Mapping[str, Json] = field(default_factory=dict)
    stated: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    source: Mapping[str, Json] = field(default_factory=dict)
    client: Mapping[str, Json] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_valid(self) -> bool:
        return not self.guards


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRecord(_Plain):
    """One gate's verdict with what it was shown."""

    name: str
    status: str
    summary: str
    is_required: bool = True
    measured: Mapping[str, Json] = field(default_factory=dict)
    evidence: tuple[Mapping[str, Json], ...] = ()
    params: Mapping[str, Json] = field(default_factory=dict)
    hint: str | None = None
    started_at: str = ""
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord(_Plain):
    """One stage of the road, as it ended in the newest attempt."""

    name: str
    status: str
    digest: str
    started_at: str
    duration_s: float
    detail: str = ""
    output: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(_Plain):
    """run.json: everything about a run but its gates' evidence and its requests.

    Attributes:
        id: The directory's name.
        profile: As resolved. profile_source: the file's text as written. Secrets are references in both.
        hosts: Per host: name, address, facts before and after.
        command: `docker run …` as one line per rank, secrets redacted.
        suite: Name of the gate suite; is_suite_unmodified: run as shipped.
        gates: Per gate name its status.
        stages: StageRecord mappings, in order.
        duration_s: Wall time as measured over all attempts, never derived.
        source: Of a foreign record: `{"tool", "title", "version", "form", "file", "digest", "note", "extra"}`; empty:
            measured by this program. Of a transcript also "report" (name, date, contradictions, `stated` figures of
            the report as a whole), "gate" (`{"word", "verdict", "place"}`: what the report's own check said), "told"
            (settings), "measured", "remark", and "stated": figures of the configuration that belong to no one cell.
            Its `hosts` carry "kind", "told" and "stated" instead of facts.
        client_error: `gate0 calibrate`'s figures for the machine the load came from, `{}` when it was never calibrated.
        effective: What the server told of itself, `{}` when nothing was read (or by an older version). "compared": each
            declared setting, `{"path", "declared", "agreement", "running", "source", "quote", "why", "is_weaker"}`,
            agreement being `same`, `changed`, `unconfirmed`, `ignored` or `contradicted`, and `is_weaker` true where
            less runs than was promised; "readings": `{"name", "value", "source", "quote", "telling"}`; "notices":
            `{"kind", "about", "quote", "value"}`, what the engine's log itself says of its settings; "catalogue":
            `{"engine", "version", "note"}` of the flag list it was compared by, or null; "told": what was at hand,
            `{"log_lines", "documents", "metrics"}`.
    """

    format: str = FORMAT
    id: str
    status: str
    created_at: str
    updated_at: str
    profile_name: str
    profile_title: str
    profile_digest: str
    engine: str
    attempts: int = 1
    duration_s: float = 0.0
    tool_version: str = ""
    git_revision: str | None = None
    invocation: tuple[str, ...] = ()
    profile: Mapping[str, Json] = field(default_factory=dict)
    profile_source: str = ""
    lineage: tuple[str, ...] = ()
    hosts: tuple[Mapping[str, Json], ...] = ()
    vantage: str = "local"
    runtime: str = ""
    command: tuple[str, ...] = ()
    added: tuple[Mapping[str, Json], ...] = ()
    image: str | None = None
    image_digest: str | None = None
    engine_version: str | None = None
    model: str = ""
    served_name: str = ""
    base_url: str | None = None
    slots: int | None = None
    slots_source: str = "unknown"
    suite: str | None = None
    is_suite_unmodified: bool = False
    is_ungated: bool = False
    gates: Mapping[str, str] = field(default_factory=dict)
    gates_digest: str | None = None
    workloads: tuple[str, ...] = ()
    stages: tuple[Mapping[str, Json], ...] = ()
    capabilities: Mapping[str, Json] = field(default_factory=dict)
    memory_returned: Mapping[str, Json] = field(default_factory=dict)
    error: Mapping[str, Json] | None = None
    source: Mapping[str, Json] = field(default_factory=dict)
    client_error: Mapping[str, Json] = field(default_factory=dict)
    effective: Mapping[str, Json] = field(default_factory=dict)
