"""A run by whatever a person calls it: id, path, `latest`, or its profile's name or title, with `@host` behind."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from os.path import isfile  # false too where it cannot be told: a folder that is not ours, a name too long
from pathlib import Path

from orchestrator.errors import InputError
from orchestrator.records.record import RunRecord
from orchestrator.records.store import RUN_FILE, Store, StoredRun

NOT_MEASURING = frozenset({"deploy", "check"})
"""Verbs whose records hold no sweep that a profile's name could stand for."""


def find_run(store: Store, reference: str) -> StoredRun:
    """A run by path, id, `latest`, profile name or title (its newest run, whatever became of it), or a part of an id.

    Args:
        reference: `profile@spark01` or `profile@spark01,spark02`: the newest on exactly these hosts.

    Raises:
        InputError: No such run (with the nearest names), several, or it cannot be read.
    """
    path = Path(reference)
    if path.name == RUN_FILE and isfile(path):
        path = path.parent
    if isfile(path / RUN_FILE):
        return store.find(str(path))
    if reference == "latest" or (reference and isfile(store.root / reference / RUN_FILE)):
        return store.find(reference)
    runs, _ = store.runs()
    if named := _named(runs, reference):
        return _newest(named, reference)
    if (found := _on_hosts(runs, reference)) is not None:
        return found
    if any(reference in r.directory.name for r in runs):
        return store.find(reference)
    raise InputError(f"no run or profile named {reference!r} in {store.root}", hint=_hint(runs, reference))


def _named(runs: Sequence[StoredRun], name: str) -> list[StoredRun]:
    measuring = [r for r in runs if not NOT_MEASURING & set(r.run.invocation[1:2])]
    return [r for r in measuring if name in (r.run.profile_name, r.run.profile_title)]


def _newest(named: Sequence[StoredRun], reference: str) -> StoredRun:
    """Other tools' records under one name are different things, not one thing measured again."""
    own = [r for r in named if not r.run.source]
    if own or len(named) == 1:
        return (own or named)[-1]
    profiles = list(dict.fromkeys(r.run.profile_name for r in named))
    is_told_apart = len(profiles) == len(named)
    shown = ", ".join((profiles if is_told_apart else [r.run.id for r in named])[-4:])
    hint = "name one by its profile" if is_told_apart else "name one by its id"
    raise InputError(f"{reference!r} fits {len(named)} foreign runs: {shown}", hint=hint)


def _on_hosts(runs: Sequence[StoredRun], reference: str) -> StoredRun | None:
    """None: what stands before the last @ names no profile."""
    name, _, hosts = reference.rpartition("@")
    named = _named(runs, name) if name else []
    wanted = sorted(h.strip() for h in hosts.split(","))
    found = [r for r in named if _host_names(r.run) == wanted]
    if named and not found:
        ran = ", ".join(dict.fromkeys(",".join(_host_names(r.run)) or "no host" for r in named))
        raise InputError(f"no run of {name!r} on {', '.join(wanted)}", hint=f"it ran on {ran}")
    return _newest(found, reference) if found else None


def _host_names(run: RunRecord) -> list[str]:
    return sorted(str(h.get("name")) for h in run.hosts)


def _hint(runs: Sequence[StoredRun], reference: str) -> str:
    known = [n for r in reversed(runs) for n in (r.run.profile_name, r.run.profile_title, r.directory.name)]
    folded = {n.lower(): n for n in reversed(known)}
    near = get_close_matches(reference.lower(), folded, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(f'`{folded[n]}`' for n in near)}?"
    return "`gate0 results list` shows them"
