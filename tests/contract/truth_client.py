"""Whole cells against a mock in this process, each answer paired with what was true of it.

Both sides read one monotonic clock. A record is paired with a truth by what cannot be otherwise: the mock had the
request after our first byte left and before it wrote the first token, which our kernel had no earlier; prompt and
answer have the lengths that were told; and where the server tells its own times of the request (vLLM's `metrics`,
llama.cpp's `timings`), they are that truth's to the nanosecond, so that there is exactly one.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Self

import orjson
import yaml

from orchestrator.engines.registry import load_engines
from orchestrator.errors import TargetError
from orchestrator.figures.cell import CellFigures, cell_figures
from orchestrator.mock.counters import Counters, Truth
from orchestrator.mock.reading import with_values
from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import Flavour, MockSettings
from orchestrator.mock.told import drafts_tok
from orchestrator.pipeline.claims import metric_names
from orchestrator.records.record import RequestRecord
from orchestrator.sweep.child import CellLoad, new_loop
from orchestrator.sweep.loading import load_workload
from orchestrator.sweep.outcome import CellOutcome, Lap, cell_outcome, shifted
from orchestrator.sweep.process import LoadProcess
from orchestrator.sweep.prompts import Counter, PromptBook
from orchestrator.sweep.runner import CellRunner, LoadTarget
from orchestrator.sweep.spec import LoadSpec
from orchestrator.sweep.workload import Cell, Workload
from orchestrator.values import Secret
from orchestrator.wire.chat import Claims
from orchestrator.wire.target import HttpTarget

CASES = Path(__file__).parents[1] / "cases" / "truth"
OF_MACHINE = frozenset({"client_lag", "late_sends"})
"""Guards that judge this machine: a shared one may break them whatever the code does."""
TEMPLATE_TOK = MockSettings().template_head_tok + MockSettings().template_tail_tok
WORDS = Counter(count=lambda text: TEMPLATE_TOK + len(text.split()), is_cheap=True, overhead_tok=TEMPLATE_TOK)
"""What the mock would say of a prompt if it were asked."""
MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthCase:
    """A server, a workload, and what is right.

    Attributes:
        settings: The mock's switches. target: `LoadTarget` fields over what the engine's traits say.
        workload: As its file would say it; `file` is looked for beside the cases.
        is_counted: The server is asked for prompt lengths; false: it gets not one request but the load's.
        lies: Counts that the server tells wrong.
        expect: By cell id: what `tests.contract.truth_figures` finds under each name.
    """

    name: str
    claim: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    backend: str = "own"
    is_counted: bool = True
    lies: Sequence[str] = ()
    expect: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def mock(self) -> MockSettings:
        return with_values(MockSettings(), self.settings)

    def load(self) -> Workload:
        """The workload, through the door that files come through."""
        document = {"name": "truth", **self.workload}
        if "file" in document:
            document["file"] = str(CASES / document["file"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "workload.yaml"
            path.write_text(yaml.safe_dump(document, sort_keys=False))
            return load_workload(str(path), search=())


def read_case(path: Path) -> TruthCase:
    return TruthCase(name=path.stem, **yaml.safe_load(path.read_text()))


def cases_in(folder: str) -> tuple[TruthCase, ...]:
    return tuple(read_case(path) for path in sorted((CASES / folder).glob("*.yaml")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One answer. `record` is on the mock's own clock; `others`: how many more truths it could have been."""

    record: RequestRecord
    truth: Truth
    others: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun:
    """A cell as it was measured, and as it was.

    Attributes:
        pairs: Of each recorded request with a token. rest: truths of what is not recorded.
        counters: The mock's own when the cell was over; it may have counted other cells too.
    """

    case: TruthCase
    cell: Cell
    outcome: CellOutcome
    pairs: tuple[Pair, ...]
    rest: tuple[Truth, ...]
    counters: Counters

    @property
    def figures(self) -> CellFigures:
        return cell_figures(self.outcome.record, self.outcome.requests)

    @property
    def guards(self) -> list[str]:
        """Those that do not judge this machine."""
        return sorted(g["name"] for g in self.outcome.record.guards if g["name"] not in OF_MACHINE)

    @property
    def truths(self) -> tuple[Truth, ...]:
        """Of all that the load sent, warm-up included."""
        return (*(p.truth for p in self.pairs), *self.rest)

    def pairs_of(self, phase: str = "main") -> list[Pair]:
        return [p for p in self.pairs if p.record.phase == phase]


Process = Callable[[LoadSpec], LoadProcess]


def run_case(case: TruthCase, *, process: Process = LoadProcess) -> Mapping[str, CellRun]:
    """All cells of a case, one after the other on one server, as a sweep's first round runs them."""
    found = {}
    with MockServer(case.mock()) as server:
        target = target_of(server, **case.target)
        with runner_of(case, process=process) as runner:
            for cell in case.load().cells():
                found[cell.id] = run_cell_with_truth(server, target, cell, runner, case)
    return found


@cache
def run_kind(name: str) -> Mapping[str, CellRun]:
    """A case of `kinds`, run once for all tests that look at it."""
    return run_case(read_case(CASES / "kinds" / f"{name}.yaml"))


def runner_of(case: TruthCase, *, process: Process = LoadProcess, rng: Random | None = None) -> CellRunner:
    book = None if case.is_counted else PromptBook(WORDS, seed=1, rng=rng)
    return CellRunner(backend=case.backend, book=book, process=process, rng=rng)


def run_cell_with_truth(
    server: MockServer, target: LoadTarget, cell: Cell, runner: CellRunner, case: TruthCase
) -> CellRun:
    laps: list[Lap] = []
    pairs: list[Pair] = []
    rest: list[Truth] = []
    for repeat in range(cell.workload.repeats):
        before = len(server.truths)
        lap = runner(target, cell, repeat)
        settle(server)
        found, left = paired(lap, server.truths[before:], lies=case.lies)
        laps.append(lap)
        pairs += found
        rest += left
    outcome = cell_outcome(target, cell, laps)
    return CellRun(
        case=case,
        cell=cell,
        outcome=outcome,
        pairs=tuple(pairs),
        rest=tuple(rest),
        counters=replace(server.counters),
    )


def settle(server: MockServer) -> None:
    """Return when the mock's loop is through with the turn that ended the last answer (a dead mock is)."""
    control = HttpTarget(server.base_url, server.settings.model, Claims(engine="endpoint"))
    with contextlib.closing(control), contextlib.suppress(TargetError):
        control.get_json("/v1/models")


def target_of(server: MockServer, **changes: Any) -> LoadTarget:
    """As the road makes it for this flavour, its fields found to be taken."""
    settings = server.settings
    traits = load_engines()[settings.flavour.value].traits
    # SGLang refuses ids in streamed chats: the probe finds that out.
    stream = {} if settings.flavour is Flavour.SGLANG else traits.stream_fields
    plain: dict[str, Any] = {
        "stream_fields": stream,
        "length_fields": traits.length_fields,
        "metrics": metric_names(traits.metrics),
        "engine": settings.flavour.value,
        "slots": settings.slots,
        "slots_source": "server",
        "cache_unit_tok": settings.block_tok,
        "kv_tok": settings.cache_blocks * settings.block_tok or None,
        "is_speculative": drafts_tok(settings) > 0,
    }
    if "api_key" in changes:
        changes["api_key"] = Secret("KEY", changes["api_key"])
    return LoadTarget(**{"base_url": server.base_url, "model": settings.model} | plain | changes)


def epoch_ns(lap: Lap) -> int:
    phases = lap.record["phases"]
    assert isinstance(phases, list)
    epochs = {int(p["epoch_ns"]) for p in phases}
    assert len(epochs) == 1, "one clock for all phases of a repeat"
    return epochs.pop()


def paired(lap: Lap, truths: Sequence[Truth], *, lies: Sequence[str] = ()) -> tuple[list[Pair], list[Truth]]:
    """Each request of the lap that had a token with its truth; what is left of the truths.

    Raises:
        AssertionError: One has none, or two would need the same.
    """
    records = [shifted(r, epoch_ns(lap)) for r in lap.requests if r.first_token_ns is not None]
    could = [[i for i, t in enumerate(truths) if could_be(r, t, lies)] for r in records]
    chosen = matched(could)
    missing = [(records[n], len(could[n])) for n in range(len(records)) if n not in chosen]
    assert not missing, f"no truth for {missing[0][0]} (of {missing[0][1]} that it could be) among {truths}"
    pairs = [Pair(record=r, truth=truths[chosen[n]], others=len(could[n]) - 1) for n, r in enumerate(records)]
    return pairs, [t for i, t in enumerate(truths) if i not in chosen.values()]


def could_be(r: RequestRecord, truth: Truth, lies: Sequence[str]) -> bool:
    assert r.sent_ns is not None
    assert r.first_token_ns is not None
    assert r.last_token_ns is not None
    seen_ns = r.first_token_ns - (r.stamp_lag_ns or 0)
    in_order = r.sent_ns <= truth.received_ns and truth.first_ns <= seen_ns and truth.last_ns <= r.last_token_ns
    told = [(r.prompt_tok, truth.prompt_tok, "prompt_tok"), (r.output_tok, truth.output_tok, "output_tok")]
    is_same = all(ours is None or name in lies or ours == true for ours, true, name in told)
    return in_order and is_same and all(r.server[k] == v for k, v in told_times(truth).items() if k in r.server)


def told_times(truth: Truth) -> dict[str, float]:
    """What an engine says of this answer's times, by its own names."""
    prefill_ms, decode_ms = (truth.first_ns - truth.started_ns) / MS, (truth.last_ns - truth.first_ns) / MS
    return {
        "queue_time_ms": (truth.started_ns - truth.received_ns) / MS,
        "time_to_first_token_ms": prefill_ms,
        "generation_time_ms": decode_ms,
        "prompt_ms": prefill_ms,
        "predicted_ms": decode_ms,
    }


def matched(could: Sequence[Sequence[int]]) -> dict[int, int]:
    """The most rows that can each have a number of their own out of those they could have (augmenting paths)."""
    owner: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for number in could[row]:
            if number not in seen:
                seen.add(number)
                if number not in owner or place(owner[number], seen):
                    owner[number] = row
                    return True
        return False

    for row in range(len(could)):
        place(row, set())
    return {row: number for number, row in owner.items()}


class HereProcess(LoadProcess):
    """The load process without the process: the same spec as a line, the same messages as lines."""

    def __init__(self, spec: LoadSpec) -> None:
        self._line = spec.to_line()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def messages(self, is_cancelled: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        said: list[bytes] = []

        async def load() -> None:
            await CellLoad(LoadSpec.from_line(self._line), lambda message: said.append(orjson.dumps(message))).run()

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(load())
        for line in said:
            yield orjson.loads(line)
