"""What CUDA, the driver, the hub and the host say when they end a server, whichever engine it was."""

from __future__ import annotations

from orchestrator.engines.engine import Symptom

_LESS = (
    "lower serve.memory_fraction (or memory_gib), serve.max_model_len or serve.max_num_seqs; "
    "see what else uses the memory"
)

GPU_SYMPTOMS = (
    Symptom(
        cause="no_kernel_image",
        pattern=r"no kernel image is available for execution|not compatible with the current PyTorch installation"
        r"|Unsupported gpu architecture|Value '(?P<arch>sm_\d+\w*)' is not defined for option 'gpu-name'",
        message="the image has no GPU kernels for this chip",
        hint="image: one built for CUDA 13 and sm_121 (a DGX Spark is sm_121)",
    ),
    Symptom(
        cause="driver_too_old",
        pattern=r"NVIDIA driver on your system is too old|driver version is insufficient for CUDA runtime"
        r"|unsatisfied condition: cuda\s*>=|PTX was compiled with an unsupported toolchain|CUDA_ERROR_UNSUPPORTED_PTX",
        message="the host's NVIDIA driver is older than the image's CUDA",
        hint="update the host's driver, or take an image for an older CUDA",
    ),
    Symptom(
        cause="no_gpu",
        pattern=r"could not select device driver .*gpu|libcuda\.so\.1: cannot open shared object|no CUDA-capable device"
        r"|Failed to infer device type",
        message="the server sees no GPU",
        hint="container.gpus: all, and the NVIDIA container toolkit on the host",
    ),
    Symptom(
        cause="memory_not_pinned",
        pattern=r"ibv_reg_mr\w*.*Cannot allocate memory",
        message="the network card could not pin memory",
        hint="container.ulimits: {memlock: -1}; on a 7.0 kernel also boot with kho=off",
    ),
    Symptom(
        cause="out_of_memory",
        pattern=r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory|cudaErrorMemoryAllocation"
        r"|cudaMalloc failed: out of memory|NV_ERR_NO_MEMORY|std::bad_alloc|Cannot allocate memory",
        message="the GPU's memory did not suffice",
        hint=_LESS,
    ),
)
HOST_SYMPTOMS = (
    Symptom(
        cause="model_gated",
        pattern=r"GatedRepoError: |gated repo|Access to model \S+ is restricted|awaiting a review from the repo",
        message="the model is gated and the hub does not let this account in",
        hint="accept the model's terms on its page and give env: {HF_TOKEN: {secret: HF_TOKEN}}",
    ),
    Symptom(
        cause="model_not_found",
        pattern=r"(?P<model>\S+) is not a local folder and is not a valid model identifier|RepositoryNotFoundError: "
        r"|Repository Not Found|Invalid repository ID or local directory specified|RevisionNotFoundError: "
        r"|does not appear to have a file named|HFValidationError: ",
        message="the model is neither on the hub nor at that path",
        hint="check model; a path must be mounted into the container (container.mounts)",
    ),
    Symptom(
        cause="hub_unreachable",
        pattern=r"LocalEntryNotFoundError: |Failed to resolve 'huggingface\.co'|couldn't connect to 'https://huggingface\.co'",
        message="the hub cannot be reached and the model is not in the host's cache",
        hint="download the model on the host first, or mount a cache that has it (container.mounts)",
    ),
    Symptom(
        cause="disk_full",
        pattern=r"No space left on device",
        message="the disk is full",
        hint="free space where the model cache and Docker's data lie",
    ),
    Symptom(
        cause="port_in_use",
        pattern=r"[Aa]ddress already in use|EADDRINUSE|bind HTTP server socket, hostname: \S+, port: (?P<port>\d+)",
        message="the port is taken by something else",
        hint="give another port, or stop what listens there",
    ),
    Symptom(
        cause="command_not_found",
        pattern=r"executable file not found in \$PATH|exec: .*no such file or directory|exec format error",
        message="the image cannot run the command",
        hint="check container.entrypoint and the image's architecture (a DGX Spark is arm64)",
    ),
)
KILLED = Symptom(
    cause="out_of_memory",
    pattern=None,
    exit_codes=(137,),
    message="the server was killed (exit 137), as the kernel does when the host runs out of memory",
    hint=_LESS,
)
LAST_RESORT = (KILLED,)
