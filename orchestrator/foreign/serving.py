"""Who serves and what: the program or entrypoint of a profile, and its model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.images import split_image
from orchestrator.errors import InputError
from orchestrator.foreign.items import MODEL, Item
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.programs import Program
from orchestrator.foreign.shell.quoting import PLACEHOLDER
from orchestrator.foreign.texts import shorten
from orchestrator.foreign.waiting import awaited, is_gap, is_named_gap, waits
from orchestrator.values import Json

REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)?(?::[A-Za-z0-9._-]+)?")
_TASKS = {
    ("--task", "embed"): "embed",
    ("--task", "embedding"): "embed",
    ("--task", "score"): "rerank",
    ("--task", "classify"): "other",
    ("--task", "reward"): "other",
    ("--convert", "embed"): "embed",
    ("--convert", "classify"): "other",
    ("--runner", "pooling"): "embed",
    ("--is-embedding", "*"): "embed",
    ("--embedding", "*"): "embed",
    ("--rerank", "*"): "rerank",
}
"""Flags of the three engines with their value (`*`: any, or none), and the profile's `task`."""

_NAMES = (MODEL, "--model-path", "--hf-repo", "-m", "-hf")
_FILES = ("--hf-file",)
Matched = Callable[[Mapping[str, Json], str], tuple[Item, ...]]
IN_CONTAINERS = frozenset({"docker-run", "compose", "k8s"})
"""Forms whose servers run in a container, named or not."""

NOT_NAMED = "<image>"
"""Stands in a profile for the image that the source does not name: the profile is refused until it is written."""

BY_ENV = frozenset({"--model", "--hf-repo", "--hf-file", "--port", "--host", "--alias"})
"""llama-server's flags that gate0 has to know, given through their variables too."""

NGC_VLLM = "nvcr.io/nvidia/vllm"
"""NVIDIA's image: starts whatever command it is given, which gate0's engine knows."""


def entrypoint_of(launch: Launch, program: Program) -> tuple[tuple[str, ...] | None, dict[str, Json], list[Note]]:
    """What replaces the image's entrypoint (None keeps it), how it is run, and what is to be said of both."""
    notes = _before(program)
    where = launch.places[0] if launch.places else "the command"
    shown = " ".join(program.words)
    if not launch.image:
        binary = _binary(program)
        notes.append(Note(fate=Fate.TRANSLATED, what=shown, where=where, why=f"runtime: process, binary: {binary}"))
        return None, {"runtime": "process", "binary": binary}, notes
    base: dict[str, Json] = {"image": launch.image}
    notes.append(image_note(launch.image))
    entrypoint = _entrypoint(launch, program)
    if not program.words:
        return None, base, notes
    if entrypoint is None:
        why = "the image's own entrypoint, or what gate0 starts in it"
        fate = Fate.TRANSLATED if program.is_module and program.engine == "vllm" else Fate.KEPT
    else:
        why = f"container.entrypoint: [{', '.join(entrypoint)}]: the image's own entrypoint is passed over"
        fate = Fate.TRANSLATED
    notes.append(Note(fate=fate, what=shown, where=where, why=why))
    return entrypoint, base, notes


def image_note(image: str) -> Note:
    """What is said of a launch's image."""
    gap = PLACEHOLDER.search(image)
    if gap is None and not waits(image):
        return Note(fate=Fate.KEPT, what=image, where="image", why="image")
    told = awaited([image]) if gap is None else f"`{gap[0]}`"
    why = f"image: waits for {told}: write its name, or import again with `--image NAME`"
    return Note(fate=Fate.PERSON, what=image, where="image", why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidByEnv:
    """Flags that stand in variables, as words; the launch without these variables."""

    launch: Launch
    words: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def said_by_env(launch: Launch, catalogue: Catalogue) -> SaidByEnv:
    """What `LLAMA_ARG_MODEL` and its like say."""
    names = {flag.env: flag.name for flag in catalogue.flags.values() if flag.env and flag.name in BY_ENV}
    given = {name: value for name, value in launch.env.items() if name in names and isinstance(value, str) and value}
    if not given:
        return SaidByEnv(launch=launch)
    notes = tuple(
        Note(fate=Fate.TRANSLATED, what=f"env.{name}", where="env", why=f"{names[name]}, as the command would say it")
        for name in given
    )
    env = {name: value for name, value in launch.env.items() if name not in given}
    words = tuple(word for name, value in given.items() for word in (names[name], value))
    return SaidByEnv(launch=replace(launch, env=env), words=words, notes=notes)


def task_of(item: Item) -> tuple[str, Item] | None:
    """What the server is asked to do instead of generating, when a flag says so."""
    value = item.values[0] if len(item.values) == 1 else ""
    said = _TASKS.get((item.name, value)) or _TASKS.get((item.name, "*"))
    return (said, item) if said and not item.is_negative else None


def model_text(model: Json) -> str:
    """The one string that names a profile's model."""
    if isinstance(model, Mapping):
        return str(model.get("repo") or model.get("path") or "")
    return str(model or "")


def _before(program: Program) -> list[Note]:
    if not program.before:
        return []
    what = shorten(" ".join(program.before))
    why = "stands before the server: gate0 starts the server alone, do this in the image"
    return [Note(fate=Fate.PERSON, what=what, where="the command", why=why)]


def _binary(program: Program) -> str:
    """The executable on the host; a virtual environment's Python has vLLM's own program beside it."""
    first = program.words[0] if program.words else {"llamacpp": "llama-server"}.get(program.engine, program.engine)
    if program.engine == "vllm" and program.is_module:
        return f"{first.rpartition('/')[0]}/vllm" if "/" in first else "vllm"
    return first


def _entrypoint(launch: Launch, program: Program) -> tuple[str, ...] | None:
    name = split_image(launch.image or "")[0]
    last = name.rpartition("/")[2]
    words = program.words
    if program.engine == "vllm":
        if last == "vllm-openai" or name == NGC_VLLM:
            return None
        if not words or program.is_module:
            return ("vllm", "serve")
        return (words[0], "serve") if words[-1] == "serve" and len(words) == 2 else ("vllm", "serve")
    if program.engine == "sglang":
        # Without an entrypoint of the profile's own gate0 starts `python3 -m sglang.launch_server`.
        return None if program.is_module else ("sglang", "serve")
    if last == "llama.cpp":
        return None
    return words or None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    """The profile's `model`, the items that say it, and what is to be said."""

    model: Json
    items: tuple[Item, ...] = ()
    fate: Fate = Fate.KEPT
    why: str = "model"
    notes: tuple[Note, ...] = ()


def model_of(launch: Launch, items: Sequence[Item], matched: Matched, refuses: Callable[[Json], bool]) -> FoundModel:
    """The model as the command says it, else as the form names it beside the command.

    Args:
        matched: The items that an addition to the document says exactly.
        refuses: Whether the engine has no way to say a `model`.
    """
    item = next((i for i in items if i.name in _NAMES and len(i.values) == 1), None)
    if item is None or waits(item.values[0]) or is_named_gap(item.values[0]):
        return _beside(launch, item)
    value = item.values[0]
    revision = _value(items, "--revision")
    file = _value(items, *_FILES)
    pinned = launch.revision if revision is None and value == (launch.model or value) else None
    is_repo = REPO.fullmatch(value) is not None
    tries: list[Json] = []
    if is_repo:
        tries += [{"repo": value, "revision": revision}] if revision else []
        tries += [{"repo": value, "file": file}] if file else []
        tries.append(value)
    tries.append({"path": value})
    for model in tries:
        found = matched({"model": model}, "model")
        if found:
            return _pinned(model, pinned, found, refuses)
    return FoundModel(model=value if is_repo else {"path": value}, items=(item,), fate=Fate.TRANSLATED)


def _pinned(model: Json, revision: str | None, items: tuple[Item, ...], refuses: Callable[[Json], bool]) -> FoundModel:
    """The same at the revision that the form names for the download, where the engine takes one."""
    fate = Fate.KEPT if items[0].words == items[0].values else Fate.TRANSLATED
    if revision is None or not isinstance(model, str):
        return FoundModel(model=model, items=items, fate=fate)
    what = f"revision {revision}"
    pinned: Json = {"repo": model, "revision": revision}
    if refuses(pinned):
        why = "this engine takes no revision: download that one, and give `model: {path: …}`"
        return FoundModel(model=model, items=items, fate=fate, notes=(_note(Fate.PERSON, what, why),))
    why = "model.revision: pins what is downloaded, so gate0 passes it to the engine"
    return FoundModel(model=pinned, items=items, fate=fate, notes=(_note(Fate.TRANSLATED, what, why),))


def _note(fate: Fate, what: str, why: str) -> Note:
    return Note(fate=fate, what=what, where="model_revision", why=why)


def _beside(launch: Launch, item: Item | None) -> FoundModel:
    """The command names none, or one that only a shell knows."""
    if launch.model is None:
        if item is None:
            return FoundModel(model=None)
        if is_gap(item.values[0]):
            raise _sketched(launch, item)
        told = awaited(item.values) or f"`{item.values[0]}`"
        why = f"model.path: waits for {told}, write which one is meant"
        return FoundModel(model={"path": item.values[0]}, items=(item,), fate=Fate.PERSON, why=why)
    is_repo = REPO.fullmatch(launch.model) is not None
    model: Json = launch.model if is_repo else {"path": launch.model}
    if is_repo and launch.revision:
        model = {"repo": launch.model, "revision": launch.revision}
    if is_repo and launch.file:
        model = {"repo": launch.model, "file": launch.file}
    if item is None:
        note = Note(fate=Fate.TRANSLATED, what=launch.model, where="model", why="model: the command names none")
        return FoundModel(model=model, notes=(note,))
    why = f"model: only the shell knows it; {launch.model}, which the form names, is taken"
    return FoundModel(model=model, items=(item,), fate=Fate.PERSON, why=why)


def _sketched(launch: Launch, item: Item) -> InputError:
    line = item.place.removeprefix("line ")
    place = f"{launch.source}:{line}" if line.isdecimal() else launch.source
    return InputError(
        f"{place}: `{item.values[0]}` stands where the model should: this shows how the command begins",
        hint="import the whole command, with its model and its flags",
    )


def _value(items: Sequence[Item], *names: str) -> str | None:
    found = [i for i in items if i.name in names and len(i.values) == 1]
    return found[0].values[0] if len(found) == 1 else None
