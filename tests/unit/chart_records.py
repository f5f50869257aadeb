"""Records for the pictures' tests: loads of known speed, on disk as a sweep writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.records.record import CellRecord, RequestRecord, RunRecord
from orchestrator.records.store import Store, StoredCell, StoredRun
from tests.unit.test_report import run

S = 1_000_000_000
GAP_NS = S
START = datetime(2026, 11, 30, 8, 0, 0, tzinfo=UTC)
REPEATS = (0.99, 1.0, 1.01)
"""How fast each repeat is, as a factor."""
CHAT = {"name": "chat", "ttft_s": 1.0, "share": 0.95, "from": "schedule"}


def closed(
    users: int,
    tok_per_s: float,
    ttft_s: float,
    *,
    repeats: Sequence[float] = REPEATS,
    rounds: int = 2,
    output_tok: int = 100,
    cached_tok: int | None = None,
    guard: str = "",
    failed: int = 0,
    **cell: Any,
) -> StoredCell:
    """Each user sends `rounds` requests, one after the other; a repeat makes `tok_per_s` times its factor in all.

    Args:
        failed: Requests of the first repeat that end with HTTP 500 and give no token.
    """
    requests: list[RequestRecord] = []
    spans, laps, offset = [], [], 0
    for repeat, factor in enumerate(repeats):
        each_ns = round(users * output_tok / (tok_per_s * factor) * S)
        for index in range(users * rounds):
            at = offset + index // users * each_ns
            broken = repeat == 0 and index < failed
            requests.append(_request(repeat, index, (at, at + round(ttft_s * S), at + each_ns), output_tok, cached_tok))
            if broken:
                requests[-1] = replace(
                    requests[-1], failure="http_5xx", http_status=500, first_token_ns=None, last_token_ns=None,
                    events=(), output_tok=None,
                )  # fmt: skip
        end = offset + rounds * each_ns
        spans.append((offset, end))
        laps.append(_lap(repeat, offset, end))
        offset = end + GAP_NS
    values: dict[str, Any] = {
        "workload": "concurrency",
        "kind": "closed",
        "concurrency": users,
        "prompt_tok": 128,
        "output_tok": output_tok,
        "repeats": len(repeats),
        "repeats_done": len(repeats),
        "requests_per_repeat": users * rounds,
        "digest": "d",
        "spans_ns": tuple(spans),
        "laps": tuple(laps),
        "started_at": stamp(0),
        "guards": ({"name": guard, "message": "broken on purpose"},) if guard else (),
        **cell,
    }
    values.setdefault("id", "{kind}-p{prompt_tok}-o{output_tok}-c{concurrency}".format_map(values))
    return StoredCell(cell=CellRecord(**values), requests=tuple(requests))


def opened(rate_rps: float, ttft_s: float, wait_s: float, *, n: int = 60, cap: int = 4, **cell: Any) -> StoredCell:
    """One request every 1 / rate; each waits `wait_s` at the cap."""
    requests = []
    for index in range(n):
        due = round(index / rate_rps * S)
        sent = due + round(wait_s * S)
        found = _request(0, index, (sent, sent + round(ttft_s * S), sent + 2 * S), 20)
        requests.append(replace(found, scheduled_ns=due, ready_ns=sent))
    values: dict[str, Any] = {
        "id": f"open-r{rate_rps:g}",
        "workload": "arrivals",
        "kind": "open",
        "concurrency": cap,
        "prompt_tok": 128,
        "output_tok": 20,
        "repeats": 1,
        "requests_per_repeat": n,
        "digest": "d",
        "rate_rps": rate_rps,
        "burstiness": 1.0,
        "laps": (_lap(0, 0, requests[-1].end_ns or 0),),
        **cell,
    }
    return StoredCell(cell=CellRecord(**values), requests=tuple(requests))


def swarm(agents: int, variant: str, tok_per_s: float, *, shared: int = 1000, cached: int = 800) -> StoredCell:
    """`agents` on `shared` tokens, of which each found `cached` in the cache."""
    found = closed(
        agents,
        tok_per_s,
        1.0,
        rounds=1,
        cached_tok=cached,
        workload="agents",
        kind="swarm",
        variant=variant,
        prefix_tok=shared,
        id=f"swarm-{variant}-n{agents}",
    )
    requests = tuple(replace(r, prompt_tok=shared + 100, shared_tok=shared) for r in found.requests)
    return StoredCell(cell=found.cell, requests=requests)


def stated(users: int, **figures: Mapping[str, Any]) -> StoredCell:
    """A cell of another tool without requests."""
    cell = CellRecord(
        id=f"c{users}",
        workload="report",
        kind="closed",
        concurrency=users,
        prompt_tok=128,
        output_tok=256,
        repeats=1,
        requests_per_repeat=0,
        digest="d",
        vantage="unknown",
        source={"tool": "transcript/x"},
        stated=figures,
    )
    return StoredCell(cell=cell, requests=())


def write(folder: Path, name: str, cells: Sequence[StoredCell], **changes: Any) -> StoredRun:
    """The run on disk; its profile's digest is its name."""
    record: RunRecord = run(name, **{"profile_digest": f"digest-{name}", **changes})
    writer = Store(folder).new_run(name)
    writer.write_run(record)
    for c in cells:
        writer.write_cell(c.cell, c.requests)
    return Store(folder).find(str(folder / name))


def tell(stored: StoredRun, lines: Sequence[Mapping[str, Any]]) -> None:
    """Lines of telemetry."""
    writer = Store(stored.directory.parent).new_run(stored.run.id)
    for line in lines:
        writer.append_line("telemetry.jsonl", line)


def stamp(at_s: float) -> str:
    """UTC, so many seconds after the first repeat's clock was started."""
    at = START + timedelta(seconds=at_s)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _lap(repeat: int, start_ns: int, end_ns: int) -> dict[str, Any]:
    """As a sweep writes it: begun 0.4 s before its clock, ended 0.2 s after the last answer."""
    length_s = (end_ns - start_ns) / S
    return {
        "repeat": repeat,
        "order": repeat,
        "offset_ns": start_ns,
        "started_at": stamp(start_ns / S - 0.4),
        "duration_s": 0.4 + length_s + 0.2,
        "span_ns": [start_ns, end_ns],
        "phases": [{"name": "main", "epoch_ns": 5_000 * S + start_ns, "start_ns": start_ns}],
    }


def _request(
    repeat: int, index: int, stamps: tuple[int, int, int], output_tok: int, cached_tok: int | None = None
) -> RequestRecord:
    """`stamps`: sent, first token, end."""
    sent, first, end = stamps
    step = (end - first) // max(1, output_tok - 1)
    events = tuple((first + i * step, 1) for i in range(output_tok))
    return RequestRecord(
        repeat=repeat,
        index=index,
        scheduled_ns=sent,
        ready_ns=sent,
        sent_ns=sent,
        first_event_ns=first,
        first_token_ns=first,
        first_answer_ns=first,
        last_token_ns=events[-1][0],
        end_ns=end,
        events=events,
        http_status=200,
        prompt_tok=128,
        output_tok=output_tok,
        cached_tok=cached_tok,
        nonce="n",
        track=index,
    )
