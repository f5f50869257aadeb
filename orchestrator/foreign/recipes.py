"""Recipes of sparkrun and of spark-vllm-docker as launches.

Both say: this model, this image, this command with `{key}` for what is likely to be changed. What their tools add at
the start (rendezvous, interface variables, the hub's cache in the container) is not in the file; of it the cache is
mounted here too, the rest is gate0's business. Facts: sparkrun 0.2.40 and what is known of 0.3, spark-vllm-docker at
c67ffd9.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.foreign import braces
from orchestrator.foreign.hiding import is_secret_name
from orchestrator.foreign.lenient_yaml import Read
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.programs import RUNTIMES
from orchestrator.foreign.recipe_container import Settings, read_settings
from orchestrator.foreign.recipe_flags import build_words
from orchestrator.foreign.recipe_keys import other_keys, patches, shown
from orchestrator.foreign.shell import Served, find_engine_command, read_script
from orchestrator.foreign.texts import shorten
from orchestrator.profile.model import EnvValue, Mount, SecretRef

SPARKRUN, SVD = "sparkrun", "spark-vllm-docker"
FORMS = frozenset({SPARKRUN, SVD})
HUB_CACHE = "~/.cache/huggingface"
CACHE_TARGETS = {SPARKRUN: "/cache/huggingface", SVD: "/root/.cache/huggingface"}
"""Where each tool mounts the hub's cache."""

BUILT_IN = {"host": "0.0.0.0", "port": 8000}
"""Values that a placeholder has when the recipe gives it none."""

_VERSION = re.compile(r"v?[0-9]+\.[0-9]+(?:\.[0-9]+)?(?:[-+.][A-Za-z0-9.]+)?")
_REFERENCE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*))")


def is_recipe(value: Any) -> bool:
    """True when a YAML document is a recipe: something to serve, and how."""
    if not isinstance(value, Mapping) or "services" in value:
        return False
    keys = {str(key) for key in value}
    has_command = bool(keys & {"command", "launch"}) or any(key.startswith("command_") for key in keys)
    has_what = bool(keys & {"container", "containers", "runtime", "recipe_version"})
    return (
        ("recipe_version" in keys and bool(keys & {"model", "container"}))
        or (has_what and "model" in keys)
        or (has_command and bool(keys & {"container", "defaults"}))
    )


def read_recipe(read: Read, source: str) -> tuple[Launch, ...]:
    """The launches of a recipe: one, or one for each `command_NAME`.

    Raises:
        InvalidFile: It is no mapping, or a quote in its command is never closed.
    """
    if not isinstance(read.value, Mapping):
        raise InvalidFile([Problem(file=source, line=1, path="", message="not a recipe: expected a mapping")])
    return tuple(_Recipe(read, source).launches())


@dataclass(slots=True, kw_only=True)
class _Command:
    """What one command comes to."""

    words: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    env: dict[str, EnvValue] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


class _Recipe:
    """One recipe while it is read."""

    def __init__(self, read: Read, source: str) -> None:
        self.read = read
        self.source = source
        self.recipe: Mapping[str, Any] = {str(key): value for key, value in read.value.items()}
        self.form = SVD if str(self.recipe.get("recipe_version")) == "1" and "runtime" not in self.recipe else SPARKRUN
        given = self.recipe.get("defaults")
        self.defaults: dict[str, Any] = {str(k): v for k, v in given.items()} if isinstance(given, Mapping) else {}

    def launches(self) -> Iterator[Launch]:
        variants = [key for key in self.recipe if key.startswith("command_") and isinstance(self.recipe[key], str)]
        if isinstance(self.recipe.get("command"), str | list):
            yield self.launch("command", None)
            return
        for key in variants:
            yield self.launch(key, key.removeprefix("command_"))
        if variants:
            return
        yield self.launch("launch" if isinstance(self.recipe.get("launch"), str) else None, None)

    def launch(self, key: str | None, variant: str | None) -> Launch:
        settings = read_settings(self.recipe, self.read)
        notes = [*self.read.notes]
        env = dict(self.env(notes))
        command = self.built(notes) if key is None else self.command(key, env)
        env |= command.env
        self.add_cache(settings, env, command)
        self.say_rest(variant, notes)
        patched = tuple(patches(self.recipe, self.read))
        name = str(self.recipe.get("name") or PurePath(self.source).stem)
        description = self.recipe.get("description")
        return Launch(
            form=self.form,
            source=self.source,
            name=f"{name}-{variant}" if variant else name,
            note=shorten(str(description), 160) if description else None,
            engine=self.runtime,
            image=self.image(notes),
            entrypoint=settings.entrypoint or (),
            words=command.words,
            places=command.places,
            env=env,
            model=self.text("model"),
            revision=self.text("model_revision"),
            network=settings.network,
            ipc=settings.ipc,
            shm_gib=settings.shm_gib,
            mounts=tuple(settings.mounts),
            ulimits=settings.ulimits,
            restart=settings.restart,
            gpus=settings.gpus,
            nodes=self.nodes(notes),
            engine_version=self.engine_version,
            is_patched=bool(patched) or "builder" in self.recipe,
            notes=(*notes, *patched, *settings.notes, *command.notes, *other_keys(self.recipe, self.read)),
        )

    @property
    def runtime(self) -> str | None:
        return self.text("runtime")

    @property
    def engine_version(self) -> str | None:
        stated = (self.text("engine_version"), self.text("runtime_version"))
        return next((text for text in stated if text and _VERSION.fullmatch(text)), None)

    def text(self, key: str) -> str | None:
        value = self.recipe.get(key)
        return str(value) if isinstance(value, str | int | float) and str(value) else None

    def values(self) -> dict[str, str]:
        """What placeholders stand for."""
        model: dict[str, Any] = {"model": self.recipe["model"]} if isinstance(self.recipe.get("model"), str) else {}
        values: dict[str, Any] = {**BUILT_IN, **model, **self.defaults}
        return braces.resolve(values)

    def command(self, key: str, env: Mapping[str, EnvValue]) -> _Command:
        given = self.recipe[key]
        text = given if isinstance(given, str) else shlex.join(str(word) for word in given)
        line = self.read.texts.get((key,), self.read.lines.get((key,), 1))
        filled = braces.fill(text, self.values())
        command = _Command()
        where = self.read.where(key)
        command.notes += _of_braces(filled, where)
        command.notes += self.unused(filled, text)
        known = {name: value for name, value in env.items() if isinstance(value, str)}
        try:
            script = read_script(filled.text, line=line, values=known)
            served = find_engine_command(script, values=known)
        except InputError as exc:
            raise InvalidFile([Problem(file=self.source, line=line, path=key, message=exc.message)]) from exc
        if served is None:
            last = script.commands[-1] if script.commands else None
            command.words = tuple(word.text for word in last.words) if last else ()
            command.places = tuple(f"line {word.line}" for word in last.words) if last else ()
            command.notes += script.notes
            return command
        self.take(command, served)
        return command

    def take(self, command: _Command, served: Served) -> None:
        command.words = tuple(word.text for word in served.words)
        command.places = tuple(f"line {word.line}" for word in served.words)
        command.notes += served.notes
        for name, word in served.env.items():
            if word.is_known:
                command.env[name] = word.text
            elif word.reference is not None and is_secret_name(name):
                command.env[name] = SecretRef(name=word.reference)
            else:
                command.notes.append(_unknown_variable(name, word.text, f"line {word.line}"))

    def built(self, notes: list[Note]) -> _Command:
        """A recipe without a command: what sparkrun would make of its defaults."""
        engine = next((RUNTIMES[r] for r in _kinds(self.runtime) if r in RUNTIMES), None)
        model = self.text("model")
        if engine is None or model is None:
            return _Command()
        values = self.values()
        texts = {
            key: values.get(key, value) if isinstance(value, str) else value for key, value in self.defaults.items()
        }
        built = build_words(engine, model, texts)
        for key, flag in built.beyond.items():
            notes.append(
                Note(
                    fate=Fate.PERSON,
                    what=shown(key, self.defaults[key]),
                    where=self.read.where("defaults", key),
                    why=f"sparkrun leaves this key out; taken as {flag}, which the engine has: check that it is meant",
                )
            )
        notes += [self.unused_note(key) for key in built.unused]
        places = tuple(self.read.where("defaults", key) if key else self.read.where("model") for key in built.keys)
        return _Command(words=built.words, places=places)

    def unused(self, filled: braces.Filled, text: str) -> Iterator[Note]:
        """Defaults that the command does not name: they have no effect."""
        used = {*filled.used, *(name for value in self.defaults.values() for name in _named(value))}
        for key in self.defaults:
            if key not in used and f"{{{key}}}" not in text:
                yield self.unused_note(key)

    def unused_note(self, key: str) -> Note:
        return Note(
            fate=Fate.DROPPED,
            what=shown(key, self.defaults[key]),
            where=self.read.where("defaults", key),
            why=f"the command has no {{{key}}}: this value has no effect",
        )

    def env(self, notes: list[Note]) -> Iterator[tuple[str, EnvValue]]:
        given = self.recipe.get("env")
        for key, value in (given if isinstance(given, Mapping) else {}).items():
            name, where = str(key), self.read.where("env", str(key))
            if value is None or isinstance(value, list | Mapping):
                why = "says nothing" if value is None else "not a text"
                notes.append(Note(fate=Fate.DROPPED, what=f"env.{name}", where=where, why=why))
                continue
            read = self.variable(name, str(value), where, notes)
            if read is not None:
                if not isinstance(value, str):
                    notes.append(
                        Note(fate=Fate.TRANSLATED, what=f"env.{name}: {value}", where=where, why=f'the text "{value}"')
                    )
                yield name, read

    def variable(self, name: str, text: str, where: str, notes: list[Note]) -> EnvValue:
        """A variable's value; None, with a note, when only the other tool or a shell knows it."""
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and is_secret_name(name):
            notes.append(
                Note(
                    fate=Fate.TRANSLATED,
                    what=f"env.{name}: {text}",
                    where=where,
                    why=f"{{secret: {whole[1] or whole[3]}}}: from gate0's environment or secrets file",
                )
            )
            return SecretRef(name=whole[1] or whole[3])
        if whole is not None and whole[2]:
            notes.append(
                Note(fate=Fate.TRANSLATED, what=f"env.{name}: {text}", where=where, why=f"its default, {whole[2]}")
            )
            return str(whole[2])
        if _REFERENCE.search(text):
            notes.append(_unknown_variable(name, text, where))
            return None
        return text

    def image(self, notes: list[Note]) -> str | None:
        given = self.recipe.get("container", self.recipe.get("containers"))
        where = self.read.where("container" if "container" in self.recipe else "containers")
        if isinstance(given, Mapping | list):
            images = list(given.values()) if isinstance(given, Mapping) else given
            first = next((str(image) for image in images if isinstance(image, str)), None)
            why = f"an image for each host: {first} is taken" if first else "no image"
            notes.append(Note(fate=Fate.PERSON, what=shown("containers", given), where=where, why=why))
            return first
        return str(given).strip() if given else None

    def nodes(self, notes: list[Note]) -> int | None:
        """Hosts as the recipe limits them: 1, at least so many, or not said."""
        said = [key for key in ("mode", "solo_only", "cluster_only", "min_nodes", "max_nodes") if self.recipe.get(key)]
        least, most = self.number("min_nodes"), self.number("max_nodes")
        mode = str(self.recipe.get("mode") or "")
        is_solo = self.recipe.get("solo_only") is True or most == 1 or mode == "solo"
        is_cluster = self.recipe.get("cluster_only") is True or mode == "cluster"
        nodes = 1 if is_solo else max(least or 0, 2 if is_cluster else 0) or None
        for key in said:
            notes.append(
                Note(
                    fate=Fate.TRANSLATED,
                    what=shown(key, self.recipe[key]),
                    where=self.read.where(key),
                    why="`nodes`, together with the parallel sizes of the command",
                )
            )
        return None if nodes == 1 and not is_solo else nodes

    def number(self, key: str) -> int | None:
        value = self.recipe.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def say_rest(self, variant: str | None, notes: list[Note]) -> None:
        for key in ("runtime_version", "engine_version"):
            if (value := self.text(key)) is not None:
                is_version = value == self.engine_version
                why = "engine_version, unless the image tells it" if is_version else "no version of an engine: a remark"
                fate = Fate.TRANSLATED if is_version else Fate.DROPPED
                notes.append(Note(fate=fate, what=shown(key, value), where=self.read.where(key), why=why))
        if variant is not None:
            notes.append(
                Note(
                    fate=Fate.TRANSLATED,
                    what=f"command_{variant}",
                    where=self.read.where(f"command_{variant}"),
                    why="a profile of its own",
                )
            )

    def add_cache(self, settings: Settings, env: dict[str, EnvValue], command: _Command) -> None:
        """The hub's cache where the other tool would mount it, unless the recipe mounts one itself."""
        if any("huggingface" in mount.target for mount in settings.mounts):
            return
        home = env.get("HF_HOME")
        spoken = " ".join((*command.words, *(v for v in env.values() if isinstance(v, str))))
        target = CACHE_TARGETS[self.form]
        if CACHE_TARGETS[SPARKRUN] in spoken:
            target = CACHE_TARGETS[SPARKRUN]
        if isinstance(home, str) and home.startswith("/"):
            target = home
        elif target != CACHE_TARGETS[SVD]:
            env["HF_HOME"] = target
        settings.mounts.insert(0, Mount(source=HUB_CACHE, target=target))
        settings.notes.append(
            Note(
                fate=Fate.TRANSLATED,
                what=f"{self.form}'s own mounts",
                where="not in the file",
                why=f"the hub's cache at {target}, as {self.form} mounts it",
            )
        )


def _of_braces(filled: braces.Filled, where: str) -> Iterator[Note]:
    if filled.is_doubled:
        why = "braces that are written twice stand for one, as in Python's str.format"
        yield Note(fate=Fate.TRANSLATED, what="{{…}}", where=where, why=why)
    for key in filled.requoted:
        why = "JSON outside single quotes, which a shell would tear: taken as one word"
        yield Note(fate=Fate.TRANSLATED, what=f"{{{key}}}", where=where, why=why)
    for key in filled.missing:
        why = "no default gives it a value: it stands in the profile as written"
        yield Note(fate=Fate.PERSON, what=f"{{{key}}}", where=where, why=why)
    for word in filled.unclear:
        yield Note(fate=Fate.PERSON, what=shorten(word), where=where, why="braces that are no JSON: taken as written")


def _unknown_variable(name: str, text: str, where: str) -> Note:
    what = f"env.{name}: {shorten(text)}"
    if name == "VLLM_HOST_IP":
        return Note(fate=Fate.DROPPED, what=what, where=where, why="gate0 sets each host's own address on two nodes")
    why = "a value that differs by host or shell: left out, state it in `env`"
    return Note(fate=Fate.PERSON, what=what, where=where, why=why)


def _named(value: Any) -> tuple[str, ...]:
    return tuple(braces.PLACEHOLDER.findall(value)) if isinstance(value, str) else ()


def _kinds(runtime: str | None) -> tuple[str, ...]:
    name = (runtime or "vllm").lower()
    return (name, name.partition("-")[0])
