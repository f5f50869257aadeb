"""Generic and endpoint, what every engine's traits must hold, advice, image versions, and how engines are found."""

from __future__ import annotations

import dataclasses
import re
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from orchestrator.engines.engine import Placement
from orchestrator.engines.images import image_version, is_older, split_image
from orchestrator.engines.registry import get_engine, load_engines
from orchestrator.errors import InputError
from orchestrator.profile.model import (
    ContainerSettings,
    GeneratedKey,
    ModelRef,
    Mount,
    Profile,
    RuntimeKind,
    SecretRef,
    Serve,
)

ENGINES = load_engines()
GENERIC = Profile(name="g", engine="generic", image="org/server:1", command=("serve", "--port", "9000"), port=9000)
ATTACHED = Profile(name="e", engine="endpoint", attach="http://10.0.0.5:8000/v1", slots=4)
KEY = SecretRef(name="K")
PLAIN = Serve(max_num_seqs=8, max_num_batched_tokens=4096)
CACHES = (Mount(source="~/.cache/vllm", target="/root/.cache/vllm"),)
VLLM = Profile(name="v", engine="vllm", image="vllm/vllm-openai:v0.31.0", model=ModelRef(repo="o/m"))


def problems(profile: Profile, **changes: Any) -> dict[str, str]:
    return dict(ENGINES[profile.engine].problems(dataclasses.replace(profile, **changes)))


def codes(profile: Profile, **changes: Any) -> list[str]:
    return [advice.code for advice in ENGINES[profile.engine].advisories(dataclasses.replace(profile, **changes))]


def test_generic_runs_the_command_as_it_is() -> None:
    made = ENGINES["generic"].command(dataclasses.replace(GENERIC, args=("--x",)), Placement())

    assert made.argv == ("serve", "--port", "9000", "--x")
    assert (made.port, made.added, made.api_key_env) == (9000, (), None)


def test_generic_takes_claims_and_refuses_settings() -> None:
    serve = Serve(max_model_len=4096, max_num_seqs=4, tool_call_parser="own", memory_fraction=0.7)

    assert problems(GENERIC, serve=serve, flags={"a": 1}).keys() == {"serve.memory_fraction", "flags.a"}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"port": None}, "port"),
        ({"image": None}, "image"),
        ({"runtime": RuntimeKind.PROCESS}, "binary"),
        ({"attach": "http://x"}, "attach"),
        ({"nodes": 2}, "nodes"),
        ({"serve": Serve(api_key=GeneratedKey())}, "serve.api_key"),
    ],
)
def test_generic_names_what_is_missing_or_out_of_place(changes: dict[str, Any], path: str) -> None:
    assert path in problems(GENERIC, **changes)


def test_generic_with_problems_gives_no_command() -> None:
    with pytest.raises(InputError, match="g: port: generic needs the port"):
        ENGINES["generic"].command(dataclasses.replace(GENERIC, port=None), Placement())


@pytest.mark.parametrize(
    ("url", "port"), [("http://10.0.0.5:8000/v1", 8000), ("http://box", 80), ("https://box/api", 443)]
)
def test_an_endpoint_starts_nothing_and_knows_its_port(url: str, port: int) -> None:
    made = ENGINES["endpoint"].command(dataclasses.replace(ATTACHED, attach=url), Placement())

    assert (made.argv, made.port, made.slots) == ((), port, 4)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"attach": None}, "attach"),
        ({"attach": "10.0.0.5:8000"}, "attach"),
        ({"image": "x"}, "image"),
        ({"command": ("a",)}, "command"),
        ({"flags": {"a": 1}}, "flags.a"),
        ({"serve": Serve(kv_cache_dtype="fp8")}, "serve.kv_cache_dtype"),
    ],
)
def test_an_endpoint_refuses_what_belongs_to_a_deployment(changes: dict[str, Any], path: str) -> None:
    assert path in problems(ATTACHED, **changes)


def test_an_endpoint_without_slots_is_advised_to_state_them() -> None:
    assert codes(ATTACHED) == []
    assert codes(ATTACHED, slots=None) == ["SERVE-SLOTS-01"]


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_an_engine_is_found_under_its_own_name(name: str) -> None:
    assert ENGINES[name].name == name


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_pattern_of_an_engine_compiles(name: str) -> None:
    traits = ENGINES[name].traits

    patterns = [s.pattern for s in traits.symptoms if s.pattern] + [s.pattern for s in traits.log_stages]
    assert all(re.compile(pattern) for pattern in patterns)


@pytest.mark.parametrize("name", ["vllm", "sglang", "llamacpp", "generic", "endpoint"])
def test_every_engine_has_a_way_to_a_cold_request(name: str) -> None:
    assert ENGINES[name].traits.cold_fields


def test_llama_server_ends_a_failed_stream_without_done() -> None:
    assert not ENGINES["llamacpp"].traits.sends_done_after_error
    assert ENGINES["vllm"].traits.sends_done_after_error


def test_an_engine_that_is_not_installed_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match="engine trtllm is not installed") as caught:
        get_engine("trtllm", ENGINES)

    assert caught.value.hint == "one of endpoint, generic, llamacpp, sglang, vllm"


def test_a_broken_plugin_is_named_with_its_error() -> None:
    broken = EntryPoint(name="odd", value="no_such_module:ENGINE", group="gate0.engines")

    with pytest.raises(InputError, match=r"engine odd: no_such_module:ENGINE cannot be loaded: ModuleNotFoundError"):
        load_engines([broken])


def test_a_plugin_that_is_no_engine_is_refused() -> None:
    wrong = EntryPoint(name="odd", value="json:dumps", group="gate0.engines")

    with pytest.raises(InputError, match="is no engine, it has no name, traits"):
        load_engines([wrong])


def test_two_plugins_of_one_name_are_refused() -> None:
    one = EntryPoint(name="vllm", value="orchestrator.engines.vllm:ENGINE", group="gate0.engines")

    with pytest.raises(InputError, match="engine vllm: two plugins have this name"):
        load_engines([one, one])


@pytest.mark.parametrize("changes", [{"expose": "loopback"}, {"serve": dataclasses.replace(PLAIN, api_key=KEY)}])
def test_a_closed_server_with_its_settings_declared_is_not_advised_about(changes: dict[str, Any]) -> None:
    declared = {"serve": PLAIN, "container": ContainerSettings(mounts=CACHES), **changes}

    assert codes(VLLM, **declared) == []


def test_a_profile_with_problems_is_still_advised_about_its_own_words() -> None:
    wrong = {
        "flags": {"max-num-seqs": 4},
        "serve": Serve(max_num_seqs=8),
        "container": ContainerSettings(restart="always"),
    }

    assert problems(VLLM, **wrong)
    assert "GB10-START-05" in codes(VLLM, **wrong)


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.31.0", (0, 31, 0)),
        ("vllm/vllm-openai:v0.31.0-cu130", (0, 31, 0)),
        ("10.0.0.1:5000/vllm/vllm-openai:0.30.1@sha256:abc", (0, 30, 1)),
        ("vllm/vllm-openai:nightly", None),
        ("vllm/vllm-openai", None),
        ("ghcr.io/someone/dspark-vllm:0.1.1", None),
        (None, None),
    ],
)
def test_only_the_engines_own_repository_tells_its_version(image: str | None, version: tuple[int, ...] | None) -> None:
    assert image_version(image, ("vllm-openai",)) == version


def test_an_unknown_version_counts_as_current() -> None:
    assert not is_older(None, (0, 30))
    assert is_older((0, 29, 0), (0, 30))
    assert not is_older((0, 30, 0), (0, 30))


def test_a_registrys_port_is_no_tag() -> None:
    assert split_image("10.0.0.1:5000/llama") == ("10.0.0.1:5000/llama", "")
