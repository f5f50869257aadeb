"""Which program a command line starts: one of the three engines, another server, or a container."""

from __future__ import annotations

import re
from collections.abc import Sequence

VLLM, SGLANG, LLAMACPP = "vllm", "sglang", "llamacpp"
ENGINES = frozenset({VLLM, SGLANG, LLAMACPP})
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ash"})
CONTAINER_TOOLS = frozenset({"docker", "podman", "nerdctl"})

_PYTHON = re.compile(r"python(?:[0-9.]+)?(?:\.exe)?")
_MODULES = (
    (re.compile(r"vllm(?:\.entrypoints\..+|\.scripts)?"), VLLM),
    (re.compile(r"sglang(?:\.launch_server|\.cli\..+)?"), SGLANG),
    (re.compile(r"llama_cpp\.server"), "llama-cpp-python"),
    (re.compile(r"tensorrt_llm\..*"), "TensorRT-LLM"),
    (re.compile(r"mlx_lm.*"), "MLX"),
    (re.compile(r"ktransformers.*"), "KTransformers"),
)
_OTHERS = {
    "trtllm-serve": "TensorRT-LLM",
    "trtllm-llmapi-launch": "TensorRT-LLM",
    "tritonserver": "Triton",
    "ollama": "Ollama",
    "lmdeploy": "LMDeploy",
    "text-generation-launcher": "TGI",
    "text-embeddings-router": "TEI",
    "mlx_lm.server": "MLX",
    "ds4-server": "ds4",
    "aphrodite": "Aphrodite",
    "infinity_emb": "Infinity",
    "llama-swap": "llama-swap",
    "koboldcpp": "KoboldCpp",
}
_IMAGES = (
    (re.compile(r"sglang", re.I), SGLANG),
    (re.compile(r"vllm", re.I), VLLM),
    (re.compile(r"llama[._-]?cpp|llama-server", re.I), LLAMACPP),
    (re.compile(r"tensorrt|trtllm", re.I), "TensorRT-LLM"),
    (re.compile(r"ollama", re.I), "Ollama"),
)


def program_at(words: Sequence[str], at: int = 0) -> str | None:
    """The server that the words start at one position: an engine's name, another server's, None when neither."""
    if at >= len(words):
        return None
    name = base_name(words[at])
    following = words[at + 1] if at + 1 < len(words) else ""
    if name == "vllm":
        return VLLM if following == "serve" else None
    if name == "sglang":
        return SGLANG if following == "serve" else None
    if name in {"llama-server", "llama-server.exe"} or (name == "server" and "llama" in words[at]):
        return LLAMACPP
    if name in {"llama", "llama-cli"}:
        return LLAMACPP if following in {"serve", "server"} else None
    if name == "ollama":
        return "Ollama" if following == "serve" else None
    if _PYTHON.fullmatch(name):
        return _module(words[at + 1 : at + 12])
    return _OTHERS.get(name)


def image_program(image: str | None) -> str | None:
    """The server that an image's name speaks of (`vllm/vllm-openai:v0.31.0` -> `vllm`), None when it tells nothing."""
    return next((program for pattern, program in _IMAGES if image and pattern.search(image)), None)


_MODEL = re.compile(r"(?:[\w.-]+/)?[\w.-]+(?::[\w.-]+)?|/[\w./-]+|\$\{\w+\}|<[^<>]+>")
_SCRIPT = re.compile(r"/s?bin/|\.(?:sh|py|pl|js)$")


def are_arguments(words: Sequence[str]) -> bool:
    """True for what an image's own entrypoint is given: flags, `serve …`, or a model and flags behind it."""
    if not words or is_shell_text(words):
        return False
    if words[0].startswith("-") or words[0] == "serve":
        return True
    looks_like_model = _MODEL.fullmatch(words[0]) is not None and _SCRIPT.search(words[0]) is None
    is_named = looks_like_model and re.search(r"[/$<]", words[0]) is not None
    return is_named and len(words) > 1 and words[1].startswith("-")


def is_shell_text(words: Sequence[str]) -> bool:
    """`-c 'code'`, `-lc 'code'`: the image's own entrypoint is a shell."""
    has_code = len(words) > 1 and any(sign.isspace() for sign in words[1])
    return has_code and re.fullmatch(r"-[a-zA-Z]*c", words[0]) is not None


def base_name(word: str) -> str:
    """`/usr/local/bin/vllm` -> `vllm`."""
    return re.split(r"[/\\]", word)[-1]


def is_launcher(word: str) -> bool:
    """True for spark-vllm-docker's `launch-cluster.sh`, wherever it lies."""
    return base_name(word) == "launch-cluster.sh"


def _module(words: Sequence[str]) -> str | None:
    for index, word in enumerate(words):
        if word == "-m":
            named = words[index + 1] if index + 1 < len(words) else ""
            return next((program for pattern, program in _MODULES if pattern.fullmatch(named)), None)
        if not word.startswith("-"):
            return (
                VLLM
                if re.search(r"vllm/entrypoints/\S*api_server\.py$", word)
                else (SGLANG if word.endswith("sglang/launch_server.py") else None)
            )
    return None
