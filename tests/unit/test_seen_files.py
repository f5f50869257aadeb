"""Files that a server must find: looked for by the shell on a host or in an image, kept by digest, refused by line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.deploy.own_flags import Subject
from orchestrator.deploy.runtime import IsCancelled, Question, Runtime
from orchestrator.deploy.seen_files import LOOK, Seen, State, look_argv, look_in_image, look_on_host, read_look
from orchestrator.engines.flags.loading import load
from orchestrator.errors import CommandTimedOut, InvalidFile, RuntimeFailure
from orchestrator.fleet.host import Completed
from orchestrator.fleet.local import LocalHost
from orchestrator.pipeline.events import Notice
from orchestrator.pipeline.named_files import mount_of
from orchestrator.profile.loading import load_file
from orchestrator.profile.model import ContainerSettings, Mount, RuntimeKind
from tests.contract.fakes import FakeHost
from tests.contract.runtime_fakes import FakeRuntime
from tests.unit.road_fakes import IMAGE, World, profile

SHELLS = (("dash",), ("bash", "--posix"), ("busybox", "sh"))


@pytest.fixture(params=SHELLS, ids=[shell[0] for shell in SHELLS])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    if subprocess.run(("which", found[0]), capture_output=True, check=False).returncode:
        pytest.skip(f"no {found[0]} here")
    return found


def looked(shell: Sequence[str], folder: Path, *paths: str, engine: str = "", python: str = "") -> Mapping[str, Seen]:
    argv = (*shell, *look_argv(paths, engine=engine, python=python))
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return read_look(done.stdout)


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_the_shell_tells_files_folders_and_what_is_missing(shell: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path, "here.jinja", "a folder/one.jinja", "one.py")
    (tmp_path / "made.jinja").mkdir()
    (tmp_path / "link").symlink_to("/no/such/place")

    whole = f"{tmp_path}/a folder/one.jinja"
    found = looked(
        shell, tmp_path, "here.jinja", whole, "made.jinja", "link", "here.jinja/x", "-n.jinja", "/no such/x.jinja"
    )

    assert {path: one.state.value for path, one in found.items()} == {
        "here.jinja": "file",
        whole: "file",
        "made.jinja": "folder",
        "link": "unknown",
        "here.jinja/x": "unknown",
        "-n.jinja": "absent",
        "/no such/x.jinja": "absent",
    }
    assert found["here.jinja"].whole == f"{tmp_path}/here.jinja"
    assert found["-n.jinja"].beside == ("here.jinja", "a folder/one.jinja")
    assert found["/no such/x.jinja"].beside == ()


def test_what_is_beside_a_missing_file_is_of_its_kind(shell: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path, "a.py", "b.jinja", "examples/tool_chat.jinja", "examples/deep/er.jinja")

    found = looked(shell, tmp_path, "x.py", "thinking")

    assert {path: one.beside for path, one in found.items()} == {
        "x.py": ("a.py",),
        "thinking": ("b.jinja", "examples/tool_chat.jinja"),
    }


def test_vllms_own_templates_count_for_relative_paths(shell: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path, "site/vllm/__init__.py", "site/vllm/transformers_utils/chat_templates/own.jinja", "work/x")
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec {sys.executable} "$@"\n')
    python.chmod(0o755)

    found = looked(
        shell, tmp_path / "work", "own.jinja", "other.jinja", "/own.jinja", engine="vllm", python=str(python)
    )

    assert [one.state.value for one in found.values()] == ["file", "absent", "absent"]
    assert [one.beside for one in found.values()] == [(), ("own.jinja",), ()]


def test_without_the_package_a_relative_path_of_vllms_cannot_be_told(shell: tuple[str, ...], tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    look = LOOK.replace("python3 python;", f"{python};")
    argv = (*shell, "-c", look, "sh", "no_such_vllm", "within", str(python), "x.jinja", "/x.jinja")

    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert [one.state.value for one in read_look(done.stdout).values()] == ["unknown", "absent"]


def test_below_a_folder_that_may_not_be_entered_nothing_is_missing(shell: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as name:
        closed = Path(name) / "closed"
        closed.mkdir(mode=0o700)
        closed.chmod(0)
        Path(name).chmod(0o755)
        argv = (*shell, *look_argv((f"{closed}/x.jinja", f"{closed}/in/x.jinja", f"{name}/x.jinja")))
        nobody = 65534 if os.getuid() == 0 else None
        done = subprocess.run(argv, cwd="/", capture_output=True, text=True, check=True, user=nobody)
        closed.chmod(0o700)

    assert [one.state.value for one in read_look(done.stdout).values()] == ["unknown", "unknown", "absent"]


def test_a_host_is_asked_over_its_connection(tmp_path: Path) -> None:
    write(tmp_path, "x.jinja")

    found = look_on_host(LocalHost(), (f"{tmp_path}/x.jinja", f"{tmp_path}/y.jinja"))

    assert [one.state for one in found.values()] == [State.FILE, State.ABSENT]


def test_a_host_that_cannot_tell_says_nothing_is_missing() -> None:
    mute, slow = FakeHost(), FakeHost()
    slow.fail(("sh",), CommandTimedOut("spark01", "late"))

    for host in (mute, slow):
        assert look_on_host(host, ("/x",)) == {"/x": Seen(whole="/x", state=State.UNKNOWN)}


SUBJECT = Subject(engine="vllm", image=IMAGE, digest="sha256:aa", entrypoint=("/opt/venv/bin/vllm", "serve"))


def answering(questions: list[Question], state: str = "absent") -> Callable[[Question], Completed]:
    def answer(question: Question) -> Completed:
        questions.append(question)
        paths = question.words[6:]
        lines = "".join(f"path {p}\nwhole /w/{p}\nstate {state}\nbeside a.jinja\n" for p in paths)
        return Completed(argv=(), exit_code=0, stdout=lines, stderr="")

    return answer


def test_an_image_is_asked_once_for_each_file_of_a_digest(tmp_path: Path) -> None:
    runtime, questions = FakeRuntime(images={IMAGE: "sha256:aa"}), list[Question]()
    runtime.on_ask(IMAGE, answering(questions))

    first = look_in_image(runtime, SUBJECT, ("x.jinja",), folder=tmp_path)
    again = look_in_image(runtime, SUBJECT, ("x.jinja",), folder=tmp_path)
    more = look_in_image(runtime, SUBJECT, ("x.jinja", "y.jinja"), folder=tmp_path)
    look_in_image(runtime, replace(SUBJECT, digest="sha256:bb"), ("x.jinja",), folder=tmp_path)

    assert first == again == {"x.jinja": Seen(whole="/w/x.jinja", state=State.ABSENT, beside=("a.jinja",))}
    assert list(more) == ["x.jinja", "y.jinja"]
    assert [question.words[6:] for question in questions] == [("x.jinja",), ("y.jinja",), ("x.jinja",)]
    assert questions[0].words[3:6] == ("vllm", "transformers_utils/chat_templates", "/opt/venv/bin/python3")
    assert (questions[0].entrypoint, questions[0].owner) == (("sh",), "flags")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "gate0-seen-files/0", "files": {}}'])
def test_a_kept_answer_that_cannot_be_read_is_asked_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "files-vllm-sha256-aa.json").write_text(text)
    runtime, questions = FakeRuntime(images={IMAGE: "sha256:aa"}), list[Question]()
    runtime.on_ask(IMAGE, answering(questions, "file"))

    assert look_in_image(runtime, SUBJECT, ("x",), folder=tmp_path)["x"].state is State.FILE
    assert len(questions) == 1


def test_an_image_without_a_shell_cannot_be_asked(tmp_path: Path) -> None:
    runtime = FakeRuntime(images={IMAGE: "sha256:aa"})
    runtime.on_ask(IMAGE, lambda _: Completed(argv=(), exit_code=127, stdout="", stderr=""))

    with pytest.raises(RuntimeFailure, match="has no shell to look for files with: exit code 127"):
        look_in_image(runtime, SUBJECT, ("x",), folder=tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/t/x.jinja", "/a"),
        ("/t/in/x.jinja", "/b"),
        ("/t/in/../x.jinja", "/a"),
        ("/t/in", "/b"),
        ("/one.jinja", "/c"),
        ("/tx/x.jinja", None),
        ("x.jinja", None),
        ("t/x.jinja", None),
    ],
)
def test_a_path_lies_in_the_innermost_mount(path: str, source: str | None) -> None:
    mounts = (
        Mount(source="/a", target="/t/"),
        Mount(source="/b", target="/t/in"),
        Mount(source="/c", target="/one.jinja"),
    )

    found = mount_of(mounts, path)

    assert (found.source if found else None) == source


# The road: what the profile names, where it is looked for, and what comes of it.


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(folder=tmp_path / "results", own_flags=lambda *_: replace(load("vllm", "0.31.0"), is_own=True))
    made.folder.mkdir()
    return made


class Image:
    """An image that holds these files; it starts in /srv/app. `asked`: the paths of each question."""

    def __init__(self, *files: str, beside: tuple[str, ...] = ()) -> None:
        self.files, self.beside = files, beside
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, _: Runtime, __: Subject, paths: Sequence[str], ___: IsCancelled) -> Mapping[str, Seen]:
        self.asked.append(tuple(paths))
        return {path: self._seen(path if path.startswith("/") else f"/srv/app/{path}") for path in paths}

    def _seen(self, whole: str) -> Seen:
        state = State.FILE if whole in self.files else State.ABSENT
        return Seen(whole=whole, state=state, beside=self.beside)


def host_with(*files: str, folders: tuple[str, ...] = (), asked: list[str]) -> Callable[[FakeHost], None]:
    def told(argv: tuple[str, ...]) -> Iterator[str]:
        for path in argv[7:]:
            asked.append(path)
            state = "file" if path in files else "folder" if path in folders else "absent"
            yield f"path {path}\nwhole {path}\nstate {state}\n"

    def prepare(host: FakeHost) -> None:
        host.act(
            ("sh", "-c", LOOK),
            lambda argv, _: Completed(argv=argv, exit_code=0, stdout="".join(told(argv)), stderr=""),
        )

    return prepare


def mounted(*mounts: tuple[str, str]) -> ContainerSettings:
    return ContainerSettings(mounts=tuple(Mount(source=source, target=target) for source, target in mounts))


def go(world: World, path: str, **more: object) -> str | None:
    """The error's text of a run with this chat template."""
    world.profile = profile(serve=replace(profile().serve, chat_template=path), **more)
    road = world.go()
    assert road.error is None or isinstance(road.error, InvalidFile)
    return road.error.message if road.error else None


def notes(world: World) -> list[str]:
    return [event.text for event in world.events if isinstance(event, Notice) and "missing_file" in event.text]


def test_a_mounted_template_must_be_on_the_host_before_anything_is_pulled(world: World) -> None:
    asked = list[str]()
    world.on_host, world.look_in_image = host_with("/home/me/t/there.jinja", asked=asked), Image()

    good = go(world, "/t/there.jinja", container=mounted(("~/t", "/t")))
    bad = go(world, "/t/gone.jinja", container=mounted(("~/t", "/t")))

    assert good is None
    assert bad is not None
    assert "serve.chat_template: --chat-template: spark01 has no file /home/me/t/gone.jinja; put it there" in bad
    assert world.stages[-2:] == ["preflight", "collect"]
    assert asked == ["/home/me/t/there.jinja", "/home/me/t/gone.jinja"]
    assert world.look_in_image.asked == []


def test_a_folder_that_docker_made_of_a_missing_file_is_named(world: World) -> None:
    world.on_host = host_with(folders=("/srv/x.jinja",), asked=[])

    said = go(world, "/x.jinja", container=mounted(("/srv/x.jinja", "/x.jinja")))

    assert said is not None
    assert "spark01 has a folder, no file, /srv/x.jinja; Docker makes a folder of a mount that is not there" in said


def test_a_named_volume_is_not_looked_into(world: World) -> None:
    asked = list[str]()
    world.on_host, world.look_in_image = host_with(asked=asked), Image()

    assert go(world, "/t/x.jinja", container=mounted(("templates", "/t"))) is None
    assert (asked, world.look_in_image.asked) == ([], [])


def test_a_template_that_is_not_mounted_must_be_in_the_image(world: World) -> None:
    image = Image("/srv/app/there.jinja", beside=("unsloth_v2.jinja", "examples/tool_chat_hermes.jinja"))
    world.look_in_image = image

    good = go(world, "there.jinja")
    world.options = replace(world.options, force=True)
    near = go(world, "unsloth_v3.jinja")
    far = go(world, "/z/q.jinja")

    assert good is None
    assert near is not None
    assert f"--chat-template: {IMAGE} has no file /srv/app/unsloth_v3.jinja; did you mean unsloth_v2.jinja?" in near
    assert "`container.mounts: [~/unsloth_v3.jinja:/srv/app/unsloth_v3.jinja:ro]`" in near
    assert "allow_unknown_flags: [chat-template] if its start makes one" in near
    assert far is not None
    assert "there are unsloth_v2.jinja, examples/tool_chat_hermes.jinja" in far
    assert "start" not in [verb for verb, _ in world.runtime.calls][-3:]


def test_a_relative_path_below_a_mount_of_the_images_folder_is_looked_for_on_the_host(world: World) -> None:
    asked = list[str]()
    world.on_host, world.look_in_image = host_with("/srv/there.jinja", asked=asked), Image("/srv/app/gone.jinja")

    assert go(world, "there.jinja", container=mounted(("/srv", "/srv/app"))) is None
    said = go(world, "gone.jinja", container=mounted(("/srv", "/srv/app")))

    assert said is not None
    assert "spark01 has no file /srv/gone.jinja" in said
    assert asked == ["/srv/there.jinja", "/srv/gone.jinja"]


def test_a_template_as_text_and_one_that_is_allowed_are_not_looked_for(world: World) -> None:
    world.look_in_image = Image()

    assert go(world, "{{ messages }}") is None
    assert go(world, "made-at-start.jinja", allow_unknown_flags=("chat-template",)) is None
    assert world.look_in_image.asked == []


def test_a_container_that_starts_through_a_shell_may_make_the_file(world: World) -> None:
    world.look_in_image = Image()
    settings = ContainerSettings(entrypoint=("bash", "-c", 'cp /mod/x.jinja . && exec vllm serve "$@"', "--"))

    assert go(world, "x.jinja", container=settings) is None
    said = notes(world)
    world.events.clear()
    assert go(world, "x.jinja", container=settings, silence=("missing_file",)) is None

    assert [text.split(";")[0] for text in said] == [
        f"missing_file: --chat-template: {IMAGE} has no file /srv/app/x.jinja"
    ]
    assert notes(world) == []


def test_an_image_that_cannot_be_asked_is_a_note(world: World) -> None:
    def fail(*_: object) -> Mapping[str, Seen]:
        raise RuntimeFailure("x has no shell")

    world.look_in_image = fail

    assert go(world, "x.jinja") is None
    texts = [event.text for event in world.events if isinstance(event, Notice)]
    assert f"whether {IMAGE} has x.jinja cannot be told: x has no shell" in texts


def test_a_plugin_of_a_parser_is_looked_for_too(world: World) -> None:
    world.look_in_image = Image()
    world.profile = profile(flags={"reasoning-parser-plugin": "nano_v3.py", "reasoning-parser": "nano_v3"})

    road = world.go()

    assert isinstance(road.error, InvalidFile)
    assert [problem.path for problem in road.error.problems] == ["flags.reasoning-parser-plugin"]


def test_the_refusal_names_the_line_of_the_template(world: World, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    text = f"name: fake\nengine: vllm\nimage: {IMAGE}\nmodel: some/model\nserved_name: fake\n"
    file.write_text(f"{text}serve:\n  max_num_seqs: 8\n  chat_template: x.jinja\n")
    loaded = load_file(file, search=())
    world.look_in_image = Image()
    road = world.road()
    road.job = replace(road.job, loaded=loaded, profile=loaded.profile)

    travelled = world.go_on(road)

    assert isinstance(travelled.error, InvalidFile)
    assert (travelled.error.problems[0].file, travelled.error.problems[0].line) == (str(file), 8)


def test_a_server_that_is_up_already_is_asked_for_no_file(world: World) -> None:
    asked = list[str]()
    world.on_host = host_with("/srv/x.jinja", asked=asked)
    world.options = replace(world.options, keep=True)

    assert go(world, "/t/x.jinja", container=mounted(("/srv", "/t"))) is None
    assert go(world, "/t/x.jinja", container=mounted(("/srv", "/t"))) is None

    assert asked == ["/srv/x.jinja"]


def test_a_process_reads_its_files_on_the_host(world: World) -> None:
    asked = list[str]()
    world.on_host = host_with(asked=asked)
    world.runtime.images["vllm"] = "sha256:bin"

    said = go(world, "x.jinja", runtime=RuntimeKind.PROCESS, image=None, binary="vllm")

    assert said is not None
    assert "spark01 has no file x.jinja; put it there" in said
    assert asked == ["x.jinja"]


def test_the_python_of_a_program_on_a_host_lies_beside_it() -> None:
    host = FakeHost()

    look_on_host(host, ("x",), engine="vllm", program="/venv/bin/vllm")
    look_on_host(host, ("x",), engine="vllm", program="vllm")

    assert [argv[4:7] for argv in host.commands] == [
        ("vllm", "transformers_utils/chat_templates", "/venv/bin/python3"),
        ("vllm", "transformers_utils/chat_templates", ""),
    ]
