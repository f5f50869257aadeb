"""Of a script's commands the one that serves, freed of what is wrapped around it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.foreign.hiding import hidden, is_secret
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell.beside import beside_server, circumstances
from orchestrator.foreign.shell.commands import Command, Script
from orchestrator.foreign.shell.expanding import Word
from orchestrator.foreign.shell.programs import CONTAINER_TOOLS, ENGINES, SHELLS, base_name, is_launcher, program_at
from orchestrator.foreign.shell.remote import over_ssh
from orchestrator.foreign.shell.script import ReadFile, read_script, split_words

MAX_SHELLS = 5
"""`bash -c` inside `bash -c`: deeper is not read."""

_SHELL_TEXT = re.compile(r"-[a-zA-Z]*c")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYS = frozenset({"cmd:", "command:"})
"""Keys of YAML files that hold command lines for other tools (llama-swap's `cmd: docker run …`)."""

_STARTABLE = re.compile(r"[A-Za-z0-9_./~${][^:;,=]*")
_ONLY_TELLS = frozenset({"--version", "--help", "-h", "--list-devices", "--help-all"})
_NOT_WRAPPERS = _names(
    "echo printf pip pip3 uv grep egrep pgrep pkill killall kill which command type cat ls rm cp mv mkdir "
    "touch curl wget git apt apt-get hf huggingface-cli sed awk tee test cd ps ssh scp rsync chmod chown "
    "ln export sleep alias make cmake journalctl systemctl watch tail head find xargs"
)
"""Programs whose arguments may spell a server's name without starting it."""

_RUNNERS = _names("uv poetry conda mamba micromamba pixi pipx pdm hatch rye")
_VALUED = {
    "sudo": {"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T"},
    "env": {"-u", "-C", "-S"},
    "numactl": {"-C", "-N", "-m", "-i", "-p"},
    "taskset": {"-c"},
    "nice": {"-n"},
    "ionice": {"-c", "-n"},
    "chrt": set(),
    "timeout": {"-k", "-s"},
    "stdbuf": {"-i", "-o", "-e"},
    "exec": {"-a"},
    "time": {"-o", "-f"},
    "nohup": set(),
    "setsid": set(),
    "command": set(),
    "tini": {"-e"},
    "dumb-init": set(),
    "catchsegv": set(),
}
"""Programs that start the rest of their line, and which of their options take the word after."""

_POSITIONAL = {"taskset": 1, "timeout": 1, "chrt": 1}
"""Words of their own before the command: a CPU mask, a duration, a priority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server's command.

    Attributes:
        program: `vllm`, `sglang`, `llamacpp`; `docker` and its like; another server's name.
        words: From the program's own word on.
        env: What is exported to it and assigned before it.
        from_shell: It stood in the text of a `bash -c`.
        behind: The start script in front of it, with its options.
        notes: What was taken off, and what else the script does.
    """

    program: str
    words: tuple[Word, ...]
    env: Mapping[str, Word]
    line: int
    from_shell: bool = False
    behind: tuple[Word, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Search:
    values: Mapping[str, str]
    read_file: ReadFile | None
    stdin: Word | None = None
    notes: list[Note] = field(default_factory=list)

    def note(self, fate: Fate, what: str, line: int, why: str) -> None:
        self.notes.append(Note(fate=fate, what=hidden(what)[:400], where=f"line {line}", why=why))


def unwrap(
    words: Sequence[Word],
    *,
    env: Mapping[str, Word] | None = None,
    values: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
    stdin: Word | None = None,
    depth: int = 0,
) -> Served | None:
    """The server that a command starts, whatever stands around it; None when it starts none.

    `bash -c '…'`, `exec`, `env A=b`, `nohup`, `sudo`, `numactl …`, a wrapping script: taken off, each with a note where
    it matters.

    Args:
        env: What the command already gets.
        values: Variables that a shell inside it would find set.
        stdin: The here-document that it reads.

    Raises:
        InputError: A quote inside a shell's text is never closed.
    """
    search = _Search(values=values or {}, read_file=read_file, stdin=stdin)
    return _unwrapped(tuple(words), dict(env or {}), search, depth=depth)


def find_engine_command(
    script: Script, *, values: Mapping[str, str] | None = None, read_file: ReadFile | None = None
) -> Served | None:
    """The first command of the script that serves, what is certain to run before what may run; None when none does.

    Its notes hold the script's own, and one for each other command.
    """
    found = find_servers(script, values=values, read_file=read_file)
    return next((s for s in found if s.program not in CONTAINER_TOOLS), None)


def find_servers(
    script: Script, *, values: Mapping[str, str] | None = None, read_file: ReadFile | None = None, depth: int = 0
) -> tuple[Served, ...]:
    """Every command of the script that serves or starts a container, certain ones first.

    The first one's notes hold the script's own, and one for each command that is none of them.
    """
    known = {**{name: word.text for name, word in script.values.items() if word.is_known}, **(values or {})}
    served: list[tuple[Command, Served]] = []
    others: list[Command] = []
    for command in script.commands:
        found = unwrap(
            command.words, env=command.env, values=known, read_file=read_file, stdin=command.stdin, depth=depth
        )
        if found is None:
            others.append(command)
        else:
            served.append((command, replace(found, notes=(*found.notes, *circumstances(command)))))
    served.sort(key=lambda pair: pair[0].block is not None)
    if not served:
        return ()
    first = served[0][1]
    beside = [note for other in others if (note := beside_server(other, first.line)) is not None]
    whole = replace(first, notes=(*script.notes, *beside, *first.notes))
    return (whole, *(found for _, found in served[1:]))


def _unwrapped(words: tuple[Word, ...], env: dict[str, Word], search: _Search, *, depth: int) -> Served | None:
    while words:
        texts = [word.text for word in words]
        name = base_name(texts[0])
        if _ONLY_TELLS.intersection(text.rstrip(",.:;") for text in texts[1:3]):
            return None
        if (program := program_at(texts)) is not None or (name in CONTAINER_TOOLS and _starts_container(texts)):
            return _served(program or "docker", words, env, search)
        assigned = _ASSIGNMENT.fullmatch(texts[0])
        if texts[0] in _KEYS:
            words = words[1:]
        elif assigned is not None:
            env[assigned[1]] = replace(words[0], text=assigned[2])
            words = words[1:]
        elif name in _VALUED:
            words = _past_wrapper(name, words, search)
        elif name in SHELLS:
            return _in_shell(words, env, search, depth=depth)
        elif name == "ssh":
            return _over_ssh(words, search, depth=depth)
        elif name == "uvx" or (name in _RUNNERS and texts[1:2] == ["run"]):
            words = _past_runner(words, search)
        else:
            return _behind_wrapper(words, env, search)
    return None


def _served(program: str, words: tuple[Word, ...], env: Mapping[str, Word], search: _Search) -> Served:
    return Served(program=program, words=words, env=dict(env), line=words[0].line, notes=tuple(search.notes))


def _starts_container(texts: Sequence[str]) -> bool:
    rest = list(texts[1:])
    while rest and rest[0].startswith("-"):
        takes_value = rest[0] in {"-H", "--host", "-c", "--context", "--config", "-l", "--log-level"}
        rest = rest[2 if takes_value else 1 :]
    return rest[:1] in (["run"], ["create"], ["exec"]) or rest[:2] in (
        ["container", "run"],
        ["container", "create"],
        ["container", "exec"],
    )


def _past_wrapper(name: str, words: tuple[Word, ...], search: _Search) -> tuple[Word, ...]:
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text == "--":
            at += 1
            break
        at += 2 if words[at].text in _VALUED[name] else 1
    at += _POSITIONAL.get(name, 0)
    if name in {"numactl", "taskset", "nice", "ionice", "chrt", "timeout"}:
        taken = " ".join(word.text for word in words[:at])
        search.note(Fate.PERSON, taken, words[0].line, "starts the server with other scheduling: gate0 does not")
    return words[at:]


def _past_runner(words: tuple[Word, ...], search: _Search) -> tuple[Word, ...]:
    """Past `uv run --with x`: to the first word that starts a server."""
    texts = [word.text for word in words]
    at = next((i for i in range(1, len(words)) if program_at(texts, i) is not None), len(words))
    if at < len(words):
        search.note(
            Fate.PERSON, " ".join(texts[:at]), words[0].line, "an environment of its own: gate0 starts the program"
        )
    return words[at:]


def _in_shell(words: tuple[Word, ...], env: dict[str, Word], search: _Search, *, depth: int) -> Served | None:
    at = 1
    while at < len(words) and words[at].text[:1] in {"-", "+"}:
        if _SHELL_TEXT.fullmatch(words[at].text):
            return _in_text(words, at + 1, env, search, depth=depth)
        at += 2 if words[at].text in {"-o", "+o", "-O", "--rcfile", "--init-file"} else 1
    if at < len(words) and search.read_file is not None and (text := search.read_file(words[at].text)) is not None:
        arguments = tuple(word.text for word in words[at + 1 :])
        found = _in_script(text, 1, arguments, env, search, depth=depth)
        named = words[at].text
        return None if found is None else replace(found, notes=tuple(_in_file(note, named) for note in found.notes))
    if at >= len(words) and search.stdin is not None:
        return _in_text((search.stdin,), 0, env, search, depth=depth)
    return _behind_wrapper(words, env, search)


def _over_ssh(words: tuple[Word, ...], search: _Search, *, depth: int) -> Served | None:
    """The server that another machine's shell is told to start; it knows no variable of this one."""
    remote = over_ssh(words, search.stdin)
    if remote is None or not remote.text.text:
        return None
    found = _in_text((remote.text,), 0, {}, _Search(values={}, read_file=None), depth=depth)
    if found is None:
        return None
    note = Note(
        fate=Fate.DROPPED,
        what=f"ssh {remote.host}",
        where=f"line {words[0].line}",
        why="gate0 logs in itself: name the host with `--on`",
    )
    return replace(found, from_shell=False, notes=(note, *found.notes))


def _in_file(note: Note, path: str) -> Note:
    return replace(note, where=f"{path}: {note.where}") if note.where.startswith("line ") else note


def _in_text(words: tuple[Word, ...], at: int, env: dict[str, Word], search: _Search, *, depth: int) -> Served | None:
    while at < len(words) and words[at].text[:1] in {"-", "+"} and len(words[at].text) < 12 and at + 1 < len(words):
        at += 2 if words[at].text in {"-o", "+o"} else 1
    if at >= len(words):
        return None
    arguments = tuple(word.text for word in words[at + 2 :])
    # Code that is not known would be cut apart by the inner reading: it stands aside for it.
    aside = {f"code_{number}_of_line_{words[at].line}": code for number, code in enumerate(words[at].code, 1)}
    text = words[at].text
    for name, code in aside.items():
        text = text.replace(code, f"${{{name}}}")
    found = _in_script(text, words[at].line, arguments, env, search, depth=depth)
    return found if found is None or not aside else _with_code(found, aside)


def _with_code(served: Served, aside: Mapping[str, str]) -> Served:
    """The server with the code back in its place."""

    def filled(word: Word) -> Word:
        text = word.text
        for name, code in aside.items():
            text = text.replace(f"${{{name}}}", code)
        back = tuple(aside[name] for name in word.missing if name in aside)
        missing = tuple(name for name in word.missing if name not in aside)
        return replace(word, text=text, missing=missing, code=(*word.code, *back))

    env = {name: filled(word) for name, word in served.env.items()}
    return replace(served, words=tuple(filled(word) for word in served.words), env=env)


def _in_script(
    text: str, line: int, arguments: Sequence[str], env: dict[str, Word], search: _Search, *, depth: int
) -> Served | None:
    if depth >= MAX_SHELLS:
        search.note(Fate.PERSON, "bash -c", line, "shells inside shells: not read further")
        return None
    told = {name: word.text for name, word in env.items() if word.is_known and not is_secret(name, word.text)}
    values = {**search.values, **told}
    script = read_script(text, line=line, values=values, arguments=arguments, read_file=search.read_file)
    found = find_servers(script, values=values, read_file=search.read_file, depth=depth + 1)
    if not found:
        return None
    for other in found[1:]:
        what = " ".join(word.text for word in other.words)
        search.note(Fate.PERSON, what, other.line, "a second server in the same shell's text: import it by itself")
    return replace(
        found[0],
        env={**{name: word for name, word in env.items() if name not in script.unset}, **found[0].env},
        from_shell=True,
        notes=(*search.notes, *found[0].notes),
    )


def _behind_wrapper(words: tuple[Word, ...], env: dict[str, Word], search: _Search) -> Served | None:
    """A script that starts the rest of its line: `/launch-cluster.sh vllm serve …`."""
    texts = [word.text for word in words]
    if base_name(texts[0]) in _NOT_WRAPPERS or _STARTABLE.fullmatch(texts[0]) is None:
        return None
    at = next((i for i in range(1, len(words)) if program_at(texts, i) in ENGINES), None)
    if at is None:
        return _in_tmux(words, env, search)
    taken = " ".join(texts[:at])
    if base_name(texts[0]) in CONTAINER_TOOLS:
        why = "runs in a service of a compose file: import that file for what the service sets, its image too"
        search.note(Fate.PERSON, taken, words[0].line, why)
        env.clear()
        env.update(_given_variables(words[:at]))
    elif not is_launcher(texts[0]):
        why = "stands before the server's command: gate0 starts the server alone"
        search.note(Fate.PERSON, taken, words[0].line, why)
    return replace(_served(program_at(texts, at) or "", words[at:], env, search), behind=words[:at])


def _given_variables(words: tuple[Word, ...]) -> dict[str, Word]:
    """`-e NAME=value` of `docker compose run`."""
    found: dict[str, Word] = {}
    for option, word in itertools.pairwise(words):
        assigned = _ASSIGNMENT.fullmatch(word.text)
        if option.text in {"-e", "--env"} and assigned is not None:
            found[assigned[1]] = replace(word, text=assigned[2])
    return found


def _in_tmux(words: tuple[Word, ...], env: dict[str, Word], search: _Search) -> Served | None:
    typed = next((word for word in reversed(words[1:]) if " " in word.text), None)
    if base_name(words[0].text) not in {"tmux", "screen"} or typed is None:
        return None
    return _unwrapped(split_words(typed.text, line=typed.line), env, search, depth=MAX_SHELLS)
