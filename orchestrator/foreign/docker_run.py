"""`docker run` lines, and whole launch scripts that hold some: each is a launch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.foreign import carrying
from orchestrator.foreign.command import FORM as COMMAND_FORM
from orchestrator.foreign.command import launch_of, looks_like_command
from orchestrator.foreign.container_parts import (
    Part,
    mount_from_pairs,
    mount_from_text,
    ports_from_text,
    size_gib,
    ulimit,
)
from orchestrator.foreign.container_words import container_command
from orchestrator.foreign.docker_options import FATES, OTHERS, Option, RunLine, take_apart
from orchestrator.foreign.env_files import Reads, read_env
from orchestrator.foreign.env_values import environment, say
from orchestrator.foreign.found import Found
from orchestrator.foreign.hiding import hidden
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.shell import ReadFile, Served, Word, find_servers, read_script
from orchestrator.foreign.shell.beside import started_elsewhere
from orchestrator.foreign.shell.programs import CONTAINER_TOOLS, ENGINES, program_at
from orchestrator.foreign.telling import told_engine
from orchestrator.profile.model import Mount, Port
from orchestrator.values import Json

FORM = "docker-run"
_RUNS = re.compile(r"\b(?:docker|podman|nerdctl)(?:\s+|\s*\\\s*\n\s*)(?:container\s+)?(?:run|create)\b")
_ENTERS = re.compile(r"\b(?:docker|podman|nerdctl)(?:\s+|\s*\\\s*\n\s*)(?:container\s+)?exec\b")
_CDI = re.compile(r"nvidia\.com/gpu=(.+)")
_IDLE = re.compile(r"(?:.*/)?(?:bash|sh|zsh|sleep|tail)(?:\s.*)?|")


def looks_like_docker_run(text: str) -> bool:
    """True for text that starts a container with docker or podman, or a server in one, comments aside."""
    told = re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)
    return _RUNS.search(told) is not None or (_ENTERS.search(told) is not None and looks_like_command(told))


def read_docker_run(
    text: str,
    *,
    source: str,
    values: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
    line: int = 1,
) -> Found:
    """Every container that the text starts.

    Args:
        source: What the text is called in messages.
        values: Variables that are set before the text begins; `PWD` is the folder it is started in.
        read_file: Gives the text of env files and sourced scripts.

    Raises:
        InputError: A quote is never closed.
    """
    script = read_script(text, values=values, read_file=read_file, line=line)
    servers = find_servers(script, values=values, read_file=read_file)
    reader = _Reader(source=source, values=values or {}, read_file=read_file, carried=carrying.find(text))
    found = reader.found(servers)
    return found if found.launches else replace(found, notes=(*found.notes, *started_elsewhere(script)))


def launch_from_words(
    words: Sequence[Word],
    *,
    form: str,
    source: str,
    env: Mapping[str, Word] | None = None,
    values: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
) -> Launch:
    """The launch of one `docker run …` given as words (a unit's `ExecStart`).

    Args:
        env: What the line itself runs with: `-e NAME` takes its value from there.
    """
    reader = _Reader(source=source, values=values or {}, read_file=read_file, carried=None, form=form)
    return reader.launch(take_apart(words), env or {}, ())


@dataclass(slots=True, kw_only=True)
class _Settings:
    """What the options of one line came to so far."""

    env: dict[str, Word] = field(default_factory=dict)
    mounts: list[Mount] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    ulimits: dict[str, int] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] | None = None
    gpus: str | None = None

    def take(self, part: Part) -> None:
        if part.mount is not None:
            self.mounts.append(part.mount)
        self.ports.extend(part.ports)
        self.notes.extend(part.notes)

    def note(self, fate: Fate, what: str, line: int, why: str) -> None:
        self.notes.append(Note(fate=fate, what=hidden(what), where=f"line {line}", why=why))


@dataclass(slots=True, kw_only=True)
class _Reader:
    source: str
    values: Mapping[str, str]
    read_file: ReadFile | None
    carried: Mapping[str, Json] | None
    form: str = FORM
    typed_into: list[str | None] = field(default_factory=list)
    """Names of the containers that have a terminal: without a command their image's own shell waits in them."""

    def found(self, servers: Sequence[Served]) -> Found:
        runs: list[Launch] = []
        notes: list[Note] = []
        inside: list[tuple[Served, RunLine | None]] = []
        for served in servers:
            if served.program not in CONTAINER_TOOLS:
                inside.append((served, None))
                continue
            apart = take_apart(served.words)
            if apart.verb == "exec":
                inside.append((served, apart))
            else:
                runs.append(self.launch(apart, served.env, served.notes))
                if any(option.name in {"interactive", "tty"} for option in apart.options):
                    self.typed_into.append(runs[-1].name)
        for served, line in inside:
            runs, more = self._placed(runs, served, line)
            notes.extend(more)
        runs = [replace(run, carried=self.carried) for run in runs]
        return Found(launches=tuple(runs), notes=tuple(notes))

    def _placed(
        self, runs: list[Launch], served: Served, line: RunLine | None
    ) -> tuple[list[Launch], tuple[Note, ...]]:
        """A server that is started inside a container which stands idle: its words become that container's."""
        named = line.image.text if line is not None and line.image is not None else None
        words = line.words if line is not None else served.words
        at = next((i for i, run in enumerate(runs) if self._is_idle(run, named)), None)
        if at is None and line is not None and not runs:
            return self._inside(served, line), ()
        if at is None:
            if line is None:
                return self._outside(runs, served)
            note = Note(
                fate=Fate.DROPPED,
                what=hidden(" ".join(w.text for w in served.words))[:200],
                where=f"line {served.line}",
            )
            return runs, (replace(note, why="runs in a container that is there already"),)
        env: dict[str, Word] = {**served.env, **(self._exec_env(line) if line is not None else {})}
        command = container_command((), words, env=env, read_file=self.read_file)
        told = environment(command.env)
        why = "started inside the container afterwards: gate0 starts the container with it"
        note = Note(
            fate=Fate.TRANSLATED, what=hidden(" ".join(command.words))[:200], where=f"line {served.line}", why=why
        )
        run = replace(
            runs[at],
            entrypoint=(),
            words=command.words,
            places=command.places,
            env={**runs[at].env, **told.values},
            notes=(*runs[at].notes, note, *served.notes, *told.notes, *command.notes),
        )
        return [*runs[:at], run, *runs[at + 1 :]], ()

    def _outside(self, runs: list[Launch], served: Served) -> tuple[list[Launch], tuple[Note, ...]]:
        """A server beside the containers, in none of them."""
        if served.program in ENGINES:
            return [*runs, launch_of(served, form=COMMAND_FORM, source=self.source)], ()
        what = hidden(" ".join(word.text for word in served.words))[:200]
        why = f"starts {served.program}, none of the three engines"
        return runs, (*served.notes, Note(fate=Fate.DROPPED, what=what, where=f"line {served.line}", why=why))

    def _is_idle(self, run: Launch, named: str | None) -> bool:
        """Whether the container only waits for what is started in it: a shell, `sleep infinity`, `tail -f /dev/null`.

        Args:
            named: The container that is entered; None: somebody types into the one that is open.
        """
        if named not in {None, run.name} or _IDLE.fullmatch(" ".join((*(run.entrypoint or ()), *run.words))) is None:
            return False
        return bool(run.words or run.entrypoint or named is not None or run.name in self.typed_into)

    def _inside(self, served: Served, line: RunLine) -> list[Launch]:
        """A server that is started in a container which the text does not start."""
        env = {**served.env, **self._exec_env(line)}
        command = container_command((), line.words, env=env, read_file=self.read_file)
        told = environment(command.env)
        named = line.image.text if line.image is not None else ""
        why = f"runs in the container {named}, which is there already: give its image with `--image NAME`"
        note = Note(fate=Fate.PERSON, what="docker exec", where=f"line {served.line}", why=why)
        launch = Launch(
            form=self.form,
            source=self.source,
            entrypoint=(),
            words=command.words,
            places=command.places,
            env=told.values,
            notes=say((note, *served.notes, *told.notes, *command.notes), secrets=(*told.secrets, *command.secrets)),
        )
        return [launch] if any(program_at(launch.words, index) for index in range(len(launch.words))) else []

    def _exec_env(self, line: RunLine) -> dict[str, Word]:
        settings = _Settings()
        for option in line.options:
            if option.name == "env" and option.value is not None:
                self._env(option, settings, {})
        return settings.env

    def launch(self, line: RunLine, around: Mapping[str, Word], notes: Sequence[Note]) -> Launch:
        settings = _Settings()
        for option in line.options:
            self._option(option, settings, around)
        image = line.image
        command = container_command(
            settings.entrypoint, line.words, env=settings.env, mounts=settings.mounts, read_file=self.read_file
        )
        told = environment(command.env)
        texts = settings.texts
        engine = told_engine(
            image.text if image is not None else None,
            command.words,
            keeps_entrypoint=command.entrypoint is None,
            beside=texts.get("name", ""),
            where=f"line {line.line}",
        )
        shm = size_gib(texts["shm-size"]) if "shm-size" in texts else None
        return Launch(
            form=self.form,
            source=self.source,
            name=texts.get("name"),
            engine=engine.engine,
            where=f"line {line.line}",
            image=image.text if image is not None else None,
            entrypoint=command.entrypoint,
            words=command.words,
            places=command.places,
            env=told.values,
            network=texts.get("network"),
            ipc=texts.get("ipc"),
            shm_gib=shm,
            mounts=tuple(settings.mounts),
            ports=tuple(settings.ports),
            ulimits=settings.ulimits,
            restart=texts.get("restart"),
            gpus=settings.gpus,
            notes=say(
                (
                    *notes,
                    *settings.notes,
                    *told.notes,
                    *command.notes,
                    *engine.notes,
                ),
                secrets=(*told.secrets, *command.secrets),
            ),
        )

    def _option(self, option: Option, settings: _Settings, around: Mapping[str, Word]) -> None:
        value = option.value
        where = f"line {option.line}"
        text = value.text if value is not None else ""
        folder = self.values.get("PWD")
        match option.name:
            case "env" if value is not None:
                self._env(option, settings, around)
            case "env-file" if value is not None:
                self._env_file(option, settings)
            case "volume" if value is not None:
                settings.take(mount_from_text(text, where=where, folder=folder))
            case "mount" if value is not None:
                settings.take(mount_from_pairs(text, where=where, folder=folder))
            case "publish" if value is not None:
                settings.take(ports_from_text(text, where=where))
            case "ulimit" if limits := ulimit(text):
                settings.ulimits.update(limits)
            case "entrypoint":
                settings.entrypoint = (text,) if text else ()
            case "gpus":
                settings.gpus = _gpus(text)
            case "runtime":
                settings.gpus = settings.gpus or ("all" if text == "nvidia" else None)
                settings.note(Fate.DROPPED, option.written, option.line, "gate0 asks docker for the GPUs themselves")
            case "device" if (named := _CDI.fullmatch(text)) is not None:
                settings.gpus = "all" if named[1] == "all" else f"device={named[1]}"
            case "shm-size" if size_gib(text) is None:
                settings.note(Fate.PERSON, option.written, option.line, "not a size")
            case "network" | "ipc" | "shm-size" | "restart" | "name" if value is not None:
                self._text(option, settings)
            case _:
                self._left_out(option, settings)

    def _text(self, option: Option, settings: _Settings) -> None:
        if option.value is None or not option.value.is_known:
            settings.note(Fate.PERSON, option.written, option.line, "waits for a variable: write the value")
            return
        settings.texts[option.name] = option.value.text

    def _left_out(self, option: Option, settings: _Settings) -> None:
        fate, why = FATES.get(option.name, OTHERS)
        if option.name == "label" and option.value is not None and option.value.text.startswith("dev.gate0."):
            return
        if not option.is_known:
            why = "no option of docker run that is known here: check what it does"
        settings.note(fate, option.written, option.line, why)

    def _env(self, option: Option, settings: _Settings, around: Mapping[str, Word]) -> None:
        word = option.value
        if word is None:
            return
        name, equals, text = word.text.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name):
            settings.note(Fate.PERSON, option.written, option.line, "not a variable: write `NAME=value`")
        elif equals:
            settings.env[name] = replace(word, text=text)
        else:
            value = around.get(name) or self._given(name, word.line)
            settings.env[name] = value or Word(text=f"${{{name}}}", line=word.line, missing=(name,))

    def _given(self, name: str, line: int) -> Word | None:
        return Word(text=self.values[name], line=line) if name in self.values else None

    def _env_file(self, option: Option, settings: _Settings) -> None:
        path = option.value.text if option.value is not None else ""
        text = self.read_file(path) if self.read_file is not None else None
        if text is None:
            settings.note(
                Fate.PERSON, option.written, option.line, "the file is not at hand: write its variables to env"
            )
            return
        named = read_env(text, Reads.DOCKER)
        settings.env.update({name: replace(word, line=option.line) for name, word in named.items()})
        settings.note(Fate.TRANSLATED, option.written, option.line, "read, and its variables written to env")


def _gpus(text: str) -> str:
    plain = text.strip("'\"")
    return "all" if plain in {"all", "-1", "count=all"} else plain
