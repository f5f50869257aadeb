"""Files that a command line names and the server must find when it starts: chat templates and plugins of parsers.

What a value means differs. vLLM takes a chat template with a brace or a line break for the template itself, and every
other one for a file. SGLang has templates by name. llama-server has a flag of its own for files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.flags.reading import read_words


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """One such file.

    Attributes:
        path: As written: absolute, or from the folder that the server starts in.
        flag: Canonical name of the flag. spelling: as written.
        origin: Where in the profile the path stands (`serve.chat_template`).
    """

    path: str
    flag: str
    spelling: str
    origin: str


def named_files(catalogue: Catalogue, words: Sequence[str], origins: Sequence[str]) -> tuple[NamedFile, ...]:
    """All of them, in the order of their flags; of a flag that is given several times the last one counts.

    Args:
        words: What follows the program. origins: for each word its place in the profile.
    """
    rules = FILES.get(catalogue.engine, {})
    found: dict[str, NamedFile] = {}
    for given in read_words(catalogue, words):
        rule = rules.get(given.name)
        if rule is None or not given.values:
            continue
        index = given.index if given.is_joined else given.index + 1
        origin = origins[index] if index < len(origins) else f"word {index + 1}"
        found.pop(given.name, None)
        path = given.values[-1]
        if rule(path):
            found[given.name] = NamedFile(path=path, flag=given.name, spelling=given.spelling, origin=origin)
    return tuple(found.values())


def _is_no_text(value: str) -> bool:
    return bool(value) and not re.search(r"[{}\n]|://", value)


def _is_file_name(value: str) -> bool:
    return _is_no_text(value) and ("/" in value or value.endswith((".jinja", ".json")))


def _is_module(value: str) -> bool:
    return _is_no_text(value) and ("/" in value or value.endswith(".py"))


FILES: Mapping[str, Mapping[str, Callable[[str], bool]]] = {
    "vllm": {
        "--chat-template": _is_no_text,
        "--tool-parser-plugin": _is_module,
        "--reasoning-parser-plugin": _is_module,
    },
    "sglang": {"--chat-template": _is_file_name},
    "llamacpp": {"--chat-template-file": _is_no_text},
}
"""By engine and flag whether a value is a file's path."""
