"""llama.cpp's llama-server: one GGUF file, a fixed number of slots, one pool of context that they share out.

`max_model_len` is per request everywhere in gate0; llama-server's `-c` is the whole pool, so it is multiplied by the
slots. Booleans come in two kinds (`--x/--no-x` and `--x on|off`), and `--flag=value` is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.engines.advice import advice
from orchestrator.engines.assembly import Problems, Recipe, Want, assemble, find_problems
from orchestrator.engines.engine import Advisory, EngineCommand, MetricNames, Placement, Traits
from orchestrator.engines.llamacpp_log import LOG_STAGES, SYMPTOMS
from orchestrator.engines.pieces import Piece, Refused, Step, refuse, served_name, setting
from orchestrator.engines.words import Parser
from orchestrator.profile.model import Profile

NAME = "llamacpp"
PARSER = Parser(
    engine="llama-server",
    aliases={
        "-a": "alias",
        "-b": "batch-size",
        "-c": "ctx-size",
        "-cram": "cache-ram",
        "-ctk": "cache-type-k",
        "-ctv": "cache-type-v",
        "-fa": "flash-attn",
        "-fit": "fit",
        "-hf": "hf-repo",
        "-hff": "hf-file",
        "-hfr": "hf-repo",
        "-kvu": "kv-unified",
        "-lm": "load-mode",
        "-lv": "verbosity",
        "-m": "model",
        "-md": "spec-draft-model",
        "-mm": "mmproj",
        "-n": "predict",
        "-ngl": "gpu-layers",
        "-np": "parallel",
        "-rea": "reasoning",
        "-s": "seed",
        "-sm": "split-mode",
        "-ts": "tensor-split",
        "-ub": "ubatch-size",
        "--hf-repo-draft": "spec-draft-hf",
        "--model-draft": "spec-draft-model",
        "--log-verbosity": "verbosity",
        "--n-gpu-layers": "gpu-layers",
        "--n-predict": "predict",
        "--no-mmproj": "mmproj-auto",
        "--swa-checkpoints": "ctx-checkpoints",
    },
    irregular=frozenset(
        {
            *("backend-sampling", "check-tensors", "cpu-moe", "embedding", "ignore-eos", "log-disable", "metrics"),
            *("mlock", "offline", "props", "rerank", "reuse-port", "spec-default", "spec-draft-cpu-moe", "special"),
            *("spm-infill", "swa-full", "verbose"),
        }
    ),
    on_off=frozenset({"fit", "flash-attn", "lazy-mode", "log-colors", "reasoning"}),
    own_no=frozenset({"no-host"}),
    comma_lists=True,
    equals=False,
)
DRAFTS = {
    "mtp": "draft-mtp",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
    "draft_model": "draft-simple",
}
NEED_A_DRAFT = ("eagle3", "dflash", "dspark", "draft_model")
KV_DTYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
REASONING_FORMATS = ("none", "deepseek", "deepseek-legacy", "auto")
DOCKER_PORT = 8080


def _model(profile: Profile, place: Placement) -> Piece | Refused | None:
    model = profile.model
    if model.path:
        return Piece(path="model", words=("-m", model.path), claims=("hf-repo", "model-url"))
    if not model.repo:
        return Refused(
            path="model", message="llama-server needs a model: {path: FILE.gguf}, or a repository with its quantisation"
        )
    if model.revision:
        return Refused(
            path="model.revision", message="llama-server takes no revision; download the file and give {path: …}"
        )
    file = ("--hf-file", model.file) if model.file else ()
    return Piece(path="model", words=("--hf-repo", model.repo, *file), claims=("model", "model-url", "hf-file"))


def _context(profile: Profile, place: Placement) -> Piece | None:
    length, slots = profile.serve.max_model_len, profile.serve.max_num_seqs
    if length is None:
        return None
    if slots is None:
        note = f"serve.max_model_len: {length} tokens, one pool for the slots that llama-server chooses"
        return Piece(path="serve.max_model_len", words=("-c", str(length)), note=note)
    note = f"serve.max_model_len: {length} tokens x {slots} slots -> -c {length * slots}"
    return Piece(path="serve.max_model_len", words=("-c", str(length * slots)), note=note)


def _kv_cache_dtype(profile: Profile, place: Placement) -> Piece | Refused | None:
    dtype = profile.serve.kv_cache_dtype
    if dtype is None or dtype == "auto":
        return None
    if dtype not in KV_DTYPES:
        return Refused(
            path="serve.kv_cache_dtype",
            message=f"llama-server has no {dtype}; it has {', '.join(KV_DTYPES)}; q8_0 is nearest to fp8",
        )
    return Piece(path="serve.kv_cache_dtype", words=("--cache-type-k", dtype, "--cache-type-v", dtype))


def _prefix_caching(profile: Profile, place: Placement) -> Piece | None:
    wanted = profile.serve.prefix_caching
    if wanted is None:
        return None
    # The slots' own reuse and the copies kept in host memory are two caches; off means both.
    words = ("--cache-prompt",) if wanted else ("--no-cache-prompt", "--cache-ram", "0")
    return Piece(path="serve.prefix_caching", words=words)


NGRAM_TOK = 12
"""llama-server's default length of the piece that it looks up."""


def _speculative(profile: Profile, place: Placement) -> Piece | Refused | None:
    spec = profile.serve.speculative
    if spec is None:
        return None
    if spec.method == "ngram":
        words = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-m", str(spec.num_tokens))
        # A draft shorter than the piece that is looked up is never made (measured on b10434: 4 and 8 of 12: no draft).
        short = ("--spec-ngram-simple-size-n", str(spec.num_tokens)) if spec.num_tokens < NGRAM_TOK else ()
        return Piece(path="serve.speculative", words=(*words, *short))
    if spec.method not in DRAFTS:
        return Refused(
            path="serve.speculative.method",
            message=f"{spec.method} is none of ngram, {', '.join(DRAFTS)}; others go to flags: {{spec-type: …}}",
        )
    if spec.method in NEED_A_DRAFT and not spec.model:
        return Refused(path="serve.speculative.model", message=f"{spec.method} needs its draft model")
    return Piece(
        path="serve.speculative",
        words=("--spec-type", DRAFTS[spec.method], *_draft(spec.model), "--spec-draft-n-max", str(spec.num_tokens)),
    )


def _draft(model: str | None) -> tuple[str, ...]:
    if not model:
        return ()
    is_file = model.startswith("/") or model.endswith(".gguf")
    return ("--spec-draft-model" if is_file else "--spec-draft-hf", model)


def _reasoning_parser(profile: Profile, place: Placement) -> Piece | None:
    name = profile.serve.reasoning_parser
    if name is None:
        return None
    if name in REASONING_FORMATS:
        return Piece(path="serve.reasoning_parser", words=("--reasoning-format", name))
    note = f"serve.reasoning_parser: {name} -> --reasoning-format auto (llama-server reads it off the chat template)"
    return Piece(path="serve.reasoning_parser", words=("--reasoning-format", "auto"), note=note)


def _tool_call_parser(profile: Profile, place: Placement) -> Piece | None:
    name = profile.serve.tool_call_parser
    if name is None:
        return None
    return Piece(
        path="serve.tool_call_parser",
        note=f"serve.tool_call_parser: {name} -> --jinja (llama-server reads the format off the chat template)",
    )


def _chat_template(profile: Profile, place: Placement) -> Piece | None:
    template = profile.serve.chat_template
    if template is None:
        return None
    is_file = "/" in template or template.endswith(".jinja")
    return Piece(
        path="serve.chat_template",
        words=("--chat-template-file" if is_file else "--chat-template", template),
        claims=("chat-template", "chat-template-file"),
    )


def _thinking(profile: Profile, place: Placement) -> Piece | None:
    wanted = profile.serve.thinking
    return None if wanted is None else Piece(path="serve.thinking", words=("--reasoning", "on" if wanted else "off"))


def _limit_mm(profile: Profile, place: Placement) -> Piece | Refused | None:
    limits = profile.serve.limit_mm
    if limits is None:
        return None
    if any(limits.values()):
        return Refused(
            path="serve.limit_mm",
            message="llama-server can leave its vision part out (all 0), but not limit the number of items",
        )
    return Piece(path="serve.limit_mm", words=("--no-mmproj",), claims=("mmproj",))


def _nodes(profile: Profile, place: Placement) -> Refused | None:
    if profile.nodes == 1:
        return None
    return Refused(
        path="nodes",
        message="llama-server has no ranks; run rpc-server on the other host and use flags: {rpc: host:port}",
    )


STEPS: tuple[Step, ...] = (
    _model,
    served_name("--alias"),
    _context,
    setting("max_num_seqs", "-np"),
    setting("max_num_batched_tokens", "--batch-size"),
    refuse("memory_fraction", "llama-server has no memory fraction: its pool is max_model_len x max_num_seqs"),
    refuse("memory_gib", "llama-server has no memory limit: its pool is max_model_len x max_num_seqs"),
    refuse("quantization", "the quantisation is in the GGUF file; choose it with model"),
    _kv_cache_dtype,
    refuse("tensor_parallel", "use flags: {split-mode: row, tensor-split: [1, 1]} for several GPUs in one host"),
    _prefix_caching,
    refuse("prefix_checkpoint", "use flags: {ctx-checkpoints: N, checkpoint-min-step: N}"),
    _speculative,
    _tool_call_parser,
    _reasoning_parser,
    _chat_template,
    _thinking,
    setting("thinking_budget", "--reasoning-budget"),
    setting("max_output", "--predict"),
    _limit_mm,
    setting("seed", "--seed"),
    _nodes,
)
RECIPE = Recipe(
    parser=PARSER, steps=STEPS, default_port=DOCKER_PORT, slots_flag="parallel", api_key_env="LLAMA_API_KEY"
)
METRICS = Want(words=("--metrics",), reason="/metrics is a 501 without it")
SLOTS = Want(words=("--slots",), reason="/slots tells what runs and what waits")
TELLING_LOG = Want(
    words=("--verbosity", "4"),
    reason="the log then tells KV types, flash attention, layers on the GPU and what --fit changed",
)
JINJA = Want(words=("--jinja",), reason="tool calls are read off the chat template, which needs it")
METRIC_NAMES = MetricNames(
    running=("llamacpp:requests_processing",),
    waiting=("llamacpp:requests_deferred",),
    # Computed tokens only: cached ones are counted apart, unlike the other two engines.
    prompt_computed_tok=("llamacpp:prompt_tokens_total",),
    output_tok=("llamacpp:tokens_predicted_total",),
    cache_hits_tok=("llamacpp:prompt_tokens_cached_total",),
    spec_drafts=("llamacpp:spec_decode_num_drafts_total",),
    spec_draft_tok=("llamacpp:spec_decode_num_draft_tokens_total",),
    spec_accepted_tok=("llamacpp:spec_decode_num_accepted_tokens_total",),
    steps=("llamacpp:n_decode_total",),
    prefill_sum_s=("llamacpp:prompt_seconds_total",),
    decode_sum_s=("llamacpp:tokens_predicted_seconds_total",),
)
TRAITS = Traits(
    cold_fields={"cache_prompt": False},
    reasoning_fields=("reasoning_content",),
    usage_details_always=True,
    sends_done_after_error=False,
    slot_paths=(("/props", "total_slots"),),
    length_fields={"ignore_eos": True},
    shares_cache=False,
    metrics=METRIC_NAMES,
    log_stages=LOG_STAGES,
    symptoms=SYMPTOMS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCpp:
    """llama-server behind the Engine protocol."""

    name: str = NAME
    traits: Traits = field(default=TRAITS)

    def problems(self, profile: Profile) -> Problems:
        return find_problems(RECIPE, profile)

    def command(self, profile: Profile, place: Placement) -> EngineCommand:
        jinja = (JINJA,) if profile.serve.tool_call_parser else ()
        return assemble(RECIPE, profile, place, prefix=(), wants=(METRICS, SLOTS, TELLING_LOG, *jinja))

    def advisories(self, profile: Profile) -> tuple[Advisory, ...]:
        return advice(self, profile, PARSER)


ENGINE = LlamaCpp()
