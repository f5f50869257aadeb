"""Whether a checkpoint holds MTP weights, asked of this machine as a host, over files made here."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import CommandTimedOut
from orchestrator.fleet.facts.checkpoint import (
    Held,
    declares_mtp,
    extra_layers,
    judge_gguf,
    places_of,
    read_mtp_weights,
)
from orchestrator.fleet.local import LocalHost
from orchestrator.profile.model import ContainerSettings, ModelRef, Mount, Profile, Serve, Speculative
from tests.contract.fakes import FakeHost

REPO = "unsloth/Qwen3.8-27B-NVFP4"
FOLDER = "models--unsloth--Qwen3.8-27B-NVFP4"
PLAIN = ("model.layers.0.mlp.up_proj.weight", "model.layers.61.mlp.up_proj.weight", "lm_head.weight")


def profile(**changes: Any) -> Profile:
    base = Profile(
        name="p",
        engine="vllm",
        image="vllm/vllm-openai:v0.31.0",
        model=ModelRef(repo=REPO),
        container=ContainerSettings(mounts=(Mount(source="~/.cache/huggingface", target="/root/.cache/huggingface"),)),
    )
    return replace(base, **changes)


def snapshot(home: Path, *, commit: str = "abc", is_main: bool = True) -> Path:
    repository = home / ".cache" / "huggingface" / "hub" / FOLDER
    folder = repository / "snapshots" / commit
    folder.mkdir(parents=True)
    if is_main:
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / "main").write_text(f"{commit}\n")
    return folder


def write_index(folder: Path, *tensors: str, config: dict[str, Any] | None = None) -> None:
    blob = folder / "blob"
    blob.write_text(json.dumps({"weight_map": dict.fromkeys(tensors, "model-00001-of-00002.safetensors")}))
    (folder / "model.safetensors.index.json").symlink_to(blob)
    (folder / "config.json").write_text(json.dumps(config or {"num_hidden_layers": 62}))


def write_safetensors(file: Path, *tensors: str) -> None:
    head = json.dumps({name: {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]} for name in tensors}).encode()
    file.write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * 64)


def held(home: Path, wanted: Profile) -> Held:
    return read_mtp_weights(LocalHost(), wanted, str(home)).held


@pytest.mark.parametrize(
    ("tensors", "config", "expected"),
    [
        ((*PLAIN, "mtp.layers.0.self_attn.q_proj.weight"), None, Held.YES),
        ((*PLAIN, "model.mtp_layers.0.eh_norm.weight"), None, Held.YES),
        ((*PLAIN, "model.layers.62.eh_proj.weight"), None, Held.YES),
        (
            (*PLAIN, "model.layers.62.mlp.up_proj.weight"),
            {"num_hidden_layers": 62, "num_nextn_predict_layers": 1},
            Held.YES,
        ),
        (
            (*PLAIN, "model.layers.62.mlp.up_proj.weight"),
            {"text_config": {"num_hidden_layers": 62, "num_nextn_predict_layers": 1}},
            Held.YES,
        ),
        (PLAIN, None, Held.NO),
        (PLAIN, {"num_hidden_layers": 62, "num_nextn_predict_layers": 1}, Held.NO),
        ((*PLAIN, "model.layers.6.mlp.prompt_proj.weight"), None, Held.NO),
    ],
)
def test_an_index_tells(
    tmp_path: Path, tensors: tuple[str, ...], config: dict[str, Any] | None, expected: Held
) -> None:
    folder = snapshot(tmp_path)
    write_index(folder, *tensors, config=config)

    found = read_mtp_weights(LocalHost(), profile(), str(tmp_path))

    assert found.held is expected
    assert found.file == str(folder / "model.safetensors.index.json")


@pytest.mark.parametrize(("extra", "expected"), [((), Held.NO), (("mtp.fc.weight",), Held.YES)])
def test_a_single_files_header_tells(tmp_path: Path, extra: tuple[str, ...], expected: Held) -> None:
    write_safetensors(snapshot(tmp_path) / "model.safetensors", *PLAIN, *extra)

    assert held(tmp_path, profile()) is expected


def test_parts_without_an_index_prove_presence_but_not_absence(tmp_path: Path) -> None:
    folder = snapshot(tmp_path)
    write_safetensors(folder / "model-00001-of-00002.safetensors", *PLAIN)
    write_safetensors(folder / "model-00002-of-00002.safetensors", "norm.weight")
    assert held(tmp_path, profile()) is Held.UNKNOWN

    write_safetensors(folder / "model-00002-of-00002.safetensors", "mtp.norm.weight")
    assert held(tmp_path, profile()) is Held.YES


def test_nothing_is_cached_yet(tmp_path: Path) -> None:
    assert held(tmp_path, profile()) is Held.NOT_CACHED


def test_the_revision_or_main_says_which_snapshot_counts(tmp_path: Path) -> None:
    write_index(snapshot(tmp_path, commit="old", is_main=False), *PLAIN, "mtp.fc.weight")
    write_index(snapshot(tmp_path, commit="new"), *PLAIN)

    assert held(tmp_path, profile()) is Held.NO
    assert held(tmp_path, profile(model=ModelRef(repo=REPO, revision="old"))) is Held.YES
    (tmp_path / ".cache" / "huggingface" / "hub" / FOLDER / "refs" / "main").unlink()
    assert held(tmp_path, profile()) is Held.UNKNOWN


def test_a_mounted_folder_is_looked_into(tmp_path: Path) -> None:
    write_index(tmp_path, *PLAIN, "mtp.fc.weight")
    mounts = ContainerSettings(mounts=(Mount(source=str(tmp_path.parent), target="/models"),))
    wanted = profile(model=ModelRef(path=f"/models/{tmp_path.name}"), container=mounts)

    assert held(tmp_path, wanted) is Held.YES


@pytest.mark.parametrize("source", ["hf-cache", ""])
def test_a_named_volume_or_no_mount_does_not_tell(tmp_path: Path, source: str) -> None:
    mounts = (Mount(source=source, target="/root/.cache/huggingface"),) if source else ()

    assert held(tmp_path, profile(container=ContainerSettings(mounts=mounts))) is Held.UNKNOWN


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\0glm4moe.nextn_predict_layers\0\1 blk.0.attn_norm.weight blk.46.nextn.eh_proj.weight", Held.YES),
        (b"\0general.architecture\0 blk.0.attn_norm.weight blk.1.attn_norm.weight", Held.NO),
        (b"\0glm4moe.nextn_predict_layers\0\0 blk.0.attn_norm.weight", Held.UNKNOWN),
        (b"\0general.architecture\0 a vocabulary that does not end", Held.UNKNOWN),
    ],
)
def test_a_ggufs_head_tells(tmp_path: Path, content: bytes, expected: Held) -> None:
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(b"GGUF" + content)
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(b"GGUF\0")
    mounts = ContainerSettings(mounts=(Mount(source=str(tmp_path), target="/models"),))
    wanted = profile(engine="llamacpp", model=ModelRef(path="/models"), container=mounts)

    assert held(tmp_path, wanted) is expected


def test_llama_servers_own_downloads_are_found_by_quantisation(tmp_path: Path) -> None:
    cache = tmp_path / ".cache" / "llama.cpp"
    cache.mkdir(parents=True)
    (cache / "unsloth_M-GGUF_M-UD-IQ1_S.gguf").write_bytes(b"GGUF\0 blk.0.x blk.3.nextn.eh_proj.weight")
    (cache / "unsloth_M-GGUF_M-Q8_0.gguf").write_bytes(b"GGUF\0 blk.0.x")
    mounts = ContainerSettings(mounts=(Mount(source="~/.cache/llama.cpp", target="/root/.cache/llama.cpp"),))

    def of(quant: str) -> Held:
        return held(
            tmp_path, profile(engine="llamacpp", model=ModelRef(repo=f"unsloth/M-GGUF:{quant}"), container=mounts)
        )

    assert (of("UD-IQ1_S"), of("Q8_0")) == (Held.YES, Held.NO)


def test_a_process_uses_the_users_own_cache() -> None:
    found = places_of(profile(binary="vllm", container=ContainerSettings()), "/home/me")

    assert found.repositories == (f"/home/me/.cache/huggingface/hub/{FOLDER}",)


def test_a_late_answer_is_no_answer() -> None:
    host = FakeHost()
    host.fail(("find",), CommandTimedOut("spark01", "late"))

    assert read_mtp_weights(host, profile(), "/home/me").held is Held.UNKNOWN


def test_the_extra_layers_follow_the_models_own() -> None:
    assert extra_layers({"num_hidden_layers": 61, "num_nextn_predict_layers": 2}) == (61, 62)
    assert extra_layers({"num_hidden_layers": 61}) == ()


def test_a_key_without_tensors_is_no_proof() -> None:
    assert judge_gguf(["nextn_predict_layers", "blk.0."]) is Held.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"serve": Serve(speculative=Speculative(method="mtp", num_tokens=1))}, True),
        ({"serve": Serve(speculative=Speculative(method="mtp", num_tokens=1, model="o/assistant"))}, False),
        ({"serve": Serve(speculative=Speculative(method="eagle3", num_tokens=1, model="o/d"))}, False),
        ({"flags": {"speculative-config": {"method": "qwen3_next_mtp", "num_speculative_tokens": 2}}}, True),
        ({"flags": {"speculative-config": {"method": "mtp", "model": "o/d"}}}, False),
        ({"flags": {"speculative-algorithm": "NEXTN"}}, True),
        ({"flags": {"spec-type": "draft-mtp"}}, True),
        ({}, False),
    ],
)
def test_only_a_draft_from_the_checkpoint_itself_needs_its_weights(changes: dict[str, Any], expected: bool) -> None:
    assert declares_mtp(profile(**changes)) is expected
