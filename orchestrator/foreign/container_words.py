"""What a container runs, from its entrypoint and its command: shells unwrapped, secrets on the command line hidden."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.foreign.hiding import hidden, is_secret
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell import ReadFile, Word, unwrap
from orchestrator.foreign.shell.programs import SHELLS, base_name, program_at
from orchestrator.foreign.texts import shorten
from orchestrator.foreign.waiting import WAITS
from orchestrator.profile.model import Mount

_SHELL_TEXT = re.compile(r"-[a-zA-Z]*c")
_KEY_VARIABLES = {"vllm": "VLLM_API_KEY", "sglang": "SGLANG_API_KEY", "llamacpp": "LLAMA_API_KEY"}
_KEY_FLAGS = ("--api-key", "--api_key")
_HUB_FLAGS = ("--hf-token", "--hf_token", "-hft")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerCommand:
    """A container's words as a launch says them, what a shell in it sets, and literal keys that must not be shown."""

    entrypoint: tuple[str, ...] | None
    words: tuple[str, ...]
    env: Mapping[str, Word]
    places: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    secrets: tuple[str, ...] = ()


def container_command(
    entrypoint: Sequence[str] | None,
    words: Sequence[Word],
    *,
    env: Mapping[str, Word],
    mounts: Sequence[Mount] = (),
    read_file: ReadFile | None = None,
) -> ContainerCommand:
    """What a container starts.

    Args:
        entrypoint: None: the image's own; () clears it.
        env: The container's variables: a shell in it finds them set, or, where they wait for somebody, not known.
        mounts: What is mounted: a script that starts the server is read where it stands on the host.
        read_file: Gives the text of such a script.

    Raises:
        InputError: A quote in a shell's text is never closed.
    """
    line = words[0].line if words else 1
    front = tuple(Word(text=text, line=line) for text in entrypoint or ())
    if entrypoint is None and words and _SHELL_TEXT.fullmatch(words[0].text) and len(words) > 1:
        front = (Word(text="bash", line=line),)  # the image's own entrypoint is a shell
    whole = (*front, *words)
    texts = [word.text for word in whole]
    inside = _through(mounts, read_file)
    is_script = _is_script(texts, inside)
    if is_script and base_name(texts[0]) not in SHELLS:
        whole = (Word(text="bash", line=line), *whole)
    if whole and (is_script or _is_wrapped(texts, has_own=entrypoint is None)):
        served = unwrap(whole, env=env, values=_known(env), read_file=inside)
        if served is not None:
            kept = None if entrypoint is None and not front else ()
            return _spoken(kept, served.words, served.env, served.notes)
    return _spoken(None if entrypoint is None else tuple(entrypoint), words, env, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeWords:
    """Words with literal keys (`--api-key sk-…`) as `${NAME}`, a note for each, and the keys themselves."""

    words: tuple[Word, ...]
    notes: tuple[Note, ...] = ()
    secrets: tuple[str, ...] = ()


def hide_keys(words: Sequence[Word]) -> SafeWords:
    """Words without literal keys, as far as their variable is known; the translation sees to the others."""
    program = next((p for index in range(min(len(words), 8)) if (p := program_at([w.text for w in words], index))), "")
    # Without a program the image knows the engine; then the translation names the key's variable.
    key = _KEY_VARIABLES.get(program or "", "API_KEY") if program else None
    names = dict.fromkeys(_HUB_FLAGS, "HF_TOKEN") | ({} if key is None else dict.fromkeys(_KEY_FLAGS, key))
    out: list[Word] = []
    notes: list[Note] = []
    secrets: list[str] = []
    before = ""
    for word in words:
        flag, equals, value = word.text.partition("=")
        if (name := names.get(flag)) and equals and _is_literal(value):
            out.append(replace(word, text=f"{flag}=${{{name}}}", missing=(name,)))
            notes.append(_key_note(flag, name, f"line {word.line}"))
            secrets.append(value)
        elif (name := names.get(before)) and _is_literal(word.text) and not word.text.startswith("-"):
            out.append(replace(word, text=f"${{{name}}}", missing=(name,)))
            notes.append(_key_note(before, name, f"line {word.line}"))
            secrets.append(word.text)
        else:
            out.append(word)
        before = word.text
    return SafeWords(words=tuple(out), notes=tuple(notes), secrets=tuple(secrets))


def waiting(words: Sequence[Word]) -> tuple[Note, ...]:
    """A note for each word that waits for a variable or a shell."""
    notes: list[Note] = []
    before = ""
    for word in words:
        if not word.is_known and not before.startswith(("--api-key", "--hf-token")):
            unknown = ", ".join(dict.fromkeys((*word.missing, *word.code)))
            what = f"{before} {word.text}" if before.startswith("-") and not word.text.startswith("-") else word.text
            why = f"{WAITS}{shorten(hidden(unknown))}: write the value"
            notes.append(Note(fate=Fate.PERSON, what=hidden(what), where=f"line {word.line}", why=why))
        before = word.text
    return tuple(notes)


def _spoken(
    entrypoint: tuple[str, ...] | None,
    words: Sequence[Word],
    env: Mapping[str, Word],
    notes: Sequence[Note],
) -> ContainerCommand:
    safe = hide_keys(words)
    return ContainerCommand(
        entrypoint=entrypoint,
        words=tuple(word.text for word in safe.words),
        env=env,
        places=tuple(f"line {word.line}" for word in safe.words),
        notes=(*notes, *safe.notes, *waiting(safe.words)),
        secrets=safe.secrets,
    )


def _through(mounts: Sequence[Mount], read_file: ReadFile | None) -> ReadFile:
    """Reads a file of the container, if it is mounted from the host."""

    def read(path: str) -> str | None:
        for mount in mounts if read_file is not None else ():
            target = mount.target.rstrip("/")
            if read_file is not None and (path == target or path.startswith(f"{target}/")):
                return read_file(mount.source + path[len(target) :])
        return None

    return read


def _is_script(texts: Sequence[str], inside: ReadFile) -> bool:
    """A mounted script that is started without a server's words behind it: the server is in the script."""
    at = 1 if texts and base_name(texts[0]) in SHELLS else 0
    if len(texts) <= at or not texts[at].startswith("/"):
        return False
    starts = any(program_at(texts, index) is not None for index in range(len(texts)))
    return not starts and inside(texts[at]) is not None


def _is_wrapped(texts: Sequence[str], *, has_own: bool) -> bool:
    """A shell's text, or words before the program that are not the image's entrypoint."""
    if base_name(texts[0]) in SHELLS:
        return any(_SHELL_TEXT.fullmatch(text) for text in texts[1:4])
    if not has_own or program_at(texts) is not None:
        return False
    if any(base_name(text) in SHELLS for text in texts[:6]):
        return True
    return texts[0] in {"env", "exec", "nohup", "numactl"} or re.match(r"[A-Za-z_]\w*=", texts[0]) is not None


def _known(env: Mapping[str, Word]) -> Mapping[str, str]:
    return {name: word.text for name, word in env.items() if word.is_known and not is_secret(name, word.text)}


def _is_literal(value: str) -> bool:
    return bool(value) and not value.startswith("$")


def _key_note(flag: str, name: str, where: str) -> Note:
    why = f"a secret in plain text: not carried; put it into the environment or the secrets file as {name}"
    return Note(fate=Fate.PERSON, what=f"{flag} ***", where=where, why=why)
