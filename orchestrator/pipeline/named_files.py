"""Chat templates and plugins that the words name: are they where the server will look for them?

What a mount brings, and what a process reads, lies on the host and is looked for in preflight. All else must be in the
image, which is asked once it is there. Only the first host is asked: the others answer no requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, normpath

from orchestrator.deploy.own_flags import Subject
from orchestrator.deploy.runtime import ServerSpec
from orchestrator.deploy.seen_files import Seen, State, look_on_host
from orchestrator.engines.flags.allowing import Allowed
from orchestrator.engines.flags.live import ENGINES
from orchestrator.engines.flags.loading import choose_for
from orchestrator.engines.flags.model import Catalogue, Finding, Severity
from orchestrator.engines.flags.named_files import NamedFile, named_files
from orchestrator.engines.flags.nearest import listed, nearest
from orchestrator.engines.flags.reading import own_words
from orchestrator.engines.remarks import worded
from orchestrator.errors import BoxError
from orchestrator.pipeline.preparing import command_of, spec_of
from orchestrator.pipeline.refusing import refusal
from orchestrator.pipeline.road import Road
from orchestrator.profile.model import Mount, RuntimeKind

CODE = "missing_file"
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash"})
"""A container that is started through one may make the file before the server looks for it."""


def check_on_host(road: Road) -> None:
    """Files of the host: those below a mount, and those of a server without a container.

    Raises:
        InvalidFile: One is not there; by file and line.
    """
    spec = spec_of(road.head)
    files = [(file, place) for file in _files(road, None) if (place := _place_on_host(road, spec, file.path))]
    _refuse(road, _host_findings(road, files))


def check_in_image(road: Road, subject: Subject, catalogue: Catalogue | None) -> None:
    """Files that must be in the image. What cannot be asked is a note.

    Args:
        catalogue: The image's own list, None: the shipped one.

    Raises:
        InvalidFile: One is not there; by file and line.
        Interrupted: On request.
    """
    look, spec = road.tools.look_in_image, spec_of(road.head)
    if look is None or subject.kind is not RuntimeKind.DOCKER:
        return
    files = [file for file in _files(road, catalogue) if mount_of(spec.mounts, file.path) is None]
    if not files:
        return
    paths = tuple(dict.fromkeys(file.path for file in files))
    try:
        seen = look(road.head.runtime, subject, paths, road.cancel.is_set)
    except BoxError as exc:
        road.note(f"whether {spec.image} has {', '.join(paths)} cannot be told: {exc.message}")
        return
    mounted = [file for file in files if mount_of(spec.mounts, seen[file.path].whole) is not None]
    places = [(f, place) for f in mounted if (place := _place_on_host(road, spec, seen[f.path].whole))]
    inside = [file for file in files if file not in mounted]
    _refuse(road, (*_host_findings(road, places), *_image_findings(spec, inside, seen)))


def mount_of(mounts: Sequence[Mount], path: str) -> Mount | None:
    """The mount that a path of the container lies in, the innermost; None: it is the image's, or relative."""
    whole = normpath(path)
    over = [one for one in mounts if f"{whole}/".startswith(f"{normpath(one.target).rstrip('/')}/")]
    return max(over, key=lambda one: len(normpath(one.target)), default=None)


def _place_on_host(road: Road, spec: ServerSpec, path: str) -> str | None:
    """Where it lies on the host; None: not there, or in a named volume, which is not looked into."""
    if road.job.profile.runtime is RuntimeKind.PROCESS:
        return path
    mount = mount_of(spec.mounts, path)
    if mount is None or not mount.source.startswith("/"):
        return None
    return mount.source.rstrip("/") + normpath(path)[len(normpath(mount.target).rstrip("/")) :]


def _files(road: Road, catalogue: Catalogue | None) -> list[NamedFile]:
    chosen = choose_for(road.job.profile)
    if road.job.engine.name not in ENGINES or chosen is None:
        return []
    listing = catalogue or chosen.catalogue
    accepted = Allowed(listing, road.job.profile.allow_unknown_flags)
    found = named_files(listing, *own_words(command_of(road.head)))
    return [file for file in found if not accepted.has_value(file.flag)]


def _host_findings(road: Road, files: Sequence[tuple[NamedFile, str]]) -> Iterator[Finding]:
    if not files:
        return
    is_process = road.job.profile.runtime is RuntimeKind.PROCESS
    paths = tuple(dict.fromkeys(place for _, place in files))
    engine, program = (road.job.engine.name, spec_of(road.head).image) if is_process else ("", "")
    seen = look_on_host(road.head.box.host, paths, engine=engine, program=program)
    for file, place in files:
        one = seen[place]
        cure = "put it there" if is_process else "put it there, or correct `container.mounts`"
        if one.state is State.FOLDER and not is_process:
            cure = "Docker makes a folder of a mount that is not there: remove it, and put the file in its place"
        yield from _finding(file, one, road.head.name, cure)


def _image_findings(spec: ServerSpec, files: Sequence[NamedFile], seen: Mapping[str, Seen]) -> Iterator[Finding]:
    may_be_made = basename((spec.entrypoint or ("",))[0]) in SHELLS
    severity = Severity.WARNING if may_be_made else Severity.ERROR
    for file in files:
        one = seen[file.path]
        mount = f"mount one: `container.mounts: [~/{basename(one.whole)}:{one.whole}:ro]`"
        cure = f"{mount}; allow_unknown_flags: [{file.flag.lstrip('-')}] if its start makes one"
        yield from _finding(file, one, spec.image, cure, severity)


def _finding(
    file: NamedFile, seen: Seen, owner: str, cure: str, severity: Severity = Severity.ERROR
) -> Iterator[Finding]:
    if seen.state not in {State.ABSENT, State.FOLDER}:
        return
    what = "no file" if seen.state is State.ABSENT else "a folder, no file,"
    yield Finding(
        severity=severity,
        code=CODE,
        path=file.origin,
        message=f"{file.spelling}: {owner} has {what} {seen.whole}",
        hint="; ".join((*_others(file, seen), cure)),
        flag=file.flag,
    )


def _others(file: NamedFile, seen: Seen) -> Iterator[str]:
    names = {basename(one): one for one in reversed(seen.beside)}
    near = nearest(basename(file.path), names)
    if near is not None:
        yield f"did you mean {names[near]}?"
    elif seen.beside:
        yield f"there are {listed(seen.beside)}"


def _refuse(road: Road, found: Iterator[Finding] | Sequence[Finding]) -> None:
    told = tuple(found)
    errors = [one for one in told if one.severity is Severity.ERROR]
    if errors:
        raise refusal(road.job, errors)
    for one in told:
        if CODE not in road.job.profile.silence:
            road.note(f"{CODE}: {worded(one)}", is_warning=True)
