"""What the mock server is told to be: its known truth, and its faults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.values import Secret


class Flavour(StrEnum):
    """Whose habits the mock has: paths, field names, the shape of errors."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llamacpp"


class Fault(StrEnum):
    """What goes wrong with a request. Those within a stream strike after half of the tokens."""

    HTTP_400 = "http_400"
    HTTP_404 = "http_404"
    HTTP_500 = "http_500"
    STREAM_ERROR = "stream_error"
    NO_DONE = "no_done"
    CLOSE_EARLY = "close_early"
    MALFORMED = "malformed"
    NO_TOKENS = "no_tokens"
    HANG = "hang"
    NOT_HTTP = "not_http"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class MockSettings:
    """A server's behaviour, known in advance.

    One word is one token, for prompts and answers alike. A chat prompt has `template_head_tok` before the messages'
    words and `template_tail_tok` after them.

    Attributes:
        ttft_s: From admission to the first token, at the next step.
        step_s: One engine step: every running stream gets its next event in it, as a real engine does.
        prefill_tok_per_s: Adds uncached prompt tokens over this to `ttft_s`; None: prefill takes no time.
        tokens_per_event: More than 1: as under speculation.
        slots: Requests that run at once; more wait their turn.
        block_tok: The prefix cache hits whole blocks of this many tokens only.
        reports_usage, reports_cached_tok: What a final usage chunk says.
        reasoning_tok: So many tokens come first as reasoning.
        withheld_every: Every n-th event has an empty delta (its text comes with the next one).
        calls_tools: Answer with a tool call when the request offers tools.
        short_by_tok: Answers end so many tokens early.
        refused_fields: Body fields answered with 400.
        closes: Every answer says `Connection: close`.
        has_stamps: Each chunk carries `"mock_ns"`: the server's monotonic clock just before the write; the header
            `X-Mock-Received-Ns` says when it had the whole request.
        fault_every: Which requests a fault strikes: every n-th.
    """

    flavour: Flavour = Flavour.VLLM
    model: str = "mock-model"
    api_key: Secret | None = None
    ttft_s: float = 0.0
    step_s: float = 0.001
    prefill_tok_per_s: float | None = None
    tokens_per_event: int = 1
    slots: int = 256
    max_model_len: int = 131072
    prefix_caching: bool = True
    block_tok: int = 16
    template_head_tok: int = 4
    template_tail_tok: int = 3
    reports_usage: bool = True
    reports_cached_tok: bool = True
    reasoning_tok: int = 0
    withheld_every: int = 0
    calls_tools: bool = True
    short_by_tok: int = 0
    has_role_chunk: bool = True
    has_keepalives: bool = False
    has_tokenize: bool = True
    is_crlf: bool = False
    is_split: bool = False
    closes: bool = False
    has_stamps: bool = False
    refused_fields: tuple[str, ...] = ()
    fault: Fault | None = None
    fault_every: int = 1
