"""`gate0 calibrate`: how wrong this machine's own clock is."""

from __future__ import annotations

import click

from orchestrator.cli.options import json_option, quiet_option


@click.command()
@click.option("--concurrency", metavar="N[,N]", help="streams at once to measure; default 1,8,32,64,128,256")
@click.option("--quick", is_flag=True, help="1, 8 and 32 streams, two rounds each: ten seconds")
@json_option
@quiet_option
def calibrate(*, concurrency: str | None, quick: bool, as_json: bool, quiet: bool) -> int:
    """Measure this machine's own client error against a mock server with known truth, and store it.

    Every later record carries it as the error bar of its latencies.
    """
    from orchestrator.cli.printer import Printer
    from orchestrator.pipeline import calibration

    printer = Printer(is_json=as_json, is_quiet=quiet)
    levels = _levels(concurrency) or (calibration.QUICK_LEVELS if quick else calibration.LEVELS)
    found = calibration.calibrate(
        levels,
        rounds=calibration.QUICK_ROUNDS if quick else calibration.ROUNDS,
        on_level=lambda n: printer.progress("1 stream" if n == 1 else f"{n} streams"),
    )
    path = calibration.store_calibration(found)
    head = (
        "streams",
        "requests",
        "TTFT error p50 (ms)",
        "p99",
        "dispatch p50",
        "stamp p50",
        "kernel lag p99",
        "us/token",
    )
    printer.table(head, [_row(level) for level in found.levels], right=range(len(head)))
    printer.answer(f"stored: {path}")
    printer.document({**found.as_json(), "file": str(path)})
    return 0


def _levels(text: str | None) -> tuple[int, ...]:
    from orchestrator.errors import InputError

    if text is None:
        return ()
    words = text.split(",")
    if not all(w.strip().isdigit() and 1 <= int(w) <= 4096 for w in words):
        raise InputError(f"--concurrency {text}: expected whole numbers from 1 to 4096", hint="for example 1,32,128")
    return tuple(sorted({int(w) for w in words}))


def _row(level: object) -> list[str]:
    from orchestrator.pipeline.calibration import Level
    from orchestrator.report.text import number

    assert isinstance(level, Level)
    lag = level.kernel_lag_ms or {}
    p99 = lag.get("p99")
    return [
        str(level.concurrency),
        str(level.requests),
        number(level.ttft_error_ms.p50, 2),
        number(level.ttft_error_ms.p95, 2),
        number(level.ttft_error_ms.worst, 2),
        number(level.dispatch_ms.p50, 2),
        number(level.stamp_ms.p50, 2),
        number(p99 if isinstance(p99, float) else None, 2),
        number(level.cost_us, 1),
    ]
