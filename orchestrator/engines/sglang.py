"""SGLang: `python3 -m sglang.launch_server --model-path MODEL --flags`; its image has no entrypoint of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from orchestrator.engines.advice import advice
from orchestrator.engines.assembly import Problems, Recipe, Want, assemble, find_problems
from orchestrator.engines.engine import Advisory, EngineCommand, MetricNames, Placement, Traits, counts, sums
from orchestrator.engines.images import Version, image_version, is_older
from orchestrator.engines.pieces import Piece, Refused, Step, memory_share, refuse, served_name, setting
from orchestrator.engines.sglang_log import LOG_STAGES, SYMPTOMS
from orchestrator.engines.words import Parser, compact_json, declared
from orchestrator.profile.model import Profile, RuntimeKind, Task
from orchestrator.values import Json

NAME = "sglang"
REPOSITORIES = ("sglang",)
PARSER = Parser(
    engine=NAME,
    aliases={
        "--attention-context-parallel-size": "attn-cp-size",
        "--attention-data-parallel-size": "attn-dp-size",
        "--data-parallel-size": "dp-size",
        "--ep": "ep-size",
        "--expert-parallel-size": "ep-size",
        "--model": "model-path",
        "--nccl-init-addr": "dist-init-addr",
        "--pipeline-parallel-size": "pp-size",
        "--speculative-draft-model": "speculative-draft-model-path",
        "--tensor-parallel-size": "tp-size",
        "--tp": "tp-size",
    },
    negates=False,
    irregular=frozenset(
        {
            "dcp-replicate-q-proj",
            "dllm-fdfo",
            "enable-decoder-swa-bounded-replay",
            "enable-dsa-fused-indexer",
            "enable-fused-qk-norm-rope",
            "enable-tf32-matmul",
            "enable-tp-lm-head-all-to-all",
            "experts-shared-outer-loras",
            "lora-strict-loading",
            "mm-enable-dp-encoder",
            "ple-offload-embedding",
            "speculative-enable-w4a4-mxfp4-megamoe",
        }
    ),
)
ALGORITHMS = {
    "mtp": "NEXTN",
    "eagle3": "EAGLE3",
    "dflash": "DFLASH",
    "dspark": "DSPARK",
    "ngram": "NGRAM",
    "draft_model": "STANDALONE",
}
NEED_A_DRAFT = ("eagle3", "dflash", "dspark", "draft_model")
IN_STEPS = ("mtp", "eagle3", "draft_model")
"""Methods that draft one token a step; the others draft a block at once."""

KV_DTYPES = {"fp8": "fp8_e4m3"}


def version_of(profile: Profile) -> Version | None:
    """SGLang's version as the image's tag tells it."""
    return image_version(profile.image, REPOSITORIES)


def _model(profile: Profile, place: Placement) -> Piece | Refused | None:
    name = profile.model.repo or profile.model.path
    if not name:
        return Refused(path="model", message="sglang needs a model: a repository or {path: …}")
    if profile.model.file:
        return Refused(path="model.file", message="sglang takes a repository or a folder, not one file")
    revision = ("--revision", profile.model.revision) if profile.model.revision else ()
    return Piece(path="model", words=("--model-path", name, *revision))


def _kv_cache_dtype(profile: Profile, place: Placement) -> Piece | None:
    dtype = profile.serve.kv_cache_dtype
    if dtype is None:
        return None
    own = KV_DTYPES.get(dtype, dtype)
    note = None if own == dtype else f"serve.kv_cache_dtype: {dtype} -> --kv-cache-dtype {own}"
    return Piece(path="serve.kv_cache_dtype", words=("--kv-cache-dtype", own), note=note)


def _prefix_caching(profile: Profile, place: Placement) -> Piece | None:
    wanted = profile.serve.prefix_caching
    if wanted is None:
        return None
    if wanted:
        return Piece(
            path="serve.prefix_caching",
            claims=("disable-radix-cache",),
            note="serve.prefix_caching: on by default in sglang",
        )
    return Piece(path="serve.prefix_caching", words=("--disable-radix-cache",))


def _speculative(profile: Profile, place: Placement) -> Piece | Refused | None:
    spec = profile.serve.speculative
    if spec is None:
        return None
    if spec.method not in ALGORITHMS:
        return Refused(
            path="serve.speculative.method",
            message=f"{spec.method} is none of {', '.join(ALGORITHMS)}; others: flags: {{speculative-algorithm: …}}",
        )
    if spec.method in NEED_A_DRAFT and not spec.model:
        return Refused(path="serve.speculative.model", message=f"{spec.method} needs its draft model")
    draft = ("--speculative-draft-model-path", spec.model) if spec.model else ()
    chain = (
        ("--speculative-num-steps", str(spec.num_tokens), "--speculative-eagle-topk", "1")
        if spec.method in IN_STEPS
        else ()
    )
    # What is verified is the drafted tokens and the one they hang on, so one more than is drafted.
    verified = ("--speculative-num-draft-tokens", str(spec.num_tokens + 1))
    return Piece(
        path="serve.speculative",
        words=("--speculative-algorithm", ALGORITHMS[spec.method], *draft, *chain, *verified),
    )


def _thinking(profile: Profile, place: Placement) -> Piece | Refused | None:
    serve = profile.serve
    if serve.thinking is None and serve.thinking_budget is None:
        return None
    path = "serve.thinking" if serve.thinking is not None else "serve.thinking_budget"
    if is_older(version_of(profile), (0, 5, 18)):
        return Refused(path=path, message="sglang before 0.5.18 takes chat_template_kwargs with each request only")
    switch: dict[str, Json] = {} if serve.thinking is None else {"enable_thinking": serve.thinking}
    budget: dict[str, Json] = {} if serve.thinking_budget is None else {"thinking_budget": serve.thinking_budget}
    return Piece(path=path, words=("--default-chat-template-kwargs", compact_json({**switch, **budget})))


def _limit_mm(profile: Profile, place: Placement) -> Piece | None:
    limits = profile.serve.limit_mm
    if limits is None:
        return None
    return Piece(path="serve.limit_mm", words=("--limit-mm-data-per-request", compact_json(limits)))


def _nodes(profile: Profile, place: Placement) -> Piece | Refused | None:
    if profile.nodes == 1:
        return None
    own = declared(PARSER, profile)
    if profile.serve.tensor_parallel is None and not own.keys() & {"tp-size", "pp-size"}:
        return Refused(path="nodes", message="two nodes need serve.tensor_parallel, or pp-size in flags")
    rendezvous = f"{place.master_address}:{place.master_port}"
    return Piece(
        path="nodes",
        words=("--nnodes", str(profile.nodes), "--node-rank", str(place.rank), "--dist-init-addr", rendezvous),
    )


STEPS: tuple[Step, ...] = (
    _model,
    served_name("--served-model-name"),
    memory_share("--mem-fraction-static", of="what is free at start", base_bytes=lambda place: place.free_bytes),
    setting("max_model_len", "--context-length"),
    setting("max_num_seqs", "--max-running-requests"),
    setting("max_num_batched_tokens", "--chunked-prefill-size"),
    setting("quantization", "--quantization"),
    _kv_cache_dtype,
    # The long alias is the one spelling that every version knows.
    setting("tensor_parallel", "--tensor-parallel-size"),
    _prefix_caching,
    refuse(
        "prefix_checkpoint",
        "sglang has no shared-prefix checkpoint; use flags: "
        "{mamba-radix-cache-strategy: extra_buffer_lazy, mamba-track-interval: N}",
    ),
    _speculative,
    setting("tool_call_parser", "--tool-call-parser"),
    setting("reasoning_parser", "--reasoning-parser"),
    setting("chat_template", "--chat-template"),
    _thinking,
    refuse("max_output", "sglang has no limit of its own; send max_tokens with each request"),
    _limit_mm,
    setting("seed", "--random-seed"),
    _nodes,
)
RECIPE = Recipe(parser=PARSER, steps=STEPS, default_port=30000, slots_flag="max-running-requests")
WANTS = (
    Want(words=("--enable-cache-report",), reason="usage then tells the cached tokens, which Gate 0 checks"),
    Want(words=("--enable-metrics",), reason="/metrics is a 404 without it"),
)
_ITL = ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds")
METRICS = MetricNames(
    running=("sglang:num_running_reqs",),
    waiting=("sglang:num_queue_reqs",),
    kv_usage=("sglang:token_usage",),
    prompt_tok=("sglang:prompt_tokens_total",),
    output_tok=("sglang:generation_tokens_total",),
    cache_hits_tok=("sglang:cached_tokens_total",),
    # It counts the steps that verify, but neither the tokens drafted nor those accepted.
    spec_drafts=("sglang:spec_verify_calls_total",),
    spec_acceptance_length=("sglang:spec_accept_length",),
    preemptions=("sglang:num_retracted_requests_total",),
    requests_done=("sglang:num_requests_total",),
    ttft_sum_s=sums("sglang:time_to_first_token_seconds"),
    ttft_n=counts("sglang:time_to_first_token_seconds"),
    queue_sum_s=sums("sglang:queue_time_seconds"),
    queue_n=counts("sglang:queue_time_seconds"),
    itl_sum_s=sums(*_ITL),
    itl_n=counts(*_ITL),
    e2e_sum_s=sums("sglang:e2e_request_latency_seconds"),
    e2e_n=counts("sglang:e2e_request_latency_seconds"),
)
TRAITS = Traits(
    cold_fields={"cache_salt": "{nonce}"},
    flush=("POST", "/flush_cache"),
    reasoning_fields=("reasoning_content",),
    slot_paths=(("/server_info", "max_running_requests"),),
    stream_fields={"return_token_ids": True},
    length_fields={"ignore_eos": True},
    priority_words=("--enable-priority-scheduling",),
    has_live_gauges=False,
    metrics=METRICS,
    log_stages=LOG_STAGES,
    symptoms=SYMPTOMS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sglang:
    """SGLang behind the Engine protocol."""

    name: str = NAME
    traits: Traits = field(default=TRAITS)

    def problems(self, profile: Profile) -> Problems:
        return find_problems(RECIPE, profile)

    def command(self, profile: Profile, place: Placement) -> EngineCommand:
        measured = place.rank == 0 and profile.task is Task.GENERATE
        return assemble(RECIPE, profile, place, prefix=_prefix(profile), wants=WANTS if measured else ())

    def advisories(self, profile: Profile) -> tuple[Advisory, ...]:
        return advice(self, profile, PARSER)


def _prefix(profile: Profile) -> tuple[str, ...]:
    if profile.runtime is RuntimeKind.PROCESS:
        program = PurePosixPath(profile.binary or "").name
        return ("serve",) if program == NAME else ("-m", "sglang.launch_server")
    if profile.container.entrypoint is not None:
        return ()
    return ("python3", "-m", "sglang.launch_server")


ENGINE = Sglang()
