"""A synthetic results folder of any size, written as a sweep writes it: known loads, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from orchestrator.records.record import CellRecord, GateRecord, RequestRecord, RunRecord
from orchestrator.records.store import RUN_FILE, cell_stem

S = 1_000_000_000
LEVELS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96)
PROMPTS = (128, 512, 2048, 8192, 32768)
"""A closed loop of each prompt's length at each level: 50 cells a run."""
ENGINES = ("vllm", "sglang", "llamacpp")
MODELS = ("acme/Model-27B-NVFP4", "acme/Model-35B-A3B-FP8", "acme/Model-120B-MXFP4", "acme/Model-8B-Q8_0")
REPEATS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much there is. tokens: events of one request, one token each."""

    runs: int = 200
    cells: int = 50
    requests: int = 100
    tokens: int = 64

    @property
    def all_cells(self) -> int:
        return self.runs * self.cells

    @property
    def all_requests(self) -> int:
        return self.all_cells * self.requests


def write_store(root: Path, size: Size, *, seed: int = 7) -> int:
    """Write all runs; the bytes written."""
    written = 0
    for number in range(size.runs):
        drawn = random.Random(f"{seed} {number}")
        record = _run(number)
        folder = root / record.id
        written += _put(folder / RUN_FILE, orjson.dumps(record.as_json()))
        for name in ("prefix_cache", "coherence", "tool_call"):
            gate = GateRecord(name=name, status="pass", summary="3 of 3", evidence=({"sent": "2 + 2", "came": "4"},))
            written += _put(folder / "gates" / f"{name}.json", orjson.dumps(gate.as_json()))
        speed = drawn.uniform(8, 60)
        for cell, requests in _cells(size, speed, drawn):
            stem = folder / cell_stem(cell)
            lines = b"".join(orjson.dumps(r, option=orjson.OPT_APPEND_NEWLINE) for r in requests)
            written += _put(stem.with_name(f"{stem.name}.requests.jsonl"), lines)
            written += _put(stem.with_name(f"{stem.name}.json"), orjson.dumps(cell.as_json()))
    return written


def _put(path: Path, content: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(content)


def _run(number: int) -> RunRecord:
    engine, model = ENGINES[number % len(ENGINES)], MODELS[number % len(MODELS)]
    hosts = ("spark01",) if number % 5 else ("spark01", "spark02")
    day = f"{1 + number // 24 % 28:02d}"
    hour = f"{number % 24:02d}"
    return RunRecord(
        id=f"202611{day}T{hour}0000Z-profile-{number:04d}-{'+'.join(hosts)}-{number:06x}",
        status="passed",
        created_at=f"2026-11-{day}T{hour}:00:00.000Z",
        updated_at=f"2026-11-{day}T{hour}:59:00.000Z",
        profile_name=f"profile-{number:04d}",
        profile_title=f"{model.partition('/')[2]} + option {number}",
        profile_digest=f"{number:016x}",
        profile={"name": f"profile-{number:04d}", "engine": engine, "model": model, "serve": {"max_num_seqs": number}},
        profile_source=f"name: profile-{number:04d}\nengine: {engine}\nmodel: {model}\n",
        invocation=("gate0", "run", f"profile-{number:04d}", "--on", ",".join(hosts)),
        command=tuple(f"docker run --rm {engine} --model {model} --max-num-seqs {number}" for _ in hosts),
        engine=engine,
        engine_version="0.31.0",
        image=f"{engine}:latest",
        image_digest=f"sha256:{number:064x}",
        model=model,
        hosts=tuple({"name": name} for name in hosts),
        suite="gate0",
        is_suite_unmodified=True,
        gates={"prefix_cache": "pass", "coherence": "pass", "tool_call": "pass"},
        duration_s=3540.0,
        tool_version="0.1.0",
    )


def _cells(size: Size, speed: float, drawn: random.Random) -> Iterator[tuple[CellRecord, Iterator[dict[str, Any]]]]:
    for place in range(size.cells):
        prompt_tok = PROMPTS[place // len(LEVELS) % len(PROMPTS)]
        again = place // (len(LEVELS) * len(PROMPTS))
        users = LEVELS[place % len(LEVELS)]
        tpot_ns = round(S / speed * (1 + users / 24) * drawn.uniform(0.97, 1.03))
        ttft_ns = round(S * (0.05 + prompt_tok / 4000) * (1 + users / 16))
        each_ns = ttft_ns + (size.tokens - 1) * tpot_ns
        a_repeat = max(1, size.requests // REPEATS)
        rounds = -(-a_repeat // users)
        length = rounds * each_ns + S
        spans = tuple((i * length, i * length + rounds * each_ns) for i in range(REPEATS))
        cell = CellRecord(
            id=f"closed-p{prompt_tok}-o{size.tokens}-c{users}",
            workload="concurrency" if not again else f"concurrency-{again}",
            kind="closed",
            concurrency=users,
            prompt_tok=prompt_tok,
            output_tok=size.tokens,
            repeats=REPEATS,
            repeats_done=REPEATS,
            requests_per_repeat=a_repeat,
            digest="d",
            started_at="2026-11-30T06:17:56.000Z",
            duration_s=REPEATS * length / S,
            spans_ns=spans,
            slots=64,
            slots_source="server",
            slo={"name": "chat", "ttft_s": 3.0, "tpot_ms": 120.0, "share": 0.95, "from": "schedule"},
        )
        yield cell, _requests(size, users, prompt_tok, (ttft_ns, tpot_ns, each_ns, length), drawn)


def _requests(
    size: Size, users: int, prompt_tok: int, times_ns: tuple[int, int, int, int], drawn: random.Random
) -> Iterator[dict[str, Any]]:
    ttft_ns, tpot_ns, each_ns, length = times_ns
    a_repeat = max(1, size.requests // REPEATS)
    for number in range(size.requests):
        repeat, index = min(number // a_repeat, REPEATS - 1), number % a_repeat
        sent = repeat * length + index // users * each_ns
        first = sent + round(ttft_ns * drawn.uniform(0.8, 1.0))
        step = round(tpot_ns * drawn.uniform(0.9, 1.0))
        events = tuple((first + i * step, 1) for i in range(size.tokens))
        request = RequestRecord(
            repeat=repeat,
            index=index,
            track=index % users,
            scheduled_ns=sent,
            ready_ns=sent,
            sent_ns=sent + 40_000,
            headers_ns=first - 50_000,
            first_event_ns=first - 20_000,
            first_token_ns=first,
            first_answer_ns=first,
            last_token_ns=events[-1][0],
            end_ns=events[-1][0] + 100_000,
            http_status=200,
            prompt_tok=prompt_tok,
            output_tok=size.tokens,
            cached_tok=0,
            expected_cached_tok=0,
            asked_output_tok=size.tokens,
            token_source="one_per_event",
            finish_reason="length",
            nonce=f"{drawn.getrandbits(64):016x}",
            stamp_lag_ns=30_000,
        )
        yield {name: getattr(request, name) for name in RequestRecord.__slots__} | {"events": events}
