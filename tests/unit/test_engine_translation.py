"""Each portable setting in each engine's words, or the reason why it has none."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from orchestrator.engines.engine import EngineCommand, Placement
from orchestrator.engines.registry import load_engines
from orchestrator.errors import InputError
from orchestrator.profile.model import (
    ContainerSettings,
    ModelRef,
    PrefixCheckpoint,
    Profile,
    RuntimeKind,
    SecretRef,
    Serve,
    Speculative,
    Task,
)

ENGINES = load_engines()
IMAGES = {"vllm": "vllm/vllm-openai:v0.31.0", "sglang": "lmsysorg/sglang:v0.5.23", "llamacpp": "llama:b10434"}
GIB = 1024**3
MTP = Speculative(method="mtp", num_tokens=2)
EAGLE = Speculative(method="eagle3", num_tokens=3, model="org/draft")
DFLASH = Speculative(method="dflash", num_tokens=7, model="org/draft")
DSPARK = Speculative(method="dspark", num_tokens=7, model="org/draft")
NGRAM = Speculative(method="ngram", num_tokens=4)
DRAFT = Speculative(method="draft_model", num_tokens=2, model="/models/d.gguf")


def profile(engine: str, *, serve: Serve | None = None, **changes: Any) -> Profile:
    base = Profile(
        name="p", engine=engine, image=IMAGES[engine], model=ModelRef(repo="org/m"), port=8000, serve=serve or Serve()
    )
    return dataclasses.replace(base, **changes)


def command(
    engine: str, *, place: Placement | None = None, serve: Serve | None = None, **changes: Any
) -> EngineCommand:
    return ENGINES[engine].command(profile(engine, serve=serve, **changes), place or Placement())


def contains(words: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))


@pytest.mark.parametrize(
    ("engine", "serve", "expected"),
    [
        ("vllm", Serve(max_model_len=4096), ("--max-model-len", "4096")),
        ("vllm", Serve(max_num_seqs=8), ("--max-num-seqs", "8")),
        ("vllm", Serve(max_num_batched_tokens=2048), ("--max-num-batched-tokens", "2048")),
        ("vllm", Serve(memory_fraction=0.7), ("--gpu-memory-utilization", "0.7")),
        ("vllm", Serve(prefix_caching=True), ("--enable-prefix-caching",)),
        ("vllm", Serve(prefix_caching=False), ("--no-enable-prefix-caching",)),
        (
            "vllm",
            Serve(prefix_checkpoint=PrefixCheckpoint(match_unit=16)),
            ("--enable-mamba-shared-prefix-checkpoint", "--prefix-match-unit", "16"),
        ),
        ("vllm", Serve(speculative=MTP), ("--speculative-config", '{"method":"mtp","num_speculative_tokens":2}')),
        (
            "vllm",
            Serve(speculative=EAGLE),
            ("--speculative-config", '{"method":"eagle3","model":"org/draft","num_speculative_tokens":3}'),
        ),
        ("vllm", Serve(tool_call_parser="hermes"), ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")),
        ("vllm", Serve(reasoning_parser="qwen3"), ("--reasoning-parser", "qwen3")),
        ("vllm", Serve(kv_cache_dtype="fp8"), ("--kv-cache-dtype", "fp8")),
        ("vllm", Serve(quantization="modelopt"), ("--quantization", "modelopt")),
        ("vllm", Serve(tensor_parallel=2), ("--tensor-parallel-size", "2")),
        ("vllm", Serve(chat_template="/t.jinja"), ("--chat-template", "/t.jinja")),
        ("vllm", Serve(thinking=False), ("--default-chat-template-kwargs", '{"enable_thinking":false}')),
        (
            "vllm",
            Serve(thinking=True, thinking_budget=8192),
            ("--default-chat-template-kwargs", '{"enable_thinking":true,"thinking_budget":8192}'),
        ),
        ("vllm", Serve(max_output=32000), ("--override-generation-config", '{"max_new_tokens":32000}')),
        ("vllm", Serve(limit_mm={"image": 0}), ("--limit-mm-per-prompt", '{"image":0}')),
        ("vllm", Serve(seed=7), ("--seed", "7")),
        ("sglang", Serve(max_model_len=4096), ("--context-length", "4096")),
        ("sglang", Serve(max_num_seqs=8), ("--max-running-requests", "8")),
        ("sglang", Serve(max_num_batched_tokens=4096), ("--chunked-prefill-size", "4096")),
        ("sglang", Serve(memory_fraction=0.64), ("--mem-fraction-static", "0.64")),
        ("sglang", Serve(prefix_caching=False), ("--disable-radix-cache",)),
        (
            "sglang",
            Serve(speculative=MTP),
            (
                *("--speculative-algorithm", "NEXTN", "--speculative-num-steps", "2"),
                *("--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "3"),
            ),
        ),
        (
            "sglang",
            Serve(speculative=DFLASH),
            (
                *("--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "org/draft"),
                *("--speculative-num-draft-tokens", "8"),
            ),
        ),
        ("sglang", Serve(speculative=DSPARK), ("--speculative-algorithm", "DSPARK")),
        ("sglang", Serve(speculative=EAGLE), ("--speculative-algorithm", "EAGLE3")),
        ("sglang", Serve(speculative=NGRAM), ("--speculative-algorithm", "NGRAM")),
        ("sglang", Serve(speculative=DRAFT), ("--speculative-algorithm", "STANDALONE")),
        ("sglang", Serve(tool_call_parser="auto"), ("--tool-call-parser", "auto")),
        ("sglang", Serve(kv_cache_dtype="fp8"), ("--kv-cache-dtype", "fp8_e4m3")),
        ("sglang", Serve(tensor_parallel=2), ("--tensor-parallel-size", "2")),
        ("sglang", Serve(thinking=False), ("--default-chat-template-kwargs", '{"enable_thinking":false}')),
        ("sglang", Serve(limit_mm={"image": 1}), ("--limit-mm-data-per-request", '{"image":1}')),
        ("sglang", Serve(seed=7), ("--random-seed", "7")),
        ("llamacpp", Serve(max_model_len=2048, max_num_seqs=4), ("-c", "8192", "-np", "4")),
        ("llamacpp", Serve(max_model_len=2048), ("-c", "2048")),
        ("llamacpp", Serve(max_num_batched_tokens=1024), ("--batch-size", "1024")),
        ("llamacpp", Serve(prefix_caching=True), ("--cache-prompt",)),
        ("llamacpp", Serve(prefix_caching=False), ("--no-cache-prompt", "--cache-ram", "0")),
        ("llamacpp", Serve(speculative=MTP), ("--spec-type", "draft-mtp", "--spec-draft-n-max", "2")),
        (
            "llamacpp",
            Serve(speculative=DRAFT),
            ("--spec-type", "draft-simple", "--spec-draft-model", "/models/d.gguf", "--spec-draft-n-max", "2"),
        ),
        ("llamacpp", Serve(speculative=EAGLE), ("--spec-type", "draft-eagle3", "--spec-draft-hf", "org/draft")),
        (
            "llamacpp",
            Serve(speculative=NGRAM),
            ("--spec-type", "ngram-simple", *("--spec-ngram-simple-size-m", "4", "--spec-ngram-simple-size-n", "4")),
        ),
        (
            "llamacpp",
            Serve(speculative=Speculative(method="ngram", num_tokens=12)),
            ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-m", "12"),
        ),
        ("llamacpp", Serve(kv_cache_dtype="q8_0"), ("--cache-type-k", "q8_0", "--cache-type-v", "q8_0")),
        ("llamacpp", Serve(reasoning_parser="qwen3"), ("--reasoning-format", "auto")),
        ("llamacpp", Serve(reasoning_parser="deepseek"), ("--reasoning-format", "deepseek")),
        ("llamacpp", Serve(chat_template="/t.jinja"), ("--chat-template-file", "/t.jinja")),
        ("llamacpp", Serve(chat_template="chatml"), ("--chat-template", "chatml")),
        ("llamacpp", Serve(thinking=False), ("--reasoning", "off")),
        ("llamacpp", Serve(thinking_budget=512), ("--reasoning-budget", "512")),
        ("llamacpp", Serve(max_output=1024), ("--predict", "1024")),
        ("llamacpp", Serve(limit_mm={"image": 0}), ("--no-mmproj",)),
        ("llamacpp", Serve(seed=7), ("--seed", "7")),
    ],
)
def test_a_portable_setting_becomes_the_engines_own_words(engine: str, serve: Serve, expected: tuple[str, ...]) -> None:
    words = command(engine, serve=serve).argv

    assert contains(words, expected), words


@pytest.mark.parametrize(
    ("engine", "serve", "path", "instead"),
    [
        ("sglang", Serve(prefix_checkpoint=PrefixCheckpoint(match_unit=16)), "serve.prefix_checkpoint", "extra_buffer"),
        ("sglang", Serve(max_output=1024), "serve.max_output", "max_tokens"),
        ("sglang", Serve(api_key=SecretRef(name="KEY")), "serve.api_key", "expose: loopback"),
        ("llamacpp", Serve(memory_fraction=0.7), "serve.memory_fraction", "max_model_len x max_num_seqs"),
        ("llamacpp", Serve(memory_gib=80), "serve.memory_gib", "max_model_len x max_num_seqs"),
        ("llamacpp", Serve(quantization="fp8"), "serve.quantization", "GGUF"),
        ("llamacpp", Serve(tensor_parallel=2), "serve.tensor_parallel", "split-mode"),
        ("llamacpp", Serve(kv_cache_dtype="fp8"), "serve.kv_cache_dtype", "q8_0"),
        (
            "llamacpp",
            Serve(prefix_checkpoint=PrefixCheckpoint(match_unit=1)),
            "serve.prefix_checkpoint",
            "ctx-checkpoints",
        ),
        ("llamacpp", Serve(limit_mm={"image": 1}), "serve.limit_mm", "all 0"),
        (
            "vllm",
            Serve(speculative=Speculative(method="eagle3", num_tokens=2)),
            "serve.speculative.model",
            "draft model",
        ),
        ("vllm", Serve(speculative=Speculative(method="magic", num_tokens=2)), "serve.speculative.method", "mtp"),
        ("vllm", Serve(memory_gib=500), "serve.memory_gib", "121.7 GiB"),
        ("vllm", Serve(memory_gib=80, memory_fraction=0.7), "serve.memory_gib", "serve.memory_fraction"),
    ],
)
def test_a_setting_without_a_word_is_refused_with_what_to_use(
    engine: str, serve: Serve, path: str, instead: str
) -> None:
    problems = dict(ENGINES[engine].problems(profile(engine, serve=serve)))

    assert instead in problems[path]


@pytest.mark.parametrize(
    ("engine", "serve", "flags", "path", "other"),
    [
        ("vllm", Serve(max_num_seqs=8), {"max-num-seqs": 16}, "flags.max-num-seqs", "serve.max_num_seqs"),
        ("vllm", Serve(tensor_parallel=2), {"tp": 2}, "flags.tp", "serve.tensor_parallel"),
        (
            "vllm",
            Serve(prefix_caching=True),
            {"no_enable_prefix_caching": True},
            "flags.no_enable_prefix_caching",
            "serve.p",
        ),
        ("vllm", Serve(speculative=MTP), {"spec-tokens": 2}, "flags.spec-tokens", "serve.speculative"),
        (
            "vllm",
            Serve(speculative=MTP),
            {"speculative-config.method": "mtp"},
            "flags.speculative-config.method",
            "serve.s",
        ),
        (
            "vllm",
            Serve(memory_fraction=0.5),
            {"device-memory-utilization": 0.6},
            "flags.device-memory-utilization",
            "serve.",
        ),
        ("vllm", Serve(), {"port": 9000}, "flags.port", "port"),
        ("vllm", Serve(), {"model": "other"}, "flags.model", "model"),
        ("sglang", Serve(tensor_parallel=2), {"tp": 2}, "flags.tp", "serve.tensor_parallel"),
        (
            "sglang",
            Serve(prefix_caching=True),
            {"disable-radix-cache": True},
            "flags.disable-radix-cache",
            "serve.prefix",
        ),
        ("llamacpp", Serve(max_model_len=512), {"c": 512}, "flags.c", "serve.max_model_len"),
        ("llamacpp", Serve(max_num_seqs=2), {"parallel": 2}, "flags.parallel", "serve.max_num_seqs"),
        ("llamacpp", Serve(), {"m": "/x.gguf"}, "flags.m", "model"),
    ],
)
def test_a_setting_given_twice_names_both_places(
    engine: str, serve: Serve, flags: dict[str, Any], path: str, other: str
) -> None:
    problems = dict(ENGINES[engine].problems(profile(engine, serve=serve, flags=flags)))

    assert other in problems[path]


def test_a_setting_given_twice_is_found_in_the_verbatim_tail_too() -> None:
    problems = dict(ENGINES["vllm"].problems(profile("vllm", serve=Serve(seed=1), args=("--seed=2",))))

    assert problems == {"args[0]": "also given as serve.seed; give it once"}


def test_each_word_knows_where_in_the_profile_it_comes_from() -> None:
    profile = Profile(
        name="p",
        engine="vllm",
        image="vllm/vllm-openai:v0.31.0",
        model=ModelRef(repo="org/m"),
        port=8000,
        serve=Serve(max_num_seqs=4),
        flags={"seed": 1, "dtype": "auto"},
        args=("--enforce-eager",),
        refuse_added=("enable-prompt-tokens-details", "enable-per-request-metrics"),
    )

    command = ENGINES["vllm"].command(profile, Placement())

    assert list(zip(command.argv, command.origins, strict=True)) == [
        ("org/m", "model"),
        ("--max-num-seqs", "serve.max_num_seqs"),
        ("4", "serve.max_num_seqs"),
        ("--port", "port"),
        ("8000", "port"),
        ("--seed", "flags.seed"),
        ("1", "flags.seed"),
        ("--dtype", "flags.dtype"),
        ("auto", "flags.dtype"),
        ("--host", "added"),
        ("0.0.0.0", "added"),
        ("--enforce-eager", "args[0]"),
    ]


def test_a_command_is_not_written_for_a_profile_with_problems() -> None:
    with pytest.raises(InputError, match=r"p: serve\.memory_fraction: llama-server has no memory fraction"):
        command("llamacpp", serve=Serve(memory_fraction=0.7))


@pytest.mark.parametrize(
    ("image", "word"),
    [
        ("vllm/vllm-openai:v0.30.0", "--enable-mamba-fine-grained-prefix-cache"),
        ("vllm/vllm-openai:v0.31.0", "--enable-mamba-shared-prefix-checkpoint"),
        ("vllm/vllm-openai:nightly", "--enable-mamba-shared-prefix-checkpoint"),
        ("ghcr.io/someone/vllm-fork:0.1.1", "--enable-mamba-shared-prefix-checkpoint"),
    ],
)
def test_the_checkpoint_flag_follows_the_images_version(image: str, word: str) -> None:
    serve = Serve(prefix_checkpoint=PrefixCheckpoint(match_unit=16))

    assert word in command("vllm", serve=serve, image=image).argv


def test_a_checkpoint_is_refused_on_a_vllm_that_has_none() -> None:
    serve = Serve(prefix_checkpoint=PrefixCheckpoint(match_unit=16))

    problems = dict(ENGINES["vllm"].problems(profile("vllm", serve=serve, image="vllm/vllm-openai:v0.29.0")))

    assert "0.29.0 has no shared-prefix checkpoint" in problems["serve.prefix_checkpoint"]


def test_thinking_is_refused_on_an_sglang_without_default_template_arguments() -> None:
    problems = dict(
        ENGINES["sglang"].problems(profile("sglang", serve=Serve(thinking=False), image="x/sglang:v0.5.15"))
    )

    assert "before 0.5.18" in problems["serve.thinking"]


@pytest.mark.parametrize(
    ("engine", "place", "share"),
    [
        ("vllm", Placement(total_bytes=128 * GIB, free_bytes=100 * GIB), "0.625"),
        ("sglang", Placement(total_bytes=128 * GIB, free_bytes=100 * GIB), "0.8"),
        ("vllm", Placement(), "0.657"),
    ],
)
def test_gib_become_a_share_of_what_the_engine_means(engine: str, place: Placement, share: str) -> None:
    made = command(engine, place=place, serve=Serve(memory_gib=80))

    assert share in made.argv
    assert any(share in note for note in made.notes)


def test_a_fraction_is_shown_in_gib_of_the_host() -> None:
    made = command("vllm", place=Placement(total_bytes=100 * GIB), serve=Serve(memory_fraction=0.7))

    assert made.notes == ("serve.memory_fraction: 0.7 of the total is 70.0 GiB of 100.0 GiB",)


def test_an_impossible_share_of_this_host_is_an_input_error() -> None:
    with pytest.raises(InputError, match="80 GiB is not within what is free at start"):
        command("sglang", place=Placement(free_bytes=60 * GIB), serve=Serve(memory_gib=80))


def test_two_vllm_nodes_meet_at_rank_0_and_the_second_serves_nothing() -> None:
    two: dict[str, Any] = {"nodes": 2, "serve": Serve(tensor_parallel=2)}
    place = Placement(rank=1, nodes=2, address="10.0.0.2", master_address="10.0.0.1", master_port=29600)

    made = command("vllm", place=place, **two)

    rendezvous = ("--nnodes", "2", "--node-rank", "1", "--master-addr", "10.0.0.1", "--master-port", "29600")
    assert contains(made.argv, (*rendezvous, "--headless"))
    assert made.env == {"VLLM_HOST_IP": "10.0.0.2"}
    assert "--headless" not in command("vllm", place=Placement(nodes=2), **two).argv


def test_two_sglang_nodes_meet_at_rank_0() -> None:
    place = Placement(rank=1, nodes=2, master_address="10.0.0.1", master_port=29600)

    made = command("sglang", place=place, nodes=2, serve=Serve(tensor_parallel=2))

    assert contains(made.argv, ("--nnodes", "2", "--node-rank", "1", "--dist-init-addr", "10.0.0.1:29600"))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_two_nodes_without_a_way_to_split_are_refused(engine: str) -> None:
    assert "serve.tensor_parallel" in dict(ENGINES[engine].problems(profile(engine, nodes=2)))["nodes"]


def test_llama_server_has_no_second_node() -> None:
    assert "rpc" in dict(ENGINES["llamacpp"].problems(profile("llamacpp", nodes=2)))["nodes"]


@pytest.mark.parametrize(
    ("engine", "variable"), [("vllm", "VLLM_API_KEY"), ("llamacpp", "LLAMA_API_KEY"), ("sglang", None)]
)
def test_the_api_key_goes_through_the_environment(engine: str, variable: str | None) -> None:
    assert command(engine).api_key_env == variable


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp"])
def test_a_literal_key_on_the_command_line_is_refused(engine: str) -> None:
    problems = dict(ENGINES[engine].problems(profile(engine, flags={"api-key": "abc"})))

    assert "serve.api_key" in problems["flags.api-key"]


def test_a_key_given_twice_names_both_places() -> None:
    twice = profile("vllm", serve=Serve(api_key=SecretRef(name="K")), env={"VLLM_API_KEY": SecretRef(name="K")})

    assert dict(ENGINES["vllm"].problems(twice)) == {"env.VLLM_API_KEY": "also given as serve.api_key; give it once"}


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm", {"--enable-prompt-tokens-details", "--enable-per-request-metrics"}),
        ("sglang", {"--enable-cache-report", "--enable-metrics"}),
        ("llamacpp", {"--metrics", "--slots", "--verbosity"}),
    ],
)
def test_what_measuring_needs_is_added_with_a_reason(engine: str, expected: set[str]) -> None:
    made = command(engine)

    added = {item.words[0]: item.reason for item in made.added}
    assert added.keys() == {"--host", *expected}
    assert all(added.values())
    assert expected <= set(made.argv)


def test_llama_server_gets_jinja_when_tool_calls_are_claimed() -> None:
    assert "--jinja" in command("llamacpp", serve=Serve(tool_call_parser="hermes")).argv


@pytest.mark.parametrize("changes", [{"refuse_added": ("enable-prompt-tokens-details",)}, {"task": Task.EMBED}])
def test_an_addition_can_be_refused(changes: dict[str, Any]) -> None:
    assert "--enable-prompt-tokens-details" not in command("vllm", **changes).argv


def test_a_declared_need_is_not_added_again() -> None:
    made = command("vllm", flags={"enable_prompt_tokens_details": False})

    assert "--enable-prompt-tokens-details" not in [item.words[0] for item in made.added]
    assert "--no-enable-prompt-tokens-details" in made.argv


@pytest.mark.parametrize(
    ("changes", "is_added"),
    [
        ({"image": "vllm/vllm-openai:v0.25.0"}, True),
        ({"image": "vllm/vllm-openai:v0.24.2"}, False),
        ({"image": "vllm/vllm-openai:nightly-aarch64"}, True),
        ({"image": "vllm/vllm-openai"}, True),
        ({"image": "vllm/vllm-openai:gptoss"}, False),
        ({"image": "ghcr.io/x/spark-vllm:0.31.0"}, False),
        ({"runtime": RuntimeKind.PROCESS, "binary": "vllm", "image": None}, False),
        ({"flags": {"disable-log-stats": True}}, False),
        ({"args": ("--disable-log-stats",)}, False),
        ({"flags": {"enable_per_request_metrics": False}}, False),
        ({"refuse_added": ("enable-per-request-metrics",)}, False),
        ({"task": Task.EMBED}, False),
    ],
)
def test_the_servers_own_times_are_asked_for_where_it_is_known_to_tell_them(
    changes: dict[str, Any], is_added: bool
) -> None:
    added = [item.words[0] for item in command("vllm", **changes).added]

    assert ("--enable-per-request-metrics" in added) is is_added


@pytest.mark.parametrize(("engine", "port"), [("vllm", 8000), ("sglang", 30000), ("llamacpp", 8080)])
def test_host_and_port_are_always_explicit(engine: str, port: int) -> None:
    made = command(engine, port=None)

    assert made.port == port
    assert contains(made.argv, ("--host", "0.0.0.0"))
    assert contains(made.argv, ("--port", str(port)))


@pytest.mark.parametrize("given", [{"flags": {"port": 9001}}, {"args": ("--port=9001",)}, {"args": ("--port", "9001")}])
def test_a_port_of_the_users_own_flag_is_known(given: dict[str, Any]) -> None:
    made = command("vllm", port=None, **given)

    assert made.port == 9001
    assert not any("--port" in item.words for item in made.added)


@pytest.mark.parametrize(
    ("changes", "address"),
    [
        ({"expose": "loopback"}, "127.0.0.1"),
        ({"expose": "network"}, "0.0.0.0"),
        ({"expose": "loopback", "container": ContainerSettings(network="bridge")}, "0.0.0.0"),
        ({"expose": "loopback", "runtime": RuntimeKind.PROCESS, "binary": "vllm"}, "127.0.0.1"),
    ],
)
def test_the_address_follows_what_may_reach_it(changes: dict[str, Any], address: str) -> None:
    assert contains(command("vllm", **changes).argv, ("--host", address))


def test_an_open_address_contradicts_loopback() -> None:
    open_anyway = profile("vllm", expose="loopback", flags={"host": "0.0.0.0"})

    assert "contradicts expose: loopback" in dict(ENGINES["vllm"].problems(open_anyway))["flags.host"]


@pytest.mark.parametrize(
    ("engine", "changes", "first"),
    [
        ("vllm", {}, ("org/m",)),
        ("vllm", {"runtime": RuntimeKind.PROCESS, "binary": "/opt/bin/vllm"}, ("serve", "org/m")),
        ("vllm", {"image": "nvcr.io/nvidia/vllm:25.12"}, ("vllm", "serve", "org/m")),
        ("vllm", {"container": ContainerSettings(entrypoint=("vllm", "serve"))}, ("org/m",)),
        ("sglang", {}, ("python3", "-m", "sglang.launch_server", "--model-path", "org/m")),
        ("sglang", {"runtime": RuntimeKind.PROCESS, "binary": "python3"}, ("-m", "sglang.launch_server")),
        ("sglang", {"runtime": RuntimeKind.PROCESS, "binary": "sglang"}, ("serve", "--model-path")),
        ("llamacpp", {}, ("--hf-repo", "org/m")),
        ("llamacpp", {"model": ModelRef(path="/m.gguf")}, ("-m", "/m.gguf")),
        ("llamacpp", {"model": ModelRef(repo="o/m", file="q.gguf")}, ("--hf-repo", "o/m", "--hf-file", "q.gguf")),
    ],
)
def test_the_command_begins_as_the_runtime_needs_it(
    engine: str, changes: dict[str, Any], first: tuple[str, ...]
) -> None:
    assert command(engine, **changes).argv[: len(first)] == first


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp"])
def test_a_profile_without_a_model_is_refused(engine: str) -> None:
    assert "needs a model" in dict(ENGINES[engine].problems(profile(engine, model=ModelRef())))["model"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"image": None}, "image"),
        ({"runtime": RuntimeKind.PROCESS}, "binary"),
        ({"command": ("a",)}, "command"),
        ({"attach": "http://x"}, "attach"),
        ({"model": ModelRef(repo="o/m", file="f.gguf")}, "model.file"),
    ],
)
def test_fields_of_another_kind_of_profile_are_refused(changes: dict[str, Any], path: str) -> None:
    assert path in dict(ENGINES["vllm"].problems(profile("vllm", **changes)))


def test_the_verbatim_tail_comes_last() -> None:
    assert command("vllm", args=("--x", "y")).argv[-2:] == ("--x", "y")


def test_slots_are_told_where_they_are_declared() -> None:
    assert command("vllm", flags={"max-num-seqs": 24}).slots == 24
    assert command("llamacpp", serve=Serve(max_num_seqs=3)).slots == 3
    assert command("sglang").slots is None
