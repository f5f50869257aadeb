"""What the cells of a table say, the same in every layout."""

from __future__ import annotations

from orchestrator.report import foreign
from orchestrator.report.series import Series, SeriesLine
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.text import DASH, duration, number, seconds, share

POINT_HEAD = (
    *("Load", "Users", "tok/s", "sd", "per user", "efficiency", "TTFT p50 (s)", "TTFT p95 (s)", "TPOT p50 (ms)"),
    *("E2E p50 (s)", "batch (derived)", "good", "notes"),
)


def point_words(row: PointRow) -> list[str]:
    """The cells of one point's line, in the order of `POINT_HEAD`."""
    f = row.figures
    rate = f.output_tok_per_s
    return [
        f"{f.cell.workload} {f.cell.kind} {f.cell.prompt_tok}/{f.cell.output_tok}",
        str(f.cell.concurrency),
        foreign.marked(number(foreign.output_tok_per_s(f)), f.cell),
        number(rate.sd if rate else None, 2),
        number(f.per_user_tok_per_s),
        share(row.efficiency),
        foreign.marked(seconds(foreign.latency_ms(f, "ttft_ms", "p50")), f.cell),
        foreign.marked(seconds(foreign.latency_ms(f, "ttft_ms", "p95")), f.cell),
        foreign.marked(number(foreign.latency_ms(f, "tpot_ms", "p50")), f.cell),
        foreign.marked(seconds(foreign.latency_ms(f, "e2e_ms", "p50")), f.cell),
        _batch(row),
        foreign.good_words(f),
        "; ".join(row.notes),
    ]


def caption(series: Series) -> str:
    """How a table of configurations is to be read, all but how a layout marks the best."""
    return (
        f"Output tokens per second, all users together, by users at once; load from {series.vantage} unless said. "
        "First token and cached share: at the highest level with a valid figure. Struck figures broke a guard."
    )


def first_token(line: SeriesLine) -> str:
    """`0.51 at 8`: the median and the level that it is of."""
    if line.top is None:
        return DASH
    figures = line.top.figures
    text = foreign.marked(seconds(foreign.latency_ms(figures, "ttft_ms", "p50")), figures.cell)
    return f"{text} at {figures.cell.concurrency}"


def cached(line: SeriesLine) -> str:
    return share(line.top.figures.cached_share, 1) if line.top else DASH


def vantage_words(line: SeriesLine) -> str:
    """Empty when the load ran from where the table's did."""
    return f"load from {', '.join(line.other_vantages)}: not compared" if line.other_vantages else ""


def engine_words(row: RunRow) -> str:
    return f"{row.run.engine} {row.run.engine_version or ''}".strip()


def host_words(row: RunRow) -> str:
    return ", ".join(str(h.get("name")) for h in row.run.hosts) or ("not told" if row.run.source else "")


def _batch(row: PointRow) -> str:
    if row.batch_s is None:
        return DASH
    measured = " measured" if row.batch_kind == "measured" else ""
    return f"{duration(row.batch_s)} for {row.batch_answers}{measured}"
