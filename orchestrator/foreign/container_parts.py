"""Mounts, ports, sizes and limits of a container, from the short texts that docker and compose share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.foreign.model import Fate, Note
from orchestrator.profile.model import Mount, Port

GIB = 1024**3
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgtKMGT]?)i?[bB]?\s*")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_WAITS = re.compile(r"(?:[0-9.]+:)?\$\{?(?P<name>[A-Za-z_]\w*|[0-9])\}?:(?P<container>[0-9]{1,5})(?:/tcp)?")
_PORT = re.compile(
    r"(?:(?P<address>\[[0-9A-Fa-f:]+\]|[0-9]+\.[0-9.]+|localhost):)?(?:(?P<host>[0-9]*(?:-[0-9]+)?):)?"
    r"(?P<container>[0-9]+(?:-[0-9]+)?)(?:/(?P<protocol>tcp|udp|sctp))?"
)
_HOME = re.compile(r"^(?:\$HOME|\$\{HOME\}|~)(?=/|$)")
_HERE = re.compile(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|\.)(?=/|$)")
_MODES = {"ro": True, "rw": False, "readonly": True}
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one setting came to: at most one of the values, and notes."""

    mount: Mount | None = None
    ports: tuple[Port, ...] = ()
    notes: tuple[Note, ...] = ()


def size_bytes(text: str) -> int | None:
    """`16g`, `64gb`, `10.24 GiB`, `17179869184` in bytes (letters mean powers of 1024); None when it is no size."""
    sized = _SIZE.fullmatch(text)
    if sized is None or len(sized[1]) > 18:
        return None
    return int(float(sized[1]) * 1024 ** _POWER[sized[2].lower()])


def size_gib(text: str) -> float | None:
    """A size in GiB."""
    n_bytes = size_bytes(text)
    return None if n_bytes is None else n_bytes / GIB


def mount_from_text(text: str, *, where: str, folder: str | None = None) -> Part:
    """`-v SOURCE:TARGET[:MODE]`, where the source may be a path, a volume's name, or begin with `~`, `$HOME`, `$PWD`.

    Args:
        folder: What a relative source stands below, None when it is not known.
    """
    parts = _split_colons(text)
    if len(parts) == 1:
        why = "a volume without a source is docker's own and goes with the container"
        return Part(notes=(Note(fate=Fate.DROPPED, what=f"-v {text}", where=where, why=why),))
    source, target, *modes = parts
    options = [mode for written in modes for mode in written.split(",")]
    return mount(source, target, is_read_only=any(_MODES.get(m, False) for m in options), where=where, folder=folder)


def mount(source: str, target: str, *, is_read_only: bool = False, where: str, folder: str | None = None) -> Part:
    """A bind mount or a named volume; a source that is not known stands as written."""
    notes: list[Note] = []
    placed = _HOME.sub("~", source)
    if folder is not None and (_HERE.match(placed) or placed.startswith("../")):
        placed = _beside(placed, folder)
        why = f"beside the file, or the folder it is started in: {placed} must be there on the host"
        notes.append(Note(fate=Fate.PERSON, what=f"{source}:{target}", where=where, why=why))
    elif placed != source and not source.startswith("~"):
        why = f"{placed}: the home of who gate0 logs in as"
        notes.append(Note(fate=Fate.TRANSLATED, what=f"{source}:{target}", where=where, why=why))
    return Part(mount=Mount(source=placed, target=target, read_only=is_read_only), notes=tuple(notes))


def mount_from_pairs(text: str, *, where: str, folder: str | None = None) -> Part:
    """`--mount type=bind,source=…,target=…,readonly`."""
    pairs = {key.strip(): value for key, _, value in (part.partition("=") for part in text.split(","))}
    source = next((pairs[key] for key in ("source", "src") if pairs.get(key)), "")
    target = next((pairs[key] for key in ("target", "destination", "dst") if pairs.get(key)), "")
    kind = pairs.get("type", "volume")
    if kind not in {"bind", "volume"} or not source or not target:
        return Part(
            notes=(Note(fate=Fate.PERSON, what=f"--mount {text}", where=where, why=f"a {kind} mount: not carried"),)
        )
    is_read_only = any(pairs.get(key, "no") in {"", "true", "1"} for key in ("readonly", "ro"))
    return mount(source, target, is_read_only=is_read_only, where=where, folder=folder)


def ports_from_text(text: str, *, where: str) -> Part:
    """`8000`, `8080:8000`, `127.0.0.1:8080:8000/tcp`, `8000-8002:8000-8002`."""
    written = _PORT.fullmatch(text)
    waiting = _WAITS.fullmatch(text) if written is None else None
    if waiting is not None:
        inside = int(waiting["container"])
        why = f"waits for {waiting['name']}: published as {inside}, write the port of the host"
        note = Note(fate=Fate.PERSON, what=f"-p {text}", where=where, why=why)
        return Part(ports=(Port(host=inside, container=inside),) if 0 < inside < 65536 else (), notes=(note,))
    if written is None or written["protocol"] in {"udp", "sctp"}:
        why = "not a TCP port that gate0 can publish"
        return Part(notes=(Note(fate=Fate.PERSON, what=f"-p {text}", where=where, why=why),))
    within, outside = _range(written["container"]), _range(written["host"] or written["container"])
    if len(within) != len(outside) or not within or not all(0 < port < 65536 for port in (*within, *outside)):
        return Part(notes=(Note(fate=Fate.PERSON, what=f"-p {text}", where=where, why="not a pair of ports"),))
    address = {"localhost": "127.0.0.1"}.get(written["address"] or "", written["address"])
    kept = None if address in {None, "0.0.0.0"} else address
    ports = tuple(Port(host=out, container=at, address=kept) for out, at in zip(outside, within, strict=True))
    notes: tuple[Note, ...] = ()
    if written["host"] is None:
        why = f"docker takes any free port of the host; gate0 publishes {written['container']}"
        notes = (Note(fate=Fate.TRANSLATED, what=f"-p {text}", where=where, why=why),)
    return Part(ports=ports, notes=notes)


def ulimit(text: str) -> Mapping[str, int]:
    """`memlock=-1`, `stack=67108864`, `nofile=1024:524288` (the hard limit counts); empty when it is none."""
    name, _, limits = text.partition("=")
    value = limits.split(":")[-1]
    if not re.fullmatch(r"[a-z]+", name) or not re.fullmatch(r"-1|[0-9]{1,18}|unlimited", value):
        return {}
    return {name: -1 if value == "unlimited" else int(value)}


def _beside(source: str, folder: str) -> str:
    relative = _HERE.sub(".", source)
    path = folder.rstrip("/").split("/")
    for step in relative.split("/"):
        if step == "..":
            path = path[:-1] if len(path) > 1 else path
        elif step not in {".", ""}:
            path.append(step)
    return "/".join(path) or "/"


def _split_colons(text: str) -> Sequence[str]:
    """Parts between colons that do not stand in `${…}` or after a Windows drive."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        if char == "{":
            depth += 1
        elif char == "}":
            depth = max(0, depth - 1)
        elif char == ":" and depth == 0 and not (at - begin == 1 and _WINDOWS.match(text, begin)):
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def _range(text: str) -> Sequence[int]:
    first, dash, last = text.partition("-")
    if not first or len(first) > 5 or len(last) > 5:
        return ()
    if not dash:
        return (int(first),)
    return range(int(first), int(last) + 1) if int(last) - int(first) < 100 else ()
