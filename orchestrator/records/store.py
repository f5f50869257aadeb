"""Run directories on disk: written first, often and atomically; read one by one, a corrupt one is a warning.

A file is written beside its place, flushed to the disk and renamed, so a reader (and a killed writer) sees the old
content or the new, never half of it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import InputError, StoreError
from orchestrator.records.lines import read_requests
from orchestrator.records.record import FORMAT, CellRecord, GateRecord, RequestRecord, RunRecord
from orchestrator.values import Json, Secret, redact, redact_json, utc_now

RUN_FILE = "run.json"
EVENTS_FILE = "events.jsonl"
TELEMETRY_FILE = "telemetry.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A run directory, or a file of one, that could not be read, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCell:
    """A cell with its requests, as read back."""

    cell: CellRecord
    requests: tuple[RequestRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as read back; cells are read when asked for."""

    run: RunRecord
    directory: Path

    def gates(self) -> tuple[GateRecord, ...]:
        """All verdicts that can be read, in file-name order; a corrupt one is left out (see `unreadable_gates`)."""
        return tuple(gate for gate in self._read_gates() if isinstance(gate, GateRecord))

    def unreadable_gates(self) -> tuple[Unreadable, ...]:
        return tuple(gate for gate in self._read_gates() if isinstance(gate, Unreadable))

    def cells(self) -> tuple[StoredCell, ...]:
        """All cells that can be read, by workload and name; a corrupt one is left out (see `unreadable_cells`)."""
        return tuple(cell for cell in self.each_cell() if isinstance(cell, StoredCell))

    def each_cell(self) -> Iterator[StoredCell | Unreadable]:
        """One after the other, by workload and name: of a big run only one cell's requests need be held."""
        return (read_cell(path) for path in self.cell_files())

    def cell_files(self) -> tuple[Path, ...]:
        """By workload and name; the requests of each lie in `requests_file`."""
        return tuple(sorted((self.directory / "sweeps").glob("*/*.json")))

    def find_cell(self, cell: CellRecord) -> StoredCell | None:
        """One cell with its requests; None when it cannot be read any more."""
        try:
            return _read_cell(self.directory / f"{cell_stem(cell)}.json")
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def events(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """All lines of events.jsonl of one kind, oldest first; a line that cannot be read is left out."""
        return tuple(event for event in self._lines(EVENTS_FILE) if event.get("event") == kind)

    def telemetry(self) -> tuple[Mapping[str, Any], ...]:
        """All samples, in the order in which they were written; a line that cannot be read is left out."""
        return tuple(self._lines(TELEMETRY_FILE))

    def _lines(self, name: str) -> Iterator[Mapping[str, Any]]:
        try:
            lines = (self.directory / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        found = (_json_or_none(line) for line in lines if line)
        yield from (line for line in found if isinstance(line, dict))

    def unreadable_cells(self) -> tuple[Unreadable, ...]:
        return tuple(cell for cell in self.each_cell() if isinstance(cell, Unreadable))

    def _read_gates(self) -> Iterator[GateRecord | Unreadable]:
        for path in sorted((self.directory / "gates").glob("*.json")):
            try:
                yield GateRecord.from_json(_read_json(path))
            except (OSError, ValueError, TypeError, KeyError) as exc:
                yield Unreadable(path=path, reason=_reason(exc))


class RunWriter:
    """One run directory being written.

    Args:
        secrets: Their values are replaced by `***` in everything that is written, wherever it came from: a server's
            log, a gate's evidence, an error's text.

    Raises:
        StoreError: From every method, when the disk is full or not writable.
    """

    def __init__(self, directory: Path, *, secrets: Sequence[Secret] = ()) -> None:
        self.directory = directory
        self._secrets = tuple(secrets)
        with _disk(directory):
            directory.mkdir(parents=True, exist_ok=True)

    def write_run(self, run: RunRecord) -> None:
        self._write(RUN_FILE, _pretty(self._redacted(run.as_json())))

    def write_gate(self, gate: GateRecord) -> None:
        self._write(f"gates/{_safe(gate.name)}.json", _pretty(self._redacted(gate.as_json())))

    def write_cell(self, cell: CellRecord, requests: Sequence[RequestRecord]) -> None:
        """The requests first, then the cell: a cell file that exists is a whole cell."""
        stem = cell_stem(cell)
        lines = "".join(f"{_compact(self._redacted(r.as_json()))}\n" for r in requests)
        self._write(f"{stem}.requests.jsonl", lines)
        self._write(f"{stem}.json", _pretty(self._redacted(cell.as_json())))

    def find_cell(self, workload: str, cell_id: str) -> StoredCell | None:
        """A cell that an earlier attempt finished, None when there is none that can be read."""
        try:
            return _read_cell(self.directory / "sweeps" / _safe(workload) / f"{_safe(cell_id)}.json")
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def find_gate(self, name: str) -> GateRecord | None:
        try:
            return GateRecord.from_json(_read_json(self.directory / "gates" / f"{_safe(name)}.json"))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write_text(self, name: str, text: str) -> None:
        """A named raw file (`container-0.log`, `metrics-after.txt`)."""
        self._write(name, redact(text, self._secrets))

    def append_event(self, kind: str, detail: Mapping[str, Json]) -> None:
        """One line in events.jsonl, with its UTC time."""
        self.append_line(EVENTS_FILE, {"at": utc_now(), "event": kind, **detail})

    def append_line(self, name: str, value: Mapping[str, Json]) -> None:
        """One JSON object as a line of a file that grows; threads may do so at the same time."""
        line = _compact(self._redacted(value))
        with _disk(self.directory), (self.directory / name).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def _redacted(self, value: Json) -> Json:
        # In the values, not in their text as JSON: a key of ours that reads like a secret must stay a key.
        return redact_json(value, self._secrets) if self._secrets else value

    def _write(self, name: str, text: str) -> None:
        path = self.directory / name
        with _disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)


class Store:
    """A folder of run directories."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def new_run(self, run_id: str) -> RunWriter:
        return RunWriter(self.root / run_id)

    def writer(self, run_id: str, *, secrets: Sequence[Secret] = ()) -> RunWriter:
        return RunWriter(self.root / run_id, secrets=secrets)

    def runs(self) -> tuple[tuple[StoredRun, ...], tuple[Unreadable, ...]]:
        """All runs, oldest first, and those that could not be read."""
        good: list[StoredRun] = []
        bad: list[Unreadable] = []
        for path in self._run_files():
            try:
                good.append(_open_run(path))
            except (OSError, ValueError, TypeError, KeyError) as exc:
                bad.append(Unreadable(path=path.parent, reason=_reason(exc)))
        return tuple(good), tuple(bad)

    def find(self, reference: str) -> StoredRun:
        """A run by id, a unique part of its id, a path to its directory, or `latest`.

        Raises:
            InputError: No such run, several, or it cannot be read.
        """
        as_path = Path(reference)
        if os.path.isfile(as_path / RUN_FILE):
            return self._open(as_path)
        names = [path.parent.name for path in self._run_files()]
        matches = names[-1:] if reference == "latest" else [n for n in names if reference in n]
        exact = [n for n in names if n == reference]
        matches = exact or matches
        if len(matches) == 1:
            return self._open(self.root / matches[0])
        if not names:
            hint = "`--results DIR` names another place; `gate0 run` and `gate0 sweep` write records"
            raise InputError(f"no records in {self.root}", hint=hint)
        if not matches:
            hint = f"`gate0 results list --results {shlex.quote(str(self.root))}` shows them"
            raise InputError(f"no run named {reference!r} in {self.root}", hint=hint)
        shown = ", ".join(matches[-4:])
        raise InputError(f"{reference!r} fits {len(matches)} runs: {shown}", hint="give more of the name")

    def newest(self, *, profile_name: str, hosts: Iterable[str]) -> StoredRun | None:
        """The newest readable record that `gate0 run` or `gate0 sweep` wrote of that profile on exactly these hosts.

        What `deploy` or another verb wrote has no gates and no sweeps that a run could go on with.
        """
        wanted = sorted(hosts)
        good, _ = self.runs()
        runs = [r for r in good if tuple(r.run.invocation[1:2]) in (("run",), ("sweep",))]
        same = [r for r in runs if r.run.profile_name == profile_name and _host_names(r.run) == wanted]
        return same[-1] if same else None

    def _run_files(self) -> list[Path]:
        try:
            return sorted(self.root.glob(f"*/{RUN_FILE}"))
        except OSError as exc:
            raise InputError(
                f"cannot look into {self.root}: {exc.strerror}", hint="`--results DIR` names another place"
            ) from exc

    def _open(self, directory: Path) -> StoredRun:
        try:
            return _open_run(directory / RUN_FILE)
        except (OSError, ValueError, TypeError, KeyError) as exc:
            raise InputError(f"{directory / RUN_FILE} cannot be read: {_reason(exc)}") from exc


def cell_stem(cell: CellRecord) -> str:
    """Where a cell lies in its run's directory, without `.json` (the cell) and `.requests.jsonl` (its requests)."""
    return f"sweeps/{_safe(cell.workload)}/{_safe(cell.id)}"


def write_atomically(path: Path, text: str) -> None:
    """Replace the file's content in one step; the old content stays when anything fails."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """The same for what is no text."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class _disk:
    """Turns what the file system says into a StoreError that names the place and the remedy."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if not isinstance(exc, OSError):
            return
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"no space left to write {self.path}",
                hint="free space or choose another place with `--results DIR`, then run the same line with `--resume`",
            ) from exc
        raise StoreError(
            f"cannot write {self.path}: {exc.strerror}", hint="choose another place with `--results DIR`"
        ) from exc


def _open_run(path: Path) -> StoredRun:
    raw = _read_json(path)
    name = str(raw.get("format"))
    if name.split("/", maxsplit=1)[0] != FORMAT.split("/")[0] or not name.partition("/")[2].isdigit():
        raise ValueError(f"format {name!r} is not a gate0 record")
    if int(name.partition("/")[2]) > int(FORMAT.partition("/")[2]):
        raise ValueError(f"format {name} is newer than this program reads ({FORMAT})")
    return StoredRun(run=RunRecord.from_json(raw), directory=path.parent)


def _host_names(run: RunRecord) -> list[str]:
    return sorted(str(h.get("name")) for h in run.hosts)


def read_cell(path: Path) -> StoredCell | Unreadable:
    """The cell of that file with its requests, or why it cannot be read."""
    try:
        return _read_cell(path)
    except (OSError, ValueError, TypeError, KeyError) as exc:
        return Unreadable(path=path, reason=str(exc))


def requests_file(path: Path) -> Path:
    """Where the requests of a cell's file lie."""
    return path.with_suffix(".requests.jsonl")


def _read_cell(path: Path) -> StoredCell:
    cell = CellRecord.from_json(_read_json(path))
    return StoredCell(cell=cell, requests=read_requests(requests_file(path).read_bytes()))


def _json_or_none(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _read_json(path: Path) -> dict[str, Any]:
    raw = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(raw, dict):
        raise ValueError(f"{path.name} is not a mapping")
    return raw


def _reason(exc: Exception) -> str:
    return f"missing {exc}" if isinstance(exc, KeyError) else str(exc)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
