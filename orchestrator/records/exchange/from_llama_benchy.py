"""llama-benchy JSON, and the CSV that it and Spark Arena write; batches of c at once, mean and deviation only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.errors import InputError
from orchestrator.records.exchange.foreign import Foreign, Point, make_point, told
from orchestrator.records.exchange.parts import NOT_A_RESULT, Part
from orchestrator.values import Json

METRICS = {
    "prefill_tok_per_s": ("pp_throughput", "tok/s"),
    "prefill_per_user_tok_per_s": ("pp_req_throughput", "tok/s"),
    "total_decode_tok_per_s": ("tg_throughput", "tok/s"),
    "decode_tok_per_s": ("tg_req_throughput", "tok/s"),
    "peak_tok_per_s": ("peak_throughput", "tok/s"),
    "peak_per_user_tok_per_s": ("peak_req_throughput", "tok/s"),
    "ttfr_ms": ("ttfr", "ms"),
    "est_ppt_ms": ("est_ppt", "ms"),
    "ttft_ms": ("e2e_ttft", "ms"),
}
"""Our name -> theirs and the unit. `ttft_ms` is their e2e_ttft; their ttfr counts the role chunk too."""

COLUMNS = {
    "pp": {"prefill_tok_per_s": "t_s", "prefill_per_user_tok_per_s": "t_s_req"}
    | {"ttfr_ms": "ttfr", "est_ppt_ms": "est_ppt", "ttft_ms": "e2e_ttft"},
    "tg": {"total_decode_tok_per_s": "t_s", "decode_tok_per_s": "t_s_req"}
    | {"peak_tok_per_s": "peak_ts", "peak_per_user_tok_per_s": "peak_ts_req"},
}
"""Of a CSV line, by its test: our name -> their column, without `_mean` and `_std`."""

TEST = re.compile(r"(ctx_)?(pp|tg)(\d+)?(?: @ d(\d+))?(?: \(c(\d+)\))?")
TOOL = "llama-benchy"


def is_such(document: Mapping[str, Any]) -> bool:
    runs = document.get("benchmarks")
    return isinstance(runs, list) and bool(runs) and isinstance(runs[0], Mapping) and "response_size" in runs[0]


def is_line(row: Mapping[str, Any]) -> bool:
    return {"test_name", "t_s_mean"} <= set(row)


def read(parts: Sequence[Part]) -> Foreign:
    head = parts[0]
    latency_ms, mode = head.find_number("latency_ms"), head.find_text("latency_mode")
    points = tuple(_point(run, f"latency mode {mode}, {latency_ms} ms") for run in head.parts("benchmarks"))
    return Foreign(
        tool=TOOL,
        title=TOOL,
        form="llama-benchy JSON",
        points=points,
        version=head.find_text("version"),
        model=head.find_text("model") or "",
        created_at=(head.find_text("timestamp") or "").replace(" ", "T"),
        extra={**head.rest(), "latency_ms": latency_ms, "latency_mode": mode},
    )


def _point(run: Part, latency: str) -> Point:
    stated = told({ours: _metric(run, theirs, unit) for ours, (theirs, unit) in METRICS.items()})
    users = run.count("concurrency")
    per_batch: Any = stated.get("prefill_tok_per_s", {}).get("values") or ()
    return make_point(
        tool=TOOL,
        kind="batch",
        concurrency=users,
        prompt_tok=run.count("prompt_size"),
        output_tok=run.count("response_size"),
        depth_tok=run.count("context_size"),
        variant="context" if run.raw.get("is_context_prefill_phase") else "",
        stated=stated,
        repeats=max(1, len(per_batch)),
        repeats_done=max(1, len(per_batch)),
        requests_per_repeat=users,
        definitions={"clock": f"llama-benchy: perf_counter at the socket's read; {latency}"},
        extra=run.rest(but=("is_context_prefill_phase",)),
    )


def _metric(run: Part, name: str, unit: str) -> dict[str, Json] | None:
    metric = run.find_part(name)
    if metric is None:
        return None
    values = metric.find_numbers("values") or []
    return {
        "mean": metric.number("mean"),
        "sd": metric.find_number("std"),
        "n": len(values),
        "values": values,
        "unit": unit,
        "definition": f"{TOOL}/{name}",
    }


def read_lines(rows: Sequence[Part]) -> Foreign:
    """The CSV: a `pp` line and the `tg` line after it of the same depth and users are one point."""
    points: list[Point] = []
    open_pp: tuple[Part, re.Match[str]] | None = None
    for row in rows:
        match = TEST.fullmatch(str(row.raw.get("test_name")))
        if match is None:
            raise InputError(
                f"{row.where}: line {_line(row)}: {row.raw.get('test_name')!r} is not a test name of llama-benchy",
                hint="like `pp2048 @ d4096 (c4)`",
            )
        if match[2] == "pp":
            points += [_line_point(open_pp, None)] if open_pp else []
            open_pp = (row, match)
            continue
        is_pair = open_pp is not None and _place(open_pp[1]) == _place(match)
        if open_pp is not None and not is_pair:
            points.append(_line_point(open_pp, None))
        points.append(_line_point(open_pp if is_pair else None, (row, match)))
        open_pp = None
    points += [_line_point(open_pp, None)] if open_pp else []
    return Foreign(
        tool=TOOL,
        title=TOOL,
        form="llama-benchy CSV",
        points=tuple(points),
        model=str(rows[0].raw.get("model") or ""),
    )


def _place(match: re.Match[str]) -> tuple[str | None, ...]:
    return match[1], match[4], match[5]


def _line_point(pp: tuple[Part, re.Match[str]] | None, tg: tuple[Part, re.Match[str]] | None) -> Point:
    lines = {"pp": pp, "tg": tg}
    match = next(found[1] for found in lines.values() if found)
    stated = {}
    for test, found in lines.items():
        if found is None:
            continue
        for ours, column in COLUMNS[test].items():
            stated[ours] = _cells(found[0], column, ours)
    return make_point(
        tool=TOOL,
        kind="batch",
        concurrency=int(match[5] or 1),
        prompt_tok=int(pp[1][3] or 0) if pp else 0,
        output_tok=int(tg[1][3] or 0) if tg else 0,
        depth_tok=int(match[4] or 0),
        variant="context" if match[1] else "",
        stated=told(stated),
        requests_per_repeat=int(match[5] or 1),
    )


def _cells(row: Part, column: str, ours: str) -> dict[str, Json] | None:
    mean, sd = (_number(row, f"{column}_{word}") for word in ("mean", "std"))
    theirs, unit = METRICS[ours]
    return None if mean is None else {"mean": mean, "sd": sd, "unit": unit, "definition": f"{TOOL}/{theirs}"}


def _number(row: Part, column: str) -> float | None:
    text = row.raw.get(column)
    if text in (None, ""):
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"{row.where}: line {_line(row)}: {column}: {text!r} is not a number", hint=NOT_A_RESULT
        ) from None


def _line(row: Part) -> int:
    """1-based, the head being line 1."""
    return int(row.path.strip("[]") or 0) + 2
