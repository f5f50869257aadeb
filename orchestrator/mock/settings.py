"""What the mock server is told to be: its known truth, and its faults.

The text beside each switch is its only manual: `gate0 mock --list` prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, get_type_hints

from orchestrator.values import Secret


class Flavour(StrEnum):
    """Whose habits the mock has: paths, field names, the shape of errors."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llamacpp"


class Fault(StrEnum):
    """What goes wrong with a request. Those within a stream strike after half of the events, or `fault_after_events`.

    STREAM_ERROR: an error object in the 200 stream. ERROR_EVENT: an event named `error` without such an object.
    RESET: the connection is reset, not closed. The others say what they are.
    """

    HTTP_400 = "http_400"
    HTTP_404 = "http_404"
    HTTP_429 = "http_429"
    HTTP_500 = "http_500"
    HTTP_503 = "http_503"
    STREAM_ERROR = "stream_error"
    ERROR_EVENT = "error_event"
    NO_DONE = "no_done"
    CLOSE_EARLY = "close_early"
    RESET = "reset"
    MALFORMED = "malformed"
    NO_TOKENS = "no_tokens"
    HANG = "hang"
    NOT_HTTP = "not_http"
    REFUSE = "refuse"


class Reasoning(StrEnum):
    """Where the reasoning stands. FLAVOUR: where the engine puts it. BOTH: the same text in both fields.

    HIDDEN: nowhere, its tokens are counted but have no text.
    """

    FLAVOUR = "flavour"
    REASONING = "reasoning"
    REASONING_CONTENT = "reasoning_content"
    BOTH = "both"
    HIDDEN = "hidden"


class Cached(StrEnum):
    """How cached tokens are told. OMITS_ZERO: the key is missing when it would say 0. ZERO: 0 whatever is true."""

    TRUE = "true"
    OMITS_ZERO = "omits_zero"
    ZERO = "zero"
    NULL = "null"
    DETAILS_NULL = "details_null"
    ABSENT = "absent"


class UsageChoices(StrEnum):
    """The `choices` of the usage chunk. FINISH: usage stands on the chunk with the finish reason instead."""

    EMPTY = "empty"
    MISSING = "missing"
    NULL = "null"
    FINISH = "finish"


class Framing(StrEnum):
    """How a stream's end is known: chunked, by `Content-Length`, or by the closed connection."""

    CHUNKED = "chunked"
    LENGTH = "length"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class MockSettings:
    """A server's behaviour, known in advance; each switch says itself what it does.

    One word is one token, for prompts and answers alike. A chat prompt has `template_head_tok` before the messages'
    words and `template_tail_tok` after them, and the latter before each earlier answer too: so a conversation's next
    prompt begins with all that was computed before.
    """

    flavour: Annotated[Flavour, "whose paths, fields and errors: vllm, sglang, llamacpp"] = Flavour.VLLM
    model: Annotated[str, "the served model's name"] = "mock-model"
    api_key: Annotated[Secret | None, "the key that requests must bring"] = None
    accepts_any_model: Annotated[bool, "a wrong model name is served all the same"] = False
    echoes_model: Annotated[str, "the name that answers carry instead of the model's"] = ""

    ttft_s: Annotated[float, "seconds from a prefill's start to the first token, at the next step"] = 0.0
    step_s: Annotated[float, "seconds of an engine step: every running stream gets its next event in it"] = 0.001
    prefill_tok_per_s: Annotated[float | None, "adds uncached prompt tokens over this to ttft_s; null: nothing"] = None
    prefill_chunk_tok: Annotated[int, "chunked prefill: the role chunk leaves after so many prompt tokens; 0: not"] = 0
    prefill_is_serial: Annotated[bool, "prefills wait for each other, as in one engine"] = False
    prefill_stalls: Annotated[bool, "while a prefill runs no stream gets a token"] = False
    slow_first: Annotated[int, "so many first requests pay slow_extra_s (graph capture, JIT)"] = 0
    slow_extra_s: Annotated[float, "what each of the slow_first requests pays before its first token"] = 0.0
    tokens_per_event: Annotated[int, "more than 1: as under speculation"] = 1
    tokens_pattern: Annotated[tuple[int, ...], "tokens of each event in turn, over and over: [1,4,2,3]"] = ()
    rejected_tok: Annotated[int, "each event's step also drafts so many tokens that are never accepted"] = 0
    slots: Annotated[int, "requests that run at once; more wait their turn"] = 256
    sheds_beyond: Annotated[int | None, "refuse a request when so many wait already; null: never"] = None
    shed_status: Annotated[int, "the status of such a refusal"] = 503

    max_model_len: Annotated[int, "tokens of one request, prompt and output together"] = 131072
    prefix_caching: Annotated[bool, "prompts are remembered"] = True
    block_tok: Annotated[int, "the prefix cache hits whole blocks of so many tokens"] = 16
    cache_blocks: Annotated[int, "KV capacity in blocks, the least recently used go first; 0: without end"] = 0
    shares_in_flight: Annotated[bool, "a prompt is known when its prefill begins; false: when it ends"] = True
    caches_answers: Annotated[bool, "an answer's tokens are remembered behind its prompt's"] = True
    template_head_tok: Annotated[int, "tokens before a chat's words"] = 4
    template_tail_tok: Annotated[int, "tokens after a chat's words, and before each earlier answer"] = 3
    prompt_extra_tok: Annotated[int, "so many more prompt tokens are counted (1: BOS twice)"] = 0
    word_tok: Annotated[int, "a prompt word counts so many tokens, whatever /tokenize says (tokenizer drift)"] = 1
    has_tokenize: Annotated[bool, "there is a /tokenize"] = True

    reports_usage: Annotated[bool, "usage is told"] = True
    volunteers_usage: Annotated[bool, "streams tell it unasked"] = False
    usage_choices: Annotated[
        UsageChoices, "`choices` of the usage chunk: empty, missing, null; finish: no chunk of its own"
    ] = UsageChoices.EMPTY
    reports_cached_tok: Annotated[bool, "usage has cached tokens; false is cached: absent"] = True
    cached: Annotated[Cached, "cached tokens: true, omits_zero, zero (always 0), null, details_null, absent"] = (
        Cached.TRUE
    )
    has_metrics: Annotated[bool, "vLLM's per-request `metrics` stand on the usage chunk, true to the stamps"] = False
    has_nan: Annotated[bool, "NaN and Infinity stand in the JSON of each chunk and in /metrics"] = False

    answer_tok: Annotated[int | None, "the model ends by itself after so many tokens unless told ignore_eos"] = None
    short_by_tok: Annotated[int, "answers end so many tokens early"] = 0
    finish_reason: Annotated[str | None, "said instead of the true finish reason; empty: null"] = None
    reasoning_tok: Annotated[int, "so many tokens come first as reasoning"] = 0
    reasoning: Annotated[Reasoning, "its field: flavour, reasoning, reasoning_content, both, hidden (none)"] = (
        Reasoning.FLAVOUR
    )
    calls_tools: Annotated[bool, "answer with a tool call when the request offers tools"] = True
    always_calls: Annotated[bool, "answer with a tool call and nothing else, offered or not"] = False
    withheld_every: Annotated[int, "every n-th event has an empty delta, its text comes with the next one"] = 0
    special_first: Annotated[int, "so many first events are special tokens: empty text that never comes"] = 0
    special_every: Annotated[int, "every n-th event is one"] = 0
    has_blank_text: Annotated[bool, "every token's text is blanks"] = False

    has_role_chunk: Annotated[bool, "chat streams begin with a role chunk"] = True
    has_keepalives: Annotated[bool, "one comment before the first token"] = False
    keepalive_s: Annotated[float, "a comment every so many seconds until the first token; 0: none"] = 0.0
    keepalive_text: Annotated[str, "what follows the colon of a comment; may be empty"] = " keep-alive"
    is_crlf: Annotated[bool, "lines end with CRLF"] = False
    is_cr: Annotated[bool, "lines end with CR alone"] = False
    is_tight: Annotated[bool, "no blank after `data:`"] = False
    is_multiline: Annotated[bool, "an event's JSON stands on several data lines"] = False
    has_event_names: Annotated[bool, "each event has an `event: message` line"] = False
    lacks_last_blank: Annotated[bool, "the stream ends without its last blank line"] = False
    is_split: Annotated[bool, "every byte is a write of its own"] = False
    events_per_write: Annotated[int, "so many events leave in one write"] = 1
    framing: Annotated[Framing, "the end of a stream: chunked, length (Content-Length), close"] = Framing.CHUNKED
    closes: Annotated[bool, "every answer says `Connection: close`"] = False
    hangs_up: Annotated[bool, "every answer is followed by a close that nothing announced"] = False
    ok_status: Annotated[int, "the status of a good stream"] = 200
    content_type: Annotated[str, "of a stream; empty: none is said"] = "text/event-stream; charset=utf-8"
    has_stamps: Annotated[
        bool,
        "each chunk carries `mock_ns`, the server's monotonic clock just before the write; the header "
        "X-Mock-Received-Ns says when it had the whole request",
    ] = False

    refused_fields: Annotated[tuple[str, ...], "body fields answered with 400"] = ()
    fault: Annotated[Fault | None, f"what goes wrong with a request: {', '.join(Fault)}"] = None
    fault_every: Annotated[int, "which requests it strikes: every n-th"] = 1
    fault_after_events: Annotated[int | None, "it strikes after so many token events; null: after half"] = None
    listens_after_s: Annotated[float, "connections are refused for so long"] = 0.0
    loading_s: Annotated[float, "503 for so long after the start"] = 0.0
    loading_requests: Annotated[int, "503 for the first so many requests, /health among them"] = 0
    dies_at: Annotated[int, "the n-th generation kills the server: connections drop, the port closes; 0: never"] = 0
    restarts_at: Annotated[int, "the n-th generation restarts it: connections drop, counters and cache are new"] = 0


def switches() -> Mapping[str, str]:
    """What each switch does, by name, in order."""
    hints = get_type_hints(MockSettings, include_extras=True)
    return MappingProxyType({name: str(hint.__metadata__[0]) for name, hint in hints.items()})
