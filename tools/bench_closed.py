"""Closed loops of every client on one mock: what each says, what was true, and what a token cost it."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tools import bench_mock as truth
from tools.bench_install import OUT, environment, program
from tools.bench_meter import CommandFailed, Metered, run_metered
from tools.bench_mock import CLIENT_CORE, Answer, Mock, on_core, say
from tools.bench_peers import Asked, Client, Reported
from tools.bench_show import table

OUTPUT_TOK = 64
PER_STREAM = 2
DEADLINE_S = 150.0
SETTINGS: dict[str, Any] = {"ttft_s": 0.1, "step_s": 0.02, "slots": 1024, "prefix_caching": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run of one client.

    Attributes:
        load_us, all_us: Processor time per token of all its processes: from the first request that it counts to the
            last token, and on to its exit, with what it reckons and writes then. Its start is in neither.
        others: Share of the client's core that other jobs took meanwhile.
    """

    client: str
    streams: int
    tokens_per_event: int
    ttft_ms: float
    true_ttft_ms: float
    tpot_ms: float | None
    true_tpot_ms: float
    gap_ms: float | None
    true_gap_ms: float
    output_tok_per_s: float
    true_output_tok_per_s: float
    output_tok: int | None
    true_output_tok: int
    load_us: float
    all_us: float
    cpu_s: float
    wall_s: float
    others: float

    @property
    def ttft_error_ms(self) -> float:
        return self.ttft_ms - self.true_ttft_ms

    @property
    def tpot_error(self) -> float | None:
        return None if self.tpot_ms is None else self.tpot_ms / self.true_tpot_ms - 1

    @property
    def rate_error(self) -> float:
        return self.output_tok_per_s / self.true_output_tok_per_s - 1

    @property
    def tok_per_s_per_core(self) -> float:
        return 1e6 / self.load_us


def installed(clients: Sequence[Client]) -> tuple[list[Client], dict[str, str]]:
    """Those that can run here, and why the others cannot."""
    able: list[Client] = []
    unable: dict[str, str] = {}
    for client in clients:
        try:
            if client.name != "gate0":
                program(client.name)
        except CommandFailed as failure:
            unable[client.name] = str(failure)
            say(f"{client.name} cannot be installed here: {failure}")
        else:
            able.append(client)
    return able, unable


def measure(
    clients: Sequence[Client], streams: Sequence[int], *, rounds: int, tokens_per_event: int = 1
) -> tuple[list[Measured], dict[str, str]]:
    """Every client at every number of streams, `rounds` times, the clients taking turns; and what failed, why.

    Each higher number of streams has a round less, one at least: stalls show in the times of the lower ones first.
    """
    done: list[Measured] = []
    failed: dict[str, str] = {}
    with Mock(SETTINGS | {"tokens_per_event": tokens_per_event}) as mock:
        for number in range(rounds):
            for n in (n for i, n in enumerate(sorted(streams)) if number == 0 or number + i < rounds):
                for client in clients:
                    key = f"{client.name} at {n} streams, {tokens_per_event} tokens an event"
                    if key in failed:
                        continue
                    say(f"round {number + 1} of {rounds}: {key}")
                    try:
                        done.append(run_client(client, mock, n, tokens_per_event))
                    except (CommandFailed, KeyError, OSError, ValueError) as failure:
                        failed[key] = f"{type(failure).__name__}: {failure}"
                        say(f"{key}: {failed[key]}")
    return done, failed


def run_client(client: Client, mock: Mock, streams: int, tokens_per_event: int) -> Measured:
    """
    Raises:
        CommandFailed: It ended with an error, or too late.
        KeyError, OSError, ValueError: Its result is not there or not as it was.
    """
    folder = OUT / client.name / f"closed-c{streams}-k{tokens_per_event}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    asked = Asked(url=mock.base_url, streams=streams, per_stream=PER_STREAM, output_tok=OUTPUT_TOK)
    command = client.command(asked, folder)
    mock.take()
    meter = run_metered(
        on_core(CLIENT_CORE, command),
        log=folder / "log.txt",
        answer=folder / client.answer if client.answer else None,
        deadline_s=DEADLINE_S,
        env=environment(is_offline=client.is_offline),
    )
    reported = client.read(folder)
    seen = mock.take()
    (folder / "truth.json").write_text(json.dumps([asdict(answer) for answer in seen]))
    answers = truth.measured(seen, output_tok=OUTPUT_TOK, requests=reported.requests)
    if len(answers) != asked.requests:
        raise ValueError(f"it counts {reported.requests} answers, {asked.requests} were asked for")
    return _judged(client, asked, per_event=tokens_per_event, reported=reported, answers=answers, meter=meter)


def _judged(
    client: Client, asked: Asked, *, per_event: int, reported: Reported, answers: Sequence[Answer], meter: Metered
) -> Measured:
    tokens = sum(a.output_tok for a in answers)
    from_ns, to_ns = min(a.received_ns for a in answers), max(a.last_ns for a in answers)
    before_s = meter.at(from_ns).cpu_s
    true_rate = truth.decode_tok_per_s(answers, asked.streams) if client.is_batched else truth.run_tok_per_s(answers)
    return Measured(
        client=client.name,
        streams=asked.streams,
        tokens_per_event=per_event,
        ttft_ms=reported.ttft_ms,
        true_ttft_ms=truth.mean_ttft_ms(answers),
        tpot_ms=reported.tpot_ms,
        true_tpot_ms=truth.mean_tpot_ms(answers),
        gap_ms=reported.gap_ms,
        true_gap_ms=truth.mean_gap_ms(answers),
        output_tok_per_s=reported.output_tok_per_s,
        true_output_tok_per_s=true_rate,
        output_tok=reported.output_tok,
        true_output_tok=tokens,
        load_us=(meter.at(to_ns).cpu_s - before_s) / tokens * 1e6,
        all_us=(meter.end.cpu_s - before_s) / tokens * 1e6,
        cpu_s=meter.end.cpu_s,
        wall_s=meter.wall_s,
        others=meter.others_share(from_ns, to_ns),
    )


def median(group: Sequence[Measured], figure: Callable[[Measured], float]) -> float:
    return statistics.median(map(figure, group))


def _median_error(errors: Sequence[float | None]) -> str:
    known = [error for error in errors if error is not None]
    return f"{statistics.median(known):+.2%}" if known else "not told"


def grouped(runs: Sequence[Measured]) -> dict[tuple[int, str], list[Measured]]:
    """By streams and client, in the order of the first round."""
    groups: dict[tuple[int, str], list[Measured]] = {}
    for run in sorted(runs, key=lambda r: r.streams):
        groups.setdefault((run.streams, run.client), []).append(run)
    return groups


def lines(runs: Sequence[Measured]) -> list[str]:
    """The table of closed loops with one token an event."""
    if not runs:
        return ["closed loop: nothing measured"]
    groups = grouped(runs)
    head = (
        *("streams", "client", "TTFT error ms", "least .. most", "TPOT error", "tok/s error", "tokens counted"),
        *("us/token load", "to exit", "tokens/s/core", "x gate0's cost", "command s", "others on the core", "rounds"),
    )
    rows = [_row(streams, name, group, groups.get((streams, "gate0"))) for (streams, name), group in groups.items()]
    return [
        f"closed loop: {PER_STREAM} answers of {OUTPUT_TOK} tokens a stream, a step of {SETTINGS['step_s'] * 1000:.0f} "
        f"ms for all streams at once;",
        "each client's own command on a core of its own, the mock on the other; medians",
        *table(head, rows),
    ]


def _row(streams: int, name: str, group: Sequence[Measured], own: Sequence[Measured] | None) -> tuple[str, ...]:
    errors = [r.ttft_error_ms for r in group]
    load_us = median(group, lambda r: r.load_us)
    return (
        str(streams),
        name,
        f"{statistics.median(errors):.2f}",
        f"{min(errors):.2f} .. {max(errors):.2f}",
        _median_error([r.tpot_error for r in group]),
        _median_error([r.rate_error for r in group]),
        _counted(group[-1]),
        f"{load_us:.1f}",
        f"{median(group, lambda r: r.all_us):.1f}",
        f"{1e6 / load_us:,.0f}",
        f"{load_us / median(own, lambda r: r.load_us):.1f}" if own else "-",
        f"{median(group, lambda r: r.wall_s):.1f}",
        f"{median(group, lambda r: r.others):.0%}",
        str(len(group)),
    )


def event_lines(runs: Sequence[Measured], clients: Sequence[Client]) -> list[str]:
    """The table of answers whose events carry several tokens: what each tool's own figures come to."""
    if not runs:
        return ["several tokens an event: nothing measured"]
    named = {client.name: client for client in clients}
    head = (
        *("streams", "client", "ms per token, its", "said", "true", "error"),
        *("ms between events, its", "said", "true", "error", "tok/s said", "true", "error", "tokens counted"),
    )
    rows = []
    for (streams, name), group in grouped(runs).items():
        r, client = group[-1], named[name]
        gap = _against(client.gap_word, r.gap_ms, r.true_gap_ms)
        per_token = _against(client.tpot_word, r.tpot_ms, r.true_tpot_ms)
        rate = (f"{r.output_tok_per_s:,.0f}", f"{r.true_output_tok_per_s:,.0f}", f"{r.rate_error:+.2%}")
        rows.append((str(streams), name, *per_token, *gap, *rate, _counted(r)))
    return [f"{runs[0].tokens_per_event} tokens an event: what each tool's own figures come to", *table(head, rows)]


def _against(word: str | None, said: float | None, true: float) -> tuple[str, ...]:
    if word is None or said is None:
        return (word or "none", "null", f"{true:.3f}", "-")
    return (word, f"{said:.3f}", f"{true:.3f}", f"{said / true - 1:+.2%}")


def _counted(run: Measured) -> str:
    return "not told" if run.output_tok is None else f"{run.output_tok} of {run.true_output_tok}"
