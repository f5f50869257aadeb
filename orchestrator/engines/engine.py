"""What an engine is to gate0: a pure translation from profile to argv, and the facts needed to follow and gate it.

An engine module never touches a host. It is found through the entry-point group `gate0.engines`, built-in ones too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from orchestrator.profile.model import EnvValue, Profile
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where one rank of the engine runs.

    Attributes:
        rank: 0-based; rank 0 answers HTTP.
        nodes: How many hosts form this one engine.
        address: This host's own address on the link, as the other rank reaches it.
        master_address: Rank 0's address.
        master_port: Rendezvous port.
        total_bytes: The host's MemTotal; None before the host was asked (`plan`).
        free_bytes: MemAvailable just before start; None likewise.
    """

    rank: int = 0
    nodes: int = 1
    address: str = "127.0.0.1"
    master_address: str = "127.0.0.1"
    master_port: int = 29501
    total_bytes: int | None = None
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A word that gate0 put into the command line, and why."""

    words: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """Something worth knowing before the start; never an error.

    Attributes:
        severity: `warning` when it will probably not do what is meant, else `advice`.
        evidence: Where it was seen: public reports, `owner/repository#number`.
        source: How sure that is (one report, several, read in the engine's source).
        path: What in the profile it is about.
        gates: Those that show, when they pass on the same image, that it does not happen here.
        answer: Which run did that, in words. seen: which run showed that it does happen.
    """

    code: str
    message: str
    hint: str | None = None
    severity: Literal["warning", "advice"] = "advice"
    evidence: tuple[str, ...] = ()
    source: str | None = None
    path: str | None = None
    gates: tuple[str, ...] = ()
    answer: str | None = None
    seen: str | None = None


ADDED = "added"
"""Origin of the words that gate0 itself adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCommand:
    """What follows the image (or the binary) on the command line.

    Attributes:
        argv: The words, in order; JSON values are one word.
        origins: For each word where in the profile it comes from (`serve.max_num_seqs`, `flags.tp`, `args[2]`, `port`);
            ADDED for gate0's own, empty for the program. (): not known.
        entrypoint: What it must be started through in its container; None: what the profile says.
        env: Environment that the engine module itself needs, beside the profile's.
        added: What gate0 added, each with its reason (also contained in `argv` or `env`).
        port: Where it listens.
        slots: Parallel requests that it will run at once, None when the engine decides.
        api_key_env: Variable through which this engine takes its API key (never argv), None: it has none.
        notes: Translations worth showing (`memory_gib: 85 -> --gpu-memory-utilization 0.699`).
    """

    argv: tuple[str, ...]
    origins: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    added: tuple[Added, ...] = ()
    port: int
    slots: int | None = None
    api_key_env: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStage:
    """A log line that matches `pattern` (regex, search) means the start-up has reached `stage`.

    A named group `progress` in the pattern, if any, is shown beside the stage ("62%", "3/7").
    """

    pattern: str
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A log line or exit code that names a cause of death.

    Attributes:
        cause: `out_of_memory`, `kv_too_small`, `unknown_flag`, `bad_flag_value`, `port_in_use`, `model_not_found`,
            `model_gated`, `no_kernel_image`, `driver_too_old`, …
        pattern: Regex searched in each log line; None: the exit code alone decides.
        exit_codes: Exit codes that go with it; empty: any.
        message: What happened, with `{group}` placeholders for the pattern's named groups.
        hint: The remedy, placeholders likewise.
    """

    cause: str
    pattern: str | None
    message: str
    hint: str
    exit_codes: tuple[int, ...] = ()


Names = tuple[str, ...]
"""One metric's names in the engine's versions, the newest first; (): it has no such metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricNames:
    """Prometheus names of this engine by our words; counters with their `_total`, histograms as `_sum` and `_count`.

    Attributes:
        running, waiting, kv_usage, spec_acceptance_length: Gauges; the last as the engine averages it itself.
        prompt_tok: All prompt tokens. prompt_computed_tok: without those from the cache.
        cache_queries_tok, cache_hits_tok: Prompt tokens looked up in the prefix cache, and found there.
        spec_drafts, spec_draft_tok, spec_accepted_tok: Steps that verified drafts, tokens drafted, tokens accepted.
        preemptions: Requests thrown out of the batch for lack of room.
        requests_done: Requests finished. steps: Steps of the engine.
        ttft_…, queue_…, prefill_…, decode_…, itl_…, e2e_…: Seconds in sum, and how many were added up.
    """

    running: Names = ()
    waiting: Names = ()
    kv_usage: Names = ()
    prompt_tok: Names = ()
    prompt_computed_tok: Names = ()
    output_tok: Names = ()
    cache_queries_tok: Names = ()
    cache_hits_tok: Names = ()
    spec_drafts: Names = ()
    spec_draft_tok: Names = ()
    spec_accepted_tok: Names = ()
    spec_acceptance_length: Names = ()
    preemptions: Names = ()
    requests_done: Names = ()
    steps: Names = ()
    ttft_sum_s: Names = ()
    ttft_n: Names = ()
    queue_sum_s: Names = ()
    queue_n: Names = ()
    prefill_sum_s: Names = ()
    prefill_n: Names = ()
    decode_sum_s: Names = ()
    decode_n: Names = ()
    itl_sum_s: Names = ()
    itl_n: Names = ()
    e2e_sum_s: Names = ()
    e2e_n: Names = ()


def sums(*names: str) -> Names:
    """The `_sum` of a histogram under each of its names."""
    return tuple(f"{name}_sum" for name in names)


def counts(*names: str) -> Names:
    """The `_count` of a histogram under each of its names."""
    return tuple(f"{name}_count" for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts about an engine that the gates, the sweep and the readiness wait need.

    Attributes:
        cold_fields: Body fields that make one request miss the prefix cache; the value `"{nonce}"` is replaced by a
            fresh nonce (`{"cache_salt": "{nonce}"}`), others are sent as they are (`{"cache_prompt": False}`).
        flush: `(method, path)` that empties the prefix cache, None: none that is safe.
        reasoning_fields: Names under which reasoning text arrives in a delta or message.
        usage_details_always: cached_tokens comes without any flag.
        sends_done_after_error: A stream that carries an error object still ends with `[DONE]`.
        slot_paths: GET paths that tell the number of slots, each with the JSON key path (`("/props", "total_slots")`).
        stream_fields: Extra body fields accepted for exact token counting, to be probed (`return_token_ids`, …).
        length_fields: Body fields that pin the output length (`ignore_eos`, `min_tokens`).
        priority_words: Words of the command line without which a request's `priority` is refused or ignored; (): the
            engine has no priorities.
        shares_cache: A prefix that one request loaded serves those that run beside it; llama-server keeps one cache a
            slot.
        has_live_gauges: `running` and `waiting` are true at once when the last request ends; SGLang sets them only
            while it works, and once in 30 s.
    """

    cold_fields: Mapping[str, Json] = field(default_factory=dict)
    flush: tuple[str, str] | None = None
    reasoning_fields: tuple[str, ...] = ("reasoning", "reasoning_content")
    usage_details_always: bool = False
    sends_done_after_error: bool = True
    slot_paths: tuple[tuple[str, str], ...] = ()
    stream_fields: Mapping[str, Json] = field(default_factory=dict)
    length_fields: Mapping[str, Json] = field(default_factory=dict)
    priority_words: tuple[str, ...] = ()
    shares_cache: bool = True
    has_live_gauges: bool = True
    metrics: MetricNames = field(default_factory=MetricNames)
    log_stages: tuple[LogStage, ...] = ()
    symptoms: tuple[Symptom, ...] = ()


class Engine(Protocol):
    """A serving engine. Attributes are read-only."""

    @property
    def name(self) -> str: ...

    @property
    def traits(self) -> Traits: ...

    def problems(self, profile: Profile) -> tuple[tuple[str, str], ...]:
        """What in the profile this engine cannot express: `(dotted path, message)` each; empty when fine.

        A setting given both through `serve` and `flags` is one of them.
        """
        ...

    def command(self, profile: Profile, place: Placement) -> EngineCommand:
        """The command line for one rank.

        Raises:
            InputError: If `problems` would not be empty.
        """
        ...

    def advisories(self, profile: Profile) -> tuple[Advisory, ...]:
        """What a careful person would be told before starting this."""
        ...
