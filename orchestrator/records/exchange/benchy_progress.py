"""The lines of `llama-benchy-progress.v1`, from recorded requests: its viewers then show our runs.

The stream begins with a header, has per request a start, the first response, the first token, the tokens and the end,
and closes with `bench_complete`; ids rise and are never used twice. We keep no text: snippets are empty. An event whose
tokens the server did not count is written as one estimated token, as their producer does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator import __version__
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.values import Json

SCHEMA = "llama-benchy-progress.v1"
NS_PER_S = 1e9
START, RESPONSE, TOKEN, TOKENS, END = range(5)
"""Order of the lines of one request where stamps are equal."""


@dataclass(slots=True)
class BenchyProgress:
    """Turns laps into lines.

    Args:
        write: Takes one line, with its end.
        model, base_url: As the requests were sent.
    """

    write: Callable[[str], object]
    model: str
    base_url: str
    _next_id: int = field(default=0, init=False)

    def begin(self, at_s: float) -> None:
        """The header, and the latency of nobody: ours is not taken off anything. `at_s`: Unix time."""
        self._line("header", at_s, llama_benchy_version=f"gate0 {__version__}")
        self._line("latency_measured", at_s, latency_s=0.0, mode="none")

    def lap(self, cell: CellRecord, requests: Sequence[RequestRecord], *, zero_s: float) -> None:
        """All lines of a finished lap, in the order of time.

        Args:
            requests: Of phase `main` and `context`; others are not llama-benchy's.
            zero_s: Unix time of the cell's clock at 0.
        """
        shown = [r for r in requests if r.phase in ("main", "context") and r.sent_ns is not None]
        lines: list[tuple[int, int, int, dict[str, Json]]] = []
        for number, request in enumerate(sorted(shown, key=lambda r: r.sent_ns or 0), start=self._next_id):
            lines += [(at, number, step, fields) for at, step, fields in self._of_request(cell, request, number)]
        self._next_id += len(shown)
        # A stable sort: the tokens of one request stay in the order of the stream.
        for at, _, _, fields in sorted(lines, key=lambda line: line[:3]):
            kind = str(fields.pop("type"))
            self._line(kind, zero_s + at / NS_PER_S, **fields)

    def end(self, at_s: float, *, status: str = "ok") -> None:
        """The last line. `status`: `ok`, `interrupted` or `error`."""
        self._line("bench_complete", at_s, status=status)

    def _of_request(
        self, cell: CellRecord, request: RequestRecord, number: int
    ) -> list[tuple[int, int, dict[str, Json]]]:
        sent, first = request.sent_ns or 0, request.first_token_ns
        start: dict[str, Json] = {
            "type": "request_start",
            "request_id": number,
            "model": self.model,
            "base_url": self.base_url,
            "prompt_size": cell.prompt_tok,
            "response_size": cell.output_tok,
            "context_size": cell.depth_tok,
            "concurrency": cell.concurrency,
            "run_index": request.repeat,
            "target_label": "",
        }
        lines: list[tuple[int, int, dict[str, Json]]] = [(sent, START, start)]
        response = request.first_event_ns if request.first_event_ns is not None else first
        if response is not None:
            told: dict[str, Json] = {"type": "request_first_response", "request_id": number}
            lines.append((response, RESPONSE, {**told, "ttfr_s": (response - sent) / NS_PER_S}))
        if first is not None:
            told = {"type": "request_first_token", "request_id": number}
            lines.append((first, TOKEN, {**told, "ttft_s": (first - sent) / NS_PER_S}))
        for at, count in request.events:
            tokens: dict[str, Json] = {"type": "tokens", "request_id": number, "count": count or 1, "snippet": ""}
            lines.append((at, TOKENS, tokens if count is not None else {**tokens, "estimated": True}))
        lines.append(self._end_of(request, number))
        return lines

    def _end_of(self, request: RequestRecord, number: int) -> tuple[int, int, dict[str, Json]]:
        last = max((t for t, _ in request.events), default=request.sent_ns or 0)
        at = max(last, request.end_ns if request.end_ns is not None else last)
        first = request.first_token_ns
        fields: dict[str, Json] = {
            "type": "request_end",
            "request_id": number,
            "total_tokens": request.output_tok or 0,
            "prompt_tokens": request.prompt_tok or 0,
            "decode_seconds": 0.0 if first is None else (at - first) / NS_PER_S,
            "error": "" if request.failure is None else f"{request.failure}: {request.error or ''}".rstrip(": "),
        }
        return at, END, fields

    def _line(self, kind: str, at_s: float, **fields: Json) -> None:
        text = json.dumps({"schema": SCHEMA, "type": kind, "ts": at_s, **fields}, separators=(",", ":"))
        self.write(f"{text}\n")
