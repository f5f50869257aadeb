"""Lanes against servers of a few lines each, that do with a connection what real ones do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic_ns
from typing import Any

import pytest

from orchestrator.sweep.child import CellLoad
from orchestrator.sweep.connections import BACKENDS
from orchestrator.sweep.http1 import End, Endpoint, Exchange, endpoint_of, post_bytes
from orchestrator.sweep.load import HANGUP_NS, LaneRun, Load, Shot, TrackRun
from orchestrator.sweep.pool import MAX_IDLE_NS
from orchestrator.sweep.spec import Job, Lane, LoadSpec, Message, Phase, Track
from orchestrator.values import Secret

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 14\r\n\r\ndata: [DONE]\n\n"
S = 1_000_000_000

Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]
"""What a server does with the n-th request of a connection, from 1."""


async def on_server(answer: Answer, work: Callable[[Endpoint], Awaitable[None]]) -> list[int]:
    """When each connection was accepted, monotonic ns."""
    accepted: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(monotonic_ns())
        number = 0
        while not writer.is_closing():
            try:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(2)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            number += 1
            await answer(number, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        await work(endpoint_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    return accepted


def shot(endpoint: Endpoint, *, think_ns: int = 0) -> Shot:
    return Shot(exchange=Exchange(scheduled_ns=0), request=post_bytes(endpoint, "/x", b"{}"), think_ns=think_ns)


async def well(_: int, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("pause_s", "ends", "hangups"),
    [(0.0, [End.COMPLETE, End.COMPLETE], 1), (HANGUP_NS / 1e9 * 1.5, [End.COMPLETE, End.CLOSED], 0)],
    ids=["at-once", "after-thought"],
)
def test_only_what_is_closed_at_once_is_sent_again(backend: str, pause_s: float, ends: list[End], hangups: int) -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        if number == 1:
            return await well(number, writer)
        await asyncio.sleep(pause_s)
        writer.close()
        return None

    async def work(endpoint: Endpoint) -> None:
        load = Load(endpoint, request_timeout_s=10, backend=backend)
        outcome = await load.run([post_bytes(endpoint, "/x", b"{}")] * 2, concurrency=1)

        assert [e.end for e in outcome.exchanges] == ends
        assert load.hangups == hangups

    asyncio.run(on_server(answer, work))


@pytest.mark.parametrize("cap", [None, 2])
def test_whoever_thinks_longer_than_a_connection_lives_has_a_new_one_before_the_request_is_due(cap: int | None) -> None:
    async def work(endpoint: Endpoint) -> None:
        load = Load(endpoint, request_timeout_s=10)
        track = TrackRun(shots=[shot(endpoint), shot(endpoint, think_ns=MAX_IDLE_NS + S // 5)])
        outcome = await load.run_lanes([LaneRun(tracks=[track], cap=cap)])
        await load.close()
        seen.extend(outcome.exchanges)

    seen: list[Exchange] = []
    accepted = asyncio.run(on_server(well, work))

    assert [e.end for e in seen] == [End.COMPLETE] * 2
    assert len(accepted) == 2
    assert accepted[1] < seen[1].scheduled_ns


def test_a_turn_that_needs_an_answer_is_put_together_while_its_user_thinks() -> None:
    built: list[int] = []

    async def work(endpoint: Endpoint) -> None:
        def build(past: object) -> bytes:
            built.append(monotonic_ns())
            return post_bytes(endpoint, "/x", b"{}")

        second = Shot(exchange=Exchange(scheduled_ns=0), build=build, think_ns=S // 5)
        load = Load(endpoint, request_timeout_s=10)
        outcome = await load.run_lanes([LaneRun(tracks=[TrackRun(shots=[shot(endpoint), second])], users=1)])
        await load.close()

        assert len(built) == 1
        assert built[0] < outcome.exchanges[1].scheduled_ns

    asyncio.run(on_server(well, work))


def test_a_server_that_repeats_the_key_brings_it_into_no_record() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 No\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(head) + head)
        writer.close()

    async def work() -> list[dict[str, Any]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            job = Job(messages=(Message(parts=("hello",)),), output_tok=1)
            lane = Lane(tracks=(Track(jobs=(job,)),), users=1, body={"endpoint": "chat", "model": "m"})
            spec = LoadSpec(
                base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
                api_key=Secret("KEY", "s3cret-value"),
                phases=(Phase(lanes=(lane,)),),
            )
            said: list[dict[str, Any]] = []
            await CellLoad(spec, said.append).run()
        return said

    (record,) = [m["request"] for m in asyncio.run(work()) if "request" in m]

    assert record.http_status == 401
    assert "Authorization: Bearer <api key>" in record.error
