"""How near a single stream comes to what the memory allows, and what batching adds to it.

limit = bandwidth of all hosts / bytes read for one token; bytes = active parameters x bits / 8, and where it is known
the cache of the context (half of the answer included). Projected: the bandwidth is stated, layers that a quantised
checkpoint keeps in 16 bits, activations and a draft model are left out, so the true limit is lower. Speculation writes
several tokens for one reading of the weights: tokens may pass the limit, steps may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.figures.server import number_of
from orchestrator.records.record import CellRecord, RunRecord
from orchestrator.report.model_facts import (
    BITS_A_BYTE,
    Bandwidth,
    ModelFacts,
    Precision,
    find_bandwidth,
    find_model,
    find_precision,
    kv_share,
)
from orchestrator.report.notebook.identity import Configuration, configurations_of
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.use_figures import DERIVED, MEASURED, USE_FIGURES, Told
from orchestrator.report.use_rules import context_tok

ENGINES = frozenset({"vllm", "sglang", "llamacpp"})
"""They speculate only where their profile says so."""
SINGLE_KINDS = ("closed", "batch", "sessions", "swarm")
DEEP_TOK, DEEPER = 8192, 4
"""A second cell is shown where its context is that long and so many times the first one's."""
GIGA = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Bytes read for one token. kv_bytes: None: not known, and left out."""

    weight_bytes: float
    kv_bytes: float | None

    @property
    def total_bytes(self) -> float:
        return self.weight_bytes + (self.kv_bytes or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Tokens that one step of a speculating server writes. told: None: it may speculate, and does not tell."""

    told: Told | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One single stream.

    Attributes:
        alone: Tokens/s while it decodes.
        bandwidth: Of one host; the limit is of all.
        steps: None: it does not speculate.
        unknown: What is missing for a limit.
    """

    configuration: Configuration
    row: RunRow
    point: PointRow
    alone: Told
    bandwidth: Bandwidth | None
    hosts: int
    model: ModelFacts | None
    precision: Precision | None
    reading: Reading | None
    steps: Steps | None
    unknown: tuple[str, ...]

    @property
    def limit_tok_per_s(self) -> float | None:
        """Projected; of a server without speculation."""
        if self.bandwidth is None or self.reading is None:
            return None
        return self.bandwidth.gb_per_s * self.hosts * GIGA / self.reading.total_bytes

    @property
    def share(self) -> float | None:
        """Of the limit, by tokens."""
        limit = self.limit_tok_per_s
        return None if limit is None else self.alone.value / limit

    @property
    def step_share(self) -> float | None:
        """Of the limit, by steps; None where tokens a step are not known."""
        if self.share is None or (self.steps is not None and self.steps.told is None):
            return None
        return self.share / (1.0 if self.steps is None or self.steps.told is None else self.steps.told.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """From one user to the peak of the same load: tokens/s together. Derived."""

    configuration: Configuration
    row: RunRow
    single: Told
    peak: Told
    point: PointRow

    @property
    def value(self) -> float:
        return self.peak.value / self.single.value


def roofs(rows: Sequence[RunRow]) -> tuple[Roof, ...]:
    """The fastest first: of each configuration the single stream with the shortest context, and a deep one."""
    found = [roof for c in configurations_of(rows) for roof in _roofs(c)]
    return tuple(sorted(found, key=lambda r: (-r.alone.value, r.configuration.name)))


def gains(rows: Sequence[RunRow]) -> tuple[Gain, ...]:
    """The largest first: of each configuration the load with most levels."""
    found = [g for c in configurations_of(rows) if (g := _gain(c)) is not None]
    return tuple(sorted(found, key=lambda g: (-g.value, g.configuration.name)))


def _roofs(configuration: Configuration) -> Iterator[Roof]:
    row, points = next(((r, p) for r in configuration.rows if (p := _singles(r))), (None, []))
    if row is None:
        return
    first = points[0]
    yield _roof(configuration, row, first)
    deep = points[-1]
    context = context_tok(deep.figures.cell)
    if context >= DEEP_TOK and context >= DEEPER * context_tok(first.figures.cell) and deep is not first:
        yield _roof(configuration, row, deep)


def _singles(row: RunRow) -> list[PointRow]:
    """Valid ones with a speed, by context."""
    found = [
        p
        for p in row.points
        if p.figures.cell.concurrency == 1
        and p.figures.cell.kind in SINGLE_KINDS
        and p.figures.is_valid
        and _alone(p) is not None
    ]
    return sorted(found, key=lambda p: (context_tok(p.figures.cell), p.figures.cell.kind, p.figures.cell.id))


def _alone(point: PointRow) -> Told | None:
    return USE_FIGURES["each"].read(point)


def _roof(configuration: Configuration, row: RunRow, point: PointRow) -> Roof:
    run = row.run
    alone = _alone(point)
    assert alone is not None
    model, precision = find_model(run), find_precision(run)
    bandwidths = [find_bandwidth(host) for host in run.hosts]
    bandwidth = bandwidths[0] if bandwidths and None not in bandwidths else None
    reading = None if model is None or precision is None else _reading(run, point.figures.cell, model, precision)
    missing = (("bandwidth", bandwidth), ("active parameters", model), ("precision", precision))
    return Roof(
        configuration=configuration,
        row=row,
        point=point,
        alone=alone,
        bandwidth=bandwidth,
        hosts=max(1, len(run.hosts)),
        model=model,
        precision=precision,
        reading=reading,
        steps=_steps(run, point),
        unknown=tuple(name for name, value in missing if value is None),
    )


def _reading(run: RunRecord, cell: CellRecord, model: ModelFacts, precision: Precision) -> Reading:
    kv, context = None, context_tok(cell)
    if model.kv_bytes_per_tok is not None and (context or not cell.source):
        kv = model.kv_bytes_per_tok * kv_share(run) * (context + cell.output_tok / 2)
    return Reading(weight_bytes=model.active_params * precision.bits / BITS_A_BYTE, kv_bytes=kv)


def _steps(run: RunRecord, point: PointRow) -> Steps | None:
    """By the server's counters; of a report by the share that it says was accepted of so many drafted."""
    found = point.figures.speculation
    if found is not None and found.acceptance_length is not None:
        value = found.acceptance_length
        return Steps(told=Told(value=value, low=value, high=value, method=MEASURED))
    if not run.profile or run.engine not in ENGINES:
        return Steps(told=None)
    serve = run.profile.get("serve")
    declared = serve.get("speculative") if isinstance(serve, Mapping) else None
    if not isinstance(declared, Mapping) or not declared:
        return Steps(told=None) if _has_own_words(run) else None
    drafted = number_of(declared, "num_tokens")
    stated = run.source.get("stated")
    accepted = stated.get("accepted_share") if isinstance(stated, Mapping) else None
    share = number_of(accepted, "value") if isinstance(accepted, Mapping) else None
    if drafted is None or share is None:
        return Steps(told=None)
    value = 1 + share * drafted
    return Steps(told=Told(value=value, low=value, high=value, method=DERIVED))


def _has_own_words(run: RunRecord) -> bool:
    """The engine's own flags may speculate too."""
    flags, args = run.profile.get("flags"), run.profile.get("args")
    words = [*(flags if isinstance(flags, Mapping) else ()), *(args if isinstance(args, Sequence) else ())]
    return any("spec" in str(w) or "draft" in str(w) for w in words)


def _gain(configuration: Configuration) -> Gain | None:
    """Of the newest run that has a load at one user and at more; of a swarm its single agent and the primed ones."""
    for row in configuration.rows:
        loads: dict[object, list[tuple[PointRow, Told]]] = {}
        for point in row.points:
            cell, rate = point.figures.cell, USE_FIGURES["output"].read(point)
            if rate is not None and point.figures.is_valid and _is_of_gain(cell):
                loads.setdefault(_load(cell), []).append((point, rate))
        able = [part for part in loads.values() if len(part) > 1 and _single(part) is not None]
        if able:
            part = max(able, key=len)
            single = _single(part)
            assert single is not None
            point, peak = max(part, key=lambda pair: pair[1].value)
            return Gain(configuration=configuration, row=row, single=single, peak=peak, point=point)
    return None


def _is_of_gain(cell: CellRecord) -> bool:
    is_like = cell.kind != "swarm" or cell.variant in ("single", "primed")
    return cell.kind in SINGLE_KINDS and cell.concurrency > 0 and is_like


def _single(part: Sequence[tuple[PointRow, Told]]) -> Told | None:
    return next((rate for point, rate in part if point.figures.cell.concurrency == 1 and rate.value > 0), None)


def _load(cell: CellRecord) -> tuple[object, ...]:
    variant = cell.variant if cell.kind != "swarm" else ""
    sizes = (cell.prefix_tok, cell.prompt_tok, cell.output_tok, cell.depth_tok)
    return cell.workload, cell.kind, variant, *sizes, cell.vantage
