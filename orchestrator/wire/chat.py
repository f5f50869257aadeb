"""What is sent to an OpenAI-compatible server and what comes back, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The server's own count. None: the server did not say."""

    prompt_tok: int | None = None
    output_tok: int | None = None
    cached_tok: int | None = None
    reasoning_tok: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call as it arrived; `arguments` is the unparsed text."""

    id: str | None
    name: str | None
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One generated token and its alternatives, most likely first; natural logarithms."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, streamed or not, failed or not.

    Attributes:
        http_status: 0 when no answer came (connection refused, broken).
        error: The server's words when it refused or broke (also an error object inside a 200 stream).
        events: Number of SSE data events, 0 when not streamed.
        ended_properly: Not streamed, or the stream had its `[DONE]`.
        first_token_s: From sending to the first token's arrival; control-path clock: for shows, not for figures.
        total_s: From sending to the end.
        raw: The parsed body, or the list of parsed events.
    """

    http_status: int
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    logprobs: tuple[TokenLogprob, ...] = ()
    token_ids: tuple[int, ...] | None = None
    model: str | None = None
    fingerprint: str | None = None
    error: str | None = None
    events: int = 0
    ended_properly: bool = True
    first_token_s: float | None = None
    total_s: float | None = None
    timings: Mapping[str, Json] = field(default_factory=dict)
    raw: Json = None

    @property
    def is_ok(self) -> bool:
        return self.http_status == 200 and self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What the profile says of the server, as far as gates need it. None: it says nothing.

    Attributes:
        engine: Engine name, `endpoint` when unknown.
        prefix_caching: True also when the engine has it on by default; False: declared off.
        tools: A tool parser is declared (or built into the engine).
        max_model_len: Tokens of one request, prompt and output together.
        max_output: Tokens reserved for the answer.
        slots: Requests that run at once, as declared (max_num_seqs).
        slots_verified: The server itself told `slots`.
        cold_fields, flush, metrics: From the engine's traits; a cold field that was refused is not among them.
        refused: Body fields that the server has answered with an error when it was probed: never sent again.
        compared: What is declared beside what runs, one mapping a setting: `path`, `declared`, `running`, `agreement`
            (`same`, `changed`, `unconfirmed`, `ignored`, `contradicted`), `source`, `quote`, `why`, `is_weaker` (less
            than promised). None: nothing was read back.
    """

    engine: str
    task: str = "generate"
    prefix_caching: bool | None = None
    tools: bool | None = None
    thinking: bool | None = None
    speculative: bool = False
    max_model_len: int | None = None
    max_output: int | None = None
    slots: int | None = None
    slots_verified: bool = False
    cold_fields: Mapping[str, Json] = field(default_factory=dict)
    flush: tuple[str, str] | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    compared: tuple[Mapping[str, Json], ...] | None = None


class Target(Protocol):
    """The server under test, as a gate sees it. Implementations: wire.target.HttpTarget, and the tests' fake."""

    @property
    def base_url(self) -> str:
        """`http://host:port/v1`, without a trailing slash."""
        ...

    @property
    def model(self) -> str:
        """The served model's name."""
        ...

    @property
    def claims(self) -> Claims: ...

    def chat(self, body: Mapping[str, Json], *, stream: bool = False, timeout_s: float = 600.0) -> Reply:
        """POST /chat/completions. `model` and `temperature: 0` are filled in unless the body has them.

        An HTTP error or a broken connection is a Reply with `error`, never an exception.
        """
        ...

    def chat_many(
        self, bodies: Sequence[Mapping[str, Json]], *, stream: bool = True, timeout_s: float = 600.0
    ) -> tuple[Reply, ...]:
        """All at the same time, one thread each; replies in the order of the bodies."""
        ...

    def get_json(self, path: str, *, timeout_s: float = 10.0) -> Json:
        """GET a path from the server's root (`/props`, `/v1/models`); None when it has no such thing."""
        ...

    def post(self, path: str, *, timeout_s: float = 30.0) -> int:
        """POST without a body to a path from the server's root; the HTTP status, 0 when nothing answered."""
        ...

    def metrics(self) -> Mapping[str, float] | None:
        """Prometheus samples summed over labels by name (`vllm:prompt_tokens_total`), None when there are none."""
        ...

    def metric_labels(self, name: str) -> tuple[Mapping[str, str], ...]:
        """The label sets under which a metric stands (`vllm:cache_config_info` keeps its values there), () for none."""
        ...

    def count_tokens(self, text: str) -> int | None:
        """How many tokens the server's own tokenizer makes of the text, None when it has no such endpoint."""
        ...

    def close(self) -> None:
        """Give back what it holds; nothing is asked through it any more."""
        ...
