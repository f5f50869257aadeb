"""`launch-cluster.sh … exec vllm serve …`: spark-vllm-docker's launcher with a command line in place of a recipe.

It starts one container on each host (host network, the image's entrypoint cleared, the hub's cache mounted) and runs
the command in it. Facts: spark-vllm-docker's `launch-cluster.sh --help`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.foreign.container_parts import mount_from_text, ports_from_text
from orchestrator.foreign.env_values import environment
from orchestrator.foreign.hiding import hidden
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.shell import Word
from orchestrator.profile.model import Mount, Port

FORM = "spark-vllm-docker"
IMAGE = "vllm-node"
HUB_CACHE = Mount(source="~/.cache/huggingface", target="/root/.cache/huggingface")
_SWITCHES = frozenset(
    {
        *("--solo", "--ray", "--no-ray", "--no-cache-dirs", "--keep-entrypoint", "--earlyoom", "-d", "--setup"),
        *("--non-privileged", "--check-config", "--discover", "exec", "start"),
    }
)
_LONG = {"-n": "--nodes", "-e": "--env", "-p": "--publish", "-v": "--volume"}
_LEVELS = frozenset({"VERSION", "WARN", "INFO", "TRACE"})
_DROPPED = {
    "--nodes": "hosts are named in hosts.yaml or with `--on`",
    "--eth-if": "gate0 finds the link between the hosts itself, or hosts.yaml names it",
    "--ib-if": "gate0 finds the link between the hosts itself, or hosts.yaml names it",
    "--master-port": "gate0 introduces the ranks itself",
    "-j": "how the image is built",
    "--config": "the launcher's own settings: hosts and links are named in hosts.yaml",
}


@dataclass(slots=True, kw_only=True)
class _Settings:
    image: str = IMAGE
    name: str | None = None
    entrypoint: tuple[str, ...] | None = ()
    nodes: int | None = None
    is_patched: bool = False
    env: dict[str, Word] = field(default_factory=dict)
    mounts: list[Mount] = field(default_factory=lambda: [HUB_CACHE])
    ports: list[Port] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def through_launcher(launch: Launch, words: Sequence[Word]) -> Launch:
    """A bare command's launch as the launcher starts it.

    Args:
        words: The launcher and its options, up to the command.
    """
    settings = _Settings()
    for name, value, word in _options(words[1:]):
        _take(settings, name, value, word)
    told = environment(settings.env)
    place = f"line {words[0].line}"
    why = f"the launcher's own image: have it on the host, or name one with `--image NAME`; {HUB_CACHE.source} mounted"
    own = Note(fate=Fate.TRANSLATED, what=words[0].text, where=place, why=f"{settings.image}: {why}")
    return replace(
        launch,
        form=FORM,
        image=settings.image,
        name=settings.name,
        entrypoint=settings.entrypoint,
        env={**told.values, **launch.env},
        mounts=tuple(settings.mounts),
        ports=tuple(settings.ports),
        nodes=settings.nodes,
        is_patched=settings.is_patched or launch.is_patched,
        notes=(*([own] if settings.image == IMAGE else []), *settings.notes, *told.notes, *launch.notes),
    )


def _options(words: Sequence[Word]) -> Iterator[tuple[str, Word | None, Word]]:
    at = 0
    while at < len(words):
        word = words[at]
        name, equals, text = word.text.partition("=")
        at += 1
        if equals:
            yield _LONG.get(name, name), replace(word, text=text), word
        elif name in _SWITCHES or at >= len(words) or (name == "--nccl-debug" and words[at].text not in _LEVELS):
            yield _LONG.get(name, name), None, word
        else:
            yield _LONG.get(name, name), words[at], word
            at += 1


def _take(settings: _Settings, name: str, value: Word | None, word: Word) -> None:
    where = f"line {word.line}"
    text = value.text if value is not None else ""
    what = hidden(f"{word.text} {text}".strip())
    match name:
        case "-t":
            settings.image = text
        case "--name":
            settings.name = text
        case "--env" if value is not None and "=" in text:
            variable, _, given = text.partition("=")
            settings.env[variable] = replace(value, text=given)
        case "--env" if value is not None:
            settings.env[text] = Word(text=f"${{{text}}}", line=word.line, missing=(text,))
        case "--nccl-debug":
            settings.env["NCCL_DEBUG"] = Word(text=text or "INFO", line=word.line)
        case "--volume":
            part = mount_from_text(text, where=where, folder=None)
            settings.mounts += [part.mount] if part.mount is not None else []
            settings.notes += part.notes
        case "--publish":
            port = ports_from_text(text, where=where)
            settings.ports += port.ports
            settings.notes += port.notes
        case "--keep-entrypoint":
            settings.entrypoint = None
        case "--solo":
            settings.nodes = 1
        case "--apply-mod":
            settings.is_patched = True
            why = "changes the image before it serves: build an image that has it, or know that it is not needed"
            settings.notes.append(Note(fate=Fate.PERSON, what=what, where=where, why=why))
        case "exec" | "start":
            pass
        case _:
            if name == "--nodes" and value is not None and value.is_known:
                settings.nodes = len([host for host in text.split(",") if host.strip()])
            why = _DROPPED.get(name, "the launcher's own")
            settings.notes.append(Note(fate=Fate.DROPPED, what=what, where=where, why=why))
