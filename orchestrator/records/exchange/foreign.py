"""What another tool measured, in our shapes: points with the figures it states and the stamps it kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import InputError
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.values import Json, digest

Stated = Mapping[str, Mapping[str, Json]]
"""Figures by our name: `{"ttft_ms": {"mean", "sd", "p50", …, "unit", "definition"}}`; a single number is "value"."""

UNCLASSIFIED = "unclassified"
"""Failure of a request whose tool does not say in our words how it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One benchmark point."""

    cell: CellRecord
    requests: tuple[RequestRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """All of one file.

    Attributes:
        tool: Slug, as in the definitions' tags (`vllm`, `llama-benchy`, `sglang`, …).
        title: As people call it (`vllm bench`).
        form: What the file was recognised as, in words.
        version: Of the tool; None when the file does not tell (vLLM's never does).
        created_at: UTC ISO-8601, as far as the file tells; else empty.
        extra: What of the file's head we have no word for.
        slug: Stands in the run's id; empty: the model does.
        note: What is known of every file of this form.
        run: Further fields of RunRecord that the file tells. source: further words of its `source`.
    """

    tool: str
    title: str
    form: str
    points: tuple[Point, ...]
    version: str | None = None
    engine: str = "unknown"
    engine_version: str | None = None
    model: str = ""
    image: str | None = None
    base_url: str | None = None
    created_at: str = ""
    extra: Mapping[str, Json] = field(default_factory=dict)
    slug: str = ""
    note: str = ""
    run: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Json] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`vllm bench`, `llama-benchy 0.4.0`."""
        return f"{self.title} {self.version}" if self.version else self.title


def make_point(
    *,
    tool: str,
    kind: str,
    concurrency: int,
    prompt_tok: float | None,
    output_tok: float | None,
    stated: Stated,
    requests: Sequence[RequestRecord] = (),
    definitions: Mapping[str, str] | None = None,
    extra: Mapping[str, Json] | None = None,
    **changes: Any,
) -> Point:
    """A point whose load is told by sizes and users; sizes are rounded means, 0 where the file tells none.

    Args:
        changes: Further fields of the cell; without a `workload` it stands under the tool's name.
    """
    load: dict[str, Json] = {"kind": kind, "c": concurrency, "p": round(prompt_tok or 0), "o": round(output_tok or 0)}
    more = {k: v for k, v in changes.items() if k in ("rate_rps", "depth_tok", "variant", "prefix_tok")}
    cell = CellRecord(
        id="",
        workload=changes.pop("workload", tool),
        kind=kind,
        concurrency=concurrency,
        prompt_tok=round(prompt_tok or 0),
        output_tok=round(output_tok or 0),
        repeats=changes.pop("repeats", 1),
        repeats_done=changes.pop("repeats_done", 1),
        requests_per_repeat=changes.pop("requests_per_repeat", len(requests)),
        digest=digest({**load, **more, "tool": tool}),
        vantage="unknown",
        stated=stated,
        definitions={**{k: str(v["definition"]) for k, v in stated.items()}, **(definitions or {})},
        source={"tool": tool, "extra": dict(extra or {})},
        **changes,
    )
    return Point(cell=cell, requests=tuple(requests))


def named(points: Sequence[Point], *, workload: str | None = None) -> tuple[Point, ...]:
    """The points with ids that are unique in the workload (`closed-p1024-o128-c8`, a second one `…-2`).

    Args:
        workload: The one that all stand under; None: each under its own.
    """
    seen: dict[tuple[str, str], int] = {}
    done = []
    for point in points:
        under, base = workload or point.cell.workload, _cell_id(point.cell)
        seen[under, base] = count = seen.get((under, base), 0) + 1
        name = base if count == 1 else f"{base}-{count}"
        done.append(replace(point, cell=replace(point.cell, id=name, workload=under)))
    return tuple(done)


def _cell_id(cell: CellRecord) -> str:
    words = [cell.kind, cell.variant, f"p{cell.prompt_tok}", f"o{cell.output_tok}"]
    words += [f"d{cell.depth_tok}"] if cell.depth_tok else []
    words += [f"r{cell.rate_rps:g}"] if cell.rate_rps is not None else []
    words += [f"c{cell.concurrency}"] if cell.concurrency else []
    return "-".join(w for w in words if w)


def scalar(value: float | None, unit: str, definition: str) -> dict[str, Json] | None:
    """A figure that is one number; None when it was not told."""
    return None if value is None else {"value": value, "unit": unit, "definition": definition}


def told(figures: Mapping[str, Mapping[str, Json] | None]) -> dict[str, Mapping[str, Json]]:
    """Only what was told."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def same_length(where: str, lists: Mapping[str, Sequence[Any] | None]) -> int:
    """How many requests the lists that are there tell of.

    Raises:
        InputError: They disagree.
    """
    lengths = {name: len(values) for name, values in lists.items() if values is not None}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(f"{where}: the lists of its requests have different lengths: {shown}")
    return next(iter(lengths.values()), 0)
