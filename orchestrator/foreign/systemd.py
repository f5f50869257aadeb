"""systemd units: `ExecStart=` with docker or the engine's own binary.

A unit's lines are read by systemd, not by a shell: quotes and backslashes as in C, `%` begins a specifier, `$NAME` and
`${NAME}` a variable of the unit (systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from orchestrator.foreign import carrying
from orchestrator.foreign.command import launch_of
from orchestrator.foreign.docker_run import launch_from_words
from orchestrator.foreign.env_files import Reads, read_env
from orchestrator.foreign.env_values import environment
from orchestrator.foreign.found import Found
from orchestrator.foreign.hiding import hidden, is_secret
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.shell import ReadFile, Word, unwrap
from orchestrator.foreign.shell.programs import CONTAINER_TOOLS, ENGINES, base_name
from orchestrator.foreign.systemd_words import split_line

FORM = "systemd"
_SECTION = re.compile(r"^\[(?:Unit|Service|Install)\][ \t]*$", re.MULTILINE)
_EXEC = re.compile(r"^ExecStart[ \t]*=", re.MULTILINE)
_RESTARTS = {"no": "no", "always": "always", "on-failure": "on-failure", "on-abnormal": "on-failure"}
_DROPPED = {
    **dict.fromkeys(
        ("After", "Requires", "Wants", "Before", "BindsTo", "PartOf", "Conflicts"), "gate0 starts it alone"
    ),
    **dict.fromkeys(("Type", "RemainAfterExit", "NotifyAccess", "PIDFile", "KillMode", "KillSignal"), "systemd's own"),
    **dict.fromkeys(("RestartSec", "StartLimitIntervalSec", "StartLimitBurst", "StartLimitInterval"), "systemd's own"),
    **dict.fromkeys(
        ("TimeoutStopSec", "TimeoutSec", "ExecStop", "ExecStopPost", "ExecReload"), "gate0 stops it itself"
    ),
    **dict.fromkeys(("WantedBy", "RequiredBy", "Also", "Alias"), "gate0 starts it when told, not with the machine"),
    **dict.fromkeys(("StandardOutput", "StandardError", "SyslogIdentifier"), "gate0 keeps the log itself"),
    **dict.fromkeys(("Documentation", "ConditionPathExists"), "does not change what is served"),
    **dict.fromkeys(("NoNewPrivileges", "PrivateTmp", "ReadWritePaths", "ReadOnlyPaths"), "how systemd fences it in"),
    **dict.fromkeys(("User", "Group", "SupplementaryGroups"), "gate0 runs it as the user it logs in as"),
    "TimeoutStartSec": "`ready.timeout_s` says how long a start may take",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    section: str
    key: str
    value: str
    line: int


@dataclass(slots=True, kw_only=True)
class _Unit:
    env: dict[str, Word] = field(default_factory=dict)
    starts: list[_Entry] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    title: str | None = None
    restart: str | None = None

    def note(self, fate: Fate, entry: _Entry, why: str, what: str | None = None) -> None:
        shown = hidden(what or f"{entry.key}={entry.value}")[:300]
        self.notes.append(Note(fate=fate, what=shown, where=f"line {entry.line}", why=why))


def looks_like_systemd(text: str) -> bool:
    """True for a unit file that starts something."""
    return _SECTION.search(text) is not None and _EXEC.search(text) is not None


def read_systemd(
    text: str,
    *,
    source: str,
    values: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
) -> Found:
    """What a unit's `ExecStart=` lines serve.

    Args:
        source: What the unit is called in messages; a file's name gives the launch its name.
        values: Variables that whoever reads knows; `PWD` is the folder of relative paths.
        read_file: Gives the text of environment files and of scripts.

    Raises:
        InputError: A quote is never closed.
    """
    unit = _Unit()
    for entry in _entries(text):
        _take(unit, entry, read_file)
    launches: list[Launch] = []
    notes: list[Note] = []
    carried = carrying.find(text)
    for start in unit.starts:
        launch = _launch(unit, start, source, values or {}, read_file)
        if launch is None and carried is not None:
            launch = _as_written(unit, start, source)
        if launch is None:
            what = hidden(f"ExecStart={start.value}")[:200]
            fate, why = _not_served(start)
            notes.append(Note(fate=fate, what=what, where=f"line {start.line}", why=why))
        else:
            launches.append(replace(launch, carried=carried))
    return Found(launches=tuple(launches), notes=tuple(notes))


def _entries(text: str) -> Iterator[_Entry]:
    section = ""
    rows = iter(enumerate(text.replace("\r\n", "\n").split("\n"), 1))
    for number, row in rows:
        stripped = row.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("[") and stripped.endswith("]"):
            section = stripped[1:-1]
            continue
        whole = stripped
        while whole.endswith("\\"):
            # A backslash at the end stands for a space; remarks between continued lines are skipped.
            following = next(((n, r) for n, r in rows if not r.lstrip().startswith(("#", ";"))), None)
            whole = whole[:-1] + " " + (following[1].strip() if following is not None else "")
        key, equals, value = whole.partition("=")
        if equals:
            yield _Entry(section=section, key=key.strip(), value=value.strip(), line=number)


def _take(unit: _Unit, entry: _Entry, read_file: ReadFile | None) -> None:
    match entry.key:
        case "ExecStart":
            unit.starts = [*unit.starts, entry] if entry.value else []
        case "Environment":
            _environment(unit, entry)
        case "EnvironmentFile":
            _environment_file(unit, entry, read_file)
        case "PassEnvironment":
            for name in entry.value.split():
                unit.env[name] = Word(text=f"${{{name}}}", line=entry.line, missing=(name,))
        case "Description":
            unit.title = entry.value.replace("%%", "%")
        case "Restart":
            unit.restart = _RESTARTS.get(entry.value)
        case "ExecStartPre" | "ExecStartPost" | "ExecCondition":
            _beside(unit, entry)
        case key if key in _DROPPED:
            unit.note(Fate.DROPPED, entry, _DROPPED[key])
        case key if key.startswith(("Protect", "Restrict", "Private", "Capability", "SystemCall", "Ambient")):
            unit.note(Fate.DROPPED, entry, "how systemd fences it in")
        case _:
            unit.note(Fate.PERSON, entry, "has no place in a profile: see whether the server needs it")


def _environment(unit: _Unit, entry: _Entry) -> None:
    if not entry.value:
        unit.env.clear()
    for word in split_line(entry.value, line=entry.line, is_command=False):
        name, equals, value = word.text.partition("=")
        if equals:
            unit.env[name] = replace(word, text=value)


def _environment_file(unit: _Unit, entry: _Entry, read_file: ReadFile | None) -> None:
    path = entry.value.removeprefix("-").replace("%h", "~")
    text = read_file(path) if read_file is not None else None
    if text is None:
        unit.note(Fate.PERSON, entry, "the file is not at hand: write its variables to env, secrets as references")
        return
    unit.env.update({name: replace(word, line=entry.line) for name, word in read_env(text, Reads.SYSTEMD).items()})
    unit.note(Fate.TRANSLATED, entry, "read, and its variables written to env")


def _beside(unit: _Unit, entry: _Entry) -> None:
    does_it = re.search(r"\b(?:docker|podman)\s+(?:container\s+)?(?:rm|stop|kill|pull)\b", entry.value)
    if does_it is not None:
        unit.note(Fate.DROPPED, entry, "gate0 pulls and stops containers itself")
    elif entry.key == "ExecStartPost":
        unit.note(Fate.DROPPED, entry, "follows the server's start")
    else:
        unit.note(Fate.PERSON, entry, "runs before the server: do it in the image or on the host")


def _launch(
    unit: _Unit, start: _Entry, source: str, values: Mapping[str, str], read_file: ReadFile | None
) -> Launch | None:
    env = {name: _safe(name, word) for name, word in unit.env.items()}
    line = start.value.lstrip("-@:+!|")
    words = split_line(line, line=start.line, variables=env)
    served = unwrap(words, env=unit.env, values=values, read_file=read_file) if words else None
    if served is None:
        return None
    name = re.split(r"[/\\]", source)[-1].removesuffix(".service")
    if served.program in CONTAINER_TOOLS:
        launch = launch_from_words(
            served.words, form=FORM, source=source, env=served.env, values=values, read_file=read_file
        )
        launch = replace(launch, name=launch.name or name, restart=launch.restart or unit.restart)
        return replace(launch, title=unit.title, notes=(*unit.notes, *served.notes, *launch.notes))
    if served.program not in ENGINES:
        return None
    launch = launch_of(served, form=FORM, source=source)
    return replace(launch, name=name, title=unit.title, restart=unit.restart, notes=(*unit.notes, *launch.notes))


def _not_served(start: _Entry) -> tuple[Fate, str]:
    """Why an `ExecStart=` is no launch, and what to import in its place."""
    words = [word.text for word in split_line(start.value.lstrip("-@:+!|"), line=start.line)]
    if "compose" in words or base_name(words[0] if words else "") == "docker-compose":
        files = [after for word, after in pairwise(words) if word in {"-f", "--file"}]
        named = f"`{files[0]}`" if files else "the compose file of its WorkingDirectory"
        return Fate.PERSON, f"starts a compose file: import {named} itself"
    script = next((word for word in words if re.search(r"\.(?:sh|bash)$", word)), None)
    if script is not None:
        return Fate.PERSON, f"starts a script that is not at hand: import `{script}` itself"
    return Fate.DROPPED, "starts none of vLLM, SGLang and llama-server"


def _as_written(unit: _Unit, start: _Entry, source: str) -> Launch:
    """A server of a unit that gate0 wrote: the profile that it carries knows what it is."""
    words = split_line(start.value.lstrip("-@:+!|"), line=start.line)
    env = environment(unit.env)
    return Launch(
        form=FORM,
        source=source,
        title=unit.title,
        words=tuple(word.text for word in words),
        env=env.values,
        restart=unit.restart,
        notes=(*unit.notes, *env.notes),
    )


def _safe(name: str, word: Word) -> Word:
    """The word as the command line may have it: a secret's value stands there as a reference."""
    if not word.is_known or not is_secret(name, word.text):
        return word
    return Word(text=f"${{{name}}}", line=word.line, missing=(name,))
