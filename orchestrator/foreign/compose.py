"""Compose files: each service that one of the engines serves is a launch, the others are noted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from orchestrator.errors import InputError
from orchestrator.foreign import carrying
from orchestrator.foreign.compose_extends import NodeReader
from orchestrator.foreign.compose_service import ServiceReader
from orchestrator.foreign.env_files import Reads, read_env
from orchestrator.foreign.found import Found
from orchestrator.foreign.hiding import hidden
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.programs import find_program
from orchestrator.foreign.shell import ReadFile
from orchestrator.foreign.shell.programs import ENGINES, image_program
from orchestrator.foreign.tolerant_yaml import load_tolerant
from orchestrator.profile.yaml_lines import Node

FORM = "compose"
_SERVICES = re.compile(r"^[\"']?services[\"']?[ \t]*:", re.MULTILINE)


def looks_like_compose(text: str) -> bool:
    """True for text with a `services:` at its margin."""
    return _SERVICES.search(text) is not None


def read_compose(
    text: str,
    *,
    source: str,
    values: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
) -> Found:
    """Every service of a compose file that one of the engines serves.

    Args:
        source: What the file is called in messages.
        values: Variables for `${NAME}`; they stand over a `.env` beside the file. `PWD` is the file's folder.
        read_file: Gives the text of `.env`, env files, and of files that are extended or included; paths as written.

    Raises:
        InvalidFile: It is no YAML, with the line.
        InputError: It has no services, or a quote in a command is never closed.
    """
    known = {**_beside(read_file), **(values or {})}
    nodes = NodeReader(read_file=read_file)
    read = load_tolerant(text, source)
    document = read.document
    services = nodes.services(document, known)
    if not services:
        raise InputError(f"{source}: no services", hint="a compose file has `services:` with an image or a build each")
    carried = carrying.find(text)
    networks = _external(document.root.child("networks"))
    launches: list[Launch] = []
    notes: list[Note] = []
    for name, node in services.items():
        reader = ServiceReader(name=name, source=source, values=known, read_file=read_file, networks=networks)
        launch = replace(reader.launch(nodes.extended(node, services, known, name=name)), carried=carried)
        refusal = _refusal(launch, name) if carried is None else None
        if refusal is None:
            launches.append(launch)
        else:
            notes.append(refusal)
    return Found(launches=tuple(launches), notes=(*read.notes, *nodes.notes, *notes))


def _beside(read_file: ReadFile | None) -> Mapping[str, str]:
    text = read_file(".env") if read_file is not None else None
    return {name: word.text for name, word in read_env(text or "", Reads.COMPOSE).items() if word.is_known}


def _external(networks: Node | None) -> Mapping[str, str]:
    entries = networks.content if networks is not None and isinstance(networks.content, Mapping) else {}
    outside = {
        name: node for name, node in entries.items() if (told := node.child("external")) and told.content is True
    }
    return {name: (named.written if (named := node.child("name")) else None) or name for name, node in outside.items()}


def _refusal(launch: Launch, name: str) -> Note | None:
    """Why a service is no launch; None when one of the engines serves it."""
    where = f"services.{name}"
    try:
        program = find_program(launch)
    except InputError:
        shown = hidden(" ".join((*(launch.entrypoint or ()), *launch.words)))[:120]
        built = next((note.what for note in launch.notes if note.where == f"{where}.build"), None)
        if launch.image is None and built is None:
            why = (
                "neither image nor build: it is laid upon another file; merge them with "
                "`docker compose -f BASE -f THIS config > whole.yaml`, and import that"
            )
            return Note(fate=Fate.PERSON, what=f"service {name}", where=where, why=why)
        if image_program(launch.image or f"{name} {built}") in ENGINES:
            why = "an engine's image, but the server's command is not in this file: write it as `command`"
            return Note(
                fate=Fate.PERSON, what=f"service {name}: {shown or launch.image or built}", where=where, why=why
            )
        return Note(
            fate=Fate.DROPPED, what=f"service {name}", where=where, why="starts none of vLLM, SGLang and llama-server"
        )
    if program.engine in ENGINES:
        return None
    why = f"starts {program.other or 'another server'}, none of the three engines"
    return Note(fate=Fate.DROPPED, what=f"service {name}", where=where, why=why)
