"""Profiles that are right, their parents, where they are found, and where their parts were written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InputError, InvalidFile
from orchestrator.profile.finding import find_profile, list_files, shipped_dir
from orchestrator.profile.loading import Loaded, list_profiles, load_profile, problems_at, search_path
from orchestrator.profile.model import Profile

CASES = Path(__file__).parents[1] / "cases" / "profile"
GOOD = sorted((CASES / "good").glob("*.yaml"))


def load(path: Path | str) -> Loaded:
    return load_profile(str(path), search=[CASES / "search"])


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def profile_text(name: str, *lines: str) -> str:
    return "\n".join([f"name: {name}", *lines, ""])


BASE = profile_text("base", "title: The base", "engine: vllm", "image: a/b:c", "serve:", "  max_model_len: 8192")


@pytest.mark.parametrize("path", GOOD, ids=[p.stem for p in GOOD])
def test_a_good_profile_becomes_its_model(path: Path) -> None:
    loaded = load(path)

    as_plain = json.loads(json.dumps(asdict(replace(loaded.profile, source=None))))
    assert as_plain == json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def test_the_text_is_kept_as_written() -> None:
    assert load(CASES / "good" / "child.yaml").text == (CASES / "good" / "child.yaml").read_text(encoding="utf-8")


def test_resolved_is_plain_json_without_what_null_removed() -> None:
    resolved = load(CASES / "good" / "child.yaml").resolved

    assert json.loads(json.dumps(resolved)) == {
        "engine": "vllm",
        "image": "vllm/vllm-openai:v0.31.0",
        "model": "unsloth/Qwen3.8-27B-NVFP4",
        "serve": {"memory_fraction": 0.7, "max_model_len": 131072, "max_num_seqs": 8},
        "flags": {"cudagraph-capture-sizes": [8]},
        "workloads": [],
        "name": "child",
    }


def test_every_field_of_the_model_can_be_set_in_yaml() -> None:
    loaded = [load(path).profile for path in GOOD]
    changed = {path for profile in loaded for path in set_fields("", profile)}

    assert set(all_fields("", Profile(name="x", engine="x"))) - changed == set()


def all_fields(prefix: str, value: Any) -> list[str]:
    names = []
    for f in fields(value):
        inner = getattr(value, f.name)
        names += all_fields(f"{prefix}{f.name}.", inner) if is_dataclass(inner) else [f"{prefix}{f.name}"]
    return names


def set_fields(prefix: str, value: Any) -> list[str]:
    """Fields that differ from their default in this profile (engine and name always count)."""
    fresh = Profile(name="", engine="")
    names = []
    for name in all_fields("", fresh):
        if walk(value, name) != walk(fresh, name):
            names.append(f"{prefix}{name}")
    return names


def walk(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = getattr(value, step)
    return value


def test_a_child_keeps_what_it_does_not_say(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, child=profile_text("child", "extends: base", "serve: {seed: 3}"))

    serve = load_profile("child", search=[tmp_path]).profile.serve

    assert (serve.max_model_len, serve.seed) == (8192, 3)


def test_name_title_and_note_are_not_inherited(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, child="extends: base\n")

    with pytest.raises(InvalidFile, match=r"child\.yaml:1: name: missing"):
        load_profile("child", search=[tmp_path])
    write(tmp_path, child="name: child\nextends: base\n")
    assert load_profile("child", search=[tmp_path]).profile.label == "child"


def test_lineage_and_parents_are_nearest_first(tmp_path: Path) -> None:
    write(
        tmp_path, base=BASE, mid=profile_text("mid", "extends: base"), leaf=profile_text("leaf", "extends: ./mid.yaml")
    )

    loaded = load_profile("leaf", search=[tmp_path])

    assert loaded.profile.lineage == ("mid", "base")
    assert [p.name for p in loaded.parents] == ["mid", "base"]
    assert loaded.parents[0].lineage == ("base",)


def test_a_parent_beside_the_child_comes_before_the_search_path(tmp_path: Path) -> None:
    write(tmp_path / "shipped", base=BASE)
    write(tmp_path / "own", base=BASE.replace("a/b:c", "own/b:c"), child=profile_text("child", "extends: base"))

    loaded = load_profile(str(tmp_path / "own" / "child.yaml"), search=[tmp_path / "shipped"])

    assert loaded.profile.image == "own/b:c"


@pytest.mark.parametrize("named", ["child.yaml", "./child.yaml", "child", "sub/../child.yaml"])
def test_a_parent_beside_the_child_needs_no_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    write(tmp_path, base=BASE, child=profile_text("child", "extends: ./base"))
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)

    loaded = load_profile(named, search=[Path()])

    assert loaded.profile.lineage == ("base",)


def test_a_circle_of_two_parents_is_drawn(tmp_path: Path) -> None:
    write(tmp_path, a=profile_text("a", "extends: b"), b=profile_text("b", "extends: a"))

    with pytest.raises(InvalidFile, match=r"b\.yaml:2: extends: parents go round in a circle: a\.yaml -> b\.yaml -> a"):
        load_profile("a", search=[tmp_path])


def test_a_place_is_that_of_the_file_that_said_it_last() -> None:
    loaded = load(CASES / "good" / "child.yaml")

    assert loaded.place_of("serve.max_model_len").file.endswith("good-base.yaml")
    assert loaded.place_of("serve.max_num_seqs").file.endswith("child.yaml")
    assert loaded.place_of("serve.max_num_seqs").line == 5
    assert loaded.place_of("serve.no_such_key").line == loaded.place_of("serve").line == 4


def test_an_engines_finding_names_both_lines(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, child=profile_text("child", "extends: base", "flags: {max-model-len: 9000}"))
    loaded = load_profile("child", search=[tmp_path])

    found = problems_at(loaded, [("flags.max-model-len", "given twice, as serve.max_model_len too")])

    assert str(found) == (
        f"{tmp_path}/child.yaml:3: flags.max-model-len: given twice, as serve.max_model_len too"
        f" (`serve.max_model_len` is at {tmp_path}/base.yaml:6)"
    )


@pytest.mark.parametrize(
    ("message", "ending"),
    [
        ("also given as port; give it once", "(`port` is at {file}:4)"),
        ("see args[1]", "(`args[1]` is at {file}:5)"),
        ("a port that nothing else uses, e.g. 8000.5", "e.g. 8000.5"),
        ("serve.no_such_key and flags.port", "serve.no_such_key and flags.port"),
    ],
)
def test_only_paths_that_were_written_are_given_a_place(tmp_path: Path, message: str, ending: str) -> None:
    write(tmp_path, p=profile_text("p", "engine: vllm", "image: a/b:c", "port: 1", "args: [a, b]", "flags: {port: 2}"))
    loaded = load_profile("p", search=[tmp_path])

    assert str(problems_at(loaded, [("flags.port", message)])).endswith(ending.format(file=tmp_path / "p.yaml"))


def test_a_flag_with_a_dot_in_its_name_keeps_its_line(tmp_path: Path) -> None:
    write(tmp_path, base=BASE + "flags:\n  a: {b: 1}\n  a.b: 2\n")
    loaded = load_profile("base", search=[tmp_path])

    assert (loaded.place_of("flags.a.b").line, loaded.place_of("flags.a").line) == (9, 8)


def test_a_name_in_a_subfolder_is_found_bare_and_with_its_folder(tmp_path: Path) -> None:
    write(tmp_path, lab__x=BASE)

    assert find_profile("x", [tmp_path]) == find_profile("lab/x", [tmp_path]) == tmp_path / "lab" / "x.yaml"


def test_an_ambiguous_name_names_both_files(tmp_path: Path) -> None:
    write(tmp_path, lab__x=BASE, home__x=BASE)

    with pytest.raises(InputError, match=r"`x` could be .*home/x\.yaml and .*lab/x\.yaml"):
        find_profile("x", [tmp_path])


def test_the_first_folder_that_knows_a_name_wins(tmp_path: Path) -> None:
    write(tmp_path, own__x=BASE, shipped__x=BASE, shipped__y=BASE)
    search = [tmp_path / "own", tmp_path / "shipped", tmp_path / "absent"]

    assert find_profile("x", search) == tmp_path / "own" / "x.yaml"
    assert find_profile("y", search) == tmp_path / "shipped" / "y.yaml"
    assert [(e.name, e.path.parent.name) for e in list_files(search)] == [("x", "own"), ("y", "shipped")]


def test_workloads_are_no_profiles(tmp_path: Path) -> None:
    write(tmp_path, x=BASE, workloads__swarm="name: swarm\n")

    assert [p.name for p in list_profiles([tmp_path])] == ["x"]
    with pytest.raises(InputError, match="no profile is named `workloads/swarm`"):
        find_profile("workloads/swarm", [tmp_path])


def test_a_misspelt_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, **{"qwen3.8-27b": BASE})

    with pytest.raises(InputError) as caught:
        find_profile("qwen3.8-72b", [tmp_path])

    assert caught.value.hint == "did you mean `qwen3.8-27b`?"


def test_the_list_shows_what_can_be_read_and_the_rest_by_name(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, child=profile_text("child", "extends: base", "title: Mine"), bad="a: [")

    listed = [(p.name, p.engine, p.title) for p in list_profiles([tmp_path])]

    assert listed == [("bad", None, None), ("base", "vllm", "The base"), ("child", "vllm", "Mine")]


def test_own_profiles_come_before_the_shipped_ones(tmp_path: Path) -> None:
    assert search_path(tmp_path) == (tmp_path / "profiles", shipped_dir())
    assert search_path(shipped_dir().parent) == (shipped_dir(),)


def test_every_shipped_profile_loads() -> None:
    found = list_profiles([shipped_dir()])

    broken: Mapping[str, str] = {p.name: problem for p in found if (problem := complaint(p.path)) is not None}

    assert broken == {}


def complaint(path: Path) -> str | None:
    try:
        load_profile(str(path), search=[shipped_dir()])
    except InputError as exc:
        return exc.message
    return None
