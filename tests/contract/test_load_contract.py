"""The load path against a server whose truth is known: what the mock does is what the record says.

No test here judges a speed. Stamps are held to their order only; counts, sources and failure classes to the letter.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import Fault, Flavour, MockSettings
from orchestrator.records.record import RequestRecord
from orchestrator.sweep.body import BodyShape, body_bytes
from orchestrator.sweep.http1 import endpoint_of, post_bytes, read_response
from orchestrator.sweep.lengths import fixed
from orchestrator.sweep.load import Load
from orchestrator.sweep.prompts import Counter, PromptBook
from orchestrator.sweep.runner import (
    CellOutcome,
    CellProgress,
    CellRunner,
    LoadFailed,
    LoadProcess,
    LoadTarget,
    load_spec,
    run_cell,
)
from orchestrator.sweep.spec import LoadSpec
from orchestrator.sweep.timing import Answer, request_record
from orchestrator.sweep.workload import Cell, Kind, Workload
from orchestrator.values import Secret

FAST = MockSettings(step_s=0.0005)
WORKLOAD = Workload(
    name="w",
    prompt_tokens=(fixed(48),),
    output_tokens=(fixed(12),),
    concurrency=(3,),
    repeats=2,
    warmup=1,
    request_timeout_s=20.0,
)


SAME_TEXT = f"time year people way day man {' '.join(['word'] * 31)}"
"""As many words as the plain book's prompts: its fit guesses by words when nobody counts."""
UNCOUNTED = Counter(count=lambda _: None, is_cheap=False)


def plain_book() -> PromptBook:
    """Prompts for which the server is asked nothing."""
    return PromptBook(UNCOUNTED, seed=1)


def spec_of(server: MockServer, cell: Cell, **target: Any) -> LoadSpec:
    with CellRunner(book=plain_book()) as runner:
        found, script = runner.script(target_of(server, **target), cell, 0)
    return load_spec(found, cell, script)


def cell_of(workload: Workload = WORKLOAD, *, kind: Kind = Kind.BATCH) -> Cell:
    return replace(workload, kinds=(kind,)).cells()[0]


def load(
    settings: MockSettings = FAST, cell: Cell | None = None, *, target: Mapping[str, Any] | None = None
) -> CellOutcome:
    with MockServer(settings) as server:
        return run_cell(target_of(server, **(target or {})), cell or cell_of())


def target_of(server: MockServer, **changes: Any) -> LoadTarget:
    return LoadTarget(base_url=server.base_url, model=server.settings.model, **changes)


def only(values: set[Any]) -> Any:
    assert len(values) == 1, values
    return values.pop()


def tokens_by_event(request: RequestRecord) -> list[int | None]:
    return [n for _, n in request.events]


@pytest.mark.parametrize("flavour", list(Flavour))
@pytest.mark.parametrize("kind", [Kind.CLOSED, Kind.BATCH])
def test_clean_cell_is_valid_and_exact(flavour: Flavour, kind: Kind) -> None:
    cell = cell_of(replace(WORKLOAD, requests_per_user=2), kind=kind)

    outcome = load(replace(FAST, flavour=flavour), cell)

    record, requests = outcome.record, outcome.requests
    assert record.guards == ()
    assert len(requests) == 2 * cell.requests_per_repeat
    assert only({(r.prompt_tok, r.output_tok, r.cached_tok, r.failure) for r in requests}) == (48, 12, 0, None)
    assert only({tuple(tokens_by_event(r)) for r in requests}) == (1,) * 12
    assert sorted((r.repeat, r.index) for r in requests) == [
        (repeat, index) for repeat in range(2) for index in range(cell.requests_per_repeat)
    ]


def test_stamps_stand_in_the_order_of_what_happened() -> None:
    outcome = load(replace(FAST, ttft_s=0.002))

    for r in outcome.requests:
        stamps = [
            r.scheduled_ns,
            r.sent_ns,
            r.headers_ns,
            r.first_event_ns,
            r.first_token_ns,
            r.last_token_ns,
            r.end_ns,
        ]
        known = [s for s in stamps if s is not None]
        assert len(known) == 7
        assert known == sorted(known)
        assert (r.first_token_ns or 0) - (r.sent_ns or 0) >= 2_000_000
        start, end = outcome.record.spans_ns[r.repeat]
        assert start <= known[1]
        assert known[-1] <= end


def test_closed_loop_keeps_its_users_busy_and_no_more() -> None:
    cell = cell_of(replace(WORKLOAD, concurrency=(5,), requests_per_user=4, repeats=1), kind=Kind.CLOSED)
    with MockServer(replace(FAST, ttft_s=0.2)) as server:
        run_cell(target_of(server), cell)
        most = server.counters.most_running

    assert most == 5


def test_batch_has_all_its_users_at_once() -> None:
    cell = cell_of(replace(WORKLOAD, concurrency=(16,), repeats=1, warmup=0))
    with MockServer(replace(FAST, ttft_s=0.2)) as server:
        outcome = run_cell(target_of(server), cell)
        most = server.counters.most_running

    assert most == 16
    assert only({r.scheduled_ns for r in outcome.requests}) is not None


def test_freed_place_is_the_next_requests_schedule() -> None:
    cell = cell_of(replace(WORKLOAD, concurrency=(1,), requests_per_user=4, repeats=1), kind=Kind.CLOSED)

    requests = load(FAST, cell).requests

    assert [r.scheduled_ns for r in requests[1:]] == [r.end_ns for r in requests[:-1]]


def test_every_prompt_is_fresh_to_the_cache() -> None:
    outcome = load(replace(FAST, template_head_tok=20))

    assert outcome.record.guards == ()
    assert {r.cached_tok for r in outcome.requests} == {16}, "the template's whole block before the nonce, no more"
    assert len({r.nonce for r in outcome.requests}) == len(outcome.requests)


class Stuck(random.Random):
    """Draws the same for ever."""

    def choice(self, seq: Any) -> Any:
        return seq[0]


def test_reused_prompts_are_caught_by_the_cache_guard() -> None:
    cell = cell_of(replace(WORKLOAD, warmup=0))
    with MockServer(FAST) as server:
        with CellRunner() as runner:
            target, _ = runner.script(target_of(server), cell, 0)
        record = run_cell(target, cell, book=PromptBook(UNCOUNTED, seed=1, rng=Stuck())).record

    assert [g["name"] for g in record.guards] == ["cached_tokens"]


def test_prompt_length_is_fitted_without_a_tokenizer() -> None:
    outcome = load(replace(FAST, has_tokenize=False))

    assert {r.prompt_tok for r in outcome.requests} == {48}


def test_short_answers_invalidate_a_fixed_length() -> None:
    record = load(replace(FAST, short_by_tok=2)).record

    assert [g["name"] for g in record.guards] == ["output_length"]


def test_queue_is_named_when_slots_are_fewer_than_users() -> None:
    record = load(replace(FAST, slots=2), target={"slots": 2, "slots_source": "server"}).record

    assert (record.is_queueing, record.slots, record.slots_source, record.guards) == (True, 2, "server", ())


IDS = {"return_token_ids": True}
RUNNING = {"stream_options": {"continuous_usage_stats": True}}


@pytest.mark.parametrize(
    ("changes", "fields", "source", "tokens"),
    [
        ({}, {}, "one_per_event", [1] * 12),
        ({}, IDS, "token_ids", [1] * 12),
        ({"tokens_per_event": 5}, {}, "usage_total", [None, None, None]),
        ({"tokens_per_event": 5}, IDS, "token_ids", [5, 5, 2]),
        ({"tokens_per_event": 5}, RUNNING, "cumulative_usage", [5, 5, 2]),
        ({"withheld_every": 3}, {}, "usage_total", [None] * 9),
        ({"withheld_every": 3}, IDS, "token_ids", [1] * 12),
        ({"withheld_every": 3}, RUNNING, "cumulative_usage", [1] * 12),
        ({"reports_usage": False}, {}, "unknown", [None] * 12),
        ({"reports_usage": False}, IDS, "token_ids", [1] * 12),
        ({"reasoning_tok": 4}, {}, "one_per_event", [1] * 12),
        ({"has_role_chunk": False}, {}, "one_per_event", [1] * 12),
        ({"is_crlf": True, "has_keepalives": True}, {}, "one_per_event", [1] * 12),
        ({"is_split": True}, IDS, "token_ids", [1] * 12),
        ({"closes": True}, {}, "one_per_event", [1] * 12),
    ],
)
def test_tokens_come_from_the_best_proof(
    changes: dict[str, Any], fields: dict[str, Any], source: str, tokens: list[int | None]
) -> None:
    outcome = load(replace(FAST, **changes), target={"stream_fields": fields})

    assert only({r.token_source for r in outcome.requests}) == source
    assert only({tuple(tokens_by_event(r)) for r in outcome.requests}) == tuple(tokens)
    assert [g for g in outcome.record.guards if g["name"] != "client_lag"] == []


def test_reasoning_is_the_first_token_and_not_the_first_answer() -> None:
    for r in load(replace(FAST, reasoning_tok=4)).requests:
        assert r.first_token_ns == r.events[0][0]
        assert r.first_answer_ns == r.events[4][0]
        assert r.reasoning_tok == 4


def test_keepalives_are_counted_apart() -> None:
    assert {r.keepalives for r in load(replace(FAST, has_keepalives=True)).requests} == {1}


def test_text_completions_are_measured_too() -> None:
    outcome = load(FAST, cell_of(replace(WORKLOAD, endpoint="completions")))

    assert outcome.record.guards == ()
    assert {(r.prompt_tok, r.output_tok) for r in outcome.requests} == {(48, 12)}


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        (Fault.HTTP_400, "http_400"),
        (Fault.HTTP_404, "http_4xx"),
        (Fault.HTTP_500, "http_5xx"),
        (Fault.STREAM_ERROR, "stream_error"),
        (Fault.NO_DONE, "no_done"),
        (Fault.CLOSE_EARLY, "closed_early"),
        (Fault.MALFORMED, "malformed"),
        (Fault.NOT_HTTP, "malformed"),
        (Fault.NO_TOKENS, "no_tokens"),
        (Fault.HANG, "timeout"),
    ],
)
@pytest.mark.parametrize("flavour", [Flavour.VLLM, Flavour.LLAMACPP])
def test_each_fault_has_its_class_and_spoils_the_cell_only(fault: Fault, failure: str, flavour: Flavour) -> None:
    cell = cell_of(replace(WORKLOAD, request_timeout_s=0.4, warmup=0))
    settings = replace(FAST, flavour=flavour, fault=fault, fault_every=2)
    with MockServer(settings) as server:
        outcome = run_cell(target_of(server), cell, book=plain_book())

    assert sorted(r.failure or "" for r in outcome.requests) == ["", "", ""] + [failure] * 3
    assert [g["name"] for g in outcome.record.guards] == ["failures"]
    assert all(r.error for r in outcome.requests if r.failure not in {None, "timeout"})


def test_closed_loop_goes_on_after_failures() -> None:
    cell = cell_of(replace(WORKLOAD, requests_per_user=4, warmup=0), kind=Kind.CLOSED)
    with MockServer(replace(FAST, fault=Fault.CLOSE_EARLY, fault_every=3)) as server:
        outcome = run_cell(target_of(server), cell, book=plain_book())

    assert len(outcome.requests) == 24
    assert sum(r.failure == "closed_early" for r in outcome.requests) == 8


def test_nobody_listening_is_a_connect_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        outcome = run_cell(LoadTarget(base_url=url, model="m"), cell_of(), book=plain_book())

    assert {r.failure for r in outcome.requests} == {"connect"}
    assert all(r.sent_ns is None and r.error == "Connection refused" for r in outcome.requests)


def test_key_reaches_the_server_and_nothing_else() -> None:
    key = Secret("KEY", "s3cret-value")
    settings = replace(FAST, api_key=key)

    with_key = load(settings, target={"api_key": key})
    with MockServer(settings) as server:
        without = run_cell(target_of(server), cell_of(), book=plain_book())

    assert {r.failure for r in with_key.requests} == {None}
    assert {r.failure for r in without.requests} == {"http_4xx"}
    assert "s3cret" not in str(with_key)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")
def test_key_is_in_no_argument_and_no_variable_of_the_load_process() -> None:
    key = Secret("KEY", "s3cret-value")
    with (
        MockServer(replace(FAST, ttft_s=30.0)) as server,
        LoadProcess(spec_of(server, cell_of(), api_key=key)) as process,
    ):
        listening = process.messages(lambda: False)
        assert "progress" in next(listening)
        shown = b"".join(Path(f"/proc/{process.pid}/{f}").read_bytes() for f in ("cmdline", "environ"))

    assert b"orchestrator.sweep.child" in shown
    assert b"s3cret" not in shown


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_cancelled_cell_keeps_what_it_has_and_leaves_no_process() -> None:
    cell = cell_of(replace(WORKLOAD, warmup=0, repeats=3))
    seen: list[CellProgress] = []
    with MockServer(replace(FAST, ttft_s=60.0)) as server:
        outcome = run_cell(
            target_of(server),
            cell,
            book=plain_book(),
            on_progress=seen.append,
            is_cancelled=lambda: any(p.in_flight == 3 for p in seen),
        )

    assert outcome.is_cancelled
    assert outcome.record.status == "cancelled"
    assert [r.failure for r in outcome.requests] == ["cancelled"] * 3


def test_a_cancel_that_comes_before_the_load_process_listens_is_heard() -> None:
    with MockServer(replace(FAST, ttft_s=60.0)) as server:
        outcome = run_cell(
            target_of(server),
            cell_of(replace(WORKLOAD, warmup=2, repeats=3)),
            book=plain_book(),
            is_cancelled=lambda: True,
        )

    assert outcome.record.status == "cancelled"
    assert outcome.record.spans_ns == ()


def started(server: MockServer) -> LoadProcess:
    return LoadProcess(spec_of(server, cell_of(replace(WORKLOAD, warmup=0))))


def test_death_of_the_load_process_is_an_error_with_its_code() -> None:
    with MockServer(replace(FAST, ttft_s=60.0)) as server, started(server) as process:
        listening = process.messages(lambda: False)
        next(listening)
        os.kill(process.pid, signal.SIGKILL)

        with pytest.raises(LoadFailed, match="exit code -9") as died:
            list(listening)

    assert "out-of-memory" in (died.value.hint or "")


def test_hung_load_process_is_ended() -> None:
    spec_cell = cell_of(replace(WORKLOAD, warmup=0))
    with MockServer(replace(FAST, ttft_s=60.0)) as server:
        spec = spec_of(server, spec_cell)
        with LoadProcess(spec, stall_s=0.5) as process:
            listening = process.messages(lambda: False)
            next(listening)
            os.kill(process.pid, signal.SIGSTOP)

            with pytest.raises(LoadFailed, match="said nothing"):
                list(listening)
        pid = process.pid

    assert not is_alive(pid)


def test_leaving_early_leaves_no_process() -> None:
    with MockServer(replace(FAST, ttft_s=60.0)) as server, started(server) as process:
        next(process.messages(lambda: False))
        pid = process.pid
        assert is_alive(pid)

    assert not is_alive(pid)


def test_load_process_dies_with_its_parent() -> None:
    with MockServer(replace(FAST, ttft_s=60.0)) as server:
        spec = spec_of(server, cell_of(replace(WORKLOAD, warmup=0)))
        with subprocess.Popen(
            [sys.executable, "-m", "orchestrator.sweep.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(spec.to_line())
            child.stdin.flush()
            assert b"progress" in child.stdout.readline()
            child.stdin.close()

            assert child.wait(10) == 3


def test_progress_ends_at_all_done() -> None:
    seen: list[CellProgress] = []
    with MockServer(FAST) as server:
        run_cell(target_of(server), cell_of(), on_progress=seen.append)

    assert (seen[0].repeat, seen[0].text) == (0, "warming up")
    last = seen[-1]
    assert (last.repeat, last.done, last.total, last.in_flight, last.failed, last.share) == (1, 3, 3, 0, 0, 1.0)


def test_clients_own_cost_is_in_the_record() -> None:
    client = load().record.client

    assert client["tokens"] == client["events"] == 6 * 12
    assert isinstance(client["cpu_s"], float)
    assert client["cpu_s"] > 0


def self_signed(directory: Path) -> tuple[ssl.SSLContext, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mock")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = directory / "mock.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    both.write_bytes(private + public)
    (directory / "ca.pem").write_bytes(public)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context, directory / "ca.pem"


def test_load_runs_over_tls_with_a_trusted_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, authority = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with MockServer(FAST, tls=context) as server:
        outcome = run_cell(target_of(server), cell_of(), book=plain_book())

    assert {(r.failure, r.output_tok) for r in outcome.requests} == {(None, 12)}


def test_untrusted_certificate_is_a_connect_failure_with_the_reason(tmp_path: Path) -> None:
    context, _ = self_signed(tmp_path)
    with MockServer(FAST, tls=context) as server:
        outcome = run_cell(target_of(server), cell_of(), book=plain_book())

    assert {r.failure for r in outcome.requests} == {"connect"}
    assert all("certificate" in (r.error or "") for r in outcome.requests)


@pytest.mark.parametrize("flavour", list(Flavour))
def test_no_stamp_is_older_than_the_servers_own(flavour: Flavour) -> None:
    settings = replace(FAST, has_stamps=True, flavour=flavour)
    shape = BodyShape(endpoint="chat", model=FAST.model)
    with MockServer(settings) as server:
        endpoint = endpoint_of(server.base_url)
        request = post_bytes(endpoint, "/chat/completions", body_bytes(shape, [("user", "a b c")], 12))
        repeat = asyncio.run(Load(endpoint, request_timeout_s=10.0).run([request] * 4, concurrency=4))

    for exchange in repeat.exchanges:
        response = read_response(exchange.chunks)
        stamps = [(t, int(n)) for t, piece in response.pieces for n in re.findall(rb'"mock_ns":"(\d+)"', piece)]
        assert len(stamps) >= 14
        assert all(0 < server_ns <= client_ns for client_ns, server_ns in stamps)
        assert exchange.scheduled_ns < stamps[0][1]


Counts = list[tuple[int | None, int | None, str | None, str, int]]


def counts(requests: tuple[RequestRecord, ...]) -> Counts:
    return [(r.prompt_tok, r.output_tok, r.failure, r.token_source, len(r.events)) for r in requests]


async def aiohttp_counts(url: str, bodies: list[bytes]) -> Counts:
    async def one(session: aiohttp.ClientSession, body: bytes) -> RequestRecord:
        pieces: list[tuple[int, bytes]] = []
        async with session.post(f"{url}/chat/completions", data=body) as response:
            try:
                async for piece in response.content.iter_any():
                    pieces.append((1, piece))
                is_whole = True
            except aiohttp.ClientPayloadError:
                is_whole = False
            kind = response.headers.get("content-type", "")
        answer = Answer(
            repeat=0,
            index=0,
            scheduled_ns=0,
            status=response.status,
            content_type=kind,
            pieces=pieces,
            is_whole=is_whole,
        )
        return request_record(answer)

    async with aiohttp.ClientSession() as session:
        return counts(tuple([await one(session, body) for body in bodies]))


@pytest.mark.parametrize(
    "changes",
    [{}, {"tokens_per_event": 5}, *({"fault": f} for f in (Fault.CLOSE_EARLY, Fault.STREAM_ERROR, Fault.HTTP_400))],
    ids=str,
)
def test_another_client_counts_the_same(changes: dict[str, Any]) -> None:
    cell = cell_of(replace(WORKLOAD, warmup=0, repeats=1))
    shape = BodyShape(endpoint="chat", model=FAST.model)
    bodies = [body_bytes(shape, [("user", SAME_TEXT)], 12)] * 3
    with MockServer(replace(FAST, **changes)) as server:
        ours = run_cell(target_of(server), cell, book=plain_book())
        theirs = asyncio.run(aiohttp_counts(server.base_url, bodies))

    assert counts(ours.requests) == theirs


def test_answers_are_the_mocks_own_count() -> None:
    cell = cell_of(replace(WORKLOAD, warmup=0))
    with MockServer(FAST) as server:
        outcome = run_cell(target_of(server), cell, book=plain_book())
        truth = server.counters

        assert sum(r.output_tok or 0 for r in outcome.requests) == truth.output
        assert sum(r.prompt_tok or 0 for r in outcome.requests) == truth.prompt
        assert len(outcome.requests) == truth.requests


CHOICES = (("vllm", "none"), ("llamacpp", "none"), ("sglang", "auto"))


@pytest.mark.parametrize(("flavour", "choice"), CHOICES)
def test_tools_stand_in_the_prompt_of_every_engine(flavour: str, choice: str) -> None:
    workload = replace(WORKLOAD, tools=3, prompt_tokens=(fixed(96),))
    settings = replace(FAST, flavour=Flavour(flavour), calls_tools=False)
    with MockServer(settings) as server, CellRunner() as runner:
        target, script = runner.script(target_of(server), cell_of(workload), 0)
        lap = runner(target_of(server), cell_of(workload))

    assert target.template_overhead_tok == settings.template_head_tok + settings.template_tail_tok + 3 * 10
    assert {lane.body["tool_choice"] for phase in script.phases for lane in phase.lanes} == {choice}
    assert only({(r.prompt_tok, r.failure) for r in lap.requests}) == (96, None)
    assert len(lap.record["notes"]) == (choice != "none")  # type: ignore[arg-type]


def test_a_reused_prompt_is_caught_at_the_completions_endpoint_too() -> None:
    cell = cell_of(replace(WORKLOAD, warmup=0, endpoint="completions"))
    with MockServer(FAST) as server:
        with CellRunner() as runner:
            target, _ = runner.script(target_of(server), cell, 0)
        outcome = run_cell(target, cell, book=PromptBook(UNCOUNTED, seed=1, rng=Stuck()))

    assert [g["name"] for g in outcome.record.guards] == ["cached_tokens"]
    assert only({r.expected_cached_tok for r in outcome.requests}) == 0
