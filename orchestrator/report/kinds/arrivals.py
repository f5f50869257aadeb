"""Loads that come by the clock: open loops, recordings, overloads. What people wait comes first, from the schedule."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.figures.cell import CellFigures
from orchestrator.figures.open_loop import OpenFigures
from orchestrator.figures.overload import OverloadFigures
from orchestrator.figures.stats import Percentiles
from orchestrator.report.columns import Axis, Column, Family, Line, never
from orchestrator.report.kinds.common import CACHED, GOOD, OUTPUT, PROMPT, RATE, SLO, latency, own_seconds
from orchestrator.report.kinds.sessions import BY_TURN
from orchestrator.report.text import DASH, between, duration, number, rate, seconds, share, times

SHORT = "sched."


def asked_rps(figures: CellFigures) -> float | None:
    """Requests/s that were to come: an overload asks for `factor` times its capacity."""
    asked, factor = figures.cell.rate_rps, figures.cell.load.get("factor")
    if asked is None or figures.cell.kind != "overload" or not isinstance(factor, int | float):
        return asked
    return asked * factor


def _asked(line: Line) -> str:
    asked = asked_rps(line.figures)
    if asked is None:
        return "trace" if line.cell.kind == "replay" else DASH
    return f"{asked:g} conv." if is_conversations(line.figures) else f"{asked:g}"


def is_conversations(figures: CellFigures) -> bool:
    """The rate asked for is that of conversations, whose later turns come when they may: more requests than that."""
    return figures.sessions is not None and len(figures.sessions.turns) > 1


def _achieved(line: Line) -> str:
    """`0.298`: by first bytes sent; of another tool's point what it states nowhere."""
    found = line.figures.open
    return DASH if found is None else rate(found.sent_rps)


def _achieved_share(line: Line) -> str:
    asked, found = asked_rps(line.figures), line.figures.open
    if is_conversations(line.figures):
        return DASH
    asked = asked if asked is not None or found is None else found.scheduled_rps
    return DASH if not asked or found is None or found.sent_rps is None else share(found.sent_rps / asked, 1)


def _of(write: Callable[[OpenFigures], str]) -> Callable[[Line], str]:
    return lambda line: DASH if line.figures.open is None else write(line.figures.open)


def _late(found: OpenFigures) -> str:
    return share(found.late_share, 1)


def _dispersion(found: OpenFigures) -> str:
    """`0.98 (Poisson 0.75-1.29)`."""
    if found.dispersion is None:
        return DASH
    low, high = found.dispersion.interval.low, found.dispersion.interval.high
    return f"{found.dispersion.index:.2f} (Poisson {low:.2f}-{high:.2f})"


def _dispersion_narrow(line: Line) -> str:
    found = line.figures.open
    return DASH if found is None or found.dispersion is None else f"{found.dispersion.index:.2f}"


def _peak(line: Line) -> str:
    return DASH if line.figures.concurrency is None else str(line.figures.concurrency.peak)


def _goodput(line: Line) -> str:
    found = line.figures.goodput
    return DASH if found is None or found.requests_per_s is None else rate(found.requests_per_s.mean)


def _burst(line: Line) -> str:
    shape = line.cell.burstiness
    return DASH if shape is None else f"{shape:g}"


def _scheduled(figures: CellFigures) -> Percentiles | None:
    return None if figures.cell.source else figures.ttft_scheduled_ms


def _queue(figures: CellFigures) -> Percentiles | None:
    """None where no cap held requests back."""
    return figures.queue_wait_ms if figures.cell.concurrency else None


def _schedule_column(shown: str) -> Column:
    return Column(
        head=f"TTFT from schedule {shown} (s)",
        short=f"TTFT s\n{SHORT} {shown}",
        words=own_seconds(_scheduled, shown),
        group="waited",
    )


def _queue_column(shown: str) -> Column:
    return Column(
        head=f"queue at the cap {shown} (s)",
        short=f"queue\ns {shown}",
        words=own_seconds(_queue, shown),
        group="waited",
        is_optional=True,
    )


def _dispatch_column(shown: str) -> Column:
    return Column(
        head=f"TTFT from dispatch, queue left out, {shown} (s)",
        short=f"dispatch\nonly {shown}",
        words=latency("ttft_ms", shown),
        group="waited",
        is_aside=True,
    )


BURSTINESS = Axis(
    column=Column(head="Burstiness", short="burst.", words=_burst, group="lead", is_struck=never),
    title=lambda cell: "" if cell.burstiness in (None, 1.0) else f"burstiness {cell.burstiness:g}",
)
CAP = Axis(
    column=Column(
        head="Cap", short="cap", words=lambda line: str(line.cell.concurrency or "none"), group="lead", is_struck=never
    ),
    title=lambda cell: f"at most {cell.concurrency} at once" if cell.concurrency else "",
)
ASKED = Column(head="Asked (req/s)", short="asked\nreq/s", words=_asked, group="lead", is_struck=never)
ACHIEVED = Column(head="Achieved (req/s)", short="achieved\nreq/s", words=_achieved, group="came")
ACHIEVED_SHARE = Column(head="of asked", short="of\nasked", words=_achieved_share, group="came")
LATE = Column(head="Sent late", short="sent\nlate", words=_of(_late), group="came")
WORST_LATE = Column(head="Latest (ms)", short="latest\nms", words=_of(lambda f: number(f.worst_late_ms)), group="came")
PEAK = Column(head="Peak at once", short="peak at\nonce", words=_peak, group="came")
DISPERSION = Column(
    head="Dispersion", short="disper-\nsion", words=_of(_dispersion), narrow=_dispersion_narrow, group="came"
)
GOODPUT = Column(head="Goodput (req/s)", short="goodput\nreq/s", words=_goodput, group="slo", is_optional=True)
E2E_SCHEDULED = Column(
    head="E2E from schedule p50 (s)",
    short=f"E2E s\n{SHORT} p50",
    words=own_seconds(lambda f: None if f.cell.source else f.e2e_scheduled_ms, "p50"),
    group="e2e",
)
WAITED = (
    *(_schedule_column(shown) for shown in ("p50", "p95", "p99")),
    *(_queue_column(shown) for shown in ("p50", "p95")),
    *(_dispatch_column(shown) for shown in ("p50", "p95")),
)
CAME = (ACHIEVED, ACHIEVED_SHARE, LATE, WORST_LATE, PEAK, DISPERSION)


def _order(line: Line) -> tuple[str | float, ...]:
    cell = line.cell
    return (
        cell.prompt_tok,
        cell.output_tok,
        -1.0 if cell.burstiness is None else cell.burstiness,
        cell.concurrency,
        -1.0 if cell.rate_rps is None else cell.rate_rps,
    )


FROM_SCHEDULE = (
    "From schedule: from when a request was due, which is what people wait. From dispatch: from the first byte sent; "
    "the wait at the cap is not in it."
)

OPEN = Family(
    name="open",
    axes=(PROMPT, OUTPUT, BURSTINESS, CAP),
    lead=(ASKED,),
    columns=(*WAITED, E2E_SCHEDULED, GOODPUT, SLO, GOOD, *CAME, RATE, CACHED),
    caption=f"{FROM_SCHEDULE} Dispersion: 1 for Poisson arrivals, in whose interval 95 % of them lie.",
    order=_order,
)
REPLAY = Family(
    name="replay",
    axes=(BURSTINESS, CAP),
    lead=(ASKED,),
    columns=(*OPEN.columns, *BY_TURN),
    caption=OPEN.caption,
    order=_order,
)


def _over(write: Callable[[OverloadFigures], str]) -> Callable[[Line], str]:
    return lambda line: DASH if line.figures.overload is None else write(line.figures.overload)


def _recovery(found: OverloadFigures) -> str:
    """`41 s`, `never`, or a dash where it cannot be told."""
    if found.has_recovered is None:
        return DASH
    return duration(found.recovery_s) if found.has_recovered else "never"


def _slope(found: OverloadFigures) -> str:
    if found.outstanding is None:
        return DASH
    return f"{rate(found.outstanding.per_s)} {between(found.outstanding.interval)}"


def _calm(line: Line) -> str:
    return DASH if line.cell.rate_rps is None else f"{line.cell.rate_rps:.3g}"


def _factor(line: Line) -> str:
    factor = line.cell.load.get("factor")
    return times(float(factor)) if isinstance(factor, int | float) else DASH


OVERLOAD = Family(
    name="overload",
    axes=(PROMPT, OUTPUT, BURSTINESS, CAP),
    lead=(
        Column(head="Capacity (req/s)", short="capacity\nreq/s", words=_calm, group="lead", is_struck=never),
        Column(head="Overload", short="over-\nload", words=_factor, group="lead", is_struck=never),
    ),
    columns=(
        Column(head="Verdict", short="verdict", words=_over(lambda f: f.verdict.value), group="verdict", is_text=True),
        Column(
            head="TTFT p95 before (s)",
            short="TTFT p95\nbefore s",
            words=_over(lambda f: seconds(f.ttft_p95_before_ms)),
            group="tail",
        ),
        Column(
            head="TTFT p95 in it (s)",
            short="TTFT p95\nin it s",
            words=_over(lambda f: seconds(f.ttft_p95_main_ms)),
            group="tail",
        ),
        Column(head="Tail growth", short="tail\ngrowth", words=_over(lambda f: times(f.tail_growth)), group="tail"),
        Column(head="Recovered after", short="recov-\nered", words=_over(_recovery), group="tail"),
        Column(head="Piles up (req/s)", short="piles up\nreq/s", words=_over(_slope), group="slope"),
        Column(head="Refused", short="refused", words=_over(lambda f: share(f.refused_share, 1)), group="fate"),
        Column(
            head="Waited out", short="waited\nout", words=_over(lambda f: share(f.waited_out_share, 1)), group="fate"
        ),
        Column(head="Broken", short="broken", words=_over(lambda f: share(f.broken_share, 1)), group="fate"),
        Column(
            head="Failed after",
            short="failed\nafter",
            words=_over(lambda f: share(f.after_failed_share, 1)),
            group="fate",
        ),
        *WAITED,
        GOODPUT,
        SLO,
        GOOD,
        ACHIEVED,
        ACHIEVED_SHARE,
        LATE,
        PEAK,
    ),
    caption=(
        f"Half the capacity, then the overload, then half again; all figures but 'before' and 'after' are of the "
        f"overload. Queues: all are served, ever later; sheds: some are refused at once; breaks: requests fail, or the "
        f"calm load is no longer served; copes: nothing grew. {FROM_SCHEDULE}"
    ),
    order=_order,
)
