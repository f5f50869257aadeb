"""A bare command line: `vllm serve …`, `python3 -m sglang.launch_server …`, `llama-server …`, shell code around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from orchestrator.foreign import carrying
from orchestrator.foreign.container_words import hide_keys, waiting
from orchestrator.foreign.env_values import environment, say
from orchestrator.foreign.found import Found
from orchestrator.foreign.launcher import through_launcher
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.shell import ReadFile, Served, Word, find_servers, read_script
from orchestrator.foreign.shell.beside import started_elsewhere
from orchestrator.foreign.shell.expanding import home_for_tilde
from orchestrator.foreign.shell.programs import CONTAINER_TOOLS, ENGINES, base_name, is_launcher
from orchestrator.values import Json

FORM = "command"
CONTAINER_FORM = "docker-run"
"""The form of what `docker compose run SERVICE …` starts."""

_SERVES = re.compile(
    r"\b(?:vllm[ \t]+serve|sglang[ \t]+serve|llama[ \t]+serve|trtllm-serve)\b|\s-m[ \t]+(?:vllm|sglang)\b"
    r"|\bllama-server(?:\.exe)?(?=[ \t]+[-\\])|=[\"']?[^\s\"'=]*\bllama-server[\"']?[ \t]*(?:#.*)?$"
    r"|\$\{?\w*(?:VLLM|SGLANG)\w*\}?[\"']?[ \t]+serve\b",
    re.MULTILINE,
)


def looks_like_command(text: str) -> bool:
    """True for text that starts a server outside a container, comments aside."""
    return _SERVES.search(re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)) is not None


def read_command(
    text: str,
    *,
    source: str,
    values: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
    line: int = 1,
) -> Found:
    """Every server that the text starts outside a container.

    Args:
        source: What the text is called in messages.
        values: Variables that are set before the text begins.
        read_file: Gives the text of sourced scripts.

    Raises:
        InputError: A quote is never closed.
    """
    script = read_script(text, values=values, read_file=read_file, line=line)
    launches: list[Launch] = []
    notes: list[Note] = []
    carried = carrying.find(text)
    for served in find_servers(script, values=values, read_file=read_file):
        if served.program in ENGINES:
            launches.append(launch_of(served, form=FORM, source=source, carried=carried))
        elif served.program not in CONTAINER_TOOLS:
            why = f"starts {served.program}, none of the three engines"
            where = f"line {served.line}"
            notes.append(Note(fate=Fate.DROPPED, what=served.words[0].text, where=where, why=why))
    if not launches:
        notes.extend(started_elsewhere(script))
    return Found(launches=tuple(launches), notes=tuple(notes))


def launch_of(served: Served, *, form: str, source: str, carried: Mapping[str, Json] | None = None) -> Launch:
    """A server that runs without a container."""
    safe = hide_keys(served.words)
    told = environment(served.env)
    words = tuple(_at_home(word) for word in safe.words)
    launch = Launch(
        form=form,
        source=source,
        words=tuple(word.text for word in words),
        places=tuple(f"line {word.line}" for word in words),
        env=told.values,
        carried=carried,
        notes=say((*served.notes, *told.notes, *safe.notes, *waiting(words)), secrets=(*told.secrets, *safe.secrets)),
    )
    if served.behind and base_name(served.behind[0].text) in CONTAINER_TOOLS:
        return replace(launch, form=CONTAINER_FORM)
    is_started_through = bool(served.behind) and is_launcher(served.behind[0].text)
    return through_launcher(launch, served.behind) if is_started_through else launch


def _at_home(word: Word) -> Word:
    """A path below the home directory as a profile has it: gate0 puts the home of the SSH user there."""
    text = home_for_tilde(word.text)
    if text == word.text:
        return word
    missing = tuple(name for name in word.missing if name != "HOME" or "HOME" in text)
    return replace(word, text=text, missing=missing)
