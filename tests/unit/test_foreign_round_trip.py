"""From a profile to another program's form and back: the same profile, or without the comment the same server."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from orchestrator.deploy.runtime import ServerSpec
from orchestrator.errors import InputError
from orchestrator.foreign.carrying import MARK
from orchestrator.foreign.exporting.common import Exported
from orchestrator.foreign.exporting.forms import FORMS
from orchestrator.foreign.importing import Outcome, import_text
from orchestrator.foreign.model import Fate
from orchestrator.profile.building import build_profile, resolved_value
from orchestrator.profile.digest import profile_digest
from orchestrator.profile.model import Profile, RuntimeKind
from orchestrator.profile.yaml_lines import load_document
from tests.unit.export_cases import ALL, ENGINES, subject

PAIRS = [(p, form) for p in ALL for form in FORMS if form == "systemd" or p.runtime is RuntimeKind.DOCKER]
pairs = pytest.mark.parametrize(("profile", "form"), PAIRS, ids=[f"{p.name}-{form}" for p, form in PAIRS])


def exported(profile: Profile, form: str, *, is_bare: bool = False) -> Exported:
    return FORMS[form](subject(profile, is_bare=is_bare))


def imported(text: str) -> Outcome:
    return import_text(text, source="there", engines=ENGINES)


def read_back(text: str) -> Profile:
    return build_profile(resolved_value(load_document(text, "there")))


@pairs
@pytest.mark.parametrize("is_bare", [False, True], ids=["whole", "bare"])
def test_an_export_imports_as_the_same_profile(profile: Profile, form: str, is_bare: bool) -> None:
    for file in exported(profile, form, is_bare=is_bare).files:
        (back,) = imported(file.text).profiles

        assert profile_digest(read_back(back.text)) == profile_digest(profile)
        assert [note.why for note in back.draft.notes] == [
            "gate0's own export, unchanged: the profile that it was made from"
        ]


def stripped(text: str) -> str:
    return "".join(f"{line}\n" for line in text.split("\n") if MARK not in line)


def server(spec: ServerSpec) -> Mapping[str, object]:
    return {
        "image": spec.image,
        "entrypoint": spec.entrypoint,
        "words": sorted(spec.command),
        "env": dict(spec.env),
        "network": spec.network,
        "ipc": spec.ipc,
        "shm": spec.shm_bytes,
        "mounts": spec.mounts,
        "ports": spec.ports,
        "ulimits": dict(spec.ulimits),
        "gpus": spec.gpus,
        "restart": spec.restart,
    }


REFUSED = "refused"
GATE0S = {"words"}
"""The words differ by what gate0 adds: a form says neither the task nor what gate0 must not add."""
SAME_SWITCH = {"words"}
"""`--no-mmproj` comes back as `--no-mmproj-auto`, llama-server's other name for it."""
OTHER_NAMES = {"env"}
"""A secret comes back under its variable's name."""
LOST: Mapping[tuple[str, str], object] = {
    # The image's name tells nothing: the engine is told by the container's name, and whether it has GPUs by nothing.
    **{("lab-smollm2-llamacpp", form): {"gpus"} for form in ("docker-run", "compose", "systemd")},
    ("lab-smollm2-llamacpp", "k8s"): {"gpus", "ipc"},
    ("lab-smollm2-llamacpp", "sparkrun"): {"entrypoint", "env", "mounts", "gpus"},
    ("qwen3.8-flash-next-exl3-velogb10", "systemd"): REFUSED,
    **{("verbatim", form): REFUSED for form in FORMS},
    **{("qwen3.8-flash-next-iq1s-llamacpp", form): SAME_SWITCH for form in FORMS},
    ("qwen3.8-flash-next-nvfp4-tp2-mtp3", "k8s"): {"ulimits"},
    ("container.every_setting", "docker-run"): GATE0S,
    ("container.every_setting", "compose"): GATE0S,
    ("container.every_setting", "sparkrun"): {*GATE0S, "env", "mounts", "ports"},
    ("container.every_setting", "systemd"): {*GATE0S, "restart"},
    ("container.every_setting", "k8s"): {*GATE0S, "ipc", "ulimits", "restart"},
    # `python3 -m vllm.entrypoints.openai.api_server` is `vllm serve` by another name.
    ("entrypoint", "docker-run"): {*GATE0S, "entrypoint", "gpus"},
    ("entrypoint", "compose"): {*GATE0S, "entrypoint", "gpus"},
    ("entrypoint", "sparkrun"): {*GATE0S, "entrypoint", "gpus", "env", "mounts"},
    ("entrypoint", "systemd"): {*GATE0S, "entrypoint", "gpus"},
    ("entrypoint", "k8s"): {*GATE0S, "entrypoint", "gpus", "network", "restart"},
    ("quoting", "docker-run"): OTHER_NAMES,
    ("quoting", "systemd"): OTHER_NAMES,
    ("quoting", "sparkrun"): {"env"},
    ("with-parent", "sparkrun"): {"env"},
    ("two-sglang", "k8s"): {"restart"},
    ("binary", "systemd"): {"env"},
}
"""What comes back another way when the comment is gone, by field; nothing elsewhere."""


@pairs
def test_without_the_comment_the_same_server_comes_back(profile: Profile, form: str) -> None:
    rank, file = subject(profile).ranks[0], exported(profile, form).files[0]
    expected = LOST.get((profile.name, form), set())
    if expected == REFUSED:
        with pytest.raises(InputError, match="starts no server that gate0 can make a profile of"):
            imported(stripped(file.text))
        return

    back = read_back(imported(stripped(file.text)).profiles[0].text)

    before, after = server(rank.spec), server(subject(back).ranks[0].spec)
    assert {field for field in before if before[field] != after[field]} == expected


CHANGES = {
    "a value": ("--max-num-seqs 32", "--max-num-seqs 16", "`--max-num-seqs` differs"),
    "a flag gone": ("  --enable-prefix-caching \\\n", "", None),
    "a flag more": ("  --enable-prefix-caching \\\n", "  --enable-prefix-caching --enforce-eager \\\n", None),
    "the image": (
        "  vllm/vllm-openai:v0.31.0",
        "  vllm/vllm-openai:v0.32.0",
        "image is vllm/vllm-openai:v0.32.0, and not",
    ),
    "a variable": ("VLLM_USE_DEEP_GEMM=0", "VLLM_USE_DEEP_GEMM=1", "env VLLM_USE_DEEP_GEMM has another value"),
    "a mount": ("  -v ~/.cache/vllm:/root/.cache/vllm \\\n", "", "mounts is"),
    "the network": ("--network host", "--network bridge", "network is bridge, and not host"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_is_edited_by_hand_wins_over_the_comment(case: str) -> None:
    before, now, why = CHANGES[case]
    profile = next(p for p in ALL if p.name == "qwen3.8-27b-nvfp4-mtp1-checkpoint")
    text = exported(profile, "docker-run").files[0].text
    assert before in text

    (back,) = imported(text.replace(before, now)).profiles

    assert profile_digest(read_back(back.text)) != profile_digest(profile)
    (note,) = [n for n in back.draft.notes if n.where == "the comment of the export"]
    assert note.fate is Fate.DROPPED
    assert note.why.startswith(f"changed since gate0 exported it: {why or ''}")


def test_the_hosts_own_addresses_are_no_edit() -> None:
    profile = next(p for p in ALL if p.name == "two-sglang")
    texts = [
        file.text.replace("node0", "192.168.9.1").replace("node1", "ib1") for file in exported(profile, "compose").files
    ]

    for text in texts:
        (back,) = imported(text).profiles

        assert profile_digest(read_back(back.text)) == profile_digest(profile)


def test_a_name_or_a_comment_is_no_edit() -> None:
    profile = next(p for p in ALL if p.name == "qwen3.8-27b-nvfp4")
    text = exported(profile, "docker-run").files[0].text.replace("--name qwen3.8-27b-nvfp4 ", "--name mine ")

    (back,) = imported(f"# my server\n{text}").profiles

    assert profile_digest(read_back(back.text)) == profile_digest(profile)


BROKEN = {
    "another engine": '{"name": "x", "engine": "none-such", "image": "vllm/vllm-openai:v0.31.0"}',
    "no engine": '{"name": "x"}',
    "no profile": '{"name": "x", "engine": "vllm", "serve": {"no_such_setting": 1}}',
    "another shape": '{"name": "x", "engine": "vllm", "env": 3}',
    "with problems": '{"name": "x", "engine": "vllm"}',
    "attached": '{"name": "x", "engine": "endpoint", "attach": "http://box:1"}',
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_carried_profile_that_cannot_be_used_is_set_aside(case: str) -> None:
    text = f"# {MARK} {BROKEN[case]}\ndocker run -d --gpus all vllm/vllm-openai:v0.31.0 org/M --port 8000\n"

    (back,) = imported(text).profiles

    assert read_back(back.text).model.repo == "org/M"
    assert [n.fate for n in back.draft.notes if n.where == "the comment of the export"] == [Fate.DROPPED]
