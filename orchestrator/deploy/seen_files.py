"""Whether files are there: on a host, or inside an image. What an image holds is kept by its digest.

A file that cannot be seen is not a file that is missing: below a folder that we may not enter, or where a link points
out of the image, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

import orjson

from orchestrator.deploy.own_flags import Subject, flags_folder, keep
from orchestrator.deploy.runtime import IsCancelled, Question, Runtime, never
from orchestrator.errors import CommandTimedOut, RuntimeFailure
from orchestrator.fleet.host import Completed, Host
from orchestrator.profile.model import RuntimeKind

FORMAT = "gate0-seen-files/1"
LOOK_S = 30.0
SHELL = ("sh",)
LOOK = r"""
package=$1 within=$2 python=$3; shift 3
own=
if [ -n "$package" ]; then
    for one in "$python" python3 python; do
        [ -n "$one" ] && own=$("$one" -c '
import importlib.util, sys
sys.path[:] = [place for place in sys.path if place]
print(importlib.util.find_spec(sys.argv[1]).submodule_search_locations[0])' "$package" 2>/dev/null) && break
    done
fi
sees() {  # the nearest folder that is there can be searched: what it lacks is surely not there
    near=${1:-/}
    until [ -e "$near" ] || [ -L "$near" ]; do near=${near%/*}; near=${near:-/}; done
    [ -d "$near" ] && [ -x "$near" ]
}
beside() {  # folder, ending: files of that kind in it and one level below
    for one in "$1"/*."$2" "$1"/*/*."$2"; do
        [ -f "$one" ] && printf 'beside %s\n' "${one#"$1"/}"
    done | head -n 60
}
for path; do
    case $path in /*) whole=$path inner= ;; *) whole=${PWD%/}/$path inner=$path ;; esac
    state=unknown
    if [ -f "$whole" ]; then state=file
    elif [ -d "$whole" ]; then state=folder
    elif [ -e "$whole" ] || [ -L "$whole" ]; then :
    elif [ -n "$inner" ] && [ -n "$own" ] && [ -f "$own/$within/$inner" ]; then state=file
    elif [ -n "$inner" ] && [ -n "$package" ] && [ -z "$own" ]; then :
    elif sees "${whole%/*}"; then state=absent
    fi
    printf 'path %s\nwhole %s\nstate %s\n' "$path" "$whole" "$state"
    case ${path##*/} in *.*) ending=${path##*.} ;; *) ending=jinja ;; esac
    [ "$state" = absent ] || continue
    beside "${whole%/*}" "$ending"
    [ "$ending" != jinja ] || [ -z "$inner" ] || [ -z "$own" ] || beside "$own/$within" "$ending"
done
exit 0
"""
"""Parameters: a Python package that has files of its own for relative paths ('': none), the folder within it, the
Python that has it ('': python3), then the paths. Of each `path`, `whole`, `state`; `beside` when it is absent."""

PACKAGES = {"vllm": ("vllm", "transformers_utils/chat_templates")}
"""vLLM brings templates of its own, which it looks for after the folder that it starts in."""


class State(StrEnum):
    """FOLDER: a folder has its name. UNKNOWN: it cannot be told."""

    FILE = "file"
    FOLDER = "folder"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One file.

    Attributes:
        whole: Its absolute path; as asked when nothing was told.
        beside: Files of its kind in the folder where it should be and one level below, and the engine's own templates:
            each as it can be named instead, from that folder.
    """

    whole: str
    state: State
    beside: tuple[str, ...] = ()


def look_argv(paths: Sequence[str], *, engine: str = "", python: str = "") -> tuple[str, ...]:
    """Words after the shell that tell of these paths. `engine`: whose own templates count."""
    package, within = PACKAGES.get(engine, ("", ""))
    return ("-c", LOOK, "sh", package, within, python, *paths)


def read_look(text: str) -> dict[str, Seen]:
    """What LOOK printed, by path as asked."""
    found: dict[str, Seen] = {}
    path, whole, beside = "", "", list[str]()
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == "path":
            path, beside = value, []
        elif key == "whole":
            whole = value
        elif key == "beside":
            beside.append(value)
            found[path] = Seen(whole=whole, state=found[path].state, beside=tuple(beside))
        elif key == "state":
            found[path] = Seen(whole=whole, state=State(value))
    return found


def look_on_host(host: Host, paths: Sequence[str], *, engine: str = "", program: str = "") -> Mapping[str, Seen]:
    """Paths on a host, by path; UNKNOWN where the host's shell cannot tell.

    Args:
        engine: Whose own templates count; '': none's. program: what is started, its Python lies beside it.

    Raises:
        HostUnreachable: The connection broke.
    """
    try:
        argv = (*SHELL, *look_argv(paths, engine=engine, python=_python(program)))
        return _complete(paths, host.run(argv, timeout_s=LOOK_S))
    except CommandTimedOut:
        return _complete(paths, None)


def look_in_image(
    runtime: Runtime,
    subject: Subject,
    paths: Sequence[str],
    *,
    folder: Path | None = None,
    is_cancelled: IsCancelled = never,
) -> Mapping[str, Seen]:
    """Paths inside an image, from the folder that it starts in: as kept for its digest, else asked now and kept.

    Args:
        folder: Where answers are kept; None: beside the flag lists.

    Raises:
        BoxError: The image could not be asked (one without a shell, say).
        Interrupted: `is_cancelled` said so.
    """
    assert subject.kind is RuntimeKind.DOCKER
    file = (folder or flags_folder()) / f"files-{subject.engine}-{subject.digest.replace(':', '-')}.json"
    kept = _read_kept(file)
    missing = [path for path in paths if path not in kept]
    if missing:
        question = Question(
            image=subject.image,
            words=look_argv(missing, engine=subject.engine, python=_python((subject.entrypoint or ("",))[0])),
            entrypoint=SHELL,
            owner=subject.owner,
            timeout_s=LOOK_S,
        )
        asked = runtime.ask(question, is_cancelled=is_cancelled)
        if not asked.is_ok:
            raise RuntimeFailure(f"{subject.image} has no shell to look for files with: exit code {asked.exit_code}")
        kept |= _complete(missing, asked)
        _keep(file, kept)
    return {path: kept[path] for path in paths}


def _python(program: str) -> str:
    path = PurePosixPath(program)
    return str(path.parent / "python3") if path.is_absolute() else ""


def _complete(paths: Sequence[str], asked: Completed | None) -> dict[str, Seen]:
    told = read_look(asked.stdout) if asked is not None and asked.is_ok else {}
    return {path: told.get(path, Seen(whole=path, state=State.UNKNOWN)) for path in paths}


def _read_kept(file: Path) -> dict[str, Seen]:
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        told = orjson.loads(file.read_bytes())
        if told["format"] == FORMAT:
            return {
                path: Seen(whole=one["whole"], state=State(one["state"]), beside=tuple(one["beside"]))
                for path, one in told["files"].items()
            }
    return {}


def _keep(file: Path, seen: Mapping[str, Seen]) -> None:
    files = {path: {"whole": one.whole, "state": one.state, "beside": list(one.beside)} for path, one in seen.items()}
    keep(file, {"format": FORMAT, "files": files})
