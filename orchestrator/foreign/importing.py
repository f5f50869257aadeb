"""Other people's configurations as profiles: recognised, read, translated, written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.engines.engine import Engine
from orchestrator.errors import InputError
from orchestrator.foreign import carrying, judging
from orchestrator.foreign.command import read_command
from orchestrator.foreign.compose import read_compose
from orchestrator.foreign.docker_run import read_docker_run
from orchestrator.foreign.found import Found
from orchestrator.foreign.hiding import hidden, without_userinfo
from orchestrator.foreign.k8s import read_k8s
from orchestrator.foreign.model import Draft, Fate, Launch, Note
from orchestrator.foreign.recipes import read_recipe
from orchestrator.foreign.recognising import (
    COMMAND,
    COMPOSE,
    DOCKER_RUN,
    K8S,
    RECIPE,
    SUPPORTED,
    SYSTEMD,
    Recognised,
    recognise,
)
from orchestrator.foreign.seeming import seems
from orchestrator.foreign.shell import ReadFile
from orchestrator.foreign.systemd import read_systemd
from orchestrator.foreign.translation import translate
from orchestrator.foreign.withholding import has_secret
from orchestrator.foreign.writing import profile_text

SHOWN = 4
"""Reasons that a refusal gives."""

_AT_LINE = re.compile(r"line ([0-9]+): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One server of a source as a profile.

    Attributes:
        launch: As its form says it.
        text: The profile file.
    """

    launch: Launch
    draft: Draft
    text: str

    @property
    def name(self) -> str:
        return str(self.draft.document["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a source came to.

    Attributes:
        notes: Of what belongs to none of the profiles (a service that serves no model).
        refused: Of servers that no profile can be made of, why.
    """

    kind: str
    profiles: tuple[Imported, ...]
    notes: tuple[Note, ...] = ()
    refused: tuple[InputError, ...] = ()


def import_text(
    text: str,
    *,
    source: str,
    engines: Mapping[str, Engine],
    read_file: ReadFile | None = None,
    values: Mapping[str, str] | None = None,
    service: str | None = None,
    image: str | None = None,
) -> Outcome:
    """Everything that a text lets be served; no secret of the text is in it, nor in what is raised.

    Args:
        source: What the text is called in messages.
        read_file: Gives the text of files that it names.
        values: Variables that are set where it is started.
        service: Only the server of this name.
        image: The image for a command that names none, or another one than the source's.

    Raises:
        InputError: It is nothing that gate0 reads, names no server, or none of its servers can be declared.
    """
    try:
        return _imported_text(
            text, source=source, engines=engines, read_file=read_file, values=values, service=service, image=image
        )
    except InputError as exc:
        safe = _safe(exc)
        if safe is exc:
            raise
        raise safe from None


def _imported_text(
    text: str,
    *,
    source: str,
    engines: Mapping[str, Engine],
    read_file: ReadFile | None,
    values: Mapping[str, str] | None,
    service: str | None,
    image: str | None,
) -> Outcome:
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(f"{source}:{line}: holds a NUL character: this is no text")
    known = recognise(text, source)
    if known is None:
        raise unknown(text, source)
    found = _read(known, text, source, read_file, values)
    if not found.launches:
        raise _nothing(found, text, source)
    launches = found.launches
    done: list[Imported] = []
    refused: list[InputError] = []
    for launch in launches:
        try:
            done.append(_imported(_named_openly(replace(launch, image=image or launch.image)), known, engines))
        except InputError as exc:
            refused.append(_safe(exc))
    if not done:
        raise refused[0] if len(refused) == 1 else _all_refused(refused, source)
    profiles = _chosen(_named_apart(_once(done), source), source, service)
    return Outcome(kind=known.kind, profiles=profiles, notes=tuple(map(_shown, found.notes)), refused=tuple(refused))


def read(
    known: Recognised,
    text: str,
    *,
    source: str,
    read_file: ReadFile | None = None,
    values: Mapping[str, str] | None = None,
) -> Found:
    """The launches of a recognised text.

    Raises:
        InputError: It breaks its own form.
    """
    if known.kind == RECIPE and known.read is not None:
        carried = carrying.find(text)
        launches = read_recipe(known.read, source)
        return Found(launches=tuple(replace(launch, carried=carried) for launch in launches))
    if known.kind == K8S:
        return read_k8s(text, source=source, values=values)
    return _READERS[known.kind](text, source=source, read_file=read_file, values=values)


def _imported(launch: Launch, known: Recognised, engines: Mapping[str, Engine]) -> Imported:
    draft = _carried(launch, known, engines) or translate(launch)
    return Imported(launch=launch, draft=draft, text=profile_text(draft, launch.source))


def _carried(launch: Launch, known: Recognised, engines: Mapping[str, Engine]) -> Draft | None:
    """The profile that gate0 wrote into its own export, as long as nobody changed what stands beside it."""
    if launch.carried is None:
        return None

    def again(text: str, source: str) -> Sequence[Launch]:
        return read(known, text, source=source).launches

    why = judging.still_true(launch.carried, launch, engines, again)
    if why is None and has_secret(launch.carried):
        why = "a secret's value stands in it"
    if why is None:
        note = Note(
            fate=Fate.KEPT,
            what=f"profile {launch.carried.get('name')}",
            where="the comment of the export",
            why="gate0's own export, unchanged: the profile that it was made from",
        )
        return Draft(document=dict(launch.carried), notes=(note,))
    note = Note(
        fate=Fate.DROPPED,
        what=f"profile {launch.carried.get('name')}",
        where="the comment of the export",
        why=f"changed since gate0 exported it: {why}",
    )
    return translate(replace(launch, carried=None, notes=(*launch.notes, note)))


def unknown(text: str, source: str) -> InputError:
    """The refusal of a text that is no configuration; it says what the text seems to be."""
    seeming = seems(text)
    if seeming is None:
        return InputError(f"{source} is no configuration that gate0 reads", hint=f"it reads {SUPPORTED}")
    verb = "is" if seeming.what == "empty" else "seems to be"
    return InputError(f"{source} is no configuration that gate0 reads: it {verb} {seeming.what}", hint=seeming.hint)


def _safe(exc: InputError) -> InputError:
    """The same without a secret's value in its text."""
    message, hint = hidden(exc.message), None if exc.hint is None else hidden(exc.hint)
    return exc if (message, hint) == (exc.message, exc.hint) else InputError(message, hint=hint)


def _named_openly(launch: Launch) -> Launch:
    """Image and model without a URL's user and password."""
    image, model = (None if name is None else without_userinfo(name) for name in (launch.image, launch.model))
    return replace(launch, image=image, model=model)


def _shown(note: Note) -> Note:
    return replace(note, what=hidden(note.what))


def _read(
    known: Recognised, text: str, source: str, read_file: ReadFile | None, values: Mapping[str, str] | None
) -> Found:
    try:
        return read(known, text, source=source, read_file=read_file, values=values)
    except InputError as exc:
        line = _AT_LINE.match(exc.message)
        if line is None:
            raise
        # Prose has quotes that are never closed, too.
        seeming = seems(text)
        if seeming is not None and not seeming.is_code:
            raise unknown(text, source) from exc
        raise InputError(f"{source}:{line[1]}: {exc.message[line.end() :]}", hint=exc.hint) from exc


def _nothing(found: Found, text: str, source: str) -> InputError:
    """The refusal of a configuration that serves with none of the three engines."""
    ordered = sorted(found.notes, key=lambda note: note.fate is not Fate.PERSON)
    reasons = [f"{note.where}: {note.what}: {note.why}" for note in ordered[:SHOWN]]
    if len(ordered) > SHOWN:
        reasons.append(f"… and {len(ordered) - SHOWN} more")
    seeming = seems(text) if not reasons else None
    if seeming is not None:
        return unknown(text, source)
    return InputError(
        "\n  ".join((f"{source} starts no server that gate0 can make a profile of", *reasons)),
        hint=f"gate0 imports vLLM, SGLang and llama-server from {SUPPORTED}",
    )


def _chosen(done: Sequence[Imported], source: str, service: str | None) -> tuple[Imported, ...]:
    """The server of that name: what the source calls it, or its profile's name."""
    if service is None:
        return tuple(done)
    chosen = tuple(one for one in done if service in {one.launch.name, one.name})
    if not chosen:
        names = ", ".join(str(one.launch.name or one.name) for one in done)
        raise InputError(f"{source} has no server named `{service}`", hint=f"it has {names}")
    return chosen


def _once(done: Sequence[Imported]) -> list[Imported]:
    """Each profile once: an export for two hosts holds the command of each, and both come to one profile."""
    kept: list[Imported] = []
    for one in done:
        is_carried = one.launch.carried is not None
        if not is_carried or not any(other.draft.document == one.draft.document for other in kept):
            kept.append(one)
    return kept


def _named_apart(done: Sequence[Imported], source: str) -> tuple[Imported, ...]:
    """Each profile under a name of its own."""
    seen: dict[str, int] = {}
    apart: list[Imported] = []
    for one in done:
        seen[one.name] = seen.get(one.name, 0) + 1
        if seen[one.name] == 1:
            apart.append(one)
            continue
        draft = replace(one.draft, document={**one.draft.document, "name": f"{one.name[:76]}-{seen[one.name]}"})
        apart.append(replace(one, draft=draft, text=profile_text(draft, source)))
    return tuple(apart)


def _all_refused(refused: Sequence[InputError], source: str) -> InputError:
    lines = "\n".join(exc.message for exc in refused)
    return InputError(lines, hint=refused[0].hint if refused else None)


Reader = Callable[..., Found]
_READERS: Mapping[str, Reader] = {
    DOCKER_RUN: read_docker_run,
    COMPOSE: read_compose,
    SYSTEMD: read_systemd,
    COMMAND: read_command,
}
