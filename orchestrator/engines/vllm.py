"""vLLM: `vllm serve MODEL --flags`.

The official image's entrypoint is `vllm serve`, so the words begin with the model. Versions matter for three things
only: the shared-prefix checkpoint (0.30 under another name, 0.31), the match unit (0.26) and what to warn of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from orchestrator.engines.advice import advice
from orchestrator.engines.assembly import Problems, Recipe, Want, assemble, find_problems
from orchestrator.engines.engine import Advisory, EngineCommand, MetricNames, Placement, Traits, counts, sums
from orchestrator.engines.images import Version, image_version, is_older, split_image
from orchestrator.engines.pieces import Piece, Refused, Step, memory_share, served_name, setting
from orchestrator.engines.vllm_log import LOG_STAGES, SYMPTOMS
from orchestrator.engines.vllm_ray import is_over_ray, over_ray
from orchestrator.engines.words import Parser, compact_json, declared
from orchestrator.profile.model import EnvValue, Profile, RuntimeKind, Task
from orchestrator.values import Json

NAME = "vllm"
REPOSITORIES = ("vllm-openai",)
PARSER = Parser(
    engine=NAME,
    aliases={
        "-ac": "attention-config",
        "-cc": "compilation-config",
        "-dp": "data-parallel-size",
        "-dpl": "data-parallel-size-local",
        "-ep": "enable-expert-parallel",
        "-n": "nnodes",
        "-pp": "pipeline-parallel-size",
        "-q": "quantization",
        "-r": "node-rank",
        "-sc": "speculative-config",
        "-tp": "tensor-parallel-size",
        "--device-memory-utilization": "gpu-memory-utilization",
        "--disable-prefix-caching": "enable-prefix-caching",
        "--disable-prompt-tokens-details": "enable-prompt-tokens-details",
        "--disable-per-request-metrics": "enable-per-request-metrics",
        "--disable-auto-tool-choice": "enable-auto-tool-choice",
        "--disable-mamba-shared-prefix-checkpoint": "enable-mamba-shared-prefix-checkpoint",
    },
    irregular=frozenset(
        {"aggregate-engine-logging", "data-parallel-multi-port-external-lb", "disable-log-stats", "grpc", "headless"}
    ),
)
CHECKPOINT = "enable-mamba-shared-prefix-checkpoint"
CHECKPOINT_0_30 = "enable-mamba-fine-grained-prefix-cache"
METHODS = ("mtp", "eagle3", "dflash", "dspark", "ngram", "draft_model")
NEED_A_DRAFT = ("eagle3", "dflash", "dspark", "draft_model")


def version_of(profile: Profile) -> Version | None:
    """vLLM's version as the image's tag tells it."""
    return image_version(profile.image, REPOSITORIES)


def _model(profile: Profile, place: Placement) -> Piece | Refused | None:
    name = profile.model.repo or profile.model.path
    if not name:
        return Refused(
            path="model", message="vllm needs a model: a repository or {path: …}; without one it serves its own default"
        )
    if profile.model.file:
        return Refused(
            path="model.file", message="vllm takes a repository or a folder, not one file; use engine: llamacpp"
        )
    revision = ("--revision", profile.model.revision) if profile.model.revision else ()
    return Piece(path="model", words=(name, *revision), claims=("model", "model-tag"))


def _prefix_caching(profile: Profile, place: Placement) -> Piece | None:
    wanted = profile.serve.prefix_caching
    if wanted is None:
        return None
    word = "--enable-prefix-caching" if wanted else "--no-enable-prefix-caching"
    return Piece(path="serve.prefix_caching", words=(word,))


def _prefix_checkpoint(profile: Profile, place: Placement) -> Piece | Refused | None:
    checkpoint = profile.serve.prefix_checkpoint
    if checkpoint is None:
        return None
    version = version_of(profile)
    if is_older(version, (0, 30)):
        return Refused(
            path="serve.prefix_checkpoint",
            message=f"vllm {_dotted(version)} has no shared-prefix checkpoint; use an image of 0.31 or later",
        )
    name = CHECKPOINT_0_30 if is_older(version, (0, 31)) else CHECKPOINT
    return Piece(
        path="serve.prefix_checkpoint",
        words=(f"--{name}", "--prefix-match-unit", str(checkpoint.match_unit)),
        claims=(CHECKPOINT, CHECKPOINT_0_30),
    )


def _speculative(profile: Profile, place: Placement) -> Piece | Refused | None:
    spec = profile.serve.speculative
    if spec is None:
        return None
    if spec.method not in METHODS:
        return Refused(
            path="serve.speculative.method",
            message=f"{spec.method} is none of {', '.join(METHODS)}; others go to flags: {{speculative-config: {{…}}}}",
        )
    if spec.method in NEED_A_DRAFT and not spec.model:
        return Refused(path="serve.speculative.model", message=f"{spec.method} needs its draft model")
    model = {"model": spec.model} if spec.model else {}
    config: dict[str, Json] = {"method": spec.method, **model, "num_speculative_tokens": spec.num_tokens}
    shorthands = ("spec-method", "spec-model", "spec-tokens")
    return Piece(path="serve.speculative", words=("--speculative-config", compact_json(config)), claims=shorthands)


def _tool_calls(profile: Profile, place: Placement) -> Piece | None:
    parser = profile.serve.tool_call_parser
    if parser is None:
        return None
    # Without the parser every request with tools is a 400; without auto choice only a forced call works.
    return Piece(path="serve.tool_call_parser", words=("--enable-auto-tool-choice", "--tool-call-parser", parser))


def _thinking(profile: Profile, place: Placement) -> Piece | None:
    serve = profile.serve
    if serve.thinking is None and serve.thinking_budget is None:
        return None
    path = "serve.thinking" if serve.thinking is not None else "serve.thinking_budget"
    return Piece(path=path, words=("--default-chat-template-kwargs", compact_json(template_hints(profile))))


def template_hints(profile: Profile) -> Mapping[str, Json]:
    """What the chat template is told of thinking: a hint, honoured by templates that know the names."""
    serve = profile.serve
    switch: dict[str, Json] = {} if serve.thinking is None else {"enable_thinking": serve.thinking}
    budget: dict[str, Json] = {} if serve.thinking_budget is None else {"thinking_budget": serve.thinking_budget}
    return {**switch, **budget}


def _max_output(profile: Profile, place: Placement) -> Piece | None:
    limit = profile.serve.max_output
    if limit is None:
        return None
    return Piece(
        path="serve.max_output", words=("--override-generation-config", compact_json({"max_new_tokens": limit}))
    )


def _limit_mm(profile: Profile, place: Placement) -> Piece | None:
    limits = profile.serve.limit_mm
    return (
        None if limits is None else Piece(path="serve.limit_mm", words=("--limit-mm-per-prompt", compact_json(limits)))
    )


def _nodes(profile: Profile, place: Placement) -> Piece | Refused | None:
    if profile.nodes == 1:
        return None
    own = declared(PARSER, profile)
    if profile.serve.tensor_parallel is None and not own.keys() & {"tensor-parallel-size", "pipeline-parallel-size"}:
        return Refused(path="nodes", message="two nodes need serve.tensor_parallel, or pipeline-parallel-size in flags")
    if is_over_ray(PARSER, profile):
        if profile.runtime is RuntimeKind.PROCESS:
            return Refused(
                path="nodes", message="runtime: process starts no Ray; leave distributed-executor-backend out"
            )
        return None
    words = (
        *("--nnodes", str(profile.nodes), "--node-rank", str(place.rank)),
        *("--master-addr", place.master_address, "--master-port", str(place.master_port)),
    )
    return Piece(path="nodes", words=(*words, *(("--headless",) if place.rank else ())))


STEPS: tuple[Step, ...] = (
    _model,
    served_name("--served-model-name"),
    memory_share("--gpu-memory-utilization", of="the total", base_bytes=lambda place: place.total_bytes),
    setting("max_model_len", "--max-model-len"),
    setting("max_num_seqs", "--max-num-seqs"),
    setting("max_num_batched_tokens", "--max-num-batched-tokens"),
    setting("quantization", "--quantization"),
    setting("kv_cache_dtype", "--kv-cache-dtype"),
    setting("tensor_parallel", "--tensor-parallel-size"),
    _prefix_caching,
    _prefix_checkpoint,
    _speculative,
    _tool_calls,
    setting("reasoning_parser", "--reasoning-parser"),
    setting("chat_template", "--chat-template"),
    _thinking,
    _max_output,
    _limit_mm,
    setting("seed", "--seed"),
    _nodes,
)
RECIPE = Recipe(parser=PARSER, steps=STEPS, default_port=8000, slots_flag="max-num-seqs", api_key_env="VLLM_API_KEY")
USAGE_DETAILS = Want(
    words=("--enable-prompt-tokens-details",), reason="usage then tells the cached tokens, which Gate 0 checks"
)
REQUEST_METRICS = Want(
    words=("--enable-per-request-metrics",),
    reason="each answer then tells the server's own queue and first-token time, which the sweep sets beside its own",
)
REQUEST_METRICS_SINCE = (0, 25)
ROLLING_TAGS = ("latest", "nightly")
_ITL = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
METRICS = MetricNames(
    running=("vllm:num_requests_running",),
    waiting=("vllm:num_requests_waiting",),
    kv_usage=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    prompt_tok=("vllm:prompt_tokens_total",),
    output_tok=("vllm:generation_tokens_total",),
    cache_queries_tok=("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    cache_hits_tok=("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    spec_drafts=("vllm:spec_decode_num_drafts_total",),
    spec_draft_tok=("vllm:spec_decode_num_draft_tokens_total",),
    spec_accepted_tok=("vllm:spec_decode_num_accepted_tokens_total",),
    preemptions=("vllm:num_preemptions_total",),
    requests_done=("vllm:request_success_total",),
    steps=("vllm:iteration_tokens_total_count",),
    ttft_sum_s=sums("vllm:time_to_first_token_seconds"),
    ttft_n=counts("vllm:time_to_first_token_seconds"),
    queue_sum_s=sums("vllm:request_queue_time_seconds"),
    queue_n=counts("vllm:request_queue_time_seconds"),
    prefill_sum_s=sums("vllm:request_prefill_time_seconds"),
    prefill_n=counts("vllm:request_prefill_time_seconds"),
    decode_sum_s=sums("vllm:request_decode_time_seconds"),
    decode_n=counts("vllm:request_decode_time_seconds"),
    itl_sum_s=sums(*_ITL),
    itl_n=counts(*_ITL),
    e2e_sum_s=sums("vllm:e2e_request_latency_seconds"),
    e2e_n=counts("vllm:e2e_request_latency_seconds"),
)
TRAITS = Traits(
    cold_fields={"cache_salt": "{nonce}"},
    reasoning_fields=("reasoning", "reasoning_content"),
    # Answered only with VLLM_SERVER_DEV_MODE=1; elsewhere a 404, and the slots stay as declared.
    slot_paths=(("/server_info?config_format=json", "vllm_config.scheduler_config.max_num_seqs"),),
    stream_fields={"return_token_ids": True},
    length_fields={"ignore_eos": True},
    priority_words=("--scheduling-policy", "priority"),
    metrics=METRICS,
    log_stages=LOG_STAGES,
    symptoms=SYMPTOMS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vllm:
    """vLLM behind the Engine protocol."""

    name: str = NAME
    traits: Traits = field(default=TRAITS)

    def problems(self, profile: Profile) -> Problems:
        return find_problems(RECIPE, profile)

    def command(self, profile: Profile, place: Placement) -> EngineCommand:
        measured = place.rank == 0 and profile.task is Task.GENERATE
        # On a host with several interfaces vLLM would announce the first one, which the other rank may not reach.
        env: Mapping[str, EnvValue] = {"VLLM_HOST_IP": place.address} if profile.nodes > 1 else {}
        prefix, wants = _prefix(profile), tuple(_wants(profile)) if measured else ()
        command = assemble(RECIPE, profile, place, prefix=prefix, wants=wants, env=env)
        if not is_over_ray(PARSER, profile):
            return command
        return over_ray(profile, command, place, has_program=bool(prefix))

    def advisories(self, profile: Profile) -> tuple[Advisory, ...]:
        return advice(self, profile, PARSER)


def _wants(profile: Profile) -> Iterator[Want]:
    yield USAGE_DETAILS
    # The times come from the statistics: vLLM refuses to start with one and without the other.
    if _has_request_metrics(profile) and "disable-log-stats" not in declared(PARSER, profile):
        yield REQUEST_METRICS


def _has_request_metrics(profile: Profile) -> bool:
    """Known to have the flag: an unknown one would end the start, so another's image is not taken for a current one."""
    version = version_of(profile)
    if version is not None:
        return version >= REQUEST_METRICS_SINCE
    name, tag = split_image(profile.image or "")
    is_official = profile.runtime is RuntimeKind.DOCKER and name.rpartition("/")[2] in REPOSITORIES
    return is_official and (not tag or tag.startswith(ROLLING_TAGS))


def _prefix(profile: Profile) -> tuple[str, ...]:
    if profile.runtime is RuntimeKind.PROCESS:
        return ("serve",) if PurePosixPath(profile.binary or "").name == NAME else ()
    if profile.container.entrypoint is not None:
        return ()
    # NVIDIA's image starts whatever command it is given.
    return ("vllm", "serve") if split_image(profile.image or "")[0] == "nvcr.io/nvidia/vllm" else ()


def _dotted(version: Version | None) -> str:
    return ".".join(str(part) for part in version or ())


ENGINE = Vllm()
