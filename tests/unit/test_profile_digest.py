"""Identity of a profile, its plain form, and what sets two apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.profile.building import build_profile
from orchestrator.profile.digest import Difference, as_json, differences, profile_digest
from orchestrator.profile.loading import load_profile
from orchestrator.profile.model import GateChoice, Profile, Ready, Serve

CASES = Path(__file__).parents[1] / "cases" / "profile"
GOOD = sorted((CASES / "good").glob("*.yaml"))


def good(name: str) -> Profile:
    return load_profile(str(CASES / "good" / f"{name}.yaml"), search=[CASES / "search"]).profile


def test_the_digest_stands() -> None:
    # A changed digest makes every stored run one of another profile: change it knowingly, with a CHANGELOG line.
    assert profile_digest(good("minimal")) == "2e37e665a6a44890"
    assert profile_digest(good("every-key")) == "9c4e892185aa0dc6"


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "x"},
        {"note": "x"},
        {"source": "x"},
        {"lineage": ("x",)},
        {"gates": GateChoice(suite="quick")},
        {"workloads": ("x",)},
        {"ready": Ready(timeout_s=1)},
        {"silence": ("GB10-CACHE-01",)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_does_not_change_the_server_does_not_change_the_digest(changed: dict[str, object]) -> None:
    profile = good("minimal")

    assert profile_digest(replace(profile, **changed)) == profile_digest(profile)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [{"image": "a/b:d"}, {"serve": Serve(seed=1)}, {"flags": {"a": 1}}, {"env": {"A": "1"}}, {"args": ("a",)}],
    ids=lambda changed: next(iter(changed)),
)
def test_what_changes_the_server_changes_the_digest(changed: dict[str, object]) -> None:
    profile = good("minimal")

    assert profile_digest(replace(profile, **changed)) != profile_digest(profile)  # type: ignore[arg-type]


def test_the_order_of_flags_does_not_change_the_digest() -> None:
    one = replace(good("minimal"), flags={"a": 1, "b": 2})

    assert profile_digest(replace(one, flags={"b": 2, "a": 1})) == profile_digest(one)


@pytest.mark.parametrize("name", [p.stem for p in GOOD])
def test_the_plain_form_builds_the_same_profile(name: str) -> None:
    profile = good(name)

    assert build_profile(as_json(profile), source=profile.source, lineage=profile.lineage) == profile


def test_the_plain_form_holds_references_and_no_secrets() -> None:
    plain = as_json(good("every-key"))

    assert plain["env"]["HF_TOKEN"] == {"secret": "HF_TOKEN"}  # type: ignore[index,call-overload]


def test_differences_are_named_by_dotted_path() -> None:
    loaded = load_profile(str(CASES / "good" / "child.yaml"), search=[CASES / "search"])

    assert differences(loaded.parents[0], loaded.profile) == (
        Difference(path="flags.cudagraph-capture-sizes", before=[1, 2, 4], after=[8]),
        Difference(path="flags.mamba-cache-mode", before="align", after=None),
        Difference(path="serve.max_num_seqs", before=None, after=8),
        Difference(path="serve.speculative.method", before="mtp", after=None),
        Difference(path="serve.speculative.num_tokens", before=1, after=None),
        Difference(path="workloads", before=["concurrency"], after=None),
    )


def test_another_suite_is_one_difference() -> None:
    before = good("minimal")
    after = replace(before, gates=GateChoice(suite="quick", params={"coherence": {"times": 2}}), title="Another")

    assert [d.path for d in differences(before, after)] == ["gates.params.coherence.times", "gates.suite"]
