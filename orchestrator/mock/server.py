"""The mock as an HTTP server: in this process (`MockServer`), or in its own (`python -m orchestrator.mock`)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from orchestrator.errors import BoxError
from orchestrator.mock.connection import MockConnection, Site
from orchestrator.mock.counters import Counters, Truth
from orchestrator.mock.engine import StepEngine
from orchestrator.mock.settings import MockSettings

START_TIMEOUT_S = 10.0
BACKLOG = 1024


def new_loop() -> asyncio.AbstractEventLoop:
    """A uvloop where there is one."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def serve(
    settings: MockSettings, host: str = "127.0.0.1", port: int = 0, *, on_ready: Callable[[str], None] = print
) -> None:
    """Answer until the process is told to stop (Ctrl-C), or until `dies_at`.

    `on_ready` gets the base URL once the port is its own.

    Raises:
        BoxError: If the address cannot be listened on.
    """
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(settings, host, port, on_ready=lambda url, _: on_ready(url), stop=asyncio.Event()))


async def _serve(
    settings: MockSettings,
    host: str,
    port: int,
    *,
    on_ready: Callable[[str, StepEngine], None],
    stop: asyncio.Event,
    tls: ssl.SSLContext | None = None,
) -> None:
    loop = asyncio.get_running_loop()
    site = Site(settings)
    listener = _bound(host, port)
    scheme = "http" if tls is None else "https"
    url = f"{scheme}://{host}:{listener.getsockname()[1]}/v1"
    with contextlib.closing(listener):
        if settings.listens_after_s:
            # Bound, but not listened on: the kernel refuses, as where a server still starts.
            on_ready(url, site.engine)
            await _first_of(stop, timeout_s=settings.listens_after_s)
        server = await loop.create_server(lambda: MockConnection(site), sock=listener, backlog=BACKLOG, ssl=tls)
        try:
            if not settings.listens_after_s:
                on_ready(url, site.engine)
            await _first_of(stop, site.is_dead)
        finally:
            site.engine.stop()
            server.close()
            listener.close()
            await asyncio.sleep(0)  # the loop closes what it listened on in its next turn
            site.drop_all()


def _bound(host: str, port: int) -> socket.socket:
    """
    Raises:
        BoxError: The address is taken, or none of this machine's.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with contextlib.ExitStack() as on_failure:
            listener = on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            on_failure.pop_all()
    except (OSError, OverflowError) as exc:
        raise BoxError(f"the mock cannot listen on {host}:{port}: {exc}", hint=_way_out(exc)) from exc
    return listener


def _way_out(error: OSError | OverflowError) -> str:
    if isinstance(error, socket.gaierror) or getattr(error, "errno", None) == errno.EADDRNOTAVAIL:
        return "--host is an address of this machine itself: 127.0.0.1, or 0.0.0.0 for all of them"
    return "choose another --port"


async def _first_of(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    _, pending = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()


class MockServer:
    """The mock in a thread of this process: `with MockServer(MockSettings()) as server: server.base_url`.

    Args:
        tls: A server context: the mock then speaks HTTPS.
    """

    def __init__(self, settings: MockSettings | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.settings = settings or MockSettings()
        self._tls = tls
        self.base_url = ""
        self._engine: StepEngine | None = None
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._run, name="gate0-mock", daemon=True)

    @property
    def counters(self) -> Counters:
        """What the server itself counted, since its last restart."""
        assert self._engine is not None
        return self._engine.counters

    @property
    def truths(self) -> tuple[Truth, ...]:
        """Of every stream that had a token and ended, in the order of their ends."""
        assert self._engine is not None
        return tuple(self._engine.truths)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise BoxError(f"the mock did not listen within {START_TIMEOUT_S:.0f} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # One that was told to die has closed its loop by itself.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_TIMEOUT_S)

    def _run(self) -> None:
        def note(url: str, engine: StepEngine) -> None:
            self.base_url, self._engine = url, engine
            self._ready.set()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(_serve(self.settings, "127.0.0.1", 0, on_ready=note, stop=self._stop, tls=self._tls))
