"""llama-server's log: where the start-up is, and what its last words mean. Wordings of build b10434, seen live."""

from __future__ import annotations

from orchestrator.engines.engine import LogStage, Symptom
from orchestrator.engines.gpu_log import GPU_SYMPTOMS, HOST_SYMPTOMS, LAST_RESORT

LOG_STAGES = (
    LogStage(pattern=r"common_params_print_info|^build:|system_info:", stage="starting"),
    LogStage(pattern=r"[Dd]ownloading.*?(?P<progress>\d+%)|[Dd]ownloading", stage="download"),
    LogStage(pattern=r"load_model: loading model|load_tensors: loading model tensors", stage="weights"),
    LogStage(pattern=r"llama threadpool init|llama_kv_cache.*size|llama_context: constructing", stage="kv cache"),
    LogStage(pattern=r"warming up the model", stage="warm-up"),
    LogStage(pattern=r"initializing, n_slots = (?P<progress>\d+)|initializing slots", stage="slots"),
    LogStage(pattern=r"llama_server: model loaded|main: model loaded", stage="opening the port"),
    LogStage(pattern=r"listening on http|all slots are idle", stage="ready"),
)
SYMPTOMS = (
    Symptom(
        cause="unknown_flag",
        pattern=r"error: invalid argument: (?P<flag>\S+)",
        message="this llama-server does not know {flag}",
        hint="remove it from flags or args, or take a build that has it (and --flag=value is never understood)",
    ),
    Symptom(
        cause="bad_flag_value",
        pattern=r"error while handling argument \"(?P<flag>[^\"]+)\": (?:error: )?(?P<problem>.+)",
        message="llama-server refuses {flag}: {problem}",
        hint="correct the setting in serve, flags or args",
    ),
    Symptom(
        cause="model_not_found",
        pattern=r"failed to open GGUF file '(?P<path>[^']*)'",
        message="no model file at {path}",
        hint="check model.path, or of a draft model serve.speculative.model; a container needs it mounted "
        "(container.mounts)",
    ),
    Symptom(
        cause="hub_unreachable",
        pattern=r"HTTPS is not supported|get_repo_commit: error: (?P<problem>.+)",
        message="this llama-server cannot download from the hub",
        hint="download the GGUF file on the host, mount it, and give model: {path: FILE.gguf}",
    ),
    Symptom(
        cause="model_unsupported",
        pattern=r"unknown model architecture: '(?P<arch>[^']+)'|unknown pre-tokenizer type: '(?P<pre>[^']+)'",
        message="this llama-server is older than the model ({arch}{pre})",
        hint="image: a newer build of llama.cpp",
    ),
    Symptom(
        cause="no_mtp_layers",
        pattern=r"context type MTP requested but model doesn't contain MTP layers",
        message="the model is to draft with its own MTP layers, and the checkpoint holds none",
        hint="leave out serve.speculative (--spec-type), or take a GGUF file that was converted with its MTP layers",
    ),
    Symptom(
        cause="kv_too_small",
        pattern=r"failed to (?:allocate|initialize) (?!speculative).*(?:KV|kv.cache|context)|failed to create.context",
        message="the context pool of serve.max_model_len x serve.max_num_seqs does not fit",
        hint="lower serve.max_model_len or serve.max_num_seqs, or serve.kv_cache_dtype: q8_0",
    ),
    Symptom(
        cause="out_of_memory",
        pattern=r"unable to allocate \S+ buffer|failed to allocate \S+ buffer of size (?P<bytes>\d+)",
        message="the model does not fit into the memory that is free",
        hint="stop what else uses the memory, take a smaller quantisation, or lower serve.max_model_len",
    ),
    *GPU_SYMPTOMS,
    *HOST_SYMPTOMS,
    Symptom(
        cause="draft_unusable",
        pattern=r"failed to load draft model, '(?P<draft>[^']+)'|failed to create (?P<kind>MTP|draft) context",
        message="llama-server could not set up what drafts ({draft}{kind})",
        hint="the log says why above this line; check serve.speculative and its model, or leave it out",
    ),
    Symptom(
        cause="bad_chat_template",
        pattern=r"chat template .*(?:not supported|failed|error)|failed to parse chat template",
        message="the chat template cannot be used",
        hint="check serve.chat_template",
    ),
    Symptom(
        cause="model_unreadable",
        pattern=r"exiting due to model loading error|error loading model: (?P<problem>.+)",
        message="llama-server could not load the model",
        hint="the log says why above this line; check the file's size and checksum",
    ),
    *LAST_RESORT,
)
