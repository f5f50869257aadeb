"""The mock as an HTTP server: in this process (`MockServer`), or in its own (`python -m orchestrator.mock`)."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from types import TracebackType
from typing import Self, cast

import httptools
import orjson

from orchestrator.errors import BoxError
from orchestrator.mock.answer import Refused, error_json, read_ask
from orchestrator.mock.engine import Counters, StepEngine, Stream
from orchestrator.mock.settings import Fault, Flavour, MockSettings

START_TIMEOUT_S = 10.0
EARLY_FAULTS = {Fault.HTTP_400: 400, Fault.HTTP_404: 404, Fault.HTTP_500: 500}
RECEIVED_HEADER = b"X-Mock-Received-Ns"
OPEN_PATHS = frozenset({"/health", "/v1/models", "/metrics"})


class MockConnection(asyncio.Protocol):
    """One client: parse, route, write. One request at a time, as HTTP/1.1 without pipelining."""

    def __init__(self, engine: StepEngine) -> None:
        self._engine = engine
        self._settings = engine.settings
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._stream: Stream | None = None
        self._received_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Zero: the bytes leave inside `write`, so a chunk's own stamp is taken just before the kernel gets it.
        # uvloop's transports are no subclass of asyncio's: nothing here can be checked with isinstance.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        if self._settings.fault is Fault.REFUSE:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stream is not None:
            self._stream.is_gone = True

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.drop()

    def on_message_begin(self) -> None:
        self._path = b""
        self._body: list[bytes] = []
        self._key = b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            self._key = value.removeprefix(b"Bearer ")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        # Only the stamp now: sockets are read between two answers, so that one request's handling is not counted as the
        # next one's time on the way.
        self._received_ns = monotonic_ns()
        self._engine.soon(self._route)

    def _route(self) -> None:
        path = self._path.decode("latin-1").split("?")[0]
        method = self._parser.get_method().decode()
        key = self._settings.api_key
        if key is not None and path not in OPEN_PATHS and self._key.decode("latin-1") != key.value:
            self.reply_json(401, error_json(401, "Invalid API Key", self._settings))
        elif method == "POST" and path in {"/v1/chat/completions", "/v1/completions"}:
            self._generate(path, b"".join(self._body))
        else:
            self._control(method, path)

    def write(self, piece: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._settings.is_split:
            for i in range(len(piece)):
                self._transport.write(piece[i : i + 1])
        else:
            self._transport.write(piece)

    def finish(self) -> None:
        self._stream = None
        if self._settings.closes and self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def reply_json(self, status: int, body: bytes) -> None:
        self._reply(status, body, "application/json")

    def _reply(self, status: int, body: bytes, kind: str) -> None:
        closing = "Connection: close\r\n" if self._settings.closes else ""
        head = f"HTTP/1.1 {status} Mock\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{closing}\r\n"
        self.write(head.encode() + body)

    def _generate(self, path: str, body: bytes) -> None:
        settings = self._settings
        try:
            ask = read_ask(path, body, settings)
        except Refused as refusal:
            self.reply_json(refusal.status, error_json(refusal.status, refusal.message, settings))
            return
        stream = self._engine.submit(ask, self)
        stream.received_ns = self._received_ns
        if stream.fault in EARLY_FAULTS:
            stream.is_gone = True
            status = EARLY_FAULTS[stream.fault]
            self.reply_json(status, error_json(status, "refused as told", settings))
            return
        self._stream = stream
        if ask.is_streamed:
            self.write(stream_head(settings, self._received_ns))

    def _control(self, method: str, path: str) -> None:
        if method == "GET" and path == "/metrics":
            self._reply(200, metrics_text(self._engine).encode(), "text/plain; version=0.0.4")
            return
        answer = control_answer(self._engine, method, path, b"".join(self._body))
        if answer is None:
            self.reply_json(404, error_json(404, f"{method} {path}: not found", self._settings))
        else:
            self.reply_json(200, answer)


def stream_head(settings: MockSettings, received_ns: int) -> bytes:
    """Headers of a stream; with stamps also when the whole request was there."""
    extra = b"Connection: close\r\n" if settings.closes else b""
    if settings.has_stamps:
        extra += b"%s: %d\r\n" % (RECEIVED_HEADER, received_ns)
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
        b"Cache-Control: no-cache\r\n%sTransfer-Encoding: chunked\r\n\r\n" % extra
    )


def control_answer(engine: StepEngine, method: str, path: str, body: bytes) -> bytes | None:
    """The JSON body for a path that generates nothing; None: no such path in this flavour."""
    settings, is_llama = engine.settings, engine.settings.flavour is Flavour.LLAMACPP
    if (method, path) == ("GET", "/health"):
        return b'{"status":"ok"}' if is_llama else b""
    if (method, path) == ("GET", "/v1/models"):
        entry = {"id": settings.model, "object": "model", "max_model_len": settings.max_model_len}
        return orjson.dumps({"object": "list", "data": [entry]})
    if path == "/mock/truth":
        truths = list(engine.truths)
        if method == "POST":
            engine.truths.clear()
        return orjson.dumps(truths)
    if (method, path) == ("POST", "/tokenize") and settings.has_tokenize:
        return _tokenized(body, settings)
    if is_llama and (method, path) == ("GET", "/props"):
        return orjson.dumps({"total_slots": settings.slots, "build_info": "mock"})
    if is_llama and (method, path) == ("GET", "/slots"):
        busy = len(engine.running)
        return orjson.dumps([{"id": i, "is_processing": i < busy} for i in range(settings.slots)])
    if method == "POST" and path in {"/reset_prefix_cache", "/flush_cache"} and not is_llama:
        engine.cache.clear()
        return b'{"success":true}'
    return None


def _tokenized(body: bytes, settings: MockSettings) -> bytes | None:
    raw = orjson.loads(body or b"{}")
    text = raw.get("content" if settings.flavour is Flavour.LLAMACPP else "prompt") or ""
    ids = [1000 + i for i, _ in enumerate(str(text).split())]
    return orjson.dumps({"tokens": ids, "count": len(ids), "max_model_len": settings.max_model_len})


def metrics_text(engine: StepEngine) -> str:
    """Prometheus text with the flavour's own names."""
    counters, running, waiting = engine.counters, len(engine.running), len(engine.waiting)
    fresh = counters.prompt - counters.cached
    samples: dict[Flavour, dict[str, int]] = {
        Flavour.VLLM: {
            "vllm:num_requests_running": running,
            "vllm:num_requests_waiting": waiting,
            "vllm:prompt_tokens_total": counters.prompt,
            "vllm:generation_tokens_total": counters.output,
            "vllm:prefix_cache_queries_total": counters.queries,
            "vllm:prefix_cache_hits_total": counters.cached,
        },
        Flavour.SGLANG: {
            "sglang:num_running_reqs": running,
            "sglang:num_queue_reqs": waiting,
            "sglang:prompt_tokens_total": counters.prompt,
            "sglang:generation_tokens_total": counters.output,
            "sglang:cached_tokens_total": counters.cached,
        },
        Flavour.LLAMACPP: {
            "llamacpp:requests_processing": running,
            "llamacpp:requests_deferred": waiting,
            "llamacpp:prompt_tokens_total": fresh,
            "llamacpp:prompt_tokens_cached_total": counters.cached,
            "llamacpp:tokens_predicted_total": counters.output,
        },
    }
    return "".join(f"{name} {value}\n" for name, value in samples[engine.settings.flavour].items())


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
    """Answer until the process is told to stop (Ctrl-C). `on_ready` gets the base URL once it listens.

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
    engine = StepEngine(settings)
    try:
        server = await loop.create_server(lambda: MockConnection(engine), host, port, backlog=1024, ssl=tls)
    except OSError as exc:
        raise BoxError(f"the mock cannot listen on {host}:{port}: {exc}", hint="choose another --port") from exc
    try:
        scheme = "http" if tls is None else "https"
        on_ready(f"{scheme}://{host}:{server.sockets[0].getsockname()[1]}/v1", engine)
        await stop.wait()
    finally:
        engine.stop()
        server.close()


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
        """What the server itself counted."""
        assert self._engine is not None
        return self._engine.counters

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise BoxError(f"the mock did not listen within {START_TIMEOUT_S:.0f} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_TIMEOUT_S)

    def _run(self) -> None:
        def note(url: str, engine: StepEngine) -> None:
            self.base_url, self._engine = url, engine
            self._ready.set()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(_serve(self.settings, "127.0.0.1", 0, on_ready=note, stop=self._stop, tls=self._tls))
