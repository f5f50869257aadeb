"""`gate0 flags`: what it lists, explains and compares, and what it says to words that it does not know."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest

from orchestrator.cli.commands.flags import complete, flags
from orchestrator.cli.flag_words import default_words, kind_words, own_lines
from orchestrator.cli.main import main
from orchestrator.deploy import open as opening
from orchestrator.engines.flags.comparing import compare
from orchestrator.engines.flags.history import load_history
from orchestrator.engines.flags.loading import ENGINES, load, versions
from orchestrator.engines.flags.model import Flag, ValueKind
from tests.contract.runtime_fakes import FakeRuntime
from tests.unit.test_own_flags import IMAGE, done, table

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def told(capsys: Capture, *words: str, code: int = 0) -> str:
    """stdout without the spaces that fill columns; with another exit code than 0 what is on stderr."""
    assert main(["flags", *words]) == code
    captured = capsys.readouterr()
    return "\n".join(line.rstrip() for line in (captured.err if code else captured.out).splitlines())


def test_one_flag_is_explained(capsys: Capture) -> None:
    assert told(capsys, "vllm", "0.31", "max-model-len") == (
        "--max-model-len  vllm 0.31.0\n"
        "value            whole number, also 8k, 8K, auto, -1\n"
        "group            ModelConfig\n"
        "there            in all known versions"
    )


@pytest.mark.parametrize("word", ["-ngl", "ngl", "n_gpu_layers", "--n-gpu-layers", "LLAMA_ARG_N_GPU_LAYERS"])
def test_any_spelling_of_a_flag_will_do(capsys: Capture, word: str) -> None:
    assert told(capsys, "llamacpp", "b10434", word) == (
        "--gpu-layers  llama-server b10434\n"
        "value         whole number, auto, all\n"
        "default       auto\n"
        "also          -ngl, --n-gpu-layers\n"
        "variable      LLAMA_ARG_N_GPU_LAYERS\n"
        "group         common params\n"
        "there         in all known versions"
    )


def test_a_key_of_a_json_flag_is_explained(capsys: Capture) -> None:
    assert told(capsys, "vllm", "0.31", "speculative-config.num_speculative_tokens") == (
        "--speculative-config.num_speculative_tokens  vllm 0.31.0\n"
        "value                                        whole number, above 0"
    )


def test_a_variable_is_explained(capsys: Capture) -> None:
    found = told(capsys, "vllm", "0.31", "VLLM_LOGGING_LEVEL")

    assert found.splitlines()[:2] == [
        "VLLM_LOGGING_LEVEL  vllm 0.31.0",
        "value               environment variable",
    ]


def test_a_search_lists_by_group(capsys: Capture) -> None:
    assert told(capsys, "vllm", "0.31", "--search", "prefix-match") == (
        "flag                   takes                        default\n"
        "CacheConfig:\n"
        "  --prefix-match-unit  whole number, above 0, None\n"
        "1 of 311 flags of vllm 0.31.0"
    )


def test_variables_are_listed_with_their_defaults(capsys: Capture) -> None:
    lines = told(capsys, "llamacpp", "b10434", "--env", "--search", "ctx-size").splitlines()

    assert lines[1:] == ["LLAMA_ARG_CTX_SIZE  as --ctx-size", "1 of 135 variables of llama-server b10434"]


def test_versions_are_compared(capsys: Capture) -> None:
    lines = told(capsys, "vllm", "0.26", "0.27").splitlines()

    assert [line.split()[:2] for line in lines if line.startswith(("renamed", "removed"))] == [
        ["removed", "--max-long-partial-prefills"],
        ["removed", "--max-num-partial-prefills"],
    ]
    assert "changes from vllm 0.26.0 to vllm 0.27.0" in lines[-2]
    assert lines[-1].endswith("`--env` names them")


def test_a_comparison_is_a_document(capsys: Capture) -> None:
    found = json.loads(told(capsys, "vllm", "0.26", "0.27", "--json"))

    assert (found["before"], found["after"]) == ("0.26.0", "0.27.0")
    assert "--max-num-partial-prefills" in found["removed"]


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("vllm 0.31 0.33 max-num-seqs", ["nothing changed of --max-num-seqs from vllm 0.31.0 to vllm 0.33.0"]),
        ("vllm 0.31 0.33 allowed_origins", ['default --allowed-origins ["*"] [] (since 0.32.0)']),
        ("vllm 0.31 0.33 mamba-cache-mode", ["no effect --mamba-cache-mode", "choices --mamba-cache-mode -all"]),
        ("vllm 0.31 0.33 grpc-port", ["added --grpc-port whole number, None"]),
        (
            "vllm 0.30 0.31 enable-mamba-fine-grained-prefix-cache",
            ["renamed --enable-mamba-fine-grained-prefix-cache --enable-mamba-shared-prefix-checkpoint"],
        ),
        (
            "vllm 0.30 0.31 enable-mamba-shared-prefix-checkpoint",
            ["renamed --enable-mamba-fine-grained-prefix-cache --enable-mamba-shared-prefix-checkpoint"],
        ),
        ("vllm 0.26 0.27 max-num-partial-prefills", ["removed --max-num-partial-prefills whole number, at least 1"]),
        (
            "vllm 0.31 0.33 speculative-config.method",
            ["choices --speculative-config.method -medusa -mlp_speculator +step5_mtp"],
        ),
        ("vllm 0.31 0.33 VLLM_P2P_MAX_PEERS", ["variable added VLLM_P2P_MAX_PEERS"]),
        (
            "llamacpp b10434 0.5.0-dev+0c1e57098 LLAMA_ARG_CTX_SIZE",
            ["nothing changed of --ctx-size from llama-server b10434 to llama-server 0.5.0-dev+0c1e57098"],
        ),
    ],
)
def test_one_name_is_compared(capsys: Capture, words: str, rows: list[str]) -> None:
    lines = [" ".join(line.split()) for line in told(capsys, *words.split()).splitlines()]

    assert [line for line in lines if not line.startswith("change ")] == rows


def test_the_keys_of_a_json_flag_are_compared_with_it(capsys: Capture) -> None:
    lines = told(capsys, "vllm", "0.31", "0.33", "watchdog-config").splitlines()

    assert [" ".join(line.split()) for line in lines[1:]] == [
        "added --watchdog-config JSON",
        "key added WatchdogConfig.check_interval",
        "key added WatchdogConfig.dump_dir",
        "key added WatchdogConfig.timeout",
    ]


def test_variables_are_compared_without_the_flags(capsys: Capture) -> None:
    lines = told(capsys, "vllm", "0.31", "0.33", "--env").splitlines()

    assert {" ".join(line.split()[:2]) for line in lines[1:-1]} == {"variable added", "variable removed"}
    assert lines[-1] == f"{len(lines) - 2} changes of variables from vllm 0.31.0 to vllm 0.33.0"


def test_the_default_of_a_flag_that_has_no_effect_any_more_is_no_change(capsys: Capture) -> None:
    lines = told(capsys, "vllm", "0.31", "0.33").splitlines()

    found = [" ".join(line.split()) for line in lines if "--mamba-cache-mode" in line]
    assert found == ["no effect --mamba-cache-mode", "choices --mamba-cache-mode -all"]


@pytest.mark.parametrize(("word", "count"), [("spec", 45), ("speculative", 41), ("specific", 91), ("sampling", 35)])
def test_a_search_takes_a_group_by_a_whole_word_of_its_name(capsys: Capture, word: str, count: int) -> None:
    assert told(capsys, "llamacpp", "b10434", "--search", word).splitlines()[-1].split()[0] == str(count)


def test_a_list_and_a_flag_are_documents(capsys: Capture) -> None:
    whole = json.loads(told(capsys, "sglang", "0.5.23", "--json"))
    one = json.loads(told(capsys, "sglang", "0.5.23", "tp-size", "--json"))

    assert (whole["engine"], whole["version"], len(whole["flags"])) == ("sglang", "0.5.23", 531)
    assert (one["name"], one["kind"], one["default"]) == ("--tp-size", "int", 1)


def test_known_versions_are_listed(capsys: Capture) -> None:
    every = told(capsys).splitlines()
    vllm = told(capsys, "vllm").splitlines()

    assert len(every) == 1 + sum(len(versions(engine)) for engine in ENGINES)
    assert [line.split()[1] for line in vllm[1:]] == list(versions("vllm"))


def test_a_version_without_a_list_is_shown_by_the_nearest_lower_one(capsys: Capture) -> None:
    assert main(["flags", "vllm", "0.31.2", "seed"]) == 0

    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split() == ["--seed", "vllm", "0.31.0"]
    assert (
        captured.err
        == "warning: there is no flag list for vllm 0.31.2; that of 0.31.0, the nearest lower one, is used\n"
    )


def test_an_images_tag_tells_the_version(capsys: Capture) -> None:
    assert told(capsys, "lmsysorg/sglang:v0.5.20-cu130", "tp-size").splitlines()[0].split()[1:] == ["sglang", "0.5.20"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("vllm", "0.31", "max-nun-seqs"),
            "--max-nun-seqs is no flag of vllm 0.31.0\nhint: did you mean --max-num-seqs?",
        ),
        (("vllm", "0.31", "max-num-partial-prefills"), "no longer a flag of vllm 0.31.0\nhint: exists until 0.26.0"),
        (("vllm", "0.31", "zzzzzz"), "hint: `gate0 flags vllm --search WORD` looks for a word"),
        (("vllm", "0.31", "spec"), "hint: one of --spec-method, --spec-model"),
        (
            ("vllm", "0.31", "speculative-config.metod"),
            "has no key metod\nhint: did you mean --speculative-config.method?",
        ),
        (("vllm", "0.31", "VLLM_LOGGING_LEVLE"), "hint: did you mean VLLM_LOGGING_LEVEL?"),
        (("vllm", "0.31", "0.32", "0.33"), "too many words"),
        (("vllm", "latest"), "latest is no version of vllm that stays the same\nhint: one of 0.20.0, 0.22.0, "),
        (("vllm", "0.31", "0.33", "max-nun-seqs"), "hint: did you mean --max-num-seqs?"),
        (
            ("vllm", "0.31", "0.33", "VLLM_P2P_MAX_PEER"),
            "neither vllm 0.31.0 nor vllm 0.33.0 reads VLLM_P2P_MAX_PEER\n",
        ),
        (("vllm", "0.31", "0.33", "VLLM_P2P_MAX_PEER"), "hint: did you mean VLLM_P2P_MAX_PEERS?"),
        (("vlm",), "vlm: no engine"),
        (("vllm", "--engine", "sglang"), "vllm is an engine, and `--engine sglang` another"),
        (("vllm/vllm-openai:v0.31.0", "0.33"), "hint: `gate0 flags vllm 0.33` lists another version"),
        (("vllm", "--on", "local"), "vllm is an engine\nhint: give the image's name"),
        (("my/vllm:1", "--on", "me@10.0.0.1,me@10.0.0.2"), "one host is enough"),
    ],
)
def test_what_is_not_known_is_exit_2_with_what_to_do(capsys: Capture, words: tuple[str, ...], said: str) -> None:
    assert said in told(capsys, *words, code=2)


def test_a_short_name_that_the_engine_would_take_is_explained_with_a_warning(capsys: Capture) -> None:
    assert main(["flags", "vllm", "0.31", "max-num-batched"]) == 0

    captured = capsys.readouterr()
    assert captured.out.startswith("--max-num-batched-tokens ")
    assert "--max-num-batched is taken for --max-num-batched-tokens" in captured.err


def use_image(monkeypatch: pytest.MonkeyPatch, runtime: FakeRuntime) -> None:
    monkeypatch.setattr(opening, "open_runtime", lambda *_: runtime)


def test_an_images_own_list_is_read_on_a_host_and_set_beside_the_shipped_one(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = FakeRuntime(images={IMAGE: "sha256:aa"})
    runtime.on_ask(IMAGE, lambda _: done(table()))
    use_image(monkeypatch, runtime)

    lines = told(capsys, IMAGE, "--on", "local").splitlines()
    one = told(capsys, IMAGE, "flag-3", "--on", "local")
    kept = told(capsys, "vllm/vllm-openai@sha256:aa", "flag-3")

    assert lines[1:3] == ["other:", "  --flag-0   whole number  1"]
    assert lines[-3] == "60 of 60 flags of this image (vllm 0.31.0)"
    assert lines[-2].startswith("this image has 60 flags that vllm 0.31.0 lacks: --flag-0, --flag-1, ")
    assert lines[-1].startswith("this image lacks 311 flags that vllm 0.31.0 has: ")
    assert one == kept == "--flag-3  this image (vllm 0.31.0)\nvalue     whole number\ndefault   1"
    assert [verb for verb, _ in runtime.calls].count("ask") == 1
    assert runtime.is_closed


def test_an_image_that_is_not_on_the_host_is_exit_3(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    use_image(monkeypatch, FakeRuntime())

    assert "hint: on the host: `docker pull my/vllm:1`" in told(capsys, "my/vllm:1", "--on", "local", code=3)


def test_what_sets_an_image_apart_is_said_in_sentences() -> None:
    shipped = load("vllm", "0.31.0")
    added = Flag(name="--mxfp4-backend", kind=ValueKind.STR)
    kept = {name: flag for name, flag in shipped.flags.items() if name != "--seed"}
    own = replace(shipped, flags={**kept, added.name: added}, is_own=True)
    same = replace(shipped, is_own=True)

    apart, alike = (tuple(own_lines(it, shipped, compare(shipped, it, load_history("vllm")))) for it in (own, same))

    assert apart == (
        "this image has 1 flag that vllm 0.31.0 lacks: --mxfp4-backend",
        "this image lacks 1 flag that vllm 0.31.0 has: --seed",
    )
    assert alike == ("this image has the flags of vllm 0.31.0, all 311",)


@pytest.mark.parametrize(
    ("flag", "takes", "default"),
    [
        (Flag(name="--a", kind=ValueKind.NONE, default=False), "switch", "false"),
        (Flag(name="--a", kind=ValueKind.BOOL), "switch", ""),
        (Flag(name="a", kind=ValueKind.BOOL, default=True), "true or false", "true"),
        (Flag(name="--a", kind=ValueKind.FLOAT, bounds={"gt": 0, "le": 1}), "number, above 0, at most 1", ""),
        (Flag(name="--a", kind=ValueKind.LIST, item=ValueKind.INT, nargs="+"), "list, each whole number", ""),
        (
            Flag(name="--a", kind=ValueKind.STR, choices=tuple("abcdefgh"), default="a"),
            "one of a, b, c, d, e, f and 2 more",
            "a",
        ),
        (Flag(name="--a", kind=ValueKind.LIST, choices=("a", "b")), "list, each one of a, b", ""),
        (Flag(name="--a", kind=ValueKind.JSON, default_text="A()", is_nullable=True), "JSON, None", "A()"),
        (Flag(name="--a", kind=ValueKind.STR, known=("a",), default="x" * 70), "known: a", "x" * 60 + "…"),
    ],
)
def test_a_flag_in_words(flag: Flag, takes: str, default: str) -> None:
    assert (kind_words(flag), default_words(flag)) == (takes, default)


def test_an_engine_alone_lists_its_own_versions(capsys: Capture) -> None:
    rows = told(capsys, "--engine", "llamacpp").splitlines()[1:]

    assert [row.split()[1] for row in rows] == list(versions("llamacpp"))


def test_the_shell_completes_engines() -> None:
    assert complete(click.Context(flags), flags.params[0], "s") == ["sglang"]
