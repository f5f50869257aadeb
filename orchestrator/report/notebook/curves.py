"""The pictures: curves over users, distributions, rates, swarms, and one repeat request by request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator.report.charts.curves import Load, loads
from orchestrator.report.charts.latency import latency_charts
from orchestrator.report.charts.rates import rate_chart
from orchestrator.report.charts.swarm import swarm_chart
from orchestrator.report.charts.timeline import timeline_charts
from orchestrator.report.charts.users import user_charts
from orchestrator.report.notebook.book import Book, Chart, Section

MOST_LOADS = 10
"""Loads that the page has pictures of; `gate0 report --charts` draws all."""


def section(book: Book) -> Section | None:
    known = loads(book)
    shown = most_told(known, MOST_LOADS)
    found = _unique([c for load in shown for c in load_charts(load, book)])
    lines = _unique(list(timeline_charts(book)))
    if not found and not lines:
        return None
    left_out = [load.title for load in known if load not in shown]
    return Section(
        id="curves",
        title="Curves",
        template="curves.html.j2",
        data={"loads": found, "timelines": lines, "left_out": left_out},
        charts=(*found, *lines),
    )


def all_charts(book: Book) -> tuple[Chart, ...]:
    """Every picture that the records give, in the order of the loads."""
    return _unique([*(c for load in loads(book) for c in load_charts(load, book)), *timeline_charts(book)])


def load_charts(load: Load, book: Book) -> Iterator[Chart]:
    """All pictures of one load."""
    if load.kind not in ("open", "overload", "replay", "swarm", "mixed"):
        yield from user_charts(load)
    for maker in (rate_chart, swarm_chart):
        if (found := maker(load)) is not None:
            yield found
    yield from latency_charts(load, book.raw)


def most_told(known: Sequence[Load], most: int) -> list[Load]:
    """The loads with most configurations, then with most points; in their own order."""
    ranked = sorted(known, key=lambda load: (-load.known, -sum(len(c.points) for c in load.curves)))
    kept = ranked[:most]
    return [load for load in known if load in kept]


def _unique(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """Ids that are names of files and anchors: a second one of a name gets a number."""
    seen: dict[str, int] = {}
    found = []
    for chart in charts:
        seen[chart.id] = seen.get(chart.id, 0) + 1
        found.append(chart if seen[chart.id] == 1 else replace(chart, id=f"{chart.id}-{seen[chart.id]}"))
    return tuple(found)
