"""Which server a launch starts: the engine, the words that are the program, and what follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engines.images import split_image
from orchestrator.errors import InputError
from orchestrator.foreign.hiding import hidden
from orchestrator.foreign.model import Launch
from orchestrator.foreign.shell.programs import (
    ENGINES,
    SHELLS,
    are_arguments,
    base_name,
    image_program,
    is_shell_text,
    program_at,
)
from orchestrator.foreign.texts import shorten

MAX_WORDS = 2_000
SEARCHED = 24
"""Words among which a program may hide behind wrappers (`env`, `numactl --interleave=all`, a start script)."""

RUNTIMES = {
    "vllm": "vllm",
    "eugr-vllm": "vllm",
    "sglang": "sglang",
    "llama-cpp": "llamacpp",
    "llamacpp": "llamacpp",
    "llama.cpp": "llamacpp",
}
OTHER_RUNTIMES = {"trtllm": "TensorRT-LLM", "atlas": "Atlas", "ds4": "ds4", "ollama": "Ollama"}
VLLM_IMAGES = frozenset({"vllm-openai"})
_SILENT = frozenset({"exec", "nohup", "env", "sudo", "command", "tini", "dumb-init", "--"})
"""Wrappers that change nothing about what is served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The server in a launch.

    Attributes:
        engine: `vllm`, `sglang`, `llamacpp`, `generic`.
        words: The program as written (`vllm serve`, `python3 -m sglang.launch_server`); (): the image's entrypoint.
        rest: What follows.
        at: Index of the first word of `rest` among the launch's words; negative when the entrypoint held some of them.
        before: What stands in front of the program and does more than wrap it.
        other: Name of a server that gate0 only runs word for word.
    """

    engine: str
    words: tuple[str, ...]
    rest: tuple[str, ...]
    at: int = 0
    before: tuple[str, ...] = ()
    other: str | None = None

    @property
    def is_module(self) -> bool:
        """Started as `python -m MODULE`, or as a module's file."""
        return bool(self.words) and base_name(self.words[0]).startswith("python")


def find_program(launch: Launch) -> Program:
    """The server that a launch starts.

    Raises:
        InputError: It starts no server that gate0 knows; the message says what it does start.
    """
    entry = launch.entrypoint or ()
    words = (*entry, *launch.words)
    if len(words) > MAX_WORDS:
        raise InputError(f"{place_of(launch)}: {len(words)} words: this is no command line of a server")
    found = _named(words) or _by_image(words, launch, is_whole=not entry) or _by_runtime(words, launch)
    if found is None:
        raise _refused(words, launch)
    program, begin, end = found
    before = words[:begin]
    return Program(
        engine=program if program in ENGINES else "generic",
        words=words[begin:end],
        rest=words[end:],
        at=end - len(entry),
        before=tuple(word for index, word in enumerate(before) if not _is_silent(word, before[:index])),
        other=None if program in ENGINES else program,
    )


Found = tuple[str, int, int]
"""The server's name, begin and end of the program's words."""


def _named(words: tuple[str, ...]) -> Found | None:
    for index in range(min(len(words), SEARCHED)):
        if (program := program_at(words, index)) is not None:
            return program, index, _end(words, index)
    return None


def _end(words: Sequence[str], begin: int) -> int:
    """Past the program's own words: `vllm serve`, `python3 -u -m sglang.launch_server`."""
    name = base_name(words[begin])
    if name.startswith("python"):
        at = begin + 1
        while at < len(words) and words[at].startswith("-") and words[at] != "-m":
            at += 1
        end = at + (2 if words[at] == "-m" else 1)
        return end + int(end < len(words) and words[end] == "serve")
    takes_word = name in {"vllm", "sglang", "llama", "llama-cli"}
    return begin + (2 if takes_word else 1)


def _by_image(words: tuple[str, ...], launch: Launch, *, is_whole: bool) -> Found | None:
    """The image's own entrypoint is the server: the words begin with its arguments."""
    name, tag = split_image(launch.image or "")
    last = name.rpartition("/")[2]
    if not is_whole or not last or is_shell_text(words):
        return None
    begins_with_serve = words[:1] == ("serve",)
    if last in VLLM_IMAGES or ("vllm" in name and begins_with_serve):
        return "vllm", 0, int(begins_with_serve)
    if "sglang" in name and begins_with_serve:
        return "sglang", 0, 1
    if last == "llama.cpp" and (tag.startswith("server") or words[:1] in {("--server",), ("-s",)}):
        return "llamacpp", 0, 0 if tag.startswith("server") else 1
    return ("Ollama", 0, 0) if last == "ollama" else None


def _by_runtime(words: tuple[str, ...], launch: Launch) -> Found | None:
    """The form names the engine, and the words are its arguments."""
    runtime = (launch.engine or "").lower()
    kinds = (runtime, runtime.partition("-")[0])
    engine = next((RUNTIMES[kind] for kind in kinds if kind in RUNTIMES), None)
    if engine and are_arguments(words):
        return engine, 0, int(words[0] == "serve")
    other = next((OTHER_RUNTIMES[kind] for kind in kinds if kind in OTHER_RUNTIMES), None)
    return (other, 0, 1) if other and words else None


def place_of(launch: Launch) -> str:
    """`FILE:LINE` of a launch, as far as its form tells the line."""
    line = (launch.where or next(iter(launch.places), "")).removeprefix("line ")
    return f"{launch.source}:{line}" if line.isdecimal() else launch.source


def _is_silent(word: str, before: Sequence[str]) -> bool:
    """A wrapper that changes nothing, an option of one, or a variable that it sets."""
    if word in _SILENT or base_name(word) in _SILENT:
        return True
    return (
        bool(before)
        and (word.startswith("-") or "=" in word)
        and all(_is_silent(w, before[:i]) for i, w in enumerate(before))
    )


def _refused(words: Sequence[str], launch: Launch) -> InputError:
    shown = shorten(hidden(" ".join(words)), 80)
    what = f"`{shown}`" if shown else "no command"
    image = f" in {launch.image}" if launch.image else ""
    named = f" ({launch.name})" if launch.name else ""
    runtime = f", runtime {launch.engine}" if launch.engine else ""
    return InputError(
        f"{place_of(launch)}{named}: {what}{image}{runtime} starts no server that gate0 can make a profile of",
        hint=_remedy(words, launch),
    )


def _remedy(words: Sequence[str], launch: Launch) -> str:
    """What to do about a launch that starts nothing known."""
    if not launch.image and launch.where is not None:
        return "no image stands in this line: write its name where it belongs"
    if not words and image_program(launch.image) in ENGINES:
        return "the image is an engine's, but the server's command is not in this file: write it after the image"
    if not words:
        return "only the image knows what it starts: write the server's command after the image"
    if base_name(words[0]) in SHELLS and len(words) == 1:
        return "it only opens a shell: write the server's command, as it is typed there, after the image"
    return (
        "gate0 imports vLLM, SGLang and llama-server; another OpenAI-compatible server is declared by hand with "
        "`engine: generic`, its image and its command"
    )
