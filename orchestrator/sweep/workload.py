"""What load is asked for: a workload as frozen values, and the cells it unfolds into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from orchestrator.sweep.lengths import Lengths, fixed
from orchestrator.values import Json, digest


class Kind(StrEnum):
    """How requests come.

    CLOSED: c requests kept in flight. BATCH: c at once, then wait for all. INGEST: a closed loop of long prompts and
    short answers, asked for documents an hour. SWARM: n agents on one shared prefix. OPEN: arrivals by the clock.
    OVERLOAD: an open loop past capacity, between two calm ones. SESSIONS: conversations with think time. REPLAY:
    recorded conversations or a trace. MIXED: named lanes side by side.
    """

    CLOSED = "closed"
    BATCH = "batch"
    INGEST = "ingest"
    SWARM = "swarm"
    OPEN = "open"
    OVERLOAD = "overload"
    SESSIONS = "sessions"
    REPLAY = "replay"
    MIXED = "mixed"


GRID = frozenset({Kind.CLOSED, Kind.BATCH, Kind.INGEST})
"""Kinds whose cells are a grid of prompt, output, depth and concurrency."""


CALM_SHARE = 0.5
"""Before and after an overload so much of the capacity is asked for: what the backlog needs to melt."""


class SwarmCell(StrEnum):
    """The cells of a swarm. COLD: all at once on an empty cache. PRIMED: one request loads the prefix, then all.
    EVICTING: more different prefixes than fit. SINGLE: one agent on a warm prefix."""

    COLD = "cold"
    PRIMED = "primed"
    EVICTING = "evicting"
    SINGLE = "single"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """What a request must keep to be good; those that are None do not count.

    Attributes:
        name: Of the preset, or `custom`.
        ttft_s, e2e_s: Seconds, in an open loop from the scheduled time. tpot_ms: milliseconds a token.
        share: Share of the requests sent (failed ones are misses) that must be good, 0 to 1.
    """

    name: str = "custom"
    ttft_s: float | None = None
    tpot_ms: float | None = None
    e2e_s: float | None = None
    share: float = 0.95

    def as_json(self) -> dict[str, Json]:
        limits = {"ttft_s": self.ttft_s, "tpot_ms": self.tpot_ms, "e2e_s": self.e2e_s}
        return {"name": self.name, **{k: v for k, v in limits.items() if v is not None}, "share": self.share}


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Find the largest level that meets the SLO. `over`: `concurrency` or `rate`; precision: a share of the level."""

    over: str = "concurrency"
    low: float = 1.0
    high: float = 256.0
    precision: float = 0.1
    slo: Slo = field(default_factory=Slo)

    def as_json(self) -> dict[str, Json]:
        return {
            "over": self.over,
            "low": self.low,
            "high": self.high,
            "precision": self.precision,
            "slo": self.slo.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLoad:
    """One lane of a mixed workload: closed with `concurrency`, open with `rate`."""

    name: str
    concurrency: int | None = None
    rate: float | None = None
    burstiness: float = 1.0
    prompt: Lengths = field(default_factory=lambda: fixed(128))
    output: Lengths = field(default_factory=lambda: fixed(256))
    think_s: float = 0.0
    priority: int | None = None
    extra_body: Mapping[str, Json] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "concurrency": self.concurrency,
            "rate": self.rate,
            "burstiness": self.burstiness,
            "prompt_tokens": self.prompt.as_json(),
            "output_tokens": self.output.as_json(),
            "think_s": self.think_s,
            "priority": self.priority,
            "extra_body": dict(self.extra_body),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A recorded conversation: what the user said and how long the answer was, turn by turn.

    Attributes:
        at_s: Start, seconds from the trace's first; None: it has no time of its own.
        prompts: The user's words, or for a trace without words the number of tokens; answers: the recorded answer's
            words, likewise.
        system: Words of a system message before the first prompt.
        blocks: A trace's names for the prompt's blocks of 512 tokens: the same name, the same block and all before it.
    """

    prompts: tuple[str | int, ...]
    answers: tuple[str | int, ...]
    at_s: float | None = None
    system: str | None = None
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One file. The manual of each key is `workload.schema.json`; the names here are the file's.

    Attributes:
        prompt_tokens, output_tokens, depth, concurrency: The grid's axes; every combination is a cell.
        order: `random`: each round runs all cells once in a shuffled order; `listed`: cell after cell.
        tight: Stop a cell's repeats when the half width of the 95 % interval of its rate is below this share;
            None: never.
        file: The recording's name, without its directory.
        rate: Empty: 1 request/s, a trace's own times, and of an overload the capacity, which is then measured first.
        conversations: What `file` held when the workload was loaded, after `limit`, `most_turns` and `most_prompt`.
        left_out: Conversations or rows of it that could not be used; cut: conversations that end early.
    """

    name: str
    title: str | None = None
    kinds: tuple[Kind, ...] = (Kind.CLOSED,)
    prompt_tokens: tuple[Lengths, ...] = (fixed(128),)
    output_tokens: tuple[Lengths, ...] = (fixed(256),)
    depth: tuple[int, ...] = (0,)
    depth_cache: str = "cold"
    concurrency: tuple[int, ...] = (1, 2, 4, 8)
    requests_per_user: int = 1
    repeats: int = 5
    order: str = "random"
    tight: float | None = None
    warmup: int = 2
    temperature: float = 0.0
    ignore_eos: bool = True
    must_finish: bool = False
    endpoint: str = "chat"
    thinking: bool | None = None
    tools: int = 0
    seed: int = 1
    request_timeout_s: float = 600.0
    batch_answers: int = 200
    extra_body: Mapping[str, Json] = field(default_factory=dict)
    slo: Slo | None = None
    search: Search | None = None
    agents: tuple[int, ...] = (8,)
    prefix_tokens: tuple[int, ...] = (4096,)
    cells_of_swarm: tuple[SwarmCell, ...] = tuple(SwarmCell)
    prefixes: int | None = None
    rate: tuple[float, ...] = ()
    burstiness: tuple[float, ...] = (1.0,)
    cap: int | None = None
    ramp: Mapping[str, Json] | None = None
    arrivals: str = "exact"
    requests: int = 100
    duration_s: float = 60.0
    factor: float = 2.0
    recovery_s: float = 30.0
    turns: int = 5
    sessions: int | None = None
    think_s: float = 0.0
    history: str = "scripted"
    file: str | None = None
    format: str = "auto"
    limit: int | None = None
    pick: str = "first"
    most_turns: int | None = None
    most_prompt: int | None = None
    speed: float = 1.0
    conversations: tuple[Conversation, ...] = ()
    conversations_digest: str | None = None
    left_out: int = 0
    cut: int = 0
    lanes: tuple[LaneLoad, ...] = ()

    def cells(self) -> tuple[Cell, ...]:
        """All points, in the file's order. With `search` they are where the search begins."""
        return tuple(cell for kind in self.kinds for cell in self._cells(kind))

    def _cells(self, kind: Kind) -> Iterator[Cell]:
        if kind in GRID:
            yield from self._grid(kind)
        elif kind is Kind.SWARM:
            yield from self._swarm()
        elif kind in {Kind.OPEN, Kind.OVERLOAD}:
            yield from self._timed(kind)
        elif kind is Kind.SESSIONS:
            yield from self._sessions()
        elif kind is Kind.REPLAY:
            yield from self._replay()
        else:
            yield from self._mixed()

    def _grid(self, kind: Kind) -> Iterator[Cell]:
        for p in self.prompt_tokens:
            for o in self.output_tokens:
                for d in self.depth:
                    for c in self.concurrency:
                        yield Cell(workload=self, kind=kind, prompt=p, output=o, depth_tok=d, concurrency=c)

    def _swarm(self) -> Iterator[Cell]:
        for prefix in self.prefix_tokens:
            for p in self.prompt_tokens:
                for o in self.output_tokens:
                    base = Cell(workload=self, kind=Kind.SWARM, prompt=p, output=o, concurrency=1, prefix_tok=prefix)
                    if SwarmCell.SINGLE in self.cells_of_swarm:
                        yield replace(base, variant=SwarmCell.SINGLE.value)
                    for n in self.agents:
                        for which in self.cells_of_swarm:
                            if which is not SwarmCell.SINGLE:
                                yield replace(base, concurrency=n, variant=which.value)

    def _timed(self, kind: Kind) -> Iterator[Cell]:
        for p in self.prompt_tokens:
            for o in self.output_tokens:
                for rate in self.rate or ((1.0,) if kind is Kind.OPEN else (None,)):
                    for b in self.burstiness:
                        yield Cell(
                            workload=self,
                            kind=kind,
                            prompt=p,
                            output=o,
                            concurrency=self.cap or 0,
                            rate_rps=rate,
                            burstiness=b,
                        )

    def _sessions(self) -> Iterator[Cell]:
        for p in self.prompt_tokens:
            for o in self.output_tokens:
                for c in self.concurrency:
                    yield Cell(workload=self, kind=Kind.SESSIONS, prompt=p, output=o, concurrency=c)

    def _replay(self) -> Iterator[Cell]:
        prompt, output = self.prompt_tokens[0], self.output_tokens[0]
        base = Cell(workload=self, kind=Kind.REPLAY, prompt=prompt, output=output, concurrency=self.cap or 0)
        if self.is_timed_replay:
            yield replace(base, rate_rps=None)
            return
        for rate in self.rate or (1.0,):
            for b in self.burstiness:
                yield replace(base, rate_rps=rate, burstiness=b)

    @property
    def is_timed_replay(self) -> bool:
        """The recorded conversations have times of their own."""
        return bool(self.conversations) and all(c.at_s is not None for c in self.conversations)

    def _mixed(self) -> Iterator[Cell]:
        base = Cell(
            workload=self,
            kind=Kind.MIXED,
            prompt=self.lanes[0].prompt,
            output=self.lanes[0].output,
            concurrency=sum(lane.concurrency or 0 for lane in self.lanes),
        )
        for lane in self.lanes:
            yield replace(
                base,
                variant=f"alone-{lane.name}",
                prompt=lane.prompt,
                output=lane.output,
                concurrency=lane.concurrency or 0,
            )
        yield replace(base, variant="together")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One point.

    Attributes:
        prompt, output: Lengths of each prompt (a swarm agent's own question; a session's turn) and answer.
        depth_tok: Context before the prompt, in the grid.
        concurrency: Users at the same time; agents; an open loop's cap, 0 without.
        prefix_tok: A swarm's shared prefix.
    """

    workload: Workload
    kind: Kind
    prompt: Lengths
    output: Lengths
    concurrency: int
    depth_tok: int = 0
    variant: str = ""
    rate_rps: float | None = None
    burstiness: float = 1.0
    prefix_tok: int = 0

    @property
    def prompt_tok(self) -> int:
        return self.prompt.typical

    @property
    def output_tok(self) -> int:
        return self.output.typical

    @property
    def id(self) -> str:
        """The file's name in a record."""
        sizes = f"p{self.prompt.label}-o{self.output.label}"
        if self.kind in GRID:
            depth = f"-d{self.depth_tok}" if self.depth_tok else ""
            variant = f"-{self.variant}" if self.variant else ""
            return f"{self.kind.value}{variant}-{sizes}{depth}-c{self.concurrency}"
        if self.kind is Kind.SWARM:
            return f"swarm-{self.variant}-x{self.prefix_tok}-{sizes}-n{self.concurrency}"
        if self.kind in {Kind.OPEN, Kind.OVERLOAD, Kind.REPLAY}:
            without = "trace" if self.kind is Kind.REPLAY else "measured"
            rate = without if self.rate_rps is None else f"r{self.rate_rps:g}"
            shape = f"-b{self.burstiness:g}" if self.burstiness != 1.0 else ""
            cap = f"-cap{self.concurrency}" if self.concurrency else ""
            head = self.kind.value if self.kind is Kind.REPLAY else f"{self.kind.value}-{sizes}"
            return f"{head}-{rate}{shape}{cap}"
        if self.kind is Kind.SESSIONS:
            return f"sessions-{sizes}-t{self.workload.turns}-c{self.concurrency}"
        return f"mixed-{self.variant}"

    @property
    def sessions(self) -> int:
        """Conversations of one repeat, where the kind has them."""
        return self.workload.sessions or self.concurrency

    @property
    def requests_per_repeat(self) -> int:
        """Requests of phase `main` in one repeat; 0: as many as fit in its time."""
        w = self.workload
        if self.kind in {Kind.BATCH, Kind.SWARM}:
            return self.concurrency
        if self.kind in GRID:
            return self.concurrency * w.requests_per_user
        if self.kind is Kind.OPEN:
            return w.requests
        if self.kind is Kind.OVERLOAD:
            return sum(self.overload_requests)
        if self.kind is Kind.SESSIONS:
            return self.sessions * w.turns
        if self.kind is Kind.REPLAY:
            return sum(len(c.prompts) for c in w.conversations)
        return 0

    @property
    def overload_requests(self) -> tuple[int, int, int]:
        """Of an overload whose capacity is known: requests before it, in it, and after it."""
        w, rate = self.workload, self.rate_rps or 0.0
        calm = max(1, round(rate * CALM_SHARE * w.recovery_s))
        return calm, max(1, round(rate * w.factor * w.duration_s)), calm

    @property
    def is_length_fixed(self) -> bool:
        """Each answer must have exactly the asked number of tokens."""
        return self.workload.ignore_eos

    @property
    def slo(self) -> Slo | None:
        """What its requests are judged by: the search's where it is a level of one."""
        w = self.workload
        return w.search.slo if w.search else w.slo

    def load(self) -> dict[str, Json]:
        """Everything that was asked for, as plain values: what the record shows and the digest covers."""
        w = self.workload
        found: dict[str, Json] = {
            "id": self.id,
            "prompt_tokens": self.prompt.as_json(),
            "output_tokens": self.output.as_json(),
            "requests": self.requests_per_repeat,
            "repeats": w.repeats,
            "warmup": w.warmup,
            "temperature": w.temperature,
            "ignore_eos": w.ignore_eos,
            "must_finish": w.must_finish,
            "endpoint": w.endpoint,
            "thinking": w.thinking,
            "tools": w.tools,
            "seed": w.seed,
            "extra_body": dict(w.extra_body),
        }
        found |= _OF_KIND[self.kind](self)
        return found

    def load_digest(self) -> str:
        """Identity of the load alone; the pipeline adds image, argv and effective settings."""
        return digest(self.load())


def _grid_load(cell: Cell) -> dict[str, Json]:
    found: dict[str, Json] = {"concurrency": cell.concurrency, "depth": cell.depth_tok}
    return found | ({"depth_cache": cell.workload.depth_cache} if cell.depth_tok else {})


def _swarm_load(cell: Cell) -> dict[str, Json]:
    w = cell.workload
    return {"agents": cell.concurrency, "prefix_tokens": cell.prefix_tok, "cell": cell.variant, "prefixes": w.prefixes}


def _open_load(cell: Cell) -> dict[str, Json]:
    w = cell.workload
    return {
        "rate": cell.rate_rps,
        "burstiness": cell.burstiness,
        "cap": cell.concurrency or None,
        "ramp": dict(w.ramp) if w.ramp else None,
        "arrivals": w.arrivals,
    }


def _overload_load(cell: Cell) -> dict[str, Json]:
    w = cell.workload
    return _open_load(cell) | {"factor": w.factor, "duration_s": w.duration_s, "recovery_s": w.recovery_s}


def _sessions_load(cell: Cell) -> dict[str, Json]:
    w = cell.workload
    return {
        "concurrency": cell.concurrency,
        "sessions": cell.sessions,
        "turns": w.turns,
        "think_s": w.think_s,
        "history": w.history,
    }


def _replay_load(cell: Cell) -> dict[str, Json]:
    w = cell.workload
    return _open_load(cell) | {
        "prompt_tokens": None,
        "output_tokens": None,
        "file": w.file,
        "conversations": w.conversations_digest,
        "left_out": w.left_out,
        "cut": w.cut,
        "speed": w.speed,
        "think_s": w.think_s,
        "history": w.history,
    }


def _mixed_load(cell: Cell) -> dict[str, Json]:
    w = cell.workload
    return {"cell": cell.variant, "duration_s": w.duration_s, "lanes": [lane.as_json() for lane in w.lanes]}


_OF_KIND = {
    Kind.CLOSED: _grid_load,
    Kind.BATCH: _grid_load,
    Kind.INGEST: _grid_load,
    Kind.SWARM: _swarm_load,
    Kind.OPEN: _open_load,
    Kind.OVERLOAD: _overload_load,
    Kind.SESSIONS: _sessions_load,
    Kind.REPLAY: _replay_load,
    Kind.MIXED: _mixed_load,
}
