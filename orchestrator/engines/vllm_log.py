"""vLLM's log: where the start-up is, and what its last words mean. Wordings as of 0.20 to 0.33."""

from __future__ import annotations

from orchestrator.engines.engine import LogStage, Symptom
from orchestrator.engines.gpu_log import GPU_SYMPTOMS, HOST_SYMPTOMS, LAST_RESORT

LOG_STAGES = (
    LogStage(pattern=r"vLLM API server version|version (?P<progress>\d+\.\d+\S*)$", stage="starting"),
    LogStage(pattern=r"Initializing a V1 LLM engine", stage="starting the engine"),
    LogStage(pattern=r"(?:\.safetensors|Fetching \d+ files):\s+(?P<progress>\d+%)", stage="download"),
    LogStage(pattern=r"Starting to load model", stage="weights"),
    LogStage(pattern=r"Loading (?:\w+ )?checkpoint shards:\s+(?P<progress>\d+%)", stage="weights"),
    LogStage(pattern=r"Loading weights took (?P<progress>[\d.]+ seconds)", stage="weights"),
    LogStage(pattern=r"Loading drafter model", stage="draft weights"),
    LogStage(
        pattern=r"torch_compile_cache|Dynamo bytecode transform|Compiling a graph|torch\.compile took", stage="compile"
    ),
    LogStage(pattern=r"[Aa]utotun\w+", stage="autotune"),
    LogStage(pattern=r"Available KV cache memory: (?P<progress>[\d.]+ GiB)", stage="kv cache"),
    LogStage(pattern=r"KV cache size: (?P<progress>[\d,]+ tokens)", stage="kv cache"),
    LogStage(pattern=r"Capturing CUDA graphs[^:]*:\s+(?P<progress>\d+%)", stage="graph capture"),
    LogStage(pattern=r"Graph capturing finished in (?P<progress>\d+ secs)", stage="graph capture"),
    LogStage(pattern=r"JIT kernel warmup (?:starting|\()|DeepGEMM warmup|Warming up model", stage="warm-up"),
    LogStage(
        pattern=r"init engine \(profile, create kv cache, warmup model\) took (?P<progress>[\d.]+ s)", stage="warm-up"
    ),
    LogStage(pattern=r"Starting vLLM (?:API )?server", stage="opening the port"),
    LogStage(pattern=r"Application startup complete", stage="ready"),
)
SYMPTOMS = (
    Symptom(
        cause="unknown_flag",
        pattern=r"error: unrecognized arguments: (?P<words>.+)",
        message="this vLLM does not know {words}",
        hint="remove it from flags or args, or take an image whose vLLM has it",
    ),
    Symptom(
        cause="bad_flag_value",
        pattern=r"error: (?:argument (?P<flag>[^:]+): (?P<problem>.+?)(?: \(choose .*)?$"
        r"|ambiguous option: (?P<short>\S+) could match .+)",
        message="vLLM refuses {flag}{short}: {problem}",
        hint="correct the setting in serve, flags or args",
    ),
    Symptom(
        cause="unknown_parser",
        pattern=r"invalid (?P<kind>tool call|reasoning) parser: (?P<name>\S+)",
        message="this vLLM has no {kind} parser {name}",
        hint="correct serve.tool_call_parser or serve.reasoning_parser; the log lists those that it has",
    ),
    Symptom(
        cause="bad_chat_template",
        pattern=r"The supplied chat template .*path-like, but doesn't exist|TemplateSyntaxError|TemplateNotFound",
        message="the chat template cannot be read",
        hint="check serve.chat_template; a file must be mounted into the container (container.mounts)",
    ),
    Symptom(
        cause="over_model_limit",
        pattern=r"max_model_len \((?P<asked>\d+)\) is greater than the derived max_model_len \(\w+=(?P<limit>\d+)",
        message="serve.max_model_len: {asked} is above the model's own limit of {limit}",
        hint="serve.max_model_len: {limit} or less",
    ),
    Symptom(
        cause="kv_too_small",
        pattern=r"max seq len \((?P<asked>\d+)\), \((?P<need>[\d.]+) GiB KV cache is needed, which is larger"
        r" than the available KV cache memory \((?P<have>[\d.]+) GiB\)\."
        r" Based on .*estimated maximum model length is (?P<fits>\d+)",
        message="a request of serve.max_model_len: {asked} needs {need} GiB of KV cache and {have} GiB are left",
        hint="serve.max_model_len: {fits} fits; or raise serve.memory_fraction, or serve.kv_cache_dtype: fp8",
    ),
    Symptom(
        cause="kv_too_small",
        pattern=r"max seq len \((?P<asked>\d+)\), \((?P<need>[\d.]+) GiB KV cache is needed",
        message="a request of serve.max_model_len: {asked} needs {need} GiB of KV cache, more than is left",
        hint="lower serve.max_model_len, raise serve.memory_fraction, or serve.kv_cache_dtype: fp8",
    ),
    Symptom(
        cause="kv_too_small",
        pattern=r"No available memory for the cache blocks",
        message="the weights leave no memory for the KV cache",
        hint="raise serve.memory_fraction, lower serve.max_num_seqs, or take a smaller model",
    ),
    Symptom(
        cause="memory_taken",
        pattern=r"Free memory on device .*\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired"
        r" GPU memory utilization \((?P<asked>[\d.]+), (?P<need>[\d.]+) GiB\)",
        message="{need} GiB were asked for (serve.memory_fraction: {asked}) and {free} of {total} GiB are free",
        hint="stop what else uses the memory, drop the page cache, or lower serve.memory_fraction",
    ),
    Symptom(
        cause="bad_flag_value",
        pattern=r"(?P<count>\d+) validation errors? for (?P<config>\w+)",
        message="vLLM refuses a key or value of {config}",
        hint="the log names it below this line; correct it in serve or flags",
    ),
    *GPU_SYMPTOMS,
    *HOST_SYMPTOMS,
    Symptom(
        cause="died_at_request",
        pattern=r"EngineCore encountered a fatal error",
        message="the server was healthy and its engine died while it answered a request",
        hint="read the log's first traceback; try without serve.speculative, or with flags: {enforce-eager: true}",
    ),
    Symptom(
        cause="engine_killed",
        pattern=r"[Ee]ngine ?[Cc]ore.* (?:exited|died) unexpectedly",
        message="the engine's process ended without a word, as when the kernel kills it for memory",
        hint="see the host's kernel log for an out-of-memory kill; lower serve.memory_fraction or serve.max_num_seqs",
    ),
    Symptom(
        cause="died_at_request",
        pattern=r"EngineDeadError: ",
        message="the server was healthy and its engine died while it answered a request",
        hint="read the log's first traceback; try without serve.speculative, or with flags: {enforce-eager: true}",
    ),
    Symptom(
        cause="engine_error",
        pattern=r"^(?:\([^)]*\) )?(?:ERROR [\d:. -]+\[[^]]*\] )?(?P<error>\w*(?:Error|Exception): .+)",
        message="vLLM could not start: {error}",
        hint="the traceback is in the log",
    ),
    *LAST_RESORT,
)
