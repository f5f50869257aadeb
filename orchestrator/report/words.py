"""What the tables say of a run and of a load, the same in every layout."""

from __future__ import annotations

from orchestrator.report.series import Series, SeriesLine
from orchestrator.report.tables import RunRow


def caption(series: Series) -> str:
    """How a table of configurations is to be read, all but how a layout marks the best."""
    vantage = f"load from {series.vantage} unless said."
    if series.family.matrix is None:
        words = f"{series.family.caption} {vantage[0].upper()}{vantage[1:]}"
    else:
        words = (
            f"{series.family.matrix.of}, by users at once; {vantage} ± is half the 95 % interval over repeats. First "
            "token and what follows it: at the highest level with a valid figure."
        )
    return f"{words} Struck figures broke the guard that is named."


def vantage_words(line: SeriesLine) -> str:
    """Empty when the load ran from where the table's did."""
    return f"load from {', '.join(line.other_vantages)}: not compared" if line.other_vantages else ""


def engine_words(row: RunRow) -> str:
    return f"{row.run.engine} {row.run.engine_version or ''}".strip()


def host_words(row: RunRow) -> str:
    return ", ".join(str(h.get("name")) for h in row.run.hosts) or ("not told" if row.run.source else "")
