"""An image's own flag list: read once a digest, kept, and held against what is about to be started."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.deploy.own_flags import (
    FINGERPRINT,
    FORMAT,
    Subject,
    find_kept,
    flags_folder,
    keep,
    kept_list,
    llama_version,
    own_flags,
)
from orchestrator.deploy.runtime import PYTHON, IsCancelled, Question, Runtime
from orchestrator.engines.flags import inside
from orchestrator.engines.flags.document import encode
from orchestrator.engines.flags.loading import load, versions
from orchestrator.engines.flags.model import Catalogue, Flag, ValueKind
from orchestrator.errors import Interrupted, InvalidFile, RuntimeFailure
from orchestrator.fleet.host import Completed
from orchestrator.pipeline.events import Notice, StageBegan, StageMoved
from orchestrator.profile.loading import load_file
from orchestrator.profile.model import RuntimeKind, Serve
from tests.contract.runtime_fakes import FakeRuntime
from tests.unit.road_fakes import World, profile, stored

IMAGE = "vllm/vllm-openai:v0.31.0-patched"
VLLM = Subject(engine="vllm", image=IMAGE, digest="sha256:aa")
LLAMA = Subject(engine="llamacpp", image=IMAGE, digest="sha256:bb")
HELP = "".join(f"--flag-{n} N   number of things (default: 1)\n" for n in range(60))


def table(engine: str = "vllm", **more: object) -> str:
    told: dict[str, object] = {"action": "_StoreAction", "nargs": None, "choices": [], "negatives": []}
    told |= {"type": {"word": "int", "nullable": False}, "deprecated": False, "default": 1}
    flags = [{**told, "names": [f"--flag-{n}"]} for n in range(60)]
    made = {"engine": engine, "version": "0.31.0", "flags": flags, "classes": {}, "env": {"VLLM_A": None}, **more}
    return f"noise\n{inside.MARK}{json.dumps(made)}\n"


def done(stdout: str = "", *, exit_code: int = 0, stderr: str = "") -> Completed:
    return Completed(argv=(), exit_code=exit_code, stdout=stdout, stderr=stderr)


@dataclass
class Asked:
    """Answers by the entrypoint and the last word; None hangs."""

    answers: dict[tuple[tuple[str, ...] | None, str], Completed | None]
    questions: list[Question] = field(default_factory=list)

    def __call__(self, question: Question) -> Completed | None:
        self.questions.append(question)
        nothing = done(exit_code=127, stderr="not found")
        return self.answers.get((question.entrypoint, question.words[-1]), nothing)


def runtime_with(asked: Asked) -> FakeRuntime:
    runtime = FakeRuntime(images={IMAGE: "sha256:aa"})
    runtime.on_ask(IMAGE, asked)
    return runtime


def test_a_list_is_read_once_a_digest(tmp_path: Path) -> None:
    asked = Asked({(PYTHON, "vllm"): done(table())})
    runtime = runtime_with(asked)

    first = own_flags(runtime, VLLM, folder=tmp_path)
    again = own_flags(runtime, VLLM, folder=tmp_path)
    other = own_flags(runtime, replace(VLLM, digest="sha256:cc"), folder=tmp_path)

    assert first == again == other
    assert (first.version, first.is_own, len(first.flags)) == ("0.31.0", True, 60)
    assert len(asked.questions) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vllm-sha256-aa.json", "vllm-sha256-cc.json"]
    assert find_kept("vllm", "sha256:aa", folder=tmp_path) == first
    assert find_kept("vllm", "sha256:dd", folder=tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({"image": "x/y@sha256:aa"}, True),
        ({"image": "x/y:v1@sha256:aa"}, True),
        ({"image": "x/y@sha256:bb"}, False),
        ({"image": "x/y:v1"}, False),
        ({"image": "x/y@sha256:aa", "engine": "generic"}, False),
        ({"image": "x/y@sha256:aa", "engine": "sglang"}, False),
        ({"image": None, "runtime": RuntimeKind.PROCESS}, False),
    ],
)
def test_the_kept_list_is_that_of_an_image_pinned_by_digest(
    tmp_path: Path, changes: dict[str, object], is_found: bool
) -> None:
    own_flags(runtime_with(Asked({(PYTHON, "vllm"): done(table())})), VLLM, folder=tmp_path)

    found = kept_list(profile(**changes), folder=tmp_path)

    assert (found is not None) is is_found
    if found is not None:
        assert (found.catalogue.is_own, found.wanted) == (True, "0.31.0")
        assert found.note == "held against this image's own flag list (0.31.0), read from it before"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "gate0-own-flags/0"}', '{"format": "gate0-own-flags/1"}'])
def test_a_kept_list_that_cannot_be_read_is_read_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "vllm-sha256-aa.json").write_text(text)
    asked = Asked({(PYTHON, "vllm"): done(table())})

    found = own_flags(runtime_with(asked), VLLM, folder=tmp_path)

    assert len(asked.questions) == 1
    assert find_kept("vllm", "sha256:aa", folder=tmp_path) == found


def test_a_folder_that_cannot_be_written_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    found = own_flags(runtime_with(Asked({(PYTHON, "vllm"): done(table())})), VLLM, folder=tmp_path / "file")

    assert len(found.flags) == 60


def test_remarks_that_hold_for_the_version_are_added(tmp_path: Path) -> None:
    names = {"names": ["--mamba-cache-mode"], "action": "_StoreAction", "nargs": None, "choices": [], "negatives": []}
    mode = {**names, "type": {"word": "str", "nullable": False}, "deprecated": False}
    flags = json.loads(table().partition(inside.MARK)[2])["flags"]
    told = table(flags=[*flags, mode], version="0.33.0")

    found = own_flags(runtime_with(Asked({(PYTHON, "vllm"): done(told)})), VLLM, folder=tmp_path)

    assert found.flags["--mamba-cache-mode"].is_inert


VLLM_HELP = "options:\n" + "".join(f"  --flag-{n} N  Things. (default: 1)\n" for n in range(60))
WAYS: dict[str, tuple[Subject, dict[tuple[tuple[str, ...] | None, str], Completed | None], str]] = {
    "the Python beside the profile's program": (
        replace(VLLM, entrypoint=("/opt/venv/bin/vllm", "serve")),
        {(("/opt/venv/bin/python3",), "vllm"): done(table())},
        "0.31.0",
    ),
    "the image's Python when that is not there": (
        replace(VLLM, entrypoint=("/opt/venv/bin/vllm", "serve")),
        {(PYTHON, "vllm"): done(table())},
        "0.31.0",
    ),
    "the help when no Python can": (VLLM, {(("vllm",), "--help=all"): done(VLLM_HELP)}, "of unknown version"),
    "llama-server as the image starts it": (
        LLAMA,
        {(None, "--help"): done(HELP), (None, "--version"): done(stderr="version: 10434 (0c1e570)\n")},
        "b10434",
    ),
    "llama-server behind a script": (
        LLAMA,
        {(None, "--help"): done("usage: tools.sh\n"), (("llama-server",), "--help"): done(HELP)},
        "of unknown version",
    ),
    "llama-server as the profile starts it": (
        replace(LLAMA, entrypoint=("/app/llama-server",)),
        {(("/app/llama-server",), "--help"): done(HELP)},
        "of unknown version",
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_list_comes_from(tmp_path: Path, name: str) -> None:
    subject, answers, version = WAYS[name]

    found = own_flags(runtime_with(Asked(answers)), subject, folder=tmp_path)

    assert (found.version, len(found.flags), found.is_own) == (version, 60, True)


def test_a_list_that_no_way_tells_is_an_error_with_the_first_reason(tmp_path: Path) -> None:
    failed = done(exit_code=1, stderr="Traceback\nImportError: libcuda.so.1\n")

    with pytest.raises(RuntimeFailure, match=r"v0\.31\.0-patched could not be read from it: exit code 1: ImportError"):
        own_flags(runtime_with(Asked({(PYTHON, "vllm"): failed})), VLLM, folder=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_question_that_hangs_is_not_put_another_way(tmp_path: Path) -> None:
    asked = Asked({(PYTHON, "vllm"): None})

    with pytest.raises(RuntimeFailure, match="still running after 240 s"):
        own_flags(runtime_with(asked), VLLM, folder=tmp_path)

    assert len(asked.questions) == 1


def test_reading_can_be_stopped(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        own_flags(runtime_with(Asked({(PYTHON, "vllm"): None})), VLLM, folder=tmp_path, is_cancelled=lambda: True)


def test_a_python_program_is_known_by_its_sources_and_llama_server_is_asked_anew(tmp_path: Path) -> None:
    asked = Asked({(None, "--help"): done(HELP)})
    runtime, sources = runtime_with(asked), ["a.py 1 2\n", "a.py 1 2\n", "a.py 1 3\n"]

    def answer(question: Question) -> Completed | None:
        is_print = FINGERPRINT in question.words
        return done(sources.pop(0) if is_print else table()) if question.entrypoint == PYTHON else asked(question)

    runtime.on_ask(IMAGE, answer)
    for _ in range(3):
        own_flags(runtime, replace(VLLM, kind=RuntimeKind.PROCESS), folder=tmp_path)
    own_flags(runtime, replace(LLAMA, kind=RuntimeKind.PROCESS), folder=tmp_path)

    names = sorted(path.name[:12] for path in tmp_path.iterdir())
    assert names == ["vllm-source-", "vllm-source-"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("version: 10434 (0c1e57098)\nbuilt with GNU\n", "b10434"),
        ("ggml: found 1 device\nversion: 0.5.0-dev (build 1, commit 7e4c0a9)\n", "0.5.0-dev"),
        ("llama-server\n", None),
    ],
)
def test_llama_server_says_its_version(text: str, version: str | None) -> None:
    assert llama_version(text) == version


@pytest.mark.parametrize(("cache", "folder"), [("/c", "/c/gate0/flags"), (None, "/h/.cache/gate0/flags")])
def test_lists_are_kept_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, cache: str | None, folder: str) -> None:
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if cache is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", cache)

    assert str(flags_folder()) == folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(folder=tmp_path)


def own_list(change: Callable[[dict[str, Flag]], object]) -> Callable[[Runtime, Subject, IsCancelled], Catalogue]:
    flags = dict(load("vllm", "0.31.0").flags)
    change(flags)
    return lambda *_: replace(load("vllm", "0.31.0"), flags=flags, is_own=True)


def notes(world: World) -> list[str]:
    return [event.text for event in world.events if isinstance(event, Notice)]


def test_a_flag_that_the_image_lacks_ends_the_run_before_the_start(world: World) -> None:
    world.own_flags = own_list(lambda flags: flags.pop("--max-num-seqs"))

    road = world.go()

    assert isinstance(road.error, InvalidFile)
    assert road.error.exit_code == 2
    assert "serve.max_num_seqs: --max-num-seqs is no flag of this image (vllm 0.31.0)" in road.error.message
    assert "start" not in [verb for verb, _ in world.runtime.calls]
    assert world.stages[-2:] == ["pull", "collect"]
    assert stored(world).run.status == "failed"


def test_the_refusal_names_the_line_that_declared_it(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("profiles") / "p.yaml"
    text = "name: fake\nengine: vllm\nimage: vllm/vllm-openai:v0.31.0\nmodel: some/model\nserved_name: fake\n"
    file.write_text(f"{text}serve:\n  max_num_seqs: 8\n")
    loaded = load_file(file, search=())
    world.own_flags = own_list(lambda flags: flags.pop("--max-num-seqs"))
    road = world.road()
    road.job = replace(road.job, loaded=loaded, profile=loaded.profile)

    travelled = world.go_on(road)

    assert isinstance(travelled.error, InvalidFile)
    assert (travelled.error.problems[0].file, travelled.error.problems[0].line) == (str(file), 7)


def test_a_flag_that_gate0_adds_and_the_image_lacks_says_how_to_leave_it_out(world: World) -> None:
    world.own_flags = own_list(lambda flags: flags.pop("--enable-prompt-tokens-details"))

    road = world.go()

    assert road.error is not None
    assert "refuse_added: [enable-prompt-tokens-details]" in road.error.message


def test_a_flag_of_a_patched_image_is_known_to_it(world: World) -> None:
    added = Flag(name="--mxfp4-backend", kind=ValueKind.STR)
    world.profile = profile(flags={"mxfp4-backend": "marlin"})
    world.own_flags = own_list(lambda flags: flags.update({added.name: added}))

    road = world.go()

    assert road.error is None


def test_an_unknown_flag_that_the_profile_allows_is_let_through(world: World) -> None:
    world.profile = profile(flags={"mxfp4-backend": "marlin"}, allow_unknown_flags=("mxfp4-backend",))
    world.own_flags = own_list(lambda _: None)

    assert world.go().error is None


@pytest.mark.parametrize(
    ("changes", "holder"),
    [({}, "image"), ({"runtime": RuntimeKind.PROCESS, "image": None, "binary": "/opt/vllm"}, "program")],
)
def test_an_allowed_flag_that_the_own_list_lacks_is_warned_of_before_the_start(
    world: World, changes: dict[str, Any], holder: str
) -> None:
    world.profile = profile(flags={"mxfp4-backend": "marlin"}, allow_unknown_flags=("mxfp4-backend",), **changes)
    world.runtime.images["/opt/vllm"] = "file:sha256:aaaa"
    world.own_flags = own_list(lambda _: None)

    world.go()
    said = [e.text for e in world.events if isinstance(e, Notice) and e.is_warning and "mxfp4" in e.text]
    began = [i for i, e in enumerate(world.events) if isinstance(e, StageBegan) and e.stage == "start"]

    assert said == [
        f"unknown_flag: this {holder}'s own list has no --mxfp4-backend, which allow_unknown_flags lets through: "
        "it will refuse to start"
    ]
    assert any(isinstance(e, Notice) and e.text == said[0] for e in world.events[: began[0]])


@pytest.mark.parametrize("is_readable", [True, False])
def test_which_shipped_list_stands_in_is_said_only_where_the_own_one_cannot_be_read(
    world: World, is_readable: bool
) -> None:
    def fail(*_: object) -> Catalogue:
        raise RuntimeFailure("no list")

    world.profile = profile(image="mine/vllm:spark")
    world.runtime.images["mine/vllm:spark"] = "sha256:aaaa"
    world.own_flags = own_list(lambda _: None) if is_readable else fail

    world.go()
    said = [text for text in notes(world) if "nothing tells the version of vllm" in text]

    newest = versions("vllm")[-1]
    shipped = f"nothing tells the version of vllm; the flag list of the newest one known, {newest}, is used"
    assert said == ([] if is_readable else [f"no list; the shipped list alone was checked: {shipped}"])


@pytest.mark.parametrize(("engine", "count"), [("llamacpp", 0), ("vllm", 1)])
def test_reading_a_list_is_shown_where_it_may_take_long(world: World, engine: str, count: int) -> None:
    listed = load(engine, versions(engine)[-1])
    world.profile = profile(
        engine=engine, runtime=RuntimeKind.PROCESS, image=None, binary="/opt/server", serve=Serve(max_num_seqs=8)
    )
    world.runtime.images["/opt/server"] = "file:sha256:aaaa"
    world.own_flags = lambda *_: replace(listed, is_own=True)

    world.go()

    assert sum(isinstance(e, StageMoved) and "flag list" in e.text for e in world.events) == count


def test_what_the_image_alone_warns_of_is_a_note_and_can_be_silenced(world: World) -> None:
    def age(flags: dict[str, Flag]) -> None:
        flags["--max-num-seqs"] = replace(flags["--max-num-seqs"], deprecated="use another")

    world.own_flags = own_list(age)
    assert world.go().error is None
    said = [text for text in notes(world) if text.startswith("deprecated_flag: --max-num-seqs is deprecated")]

    world.events.clear()
    world.profile = replace(world.profile, silence=("deprecated_flag",))
    world.go()

    assert len(said) == 1
    assert not any("deprecated_flag" in text for text in notes(world))


def test_a_pinned_image_that_was_read_before_is_warned_of_once(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    flags = dict(load("vllm", "0.31.0").flags)
    flags["--max-num-seqs"] = replace(flags["--max-num-seqs"], deprecated="use another")
    own = replace(load("vllm", "0.31.0"), flags=flags, is_own=True)
    keep(flags_folder() / "vllm-sha256-aaaa.json", {"format": FORMAT, "catalogue": encode(own)})
    world.folder = tmp_path / "results"
    world.folder.mkdir()
    world.profile = profile(image="vllm/vllm-openai@sha256:aaaa")
    world.runtime.images["vllm/vllm-openai@sha256:aaaa"] = "sha256:aaaa"
    world.own_flags = lambda *_: own

    assert world.go().error is None

    said = [text for text in notes(world) if text.startswith(("deprecated_flag", "flag_list"))]
    assert [text.split(" ")[:2] for text in said] == [["flag_list:", "held"], ["deprecated_flag:", "--max-num-seqs"]]


def test_a_list_that_cannot_be_read_is_a_note(world: World) -> None:
    def fail(*_: object) -> Catalogue:
        raise RuntimeFailure("the flag list of x could not be read from it: exit code 1")

    world.own_flags = fail

    road = world.go()

    assert road.error is None
    assert [text for text in notes(world) if "shipped list" in text] == [
        "the flag list of x could not be read from it: exit code 1; the shipped list alone was checked"
    ]


def test_a_server_that_is_up_already_is_not_asked_for_its_list(world: World) -> None:
    asked: list[Subject] = []

    def read(_: Runtime, subject: Subject, __: IsCancelled) -> Catalogue:
        asked.append(subject)
        return load("vllm", "0.31.0")

    world.own_flags = read
    world.options = replace(world.options, keep=True)
    world.go()
    world.go()

    assert [(one.image, one.digest) for one in asked] == [("vllm/vllm-openai:v0.31.0", "sha256:aaaa")]


def test_both_ranks_words_are_checked_and_said_once(world: World) -> None:
    world.hosts = ("spark01", "spark02")
    world.profile = profile(nodes=2, serve=Serve(max_num_seqs=8, tensor_parallel=2))
    world.own_flags = own_list(lambda flags: (flags.pop("--max-num-seqs"), flags.pop("--headless")))

    road = world.go()

    assert isinstance(road.error, InvalidFile)
    assert sorted(one.message.split()[0] for one in road.error.problems) == ["--headless", "--max-num-seqs"]
