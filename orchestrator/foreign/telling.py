"""Which engine an image's own entrypoint is, where a command line has arguments alone.

Theory of operation. `docker run IMAGE org/model --max-num-seqs 8` names no program. The engines' own images are known;
of others the name may speak (`vllm-v26-patched`), and where it does not, the flags do: `--gpu-memory-utilization` and
`--tool-call-parser` beside each other are vLLM's and nobody else's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engines.flags.loading import choose
from orchestrator.engines.flags.reading import Match, find_spelling
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell.programs import ENGINES, are_arguments, image_program, program_at

SEARCHED = 24
NEEDED = 3
"""Flags that an engine must know before they alone tell it."""

_OWN_IMAGE = re.compile(r"(?:^|/)(?:vllm-openai|llama\.cpp)(?:[:@]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The engine, None when nothing tells it, or its own image does; a note where it was no certainty."""

    engine: str | None = None
    notes: tuple[Note, ...] = ()


def told_engine(
    image: str | None, words: Sequence[str], *, keeps_entrypoint: bool, beside: str = "", where: str = "the command"
) -> Told:
    """The engine whose arguments the words of a container are.

    Args:
        keeps_entrypoint: The image's own entrypoint gets the words.
        beside: What else may name it: a service's name, the folder that the image is built from.
        where: Place in the source, for the note.
    """
    if not keeps_entrypoint or not are_arguments(words):
        return Told()
    if any(program_at(words, index) is not None for index in range(min(len(words), SEARCHED))):
        return Told()
    named = image_program(image) or image_program(beside)
    engine = named if named is not None else _by_flags(words)
    if engine not in ENGINES:
        return Told()
    if _OWN_IMAGE.search(image or "") is not None:
        return Told(engine=engine if words[0].startswith("-") or words[0] == "serve" else None)
    why = "the image or the container is named" if named is not None else "its flags are that engine's alone"
    note = Note(
        fate=Fate.TRANSLATED,
        what="the image's own entrypoint",
        where=where,
        why=f"taken for {engine}'s server, as {why}",
    )
    return Told(engine=engine, notes=(note,))


def _by_flags(words: Sequence[str]) -> str | None:
    names = {word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)}
    known = {engine: sum(_knows(engine, name) for name in names) for engine in sorted(ENGINES)}
    first, second = sorted(known, key=lambda engine: known[engine], reverse=True)[:2]
    return first if known[first] >= NEEDED and known[first] > known[second] else None


def _knows(engine: str, name: str) -> bool:
    found = find_spelling(choose(engine, None).catalogue, name)
    return found.flag is not None and found.match is not Match.ABBREVIATION
