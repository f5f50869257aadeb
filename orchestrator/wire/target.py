"""The server under test over HTTP: control traffic only (readiness, probing, gates), never a timed sweep.

Theory of operation: every exchange is one fresh connection with one total deadline. Kept connections would race the
server's own idle time-out, and a resend would warm the very cache that a gate wants cold; so nothing is kept and
nothing is retried. Proxies of the environment are ignored: a box on the desk is not behind one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlsplit

import httpx

from orchestrator.errors import InputError
from orchestrator.values import Clock, Json, Secret
from orchestrator.wire.chat import Claims, Reply
from orchestrator.wire.parse import load_json, read_body, read_event, read_stream
from orchestrator.wire.prometheus import Sample, parse_metrics, sum_by_name
from orchestrator.wire.sse import SseEvent, SseParser

CONNECT_TIMEOUT_S = 10.0
JOIN_GRACE_S = 30.0
"""How much longer than its deadline a thread of `chat_many` is waited for."""


def base_url_of(address: str) -> str:
    """Bring what a person types into one form: `spark01:8000` -> `http://spark01:8000/v1`.

    Raises:
        InputError: Not an http(s) address, or one with a user, a password or a query in it (never shown).
    """
    text = address if "://" in address else f"http://{address}"
    if "@" in text:
        _refuse_user(text)
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InputError(f"not a server's address: {address!r}", hint="write it as http://host:port/v1")
    if parts.query or parts.fragment:
        raise InputError(
            "a server's address ends before `?` and `#`",
            hint="write it as http://host:port/v1; a key is given by its name: `--api-key NAME`",
        )
    path = parts.path.rstrip("/")
    path = path.removesuffix("/chat/completions")
    return f"{parts.scheme}://{parts.netloc}{path if path.endswith('/v1') else f'{path}/v1'}"


def _refuse_user(text: str) -> None:
    """A user and password end up in every record and on every screen; where they end cannot always be told."""
    rest = text.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    is_path_only = "@" not in authority and re.fullmatch(r"[^:\[\]]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?", authority)
    if not is_path_only:
        raise InputError(
            "a server's address takes no user and no password",
            hint="give a key by its name: `--api-key NAME`, or in a profile `serve: {api_key: {secret: NAME}}`",
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one exchange gave: the whole body, or the events with the first token's time."""

    status: int
    body: bytes = b""
    events: tuple[SseEvent, ...] = ()
    is_stream: bool = False
    first_token_s: float | None = None
    broken: str | None = None


class HttpTarget:
    """A server at a URL. Safe to use from several threads; close it (or use `with`) when done.

    Args:
        base_url: `http://host:port/v1`; see `base_url_of`.
        model: The served model's name, sent with every request.
        claims: What the profile says of the server.
        api_key: Sent as a bearer token; never shown.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        claims: Claims,
        *,
        api_key: Secret | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._model = model
        self._claims = claims
        self._clock = clock
        headers = {"Accept-Encoding": "identity"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key.value}"
        self._client = httpx.Client(
            headers=headers,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open."""
        self._client.close()

    @property
    def base_url(self) -> str:
        """`http://host:port/v1`, without a trailing slash."""
        return self._base_url

    @property
    def root_url(self) -> str:
        """`http://host:port`: where `/health` and `/metrics` are."""
        return self._base_url.removesuffix("/v1")

    @property
    def model(self) -> str:
        """The served model's name."""
        return self._model

    @property
    def claims(self) -> Claims:
        """What the profile says of the server."""
        return self._claims

    def chat(self, body: Mapping[str, Json], *, stream: bool = False, timeout_s: float = 600.0) -> Reply:
        """See `Target.chat`. A stream asks for its usage unless the body has `stream_options`.

        What the server is known to refuse (`Claims.refused`) is left out of the body.
        """
        full = self._full_body(body, stream=stream)
        started_s = self._clock()
        answer = self._exchange("POST", f"{self._base_url}/chat/completions", body=full, timeout_s=timeout_s)
        reply = _reply(answer)
        return replace(reply, first_token_s=answer.first_token_s, total_s=self._clock() - started_s)

    def chat_many(
        self, bodies: Sequence[Mapping[str, Json]], *, stream: bool = True, timeout_s: float = 600.0
    ) -> tuple[Reply, ...]:
        """See `Target.chat_many`. No thread sends before all have started."""
        replies: list[Reply | None] = [None] * len(bodies)
        barrier = threading.Barrier(max(1, len(bodies)))

        def send(index: int) -> None:
            barrier.wait(timeout=JOIN_GRACE_S)
            replies[index] = self.chat(bodies[index], stream=stream, timeout_s=timeout_s)

        # Daemon threads: Ctrl-C must not wait for a server that hangs.
        threads = [threading.Thread(target=send, args=(i,), daemon=True) for i in range(len(bodies))]
        for thread in threads:
            thread.start()
        deadline_s = time.monotonic() + timeout_s + JOIN_GRACE_S
        for thread in threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        late = Reply(http_status=0, error=f"no answer within {timeout_s:g} s")
        return tuple(late if reply is None else reply for reply in replies)

    def get_json(self, path: str, *, timeout_s: float = 10.0) -> Json:
        """See `Target.get_json`."""
        answer = self._exchange("GET", self.root_url + path, timeout_s=timeout_s)
        if answer.status != 200 or answer.broken:
            return None
        try:
            return load_json(answer.body)
        except ValueError:
            return None

    def post(self, path: str, *, timeout_s: float = 30.0) -> int:
        """See `Target.post`."""
        return self._exchange("POST", self.root_url + path, timeout_s=timeout_s).status

    def samples(self, *, timeout_s: float = 10.0) -> tuple[Sample, ...] | None:
        """All Prometheus samples with their labels, None when the server has no metrics."""
        answer = self._exchange("GET", f"{self.root_url}/metrics", timeout_s=timeout_s)
        if answer.status != 200 or answer.broken:
            return None
        return parse_metrics(answer.body.decode(errors="replace")) or None

    def metrics(self) -> Mapping[str, float] | None:
        """See `Target.metrics`."""
        samples = self.samples()
        return None if samples is None else sum_by_name(samples)

    def metric_labels(self, name: str) -> tuple[Mapping[str, str], ...]:
        """See `Target.metric_labels`."""
        return tuple(s.labels for s in self.samples() or () if s.name == name)

    def count_tokens(self, text: str) -> int | None:
        """See `Target.count_tokens`."""
        # vLLM and SGLang read `prompt`, llama-server reads `content`; each ignores the other's word, and
        # llama-server answers a body without `content` with an empty list instead of an error.
        body: dict[str, Json] = {"model": self._model, "prompt": text, "content": text, "add_special_tokens": False}
        answer = self._exchange("POST", f"{self.root_url}/tokenize", body=body, timeout_s=60.0)
        if answer.status != 200 or answer.broken:
            return None
        try:
            found = load_json(answer.body)
        except ValueError:
            return None
        return _token_count(found)

    def _full_body(self, body: Mapping[str, Json], *, stream: bool) -> dict[str, Json]:
        wanted = {name: value for name, value in body.items() if name not in self._claims.refused}
        full: dict[str, Json] = {"model": self._model, "temperature": 0, **wanted}
        if stream:
            full["stream"] = True
            full.setdefault("stream_options", {"include_usage": True})
        return full

    def _exchange(self, method: str, url: str, *, body: Mapping[str, Json] | None = None, timeout_s: float) -> _Answer:
        started_s = self._clock()
        status = 0
        try:
            timeout = httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))
            with self._client.stream(method, url, json=body, timeout=timeout) as response:
                status = response.status_code
                chunks = _before(response.iter_bytes(), deadline_s=started_s + timeout_s, clock=self._clock)
                if status == 200 and response.headers.get("content-type", "").startswith("text/event-stream"):
                    return self._read_events(chunks, started_s)
                return _Answer(status, body=b"".join(chunks))
        except (httpx.TimeoutException, TimeoutError):
            return _Answer(status, broken=f"no complete answer within {timeout_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            return _Answer(status, broken=f"{type(exc).__name__}: {exc}".rstrip(": "))

    def _read_events(self, chunks: Iterator[bytes], started_s: float) -> _Answer:
        parser = SseParser()
        events: list[SseEvent] = []
        first_token_s: float | None = None
        broken: str | None = None
        try:
            for chunk in chunks:
                new = parser.feed(chunk)
                events += new
                if first_token_s is None and any(read_event(e).has_token for e in new):
                    first_token_s = self._clock() - started_s
        except (httpx.TimeoutException, TimeoutError):
            broken = f"stream not finished in time ({len(events)} events came)"
        except httpx.HTTPError as exc:
            broken = f"stream broke after {len(events)} events: {type(exc).__name__}: {exc}".rstrip(": ")
        events += parser.close()
        return _Answer(200, events=tuple(events), is_stream=True, first_token_s=first_token_s, broken=broken)


def _before(chunks: Iterator[bytes], *, deadline_s: float, clock: Callable[[], float]) -> Iterator[bytes]:
    """The chunks, as long as they come before the deadline: httpx alone limits each read, not their sum."""
    for chunk in chunks:
        if clock() > deadline_s:
            raise TimeoutError
        yield chunk


def _reply(answer: _Answer) -> Reply:
    if answer.is_stream:
        reply = read_stream(answer.events)
        return reply if answer.broken is None else _broken(reply, answer.broken)
    if answer.broken is not None:
        return Reply(http_status=answer.status, error=answer.broken, ended_properly=False)
    return read_body(answer.body, http_status=answer.status)


def _broken(reply: Reply, how: str) -> Reply:
    """What the server itself said before the break is worth more than how the connection ended."""
    events = reply.raw if isinstance(reply.raw, tuple) else ()
    has_spoken = any(isinstance(e, Mapping) and e.get("error") for e in events)
    return replace(reply, error=reply.error if has_spoken else how, ended_properly=False)


def _token_count(found: Json) -> int | None:
    if not isinstance(found, Mapping):
        return None
    count, tokens = found.get("count"), found.get("tokens")
    if isinstance(count, int):
        return count
    return len(tokens) if isinstance(tokens, list) else None
