"""The lists that gate0 ships: which there are, and which one a version is checked against."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import orjson

from orchestrator.engines.flags.document import decode
from orchestrator.engines.flags.facts import annotate, read_catalog_file
from orchestrator.engines.flags.history import Span, load_history, was_there
from orchestrator.engines.flags.model import Catalogue, Chosen, Flag, ValueKind
from orchestrator.engines.images import image_tag_version, version_key
from orchestrator.errors import InputError
from orchestrator.profile.model import Profile

ENGINES = ("vllm", "sglang", "llamacpp")
REPOSITORIES = {"vllm": ("vllm-openai",), "sglang": ("sglang",), "llamacpp": ("llama.cpp",)}
"""Last part of the names of the engines' own images: only their tags tell the engine's version."""


def versions(engine: str) -> tuple[str, ...]:
    """Every version with a list, oldest first.

    Raises:
        InputError: There is no list for this engine.
    """
    return load_history(_known(engine)).versions


@cache
def load(engine: str, version: str) -> Catalogue:
    """The list of exactly this version; of those older than the first whole list one that is put together.

    Raises:
        InputError: There is none for this engine or version.
    """
    history = load_history(_known(engine))
    if version not in history.versions:
        raise InputError(
            f"no flag list for {engine} {version}", hint=f"there are lists for {', '.join(history.versions)}"
        )
    if version not in history.whole:
        return _partial(load(engine, history.whole[0]), version)
    return annotate(decode(orjson.loads(read_catalog_file(f"{engine}-{version}.json"))))


def choose(engine: str, wanted: str | None) -> Chosen:
    """The list for a version: its own, else that of the nearest lower version, with a note that names both.

    Args:
        wanted: As an image or a profile tells it (`0.31.0`, `v0.31.1-cu130`, `b10434`); None, or a word without a
            number: not known, and the newest list is taken.

    Raises:
        InputError: There is no list for this engine.
    """
    known = versions(engine)
    version = None if wanted is None else version_text(wanted)
    if version is None:
        told = f"`{wanted}` tells no version" if wanted else f"nothing tells the version of {engine}"
        note = f"{told}; the flag list of the newest one known, {known[-1]}, is used"
        return Chosen(catalogue=load(engine, known[-1]), note=note)
    if version in known:
        return Chosen(catalogue=load(engine, version), wanted=version)
    lower = [one for one in known if version_key(one) <= version_key(version)]
    taken = lower[-1] if lower else known[0]
    if version_key(taken) == version_key(version):
        return Chosen(catalogue=load(engine, taken), wanted=version)
    why = "the nearest lower one" if lower else "the oldest one known"
    note = f"there is no flag list for {engine} {version}; that of {taken}, {why}, is used"
    return Chosen(catalogue=load(engine, taken), wanted=version, note=note)


def wanted_version(profile: Profile) -> str | None:
    """The engine's version as the profile states it, else as the tag of the engine's own image tells it."""
    if profile.engine_version is not None:
        return profile.engine_version
    if profile.engine not in REPOSITORIES:
        return None
    return image_tag_version(profile.image, REPOSITORIES[profile.engine])


def choose_for(profile: Profile) -> Chosen | None:
    """The shipped list that a profile is checked against; None for engines without lists."""
    return choose(profile.engine, wanted_version(profile)) if profile.engine in ENGINES else None


def version_text(told: str) -> str | None:
    """A version without what a tag adds: `v0.31.0-cu130` -> `0.31.0`; None when it has no number in front."""
    return image_tag_version(f"x:{told}" if told[:1].isalnum() else None, ("x",))


def is_certain(chosen: Chosen) -> bool:
    """True when a name that the list lacks is surely unknown to what runs.

    An image's own list is certain, and so is that of its version; of vLLM that of the patch release before too, since
    its patches add no flags. A list that was chosen for want of a better one is not.
    """
    catalogue, wanted = chosen.catalogue, chosen.wanted
    if catalogue.is_own:
        return True
    if catalogue.is_partial or wanted is None:
        return False
    is_patch = catalogue.engine == "vllm" and _minor(wanted) == _minor(catalogue.version)
    return is_patch or version_key(wanted) == version_key(catalogue.version)


def _minor(version: str) -> tuple[int, ...]:
    return version_key(version)[1][:2]


def _known(engine: str) -> str:
    if engine not in ENGINES:
        raise InputError(f"there are no flag lists for {engine}", hint=f"one of {', '.join(ENGINES)}")
    return engine


def _partial(base: Catalogue, version: str) -> Catalogue:
    """The list of a version before the first whole one, from that one and the history."""
    spans = load_history(base.engine).flags
    flags = {
        name: _as_it_was(flag, spans.get(name), version)
        for name, flag in base.flags.items()
        if any(was_there(spans.get(spelling), version) for spelling in (name, *flag.aliases))
    }
    spellings = {spelling for flag in flags.values() for spelling in (flag.name, *flag.aliases)}
    gone = {
        name: _by_name_only(name)
        for name, span in spans.items()
        if name not in spellings and name not in base.flags and was_there(span, version)
    }
    whole = dict(sorted({**flags, **gone}.items()))
    return annotate(replace(base, version=version, flags=whole, env={}, is_partial=True))


def _as_it_was(flag: Flag, span: Span | None, version: str) -> Flag:
    """Undo what later versions changed, newest first."""
    told = replace(flag, deprecated=None, is_inert=False, successor=None)
    for change in reversed(span.changes if span else ()):
        if version_key(change.version) <= version_key(version):
            continue
        if change.what == "choices":
            told = replace(
                told,
                choices=_undone(told.choices, change.added, change.removed),
                known=_undone(told.known, change.added, change.removed),
            )
        elif change.what == "default":
            told = replace(told, default=change.before)
    return told


def _undone(values: tuple[str, ...], added: tuple[str, ...], removed: tuple[str, ...]) -> tuple[str, ...]:
    return (*(value for value in values if value not in added), *removed) if values else values


def _by_name_only(name: str) -> Flag:
    is_switch = name.startswith(("--enable-", "--disable-", "--enforce-"))
    return Flag(name=name, kind=ValueKind.NONE) if is_switch else Flag(name=name, kind=ValueKind.STR, nargs="*")
