"""The flag list of an image itself: asked once per digest, kept on this machine, so a patched image meets its own list.

Docker images are known by their digest. A program is not: a start script stays as it is while the package behind it
changes, so a Python engine is known by all its source files, and llama-server, which answers at once, is asked anew.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path, PurePosixPath

import orjson

from orchestrator import __version__
from orchestrator.deploy.runtime import PYTHON, IsCancelled, Question, Runtime, never
from orchestrator.engines.flags.document import decode, encode
from orchestrator.engines.flags.facts import annotate
from orchestrator.engines.flags.live import ENGINES, parse_argparse, parse_help
from orchestrator.engines.flags.model import Catalogue, Chosen
from orchestrator.errors import BoxError, CommandTimedOut, ImageMissing, RuntimeFailure
from orchestrator.fleet.host import Completed
from orchestrator.profile.model import Profile, RuntimeKind
from orchestrator.values import Json, utc_now

FORMAT = f"gate0-own-flags/2 {__version__}"
"""Another version may read more out of the same image: it reads anew."""

PYTHON_S = 240.0
HELP_S = 60.0
PROGRAM = "llama-server"
VLLM_HELP = ("serve", "--help=all")
IN_OFFICIAL = "/app/llama-server"
FINGERPRINT = """\
import importlib.util, os, sys
found = importlib.util.find_spec(sys.argv[1])
for place in sorted(found.submodule_search_locations if found else ()):
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                told = os.stat(path)
                print(path, told.st_size, told.st_mtime_ns)
"""
"""Prints every source file of a package with size and time; nothing of it is imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose list is wanted.

    Attributes:
        digest: Of the image, as the runtime tells it.
        entrypoint: What the profile starts instead of the image's own; None: the image's own.
        owner: Value of the ownership label of containers that are asked.
    """

    engine: str
    image: str
    digest: str
    kind: RuntimeKind = RuntimeKind.DOCKER
    entrypoint: tuple[str, ...] | None = None
    owner: str = "flags"


def flags_folder() -> Path:
    """`$XDG_CACHE_HOME/gate0/flags`, in `~/.cache` without it."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "gate0" / "flags"


def own_flags(
    runtime: Runtime, subject: Subject, *, folder: Path | None = None, is_cancelled: IsCancelled = never
) -> Catalogue:
    """The image's own list with the remarks that hold for its version: as kept, else read now and kept.

    Args:
        folder: Where lists are kept; None: `flags_folder()`. One that cannot be read or written is no hindrance.

    Raises:
        BoxError: It could not be read.
        Interrupted: `is_cancelled` said so.
    """
    asker = _Asker(runtime=runtime, subject=subject, is_cancelled=is_cancelled)
    key = _key(asker)
    path = None if key is None else (folder or flags_folder()) / f"{subject.engine}-{key}.json"
    kept = None if path is None else _read_kept(path)
    if kept is not None:
        return annotate(kept)
    found = _read(asker)
    if path is not None:
        told: dict[str, Json] = {
            "format": FORMAT,
            "read_at": utc_now(),
            "image": subject.image,
            "catalogue": encode(found),
        }
        keep(path, told)
    return annotate(found)


def kept_list(profile: Profile, *, folder: Path | None = None) -> Chosen | None:
    """The own list of an image that a profile pins by digest, as kept; None: it is not pinned, or was never read.

    A tag is not enough, although a past run recorded what it was: it may be another image by now.
    """
    digest = (profile.image or "").partition("@")[2]
    if not digest or profile.engine not in ENGINES or profile.runtime is not RuntimeKind.DOCKER:
        return None
    found = find_kept(profile.engine, digest, folder=folder)
    if found is None:
        return None
    note = f"held against this image's own flag list ({found.version}), read from it before"
    return Chosen(catalogue=found, wanted=found.version, note=note)


def find_kept(engine: str, digest: str, *, folder: Path | None = None) -> Catalogue | None:
    """The list of an image that was read before; None: it was not."""
    found = _read_kept((folder or flags_folder()) / f"{engine}-{digest.replace(':', '-')}.json")
    return None if found is None else annotate(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One command whose answer tells the list."""

    entrypoint: tuple[str, ...] | None
    words: tuple[str, ...]
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asker:
    """Asks one subject."""

    runtime: Runtime
    subject: Subject
    is_cancelled: IsCancelled

    def ask(self, way: _Way) -> Completed:
        question = Question(
            image=self.subject.image,
            words=way.words,
            entrypoint=way.entrypoint,
            owner=self.subject.owner,
            timeout_s=way.limit_s,
        )
        return self.runtime.ask(question, is_cancelled=self.is_cancelled)


def _key(asker: _Asker) -> str | None:
    """What the list is kept under; None: it is not kept."""
    subject = asker.subject
    if subject.kind is RuntimeKind.DOCKER:
        return subject.digest.replace(":", "-")
    if subject.engine == "llamacpp":
        return None
    asked = asker.ask(_Way(entrypoint=PYTHON, words=("-c", FINGERPRINT, subject.engine), limit_s=HELP_S))
    if not asked.is_ok or not asked.stdout.strip():
        return None
    return f"source-{hashlib.sha256(asked.stdout.encode()).hexdigest()}"


def _read_kept(path: Path) -> Catalogue | None:
    """None when it is not there, or was written by another version or half."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = orjson.loads(path.read_bytes())
        if told["format"] == FORMAT:
            return decode(told["catalogue"])
    return None


def keep(path: Path, told: Json) -> None:
    """Write what was told of an image, whole or not at all; a folder that cannot be written is no hindrance."""
    part = path.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
        part.replace(path)


def _read(asker: _Asker) -> Catalogue:
    """By the first way that gives a list.

    Raises:
        RuntimeFailure: No way did; the first one's reason.
    """
    subject = asker.subject
    reasons: list[str] = []
    for way in _llama_ways(subject) if subject.engine == "llamacpp" else _python_ways(subject):
        try:
            return _parsed(asker, way, asker.ask(way))
        except (CommandTimedOut, ImageMissing) as exc:
            reasons.append(exc.message)
            break
        except (BoxError, ValueError) as exc:
            reasons.append(exc.message if isinstance(exc, BoxError) else str(exc))
    raise RuntimeFailure(f"the flag list of {subject.image} could not be read from it: {reasons[0]}")


def _python_ways(subject: Subject) -> Iterator[_Way]:
    """The Python beside the profile's own program first: an image may have several."""
    script = (files("orchestrator.engines.flags") / "inside.py").read_text(encoding="utf-8")
    words = ("-c", script, subject.engine)
    program = PurePosixPath((subject.entrypoint or ("",))[0])
    if program.is_absolute() and subject.kind is RuntimeKind.DOCKER:
        yield _Way(entrypoint=(str(program.parent / "python3"),), words=words, limit_s=PYTHON_S)
    yield _Way(entrypoint=PYTHON, words=words, limit_s=PYTHON_S)
    if subject.engine == "vllm" and subject.kind is RuntimeKind.DOCKER:
        server = str(program) if program.name == "vllm" else "vllm"
        yield _Way(entrypoint=(server,), words=VLLM_HELP, limit_s=PYTHON_S)


def _llama_ways(subject: Subject) -> Iterator[_Way]:
    """Where a profile, or the image, starts something round llama-server, that one's help is no list: then itself."""
    programs: tuple[tuple[str, ...] | None, ...] = (None,)
    if subject.kind is RuntimeKind.DOCKER:
        programs = tuple(dict.fromkeys((subject.entrypoint, (PROGRAM,), (IN_OFFICIAL,))))
    for program in programs:
        yield _Way(entrypoint=program, words=("--help",), limit_s=HELP_S)


def _parsed(asker: _Asker, way: _Way, asked: Completed) -> Catalogue:
    if not asked.is_ok:
        last = (asked.stderr.strip() or asked.stdout.strip() or "no words").splitlines()[-1]
        raise ValueError(f"exit code {asked.exit_code}: {last[:200]}")
    engine = asker.subject.engine
    if engine != "llamacpp":
        return (parse_help if way.words == VLLM_HELP else parse_argparse)(asked.stdout, engine)
    version = None
    with suppress(BoxError):
        told = asker.ask(replace(way, words=("--version",)))
        version = llama_version(told.stdout + told.stderr)
    return parse_help(asked.stdout, engine, version=version or "of unknown version")


def llama_version(text: str) -> str | None:
    """`version: 10434 (0c1e570)` -> `b10434`, `version: 0.5.0-dev (build 1, …)` -> `0.5.0-dev`."""
    found = re.search(r"^version: (\S+)", text, re.MULTILINE)
    if found is None:
        return None
    return f"b{found[1]}" if found[1].isdigit() else found[1]
