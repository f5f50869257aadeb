"""What stands around a server's command in its script, and what it means for the server."""

from __future__ import annotations

from orchestrator.foreign.hiding import hidden
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell.commands import Command, Script
from orchestrator.foreign.shell.programs import CONTAINER_TOOLS, SHELLS, base_name


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HARMLESS = _names(
    "echo printf sleep date clear tee cat true false tail grep egrep sed awk curl wc head sort uniq cut tr seq jq ps "
    "df du free ls stat find uname hostname whoami id which ss netstat lsof pgrep nvidia-smi basename dirname realpath "
    "compgen exit return"
)
"""Programs that change nothing; what they write goes to the screen or into a pipe."""

_ENDS = _names("kill pkill killall")
_SILENCED = frozenset({">& 2", ">& 1", "> /dev/null", "&> /dev/null", "> /dev/stderr"})
_DONE_BY_GATE0 = {"pull", "rm", "stop", "kill", "logs", "ps", "inspect", "network", "volume", "wait", "login", "info"}


def circumstances(command: Command) -> tuple[Note, ...]:
    """What stands around a server's command on its own line."""
    where = f"line {command.line}"
    notes: list[Note] = []
    if command.redirections:
        what = hidden(" ".join(command.redirections))
        notes.append(Note(fate=Fate.DROPPED, what=what, where=where, why="gate0 keeps the server's log itself"))
    if command.after == "&":
        notes.append(Note(fate=Fate.DROPPED, what="&", where=where, why="gate0 starts the server in the background"))
    if command.block is not None:
        why = "the server stands in code that only running it tells: check that this is the one that is meant"
        notes.append(Note(fate=Fate.PERSON, what=command.block, where=where, why=why))
    return tuple(notes)


def beside_server(command: Command, server_line: int) -> Note | None:
    """What a command beside the server means for it, None for one that does nothing."""
    texts = [word.text for word in command.words]
    where, what = f"line {command.line}", hidden(" ".join(texts))[:200]
    name = base_name(texts[0])
    if name == "sudo" and len(texts) > 1:
        name, texts = base_name(texts[1]), texts[1:]
    if name in _ENDS or (name == "xargs" and _ENDS.intersection(texts)):
        why = "ends other programs: gate0's preflight says what holds the host before it starts"
        return Note(fate=Fate.DROPPED, what=what, where=where, why=why)
    if texts[:2] in (["systemctl", "is-active"], ["systemctl", "status"], ["docker", "image"], ["docker", "images"]):
        return None
    if name in CONTAINER_TOOLS and texts[1:2] and (texts[1] in _DONE_BY_GATE0 or texts[1] == "container"):
        return Note(fate=Fate.DROPPED, what=what, where=where, why="gate0 pulls, stops and follows containers itself")
    if texts[0].endswith(":") or texts[0] == "-":
        return None
    if name in _HARMLESS and all(redirection in _SILENCED for redirection in command.redirections):
        return None
    if command.line > server_line:
        return Note(fate=Fate.DROPPED, what=what, where=where, why="follows the server's start")
    where_in = f", in `{command.block} …`" if command.block is not None else ""
    why = f"runs before the server{where_in}: do it in the image or on the host"
    return Note(fate=Fate.PERSON, what=what, where=where, why=why)


def started_elsewhere(script: Script) -> tuple[Note, ...]:
    """Of a script that starts no server itself: what it calls that may."""
    notes: list[Note] = []
    for command in script.commands:
        texts = [word.text for word in command.words]
        texts = texts[1:] if texts[0] == "sudo" and len(texts) > 1 else texts
        program = texts[1] if base_name(texts[0]) in SHELLS and len(texts) > 1 else texts[0]
        is_compose = texts[:2] == ["docker", "compose"] or base_name(texts[0]) == "docker-compose"
        if is_compose and any(verb in texts for verb in ("up", "run", "start")):
            why = "starts what a compose file says: import that file"
        elif program.endswith((".sh", ".bash")):
            why = "a script that is not read from here: import it by itself, if it starts the server"
        else:
            continue
        what = hidden(" ".join(texts))[:200]
        notes.append(Note(fate=Fate.PERSON, what=what, where=f"line {command.line}", why=why))
    return tuple(dict.fromkeys(notes))
