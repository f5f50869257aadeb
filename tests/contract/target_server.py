"""A small OpenAI-compatible server over any target: what the target answers goes out as HTTP, whole or streamed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from orchestrator.wire.chat import Reply
from tests.unit.gate_fakes import FakeTarget


@dataclass(slots=True)
class Faults:
    """How the wire itself misbehaves.

    Attributes:
        cut_after: A stream breaks off after this many events. skip_done: it ends without `[DONE]`.
        drip_s: Seconds between two events. comments: send a keep-alive comment before each event.
        error_inside: After the first event comes an error object.
        body: Sent instead of any JSON answer to a chat.
    """

    cut_after: int | None = None
    skip_done: bool = False
    drip_s: float = 0.0
    comments: bool = False
    error_inside: str | None = None
    body: bytes | None = None


@dataclass(slots=True)
class Served:
    """A running server; `bodies` and `headers` are what came in."""

    url: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)


@contextmanager
def serve(fake: FakeTarget, faults: Faults | None = None, *, key: str | None = None) -> Iterator[Served]:
    """Serve the fake on a free port of this machine."""
    faults = faults or Faults()
    served = Served(url="")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            served.headers.append(dict(self.headers))
            if self.path == "/metrics":
                metrics = fake.metrics()
                lines = [f'{name}{{engine="{e}"}} {v / 2}' for name, v in (metrics or {}).items() for e in (0, 1)]
                return self._send(404 if metrics is None else 200, "\n".join(lines).encode(), "text/plain")
            found = fake.get_json(self.path)
            self._send(404 if found is None else 200, json.dumps(found).encode())

        def do_POST(self) -> None:
            served.headers.append(dict(self.headers))
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/tokenize":
                count = fake.count_tokens(json.loads(raw)["prompt"])
                return self._send(404 if count is None else 200, json.dumps({"count": count, "tokens": []}).encode())
            if self.path != "/v1/chat/completions":
                return self._send(fake.post(self.path), b"")
            if key is not None and self.headers.get("Authorization") != f"Bearer {key}":
                return self._send(401, b'{"error":"Unauthorized"}')
            body = json.loads(raw)
            served.bodies.append(body)
            if faults.body is not None:
                return self._send(200, faults.body)
            reply = fake.chat(body, stream=body.get("stream", False))
            if not reply.is_ok:
                return self._send(reply.http_status, json.dumps({"error": {"message": reply.error}}).encode())
            if body.get("stream"):
                return self._stream(reply)
            self._send(200, json.dumps(whole(reply)).encode())

        def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, reply: Reply) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            events = [json.dumps(e) for e in chunks(reply)]
            if faults.error_inside is not None:
                events[1:] = [json.dumps({"error": {"message": faults.error_inside}})]
            if faults.cut_after is not None:
                events = events[: faults.cut_after]
            elif not faults.skip_done:
                events.append("[DONE]")
            try:
                for event in events:
                    self.wfile.write((b": ping\n\n" if faults.comments else b"") + f"data: {event}\n\n".encode())
                    self.wfile.flush()
                    time.sleep(faults.drip_s)
            except (BrokenPipeError, ConnectionResetError):
                pass  # The client's deadline is what such a case is about.

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5.0)


def whole(reply: Reply) -> dict[str, Any]:
    """A reply as the body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "reasoning": reply.reasoning}
    if reply.tool_calls:
        message["tool_calls"] = tool_calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": logprobs(reply)}
    return {"model": reply.model, "choices": [choice], "usage": usage(reply)}


def chunks(reply: Reply) -> Iterator[dict[str, Any]]:
    """A reply as the events of a stream: role, one event a word, tool calls in two pieces, finish, usage."""
    yield event({"role": "assistant", "content": ""})
    if reply.reasoning:
        yield event({"reasoning_content": reply.reasoning})
    words = reply.text.split(" ") if reply.text else []
    for i, word in enumerate(words):
        yield event({"content": word if i == 0 else f" {word}"})
    for call in tool_calls(reply):
        function = call["function"]
        yield event({"tool_calls": [{**call, "function": {**function, "arguments": ""}}]})
        yield event({"tool_calls": [{"index": call["index"], "function": {"arguments": function["arguments"]}}]})
    last = event({})
    last["choices"][0] |= {"finish_reason": reply.finish_reason, "logprobs": logprobs(reply)}
    yield last
    yield {"choices": [], "model": reply.model, "usage": usage(reply)}


def event(delta: dict[str, Any]) -> dict[str, Any]:
    return {"model": "fake", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def tool_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {"index": i, "id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for i, c in enumerate(reply.tool_calls)
    ]


def logprobs(reply: Reply) -> dict[str, Any] | None:
    content = [
        {"token": t.token, "logprob": t.logprob, "top_logprobs": [{"token": w, "logprob": v} for w, v in t.top]}
        for t in reply.logprobs
    ]
    return {"content": content} if content else None


def usage(reply: Reply) -> dict[str, Any]:
    u = reply.usage
    details = None if u.cached_tok is None else {"cached_tokens": u.cached_tok}
    return {"prompt_tokens": u.prompt_tok, "completion_tokens": u.output_tok, "prompt_tokens_details": details}
