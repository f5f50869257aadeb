"""llama-benchy's CSV (Spark Arena's too) and Markdown, from its JSON report."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

COLUMNS = ("t_s", "t_s_req", "peak_ts", "peak_ts_req", "ttfr", "est_ppt", "e2e_ttft")
PREFILL = {
    "t_s": "pp_throughput",
    "t_s_req": "pp_req_throughput",
    "ttfr": "ttfr",
    "est_ppt": "est_ppt",
    "e2e_ttft": "e2e_ttft",
}
DECODE = {
    "t_s": "tg_throughput",
    "t_s_req": "tg_req_throughput",
    "peak_ts": "peak_throughput",
    "peak_ts_req": "peak_req_throughput",
}
HEADS = {
    "t_s": "t/s",
    "t_s_req": "t/s (req)",
    "peak_ts": "peak t/s",
    "peak_ts_req": "peak t/s (req)",
    "ttfr": "ttfr (ms)",
    "est_ppt": "est_ppt (ms)",
    "e2e_ttft": "e2e_ttft (ms)",
}
PER_USER = ("t_s_req", "peak_ts_req")


def lines_of(report: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Mapping[str, Any] | None]]]:
    """Each test's name and its metrics by column: prefill, then decode, of each benchmark.

    The names' grammar: `pp2048`, `tg32`, `… @ d4096` at a depth, `ctx_pp @ d4096` for the phase that loads the context,
    and ` (c4)` behind all as soon as one of the report has more than one user.
    """
    for run in report["benchmarks"]:
        users = f" (c{run['concurrency']})" if report["max_concurrency"] > 1 else ""
        depth = f" @ d{run['context_size']}" if run["context_size"] or run["is_context_prefill_phase"] else ""
        names = ("ctx_pp", "ctx_tg")
        if not run["is_context_prefill_phase"]:
            names = (f"pp{run['prompt_size']}", f"tg{run['response_size']}")
        for name, columns in zip(names, (PREFILL, DECODE), strict=True):
            found = {column: run.get(columns[column]) if column in columns else None for column in COLUMNS}
            if found["t_s"] or found["peak_ts"]:
                yield f"{name}{depth}{users}", found


def csv_text(report: Mapping[str, Any]) -> str:
    head = ["model", "test_name", *(f"{c}_{word}" for c in COLUMNS for word in ("mean", "std"))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(head)
    for name, metrics in lines_of(report):
        values = [(metrics[c] or {}).get(word) for c in COLUMNS for word in ("mean", "std")]
        writer.writerow([report["model"], name, *values])
    return out.getvalue()


def markdown_text(report: Mapping[str, Any]) -> str:
    is_many = report["max_concurrency"] > 1
    columns = [c for c in COLUMNS if is_many or c not in PER_USER]
    heads = {**HEADS, "t_s": "t/s (total)" if is_many else "t/s"}
    lines = [["model", "test", *(heads[c] for c in columns)], [":---", *("---:" for _ in range(len(columns) + 1))]]
    lines += [
        [str(report["model"]).replace("|", "\\|"), name, *(_shown(metrics[c]) for c in columns)]
        for name, metrics in lines_of(report)
    ]
    table = "\n".join(_line(cells) for cells in lines)
    foot = f"llama-benchy's form, by {report['version']}\ndate: {report['timestamp']} | latency mode: none"
    return f"{table}\n\n{foot}\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(metric: Mapping[str, Any] | None) -> str:
    return "" if metric is None else f"{metric['mean']:.2f} ± {metric['std']:.2f}"
