"""Closed loops, batches and ingest: a grid of sizes and users."""

from __future__ import annotations

from orchestrator.report.columns import Column, Family, Line, Matrix
from orchestrator.report.kinds.common import (
    CACHED,
    DEPTH,
    E2E,
    GOOD,
    OUTPUT,
    PER_USER,
    PROMPT,
    RATE,
    SLO,
    TPOT,
    TTFT_P50,
    TTFT_P95,
    USERS,
    order,
    output_rate,
    output_value,
)
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH, duration, plus_minus, rate, share

READ = (
    "± is half the 95 % interval over repeats. TTFT, TPOT and E2E from the first byte sent; a dash is what was not "
    "measured, or a percentile that so few requests cannot give. Batch: the time for so many answers, derived from "
    "tok/s unless they really ran."
)


def _prefill(line: Line) -> str:
    found = line.point.prefill
    return DASH if found is None else f"{rate(found.tok_per_s)} ({found.method})"


def _prefill_narrow(line: Line) -> str:
    """`2310 slope`, `2310 server`: the method in full stands in the point's sheet."""
    found = line.point.prefill
    return DASH if found is None else f"{rate(found.tok_per_s)} {found.method.partition(':')[0]}"


def _batch(point: PointRow) -> str:
    if point.batch_s is None:
        return DASH
    measured = " measured" if point.batch_kind == "measured" else ""
    return f"{duration(point.batch_s)} for {point.batch_answers}{measured}"


def _prompt_rate(point: PointRow) -> str:
    return plus_minus(point.figures.prompt_tok_per_s)


def _prompt_value(point: PointRow) -> float | None:
    return point.figures.prompt_tok_per_s.mean if point.figures.prompt_tok_per_s else None


def _documents(line: Line) -> str:
    return DASH if line.figures.ingest is None else plus_minus(line.figures.ingest.documents_per_h)


def _prefill_share(line: Line) -> str:
    found = line.figures.ingest
    if found is None or found.prefill_share is None:
        return DASH
    return f"{share(found.prefill_share, 1)} ({found.prefill_share_by})"


PREFILL = Column(
    head="Prefill tok/s",
    short="prefill\ntok/s",
    words=_prefill,
    narrow=_prefill_narrow,
    group="prefill",
    is_optional=True,
)
EFFICIENCY = Column(head="Efficiency", short="eff.", words=lambda line: share(line.point.efficiency), group="rate")
BATCH = Column(
    head="Batch (derived)",
    short="batch\n(derived)",
    words=lambda line: _batch(line.point),
    group="batch",
)
PROMPT_RATE = Column(
    head="Prompt tok/s", short="prompt\ntok/s", words=lambda line: _prompt_rate(line.point), group="prompt"
)
DOCUMENTS = Column(head="Documents/h", short="docs/h", words=_documents, group="prompt")
PREFILL_SHARE = Column(head="Time in prefill", short="time in\nprefill", words=_prefill_share, group="prefill share")

GRID = Family(
    name="grid",
    axes=(PROMPT, OUTPUT, DEPTH),
    lead=(USERS,),
    columns=(RATE, PER_USER, EFFICIENCY, PREFILL, CACHED, TTFT_P50, TTFT_P95, TPOT, E2E, BATCH, SLO, GOOD),
    caption=READ,
    order=order,
    matrix=Matrix(
        of="Output tokens per second, all users together",
        unit="tok/s",
        words=output_rate,
        value=output_value,
        beside=(PER_USER, PREFILL, SLO),
    ),
)
INGEST = Family(
    name="ingest",
    axes=(PROMPT, OUTPUT, DEPTH),
    lead=(USERS,),
    columns=(PROMPT_RATE, DOCUMENTS, PREFILL_SHARE, PREFILL, RATE, CACHED, TTFT_P50, TTFT_P95, E2E, SLO, GOOD),
    caption=f"{READ} Time in prefill: what no decode lever touches, by the server's times or by the client's.",
    order=order,
    matrix=Matrix(
        of="Prompt tokens per second, all users together",
        unit="prompt tok/s",
        words=_prompt_rate,
        value=_prompt_value,
        beside=(DOCUMENTS, PREFILL_SHARE, PREFILL, SLO),
    ),
)
