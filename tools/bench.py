"""`make bench`: what gate0's own machinery costs and how exact it is, beside its peers in the same run.

    engine    the bare load engine, aiohttp and httpx, chunk by chunk (bench_engine.py)
    peers     closed loops of `gate0 sweep`, vLLM's bench, llama-benchy, GuideLLM and AIPerf, each by its own
              command line
    events    the same with several tokens an event: what each tool's words come to then
    open      arrivals at a fixed rate (bench_open.py)
    startup   `gate0 --help` against `python -c pass`
    flags     a command line against every flag list, in a fresh process (bench_flags.py)
    report    10,000 cells with a million requests as a page (bench_report.py)
    deploy    tools/bench_deploy.py, where the lab runs

All against the mock in a process of its own, whose true times are known for every answer. The mock keeps to one core, a
client to another; this program shares the mock's. Where other jobs share the machine read the ratios; the targets are
judged by the rounds in which they took little of the client's core, if there was one.
The peers are installed under .parts/peers when first needed; their results of the last run stay in .parts/peers/out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

CHECKOUT = Path(__file__).resolve().parent.parent
if str(CHECKOUT) not in sys.path:  # run as a script: its own folder is there, the checkout is not
    sys.path.insert(0, str(CHECKOUT))

from tools import bench_closed, bench_engine, bench_flags, bench_open, bench_report  # noqa: E402
from tools.bench_install import VERSIONS  # noqa: E402
from tools.bench_mock import MOCK_CORE, keep_to, say  # noqa: E402
from tools.bench_peers import CLIENTS, Client, gate0_program  # noqa: E402
from tools.bench_show import Target  # noqa: E402
from tools.vllm_parts import VLLM_VERSION  # noqa: E402

SECTIONS = ("engine", "peers", "events", "open", "startup", "flags", "report", "deploy")
PEER_SECTIONS = {"peers", "events", "open"}
STREAMS, QUICK_STREAMS = (32, 128, 256), (32,)
ROUNDS = 3
TOKENS_PER_EVENT, EVENT_STREAMS = 4, 32
OPEN_S, OPEN_SHORT_S, QUICK_OPEN_S = 60.0, 15.0, 10.0
TTFT_LIMITS_MS = {32: 0.5, 128: 1.0}
COST_STREAMS, COST_LIMIT_TOK_PER_S = 256, 80_000
CALM_SHARE = 0.05
EVENT_LIMIT, RATE_LIMIT, LATE_LIMIT, SHAPE_LIMIT = 0.01, 0.005, 0.01, 0.1
HELP_LIMIT_MS = 150


Run = TypeVar("Run", bench_closed.Measured, bench_open.Arrivals)


@dataclass(slots=True)
class Findings:
    """What a run has found so far."""

    targets: list[Target] = field(default_factory=list)
    sections: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def calm(runs: Sequence[Run]) -> list[Run]:
    """Those during which other jobs left the client its core; all, where none had it."""
    return [r for r in runs if r.others <= CALM_SHARE] or list(runs)


def median_of(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


def run_engine(found: Findings, args: argparse.Namespace) -> None:
    rounds = bench_engine.measure(args.streams)
    print("\n" + "\n".join(bench_engine.lines(rounds)))
    found.sections["engine"] = [asdict(r) for r in rounds]
    own = [r for r in rounds if r.client == "gate0" and r.streams == COST_STREAMS]
    found.targets.append(_cost_target("bare engine", median_of(r.tok_per_s_per_core for r in own)))


def _warn_if_busy(found: Findings, own: Sequence[Run]) -> None:
    busy = [r.others for r in own if r.others > CALM_SHARE]
    if busy:
        told = f"{len(busy)} of gate0's {len(own)} runs, up to {max(busy):.0%}"
        found.notes.append(f"other jobs took more than {CALM_SHARE:.0%} of the client's core in {told}")


def _cost_target(what: str, value: float | None) -> Target:
    name = f"{what}, tokens/s of a core at {COST_STREAMS} streams"
    return Target(name=name, value=value, limit=COST_LIMIT_TOK_PER_S, is_floor=True)


def run_peers(found: Findings, args: argparse.Namespace) -> None:
    runs, failed = bench_closed.measure(args.able, args.streams, rounds=args.rounds)
    print("\n" + "\n".join([*bench_closed.lines(runs), *_failures(args.unable | failed)]))
    found.sections["peers"] = {"runs": [asdict(r) for r in runs], "failed": args.unable | failed}
    own = [r for r in runs if r.client == "gate0"]
    _warn_if_busy(found, own)
    for streams, limit in TTFT_LIMITS_MS.items():
        error = median_of(abs(r.ttft_error_ms) for r in calm([r for r in own if r.streams == streams]))
        name = f"gate0 sweep, error of the mean TTFT at {streams} streams"
        found.targets.append(Target(name=name, value=error, limit=limit, unit=" ms"))
    cost = median_of(r.tok_per_s_per_core for r in own if r.streams == COST_STREAMS)
    found.targets.append(_cost_target("gate0 sweep", cost))


def run_events(found: Findings, args: argparse.Namespace) -> None:
    runs, failed = bench_closed.measure(args.able, (EVENT_STREAMS,), rounds=1, tokens_per_event=TOKENS_PER_EVENT)
    print("\n" + "\n".join([*bench_closed.event_lines(runs, args.able), *_failures(args.unable | failed)]))
    found.sections["events"] = {"runs": [asdict(r) for r in runs], "failed": args.unable | failed}
    own = [r for r in runs if r.client == "gate0"]
    tpot = median_of(abs(e) for r in own if (e := r.tpot_error) is not None)
    errors = {"TPOT": tpot, "tok/s": median_of(abs(r.rate_error) for r in own)}
    for word, error in errors.items():
        name = f"gate0 sweep, error of {word} with {TOKENS_PER_EVENT} tokens an event"
        found.targets.append(_percent(name, error, EVENT_LIMIT))


def _percent(name: str, value: float | None, limit: float) -> Target:
    return Target(name=name, value=None if value is None else value * 100, limit=limit * 100, unit=" %")


def run_open(found: Findings, args: argparse.Namespace) -> None:
    long_s, short_s = (QUICK_OPEN_S, QUICK_OPEN_S) if args.quick else (OPEN_S, OPEN_SHORT_S)
    has_vllm = any(client.name == "vllm" for client in args.able)
    runs, failed = bench_open.measure(duration_s=long_s, short_s=short_s, has_vllm=has_vllm)
    print("\n" + "\n".join(bench_open.lines(runs, failed)))
    found.sections["open"] = {"runs": [asdict(r) for r in runs], "failed": failed}
    own = [r for r in runs if r.client == "gate0"]
    _warn_if_busy(found, own)
    plain = [r for r in own if r.asked_burstiness == 1.0]
    at = f"gate0 sweep at {bench_open.RATE_RPS:g} req/s"
    found.targets.append(_percent(f"{at}, error of the rate", median_of(abs(r.rate_error) for r in plain), RATE_LIMIT))
    found.targets.append(
        _percent(f"{at}, late sends", median_of(r.late for r in plain if r.late is not None), LATE_LIMIT)
    )
    spread = median_of(abs(r.dispersion - 1) for r in plain)
    found.targets.append(Target(name=f"{at}, dispersion index off 1 by", value=spread, limit=SHAPE_LIMIT))
    for asked in (0.5, 2.0):
        error = median_of(abs(r.burstiness / asked - 1) for r in own if r.asked_burstiness == asked)
        found.targets.append(_percent(f"{at}, burstiness {asked:g} seen, error", error, SHAPE_LIMIT))


def _failures(failed: dict[str, str]) -> list[str]:
    return [f"  not measured: {key}: {why}" for key, why in failed.items()]


def run_startup(found: Findings, args: argparse.Namespace) -> None:
    say("start-up")
    bare_ms = median_ms([sys.executable, "-c", "pass"])
    help_ms = median_ms([gate0_program(), "--help"])
    more = help_ms - bare_ms
    print("\nstart-up, median of 10")
    print(f"  python -c pass {bare_ms:6.0f} ms\n  gate0 --help   {help_ms:6.0f} ms   {more:.0f} ms more")
    found.sections["startup"] = {"python_ms": bare_ms, "gate0_help_ms": help_ms}
    found.targets.append(Target(name="gate0 --help, more than python", value=more, limit=HELP_LIMIT_MS, unit=" ms"))


def median_ms(command: Sequence[str], times: int = 10) -> float:
    """Wall time of a command, median, ms."""
    walls = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=60)
        walls.append((time.perf_counter() - start) * 1000)
    return statistics.median(walls)


def run_flags(found: Findings, args: argparse.Namespace) -> None:
    say("flag check")
    measured = bench_flags.measure(times=3 if args.quick else 11)
    print("\n" + "\n".join(bench_flags.lines(measured)))
    found.sections["flags"] = asdict(measured)
    found.targets.append(bench_flags.target(measured))


def run_report(found: Findings, args: argparse.Namespace) -> None:
    measured = bench_report.measure(bench_report.QUICK if args.quick else bench_report.FULL)
    print("\n" + "\n".join(bench_report.lines(measured)))
    found.sections["report"] = asdict(measured)
    found.targets += bench_report.targets(measured)
    found.notes += bench_report.notes(measured)


def run_deploy(found: Findings, args: argparse.Namespace) -> None:
    path = CHECKOUT / "tools" / "bench_deploy.py"
    say("deploy overhead")
    print("\ndeploy overhead")
    if not path.exists():
        print("  not measured: tools/bench_deploy.py is not there")
        return
    spec = importlib.util.spec_from_file_location("bench_deploy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()


RUN: dict[str, Callable[[Findings, argparse.Namespace], None]] = {
    "engine": run_engine,
    "peers": run_peers,
    "events": run_events,
    "open": run_open,
    "startup": run_startup,
    "flags": run_flags,
    "report": run_report,
    "deploy": run_deploy,
}


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    versions = {"vllm": VLLM_VERSION, **VERSIONS}
    busy = os.getloadavg()[0]
    return {"cores": os.cpu_count(), "load_average": busy, "python": platform.python_version(), "peers": versions}


def chosen(names: Sequence[str] | None) -> list[Client]:
    """gate0 always: the others are shown beside it."""
    return [client for client in CLIENTS if names is None or client.name in {"gate0", *names}]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="what gate0's own machinery costs, beside its peers")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=list(SECTIONS), help="sections to run")
    parser.add_argument("--clients", choices=[c.name for c in CLIENTS], nargs="+", help="peers to run beside gate0")
    parser.add_argument("--streams", type=int, nargs="+", help=f"default {' '.join(map(str, STREAMS))}")
    parser.add_argument("--rounds", type=int, help=f"of the closed loops; default {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="one round, 32 streams, 10 s of open loop, few records")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    args = parser.parse_args(argv)
    args.streams = args.streams or list(QUICK_STREAMS if args.quick else STREAMS)
    args.rounds = args.rounds or (1 if args.quick else ROUNDS)
    args.able, args.unable = [], {}
    if PEER_SECTIONS & set(args.only):
        args.able, args.unable = bench_closed.installed(chosen(args.clients))
    began_s, found = time.monotonic(), Findings()
    found.sections["machine"] = machine()
    told = ", ".join(f"{name} {version}" for name, version in found.sections["machine"]["peers"].items())
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; peers: {told}")
    for section in (s for s in SECTIONS if s in args.only):
        keep_to(MOCK_CORE if section in PEER_SECTIONS | {"engine"} else None)
        RUN[section](found, args)
    print("\ntargets")
    for target in found.targets:
        print(target.line())
    for note in found.notes:
        print(f"  note: {note}")
    say(f"done in {time.monotonic() - began_s:.0f} s")
    if args.json is not None:
        targets = [asdict(target) | {"is_met": target.is_met} for target in found.targets]
        args.json.write_text(json.dumps({**found.sections, "targets": targets, "notes": found.notes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
