"""The profile that an export carries: whole, in a profile file's words, without a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.foreign.carrying import MARK, carry, find
from orchestrator.foreign.exporting.forms import FORMS
from orchestrator.profile.building import build_profile
from orchestrator.profile.digest import as_json, profile_digest
from orchestrator.profile.loading import load_file
from orchestrator.profile.model import FlagValue, Profile
from tests.unit.export_cases import ALL, AS_PROCESS, ENGINES, name_of, subject

EVERY_KEY = Path(__file__).parents[1] / "cases" / "profile" / "good" / "every-key.yaml"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("profile", ALL, ids=name_of)
def test_every_file_of_an_export_carries_the_whole_profile(profile: Profile, form: str) -> None:
    if form != "systemd" and profile in AS_PROCESS:
        return

    for file in FORMS[form](subject(profile)).files:
        carried = find(file.text)

        assert carried is not None
        assert as_json(build_profile(carried)) == as_json(profile)
        assert profile_digest(build_profile(carried)) == profile_digest(profile)


@pytest.mark.parametrize("profile", ALL, ids=name_of)
def test_what_is_carried_is_a_profile_file(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / f"{profile.name}.yaml"
    path.write_text(json.dumps(json.loads(carry(profile)), ensure_ascii=False), encoding="utf-8")

    loaded = load_file(path, search=(), engines=ENGINES).profile

    assert profile_digest(loaded) == profile_digest(profile)


def test_the_order_of_flags_is_kept() -> None:
    flags: dict[str, FlagValue] = {"z": 1, "a": {"y": 1, "b": 2}, "m": None}
    profile = Profile(name="order", engine="vllm", image="i", flags=flags)

    carried = build_profile(json.loads(carry(profile))).flags

    assert json.dumps(carried) == json.dumps(flags)


def test_an_unset_variable_is_not_carried_as_a_word() -> None:
    profile = Profile(name="unset", engine="vllm", image="i", env={"A": None, "B": "1"})

    assert build_profile(json.loads(carry(profile))).env == {"B": "1"}


def test_what_every_profile_has_is_left_out() -> None:
    assert json.loads(carry(Profile(name="short", engine="vllm", image="i"))) == {
        "name": "short",
        "engine": "vllm",
        "image": "i",
    }


FOUND = {
    "a comment": (f'# {MARK} {{"name": "x", "engine": "vllm"}}\n', "x"),
    "indented": (f'services:\n  # {MARK} {{"name": "x"}}\n', "x"),
    "no space": (f'#{MARK}{{"name": "x"}}\n', "x"),
    "the first that can be read": (f'# {MARK} {{"name": \n# {MARK} {{"name": "y"}}\n', "y"),
    "not in a value": (f'command: "{MARK} {{}}"\n', None),
    "no mapping": (f"# {MARK} [1]\n", None),
    "no name": (f"# {MARK} {{}}\n", None),
    "none": ("docker run x\n", None),
}


@pytest.mark.parametrize("case", FOUND)
def test_it_is_found_in_a_comment_alone(case: str) -> None:
    text, name = FOUND[case]

    found = find(text)

    assert (None if found is None else found["name"]) == name


def test_every_key_of_a_profile_file_is_carried() -> None:
    profile = load_file(EVERY_KEY, search=(), engines=ENGINES).profile

    assert profile_digest(build_profile(json.loads(carry(profile)))) == profile_digest(profile)
