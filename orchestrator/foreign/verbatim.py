"""Servers that gate0 does not translate: their image and their command, word for word."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.errors import InputError
from orchestrator.foreign.containers import container, variables
from orchestrator.foreign.env_values import say
from orchestrator.foreign.hiding import hidden, masked
from orchestrator.foreign.model import Draft, Fate, Launch, Note
from orchestrator.foreign.naming import profile_name, profile_title
from orchestrator.foreign.programs import Program, place_of
from orchestrator.foreign.serving import REPO, image_note
from orchestrator.foreign.texts import shorten
from orchestrator.foreign.withholding import refer, secret_values, without_secrets
from orchestrator.values import Json

PORTS = {"TensorRT-LLM": 8000, "Ollama": 11434}
"""Where servers listen that are told nothing (trtllm-serve --help; Ollama's FAQ)."""

PORT_FLAGS = ("--port", "-p", "--http-port", "--listen-port")


def verbatim(launch: Launch, program: Program) -> Draft:
    """A profile of `engine: generic`.

    Raises:
        InputError: There is no image, no command, or nothing tells the port.
    """
    safe = without_secrets(program.rest)
    secrets = (*safe.secrets, *secret_values(launch))
    words = (*program.words, *(word for item in safe.items for word in item.words))
    shown = shorten(masked(hidden(" ".join(words)), secrets), 80)
    if not launch.image or not words:
        raise InputError(
            f"{place_of(launch)}: `{shown}` starts {program.other}, which gate0 does not serve",
            hint="gate0 imports vLLM, SGLang and llama-server, and other servers word for word when they have an image "
            "and a command; a server that you start yourself is gated with `engine: endpoint` and its URL",
        )
    told = _port(words, launch)
    port = told or PORTS.get(program.other or "")
    if port is None:
        raise InputError(
            f"{place_of(launch)}: nothing tells the port of {program.other} in `{shown}`",
            hint="give the port in the command or publish it",
        )
    settings, env = container(launch, None if launch.entrypoint is None else _cleared(launch)), variables(launch)
    notes_of_env = refer(env.document, secrets)
    env.document |= {variable: {"secret": name} for variable, name in safe.env.items()}
    name = profile_name(launch, launch.model)
    title = profile_title(launch, name)
    command = words if not settings.document.get("entrypoint") else words[1:]
    document: dict[str, Json] = {
        "name": name,
        **({"title": title} if title else {}),
        **({"note": masked(hidden(launch.note), secrets)} if launch.note else {}),
        "engine": "generic",
        "image": launch.image,
        **({"model": launch.model} if launch.model and REPO.fullmatch(launch.model) else {}),
        "port": port,
        **({"env": env.document} if env.document else {}),
        "command": list(command),
        **({"container": settings.document} if settings.document else {}),
    }
    why = f"{program.other} is none of gate0's three engines: image and command as they are, gated as any other server"
    note = Note(fate=Fate.PERSON, what=shown, where="the command", why=why)
    notes = [note]
    if told is None:
        why = f"{program.other}'s own default: nothing in the source tells it"
        notes.append(Note(fate=Fate.PERSON, what=f"port {port}", where="the command", why=why))
    notes += [image_note(launch.image), *settings.notes, *env.notes, *launch.notes]
    return Draft(document=document, notes=say((*notes, *safe.notes, *notes_of_env), secrets))


def _cleared(launch: Launch) -> tuple[str, ...]:
    """The entrypoint is the command's own first word."""
    return (launch.entrypoint or launch.words[:1])[:1]


def _port(words: Sequence[str], launch: Launch) -> int | None:
    texts = [words[i + 1] for i, word in enumerate(words[:-1]) if word in PORT_FLAGS]
    texts += [word.partition("=")[2] for word in words if word.partition("=")[0] in PORT_FLAGS and "=" in word]
    texts += [str(port.container) for port in launch.ports]
    return next((int(text) for text in texts if text.isdecimal() and 0 < int(text) < 65536), None)
