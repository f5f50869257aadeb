"""SGLang's log: where the start-up is, and what its last words mean. Wordings of its source, 0.5.9 to 0.5.23."""

from __future__ import annotations

from orchestrator.engines.engine import LogStage, Symptom
from orchestrator.engines.gpu_log import GPU_SYMPTOMS, HOST_SYMPTOMS, LAST_RESORT

LOG_STAGES = (
    LogStage(pattern=r"server_args=ServerArgs", stage="starting"),
    LogStage(pattern=r"Init torch distributed begin", stage="starting the engine"),
    LogStage(pattern=r"(?:\.safetensors|Fetching \d+ files):\s+(?P<progress>\d+%)", stage="download"),
    LogStage(pattern=r"Load weight begin", stage="weights"),
    LogStage(pattern=r"Loading (?:\w+ )?checkpoint shards:\s+(?P<progress>\d+%)", stage="weights"),
    LogStage(pattern=r"Load weight end", stage="weights"),
    LogStage(pattern=r"KV Cache is allocated\..*#tokens: (?P<progress>\d+)", stage="kv cache"),
    LogStage(pattern=r"Memory pool end", stage="kv cache"),
    LogStage(pattern=r"[Aa]utotun\w+", stage="autotune"),
    LogStage(pattern=r"flashinfer\.jit|torch\.compile|Compiling", stage="compile"),
    LogStage(pattern=r"Capture \w*\s?cuda graph begin", stage="graph capture"),
    LogStage(pattern=r"Capturing batches[^:]*:\s+(?P<progress>\d+%)", stage="graph capture"),
    LogStage(pattern=r"Uvicorn running on|Application startup complete", stage="warm-up"),
    LogStage(pattern=r"The server is fired up and ready to roll", stage="ready"),
)
SYMPTOMS = (
    Symptom(
        cause="unknown_flag",
        pattern=r"error: unrecognized arguments: (?P<words>.+)",
        message="this SGLang does not know {words}",
        hint="remove it from flags or args, or take an image whose SGLang has it",
    ),
    Symptom(
        cause="unknown_parser",
        pattern=r"error: argument --(?P<kind>tool-call|reasoning)-parser: invalid choice: '?(?P<name>[^' ]+)",
        message="this SGLang has no {kind} parser {name}",
        hint="correct serve.tool_call_parser or serve.reasoning_parser; the log lists those that it has",
    ),
    Symptom(
        cause="bad_flag_value",
        pattern=r"error: (?:argument (?P<flag>[^:]+): (?P<problem>.+?)(?: \(choose .*)?$"
        r"|ambiguous option: (?P<short>\S+) could match .+)",
        message="SGLang refuses {flag}{short}: {problem}",
        hint="correct the setting in serve, flags or args",
    ),
    Symptom(
        cause="over_model_limit",
        pattern=r"context_length \((?P<asked>\d+)\) is greater than the derived context_length \((?P<limit>\d+)\)",
        message="serve.max_model_len: {asked} is above the model's own limit of {limit}",
        hint="serve.max_model_len: {limit} or less",
    ),
    Symptom(
        cause="kv_too_small",
        pattern=r"Not enough memory\. Please try to increase --mem-fraction-static",
        message="the weights leave no memory for the KV cache",
        hint="raise serve.memory_fraction: it is a share of what is free at start, so free memory first",
    ),
    Symptom(
        cause="out_of_memory",
        pattern=r"Capture cuda graph failed: .*out of memory",
        message="no memory was left for the graphs",
        hint="lower serve.memory_fraction or serve.max_num_seqs, or flags: {cuda-graph-max-bs-decode: N}",
    ),
    *GPU_SYMPTOMS,
    *HOST_SYMPTOMS,
    Symptom(
        cause="hung",
        pattern=r"[Ww]atchdog timeout|Health check failed\. Server couldn't get a response",
        message="the engine stopped answering and its watchdog ended it",
        hint="flags: {watchdog-timeout: 600} if kernels were still compiled; else read the log's traceback",
    ),
    Symptom(
        cause="died_at_request",
        pattern=r"(?:Scheduler|TpModelWorkerClient|ModelRunner\w*) hit an exception",
        message="the engine died of an exception",
        hint="read the log's first traceback; try without serve.speculative",
    ),
    Symptom(
        cause="engine_error",
        pattern=r"^(?:\[[^]]*\] )?(?P<error>\w*(?:Error|Exception): .+)",
        message="SGLang could not start: {error}",
        hint="the traceback is in the log",
    ),
    *LAST_RESORT,
)
