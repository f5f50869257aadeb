"""Flags as words, by each engine's own parser rules."""

from __future__ import annotations

import pytest

from orchestrator.engines import llamacpp, sglang, vllm
from orchestrator.engines.words import Parser, declared, twice, words
from orchestrator.profile.model import FlagValue, Profile

VLLM, SGLANG, LLAMA = vllm.PARSER, sglang.PARSER, llamacpp.PARSER


@pytest.mark.parametrize(
    ("parser", "key", "value", "expected"),
    [
        (VLLM, "max-num-seqs", 8, ("--max-num-seqs", "8")),
        (VLLM, "max_num_seqs", 8, ("--max-num-seqs", "8")),
        (VLLM, "--max-num-seqs", 8, ("--max-num-seqs", "8")),
        (VLLM, "tp", 2, ("-tp", "2")),
        (VLLM, "max-model-len", -1, ("--max-model-len", "-1")),
        (VLLM, "gpu-memory-utilization", 0.7, ("--gpu-memory-utilization", "0.7")),
        (VLLM, "enforce-eager", True, ("--enforce-eager",)),
        (VLLM, "enforce-eager", False, ("--no-enforce-eager",)),
        (VLLM, "ep", False, ("--no-enable-expert-parallel",)),
        (VLLM, "headless", False, ()),
        (VLLM, "seed", None, ()),
        (VLLM, "served-model-name", ["a", "b"], ("--served-model-name", "a", "b")),
        (VLLM, "compilation-config", {"cudagraph_mode": "NONE"}, ("--compilation-config", '{"cudagraph_mode":"NONE"}')),
        (VLLM, "lora-modules", [{"name": "a", "path": "/a"}], ("--lora-modules", '{"name":"a","path":"/a"}')),
        (VLLM, "chat-template", "--odd", ("--chat-template=--odd",)),
        (SGLANG, "disable_radix_cache", True, ("--disable-radix-cache",)),
        (SGLANG, "disable-radix-cache", False, ()),
        (SGLANG, "enable-tf32-matmul", False, ("--no-enable-tf32-matmul",)),
        (SGLANG, "cuda-graph-bs-decode", [1, 2, 4], ("--cuda-graph-bs-decode", "1", "2", "4")),
        (LLAMA, "np", 4, ("-np", "4")),
        (LLAMA, "fit", "off", ("--fit", "off")),
        (LLAMA, "fit", False, ("--fit", "off")),
        (LLAMA, "fa", True, ("-fa", "on")),
        (LLAMA, "warmup", False, ("--no-warmup",)),
        (LLAMA, "metrics", False, ()),
        (LLAMA, "no-host", True, ("--no-host",)),
        (LLAMA, "tensor-split", [1, 1], ("--tensor-split", "1,1")),
        (LLAMA, "override-kv", "--odd", ("--override-kv", "--odd")),
        (LLAMA, "chat-template-kwargs", {"a": True}, ("--chat-template-kwargs", '{"a":true}')),
    ],
)
def test_a_flag_is_written_as_its_engine_reads_it(
    parser: Parser, key: str, value: FlagValue, expected: tuple[str, ...]
) -> None:
    assert words(parser, key, value) == expected


@pytest.mark.parametrize(
    ("parser", "spelling", "name"),
    [
        (VLLM, "tp", "tensor-parallel-size"),
        (VLLM, "tensor_parallel_size", "tensor-parallel-size"),
        (VLLM, "--tensor-parallel-size=2", "tensor-parallel-size"),
        (VLLM, "no-enable-prefix-caching", "enable-prefix-caching"),
        (VLLM, "disable-prefix-caching", "enable-prefix-caching"),
        (VLLM, "speculative-config.method", "speculative-config"),
        (VLLM, "device-memory-utilization", "gpu-memory-utilization"),
        (SGLANG, "tp", "tp-size"),
        (SGLANG, "tensor-parallel-size", "tp-size"),
        (SGLANG, "model", "model-path"),
        (LLAMA, "c", "ctx-size"),
        (LLAMA, "-c", "ctx-size"),
        (LLAMA, "ctx_size", "ctx-size"),
        (LLAMA, "no-host", "no-host"),
    ],
)
def test_every_spelling_of_a_flag_has_one_name(parser: Parser, spelling: str, name: str) -> None:
    assert parser.canonical(spelling) == name


def test_two_spellings_of_one_flag_are_found() -> None:
    found = list(twice(VLLM, {"tp": 2, "tensor_parallel_size": 4}))

    assert found == [("flags.tensor_parallel_size", "the same flag as flags.tp; give it once")]


def test_a_flag_in_the_verbatim_tail_counts_as_declared_with_its_value() -> None:
    profile = Profile(name="p", engine="vllm", args=("--port", "9000", "--host=::1", "--enforce-eager"))

    found = {name: (d.path, d.value) for name, d in declared(VLLM, profile).items()}

    assert found == {
        "port": ("args[0]", "9000"),
        "host": ("args[2]", "::1"),
        "enforce-eager": ("args[3]", True),
    }
