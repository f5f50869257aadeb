"""The flag list that a command line of `gate0 flags` asks for, and the flag in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.cli import compose
from orchestrator.cli.flag_words import own_lines, release
from orchestrator.deploy.own_flags import Subject, find_kept, own_flags
from orchestrator.engines.flags.checking import check_words
from orchestrator.engines.flags.comparing import compare
from orchestrator.engines.flags.history import History, load_history
from orchestrator.engines.flags.loading import ENGINES, REPOSITORIES, choose, versions
from orchestrator.engines.flags.model import Catalogue, Chosen, Flag
from orchestrator.engines.flags.nearest import nearest
from orchestrator.engines.flags.reading import Match, find_spelling, spellings
from orchestrator.engines.images import image_tag_version, split_image
from orchestrator.errors import ImageMissing, InputError
from orchestrator.profile.model import RuntimeKind
from orchestrator.profile.wording import did_you_mean

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer

VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
ROLLING = frozenset({"latest", "newest", "current", "stable", "nightly", "edge", "dev", "main", "master", "head"})
UNKNOWN = frozenset({"unknown_flag", "removed_flag", "ambiguous_flag"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The list that was asked for. `own_note`: how an image's own list differs from the shipped one."""

    catalogue: Catalogue
    history: History
    note: str | None = None
    own_note: tuple[str, ...] = ()
    wanted: str | None = None


def parted(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Versions and names: a version begins with a number, `v` and a number, or is a build."""
    versions = tuple(word for word in words if re.match(r"v?\d+(\.|$)|b\d+$", word))
    return versions, tuple(word for word in words if word not in versions)


def refuse_rolling(engine: str, names: Sequence[str]) -> None:
    """Of a word that names a version which moves: say which ones there are.

    Raises:
        InputError: There is such a word.
    """
    known = versions(engine)
    for name in names:
        if name.lower() in ROLLING:
            raise InputError(
                f"{name} is no version of {engine} that stays the same",
                hint=f"one of {', '.join(known)}; without one the newest, {known[-1]}, is meant",
            )


def engine_of(image: str) -> str:
    """By the repository's name.

    Raises:
        InputError: It does not tell.
    """
    name = split_image(image)[0].lower()
    for word, engine in (("vllm", "vllm"), ("sglang", "sglang"), ("llama", "llamacpp")):
        if word in name:
            return engine
    near = did_you_mean(image, ENGINES)
    raise InputError(
        f"{image}: no engine, and no image whose name tells its engine{near}",
        hint=f"one of {', '.join(ENGINES)}; of another image name it: `--engine vllm`",
    )


def chosen_list(engine: str, wanted: str | None) -> Found:
    """The shipped list of a version, or of the nearest lower one; None: of the newest."""
    chosen = choose(engine, wanted or versions(engine)[-1])
    return Found(
        catalogue=chosen.catalogue, history=load_history(engine), note=chosen.note, wanted=wanted or chosen.wanted
    )


def image_list(engine: str, image: str) -> Found:
    """What is known of an image without a host: its own list if it was read before and is named by digest."""
    digest = image.partition("@")[2]
    kept = find_kept(engine, digest) if digest else None
    if kept is not None:
        return Found(catalogue=kept, history=load_history(engine), wanted=kept.version)
    wanted = image_tag_version(image, REPOSITORIES[engine])
    chosen = choose(engine, wanted)
    note = chosen.note
    if wanted is None:
        note = f"{image} tells no version; the newest known is shown, `--on HOST` reads the image's own list"
    return Found(catalogue=chosen.catalogue, history=load_history(engine), note=note, wanted=wanted)


def own_list(printer: Printer, engine: str, image: str, on: str, hosts_file: str | None) -> Found:
    """The image's own list, read on the host or kept from before."""
    from orchestrator.deploy.open import open_runtime

    entries = compose.resolve_entries(on, hosts_file)
    if len(entries) != 1:
        raise InputError(f"`--on {on}`: one host is enough to read an image", hint="name one")
    with compose.open_hosts(entries) as (host,):
        runtime = open_runtime(RuntimeKind.DOCKER, host)
        try:
            digest = runtime.image_digest(image)
            if digest is None:
                raise ImageMissing(f"{host.name}: {image} is not there", hint=f"on the host: `docker pull {image}`")
            printer.progress(f"{host.name}: reading the flag list of {image}")
            own = own_flags(runtime, Subject(engine=engine, image=image, digest=digest))
        finally:
            runtime.close()
    shipped, history = choose(engine, own.version), load_history(engine)
    lines = tuple(own_lines(own, shipped.catalogue, compare(shipped.catalogue, own, history)))
    return Found(catalogue=own, history=history, own_note=lines, wanted=own.version)


def find_flag(printer: Printer, found: Found, name: str) -> tuple[Flag, str]:
    """The flag of any spelling, or the key of a JSON flag (`speculative-config.method`), and its name.

    Raises:
        InputError: There is none; with the nearest.
    """
    catalogue = found.catalogue
    head, _, keys = name.partition(".") if "." in name else (name, "", "")
    known = spellings(catalogue)
    bare = head.lstrip("-")
    tried = (head, f"--{bare.replace('_', '-')}", f"-{bare}")
    flag = next((known[word].flag for word in tried if word in known), None)
    if flag is None:
        short = find_spelling(catalogue, tried[1])
        if short.match is not Match.ABBREVIATION or short.flag is None:
            raise _no_flag(catalogue, tried[1])
        printer.warning(f"{tried[1]} is taken for {short.full} as long as no other flag begins so")
        flag = short.flag
    shown = flag.name
    for key in keys.split(".") if keys else ():
        inside = catalogue.json_classes.get(flag.json_class or "", {})
        if key not in inside:
            near = nearest(key, inside)
            what = f"{shown} has no key {key}" if inside else f"the keys of {shown} are not known"
            raise InputError(what, hint=f"did you mean {shown}.{near}?" if near else f"`{shown}` alone lists its keys")
        flag, shown = inside[key], f"{shown}.{key}"
    return flag, shown


def _no_flag(catalogue: Catalogue, word: str) -> InputError:
    """What the check of a command line would say of the word, and the flag that is probably meant."""
    chosen = Chosen(catalogue=catalogue, wanted=catalogue.version)
    told = (one for one in check_words(chosen, (word,), ()) if one.flag == word and one.code in UNKNOWN)
    found = next(told, None)
    near = nearest(word, spellings(catalogue))
    looking = f"`gate0 flags {catalogue.engine} --search WORD` looks for a word in spellings, values and groups"
    hint = f"did you mean {near}?" if near else looking
    if found is None:
        return InputError(f"{word} is no flag of {release(catalogue)}", hint=hint)
    is_of_use = found.hint is not None and "allow_unknown_flags" not in found.hint
    return InputError(found.message, hint=found.hint if is_of_use else hint)
