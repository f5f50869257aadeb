"""Files of other tools, read whole and then written as one run of ours, marked as foreign; of a transcript, as several.

A foreign run has the status `imported` and no gates: nothing of ours ran. Its directory holds what every run's does,
and the files themselves under `foreign/`, with their secrets as `***`; run.json is written last, so that a directory
that a killed import left behind is not a run.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import __version__
from orchestrator.errors import InputError
from orchestrator.records.exchange.foreign import Foreign, Point, named
from orchestrator.records.exchange.parts import kept, parts_of
from orchestrator.records.exchange.recognise import FORMS, recognise
from orchestrator.records.exchange.secrets import secrets_in
from orchestrator.records.exchange.transcript.reading import FORMAT, is_transcript, read_transcript
from orchestrator.records.record import RunRecord, RunStatus
from orchestrator.records.store import Store, StoredRun
from orchestrator.values import utc_now


class UnknownResult(InputError):
    """A file is no result of any form; it may be something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """One file as read, or one run of a transcript, which holds several.

    Attributes:
        digest: Of its bytes; of a transcript's run, of the bytes and the run's name.
        is_detail: It holds requests only; its tool's summary says the rest.
        is_alone: It is a run by itself, whatever other files there are.
    """

    name: str
    text: str
    digest: str
    content: Foreign
    is_detail: bool = False
    is_alone: bool = False


def read_files(paths: Sequence[Path]) -> tuple[tuple[ForeignFile, ...], ...]:
    """The files of each run to be written: all results together are one, each run of a transcript is one.

    Raises:
        InputError: As `read_file`.
    """
    read = [file for path in paths for file in _read(path)]
    together = tuple(file for file in read if not file.is_alone)
    return (*((together,) if together else ()), *((file,) for file in read if file.is_alone))


def read_file(path: Path) -> ForeignFile:
    """A file of one run; of a transcript its first.

    Raises:
        InputError: It cannot be read, is no result that we know, or breaks its own form; says which, and where.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[ForeignFile, ...]:
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8")
    except OSError as exc:
        raise InputError(f"cannot read {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is no text: byte {exc.start} is not UTF-8") from exc
    if is_transcript(text):
        return tuple(_transcribed(path.name, text, raw, run) for run in read_transcript(text, str(path)))
    return (_result(path, text, raw),)


def _transcribed(name: str, text: str, raw: bytes, run: Foreign) -> ForeignFile:
    return ForeignFile(name=name, text=text, digest=_hex(raw + run.slug.encode()), content=run, is_alone=True)


def _result(path: Path, text: str, raw: bytes) -> ForeignFile:
    try:
        found = recognise(text)
    except ValueError as exc:
        raise UnknownResult(f"{path} is broken JSON: {exc}", hint="was it cut off while it was written?") from exc
    if found is None:
        known = ", ".join(dict.fromkeys((*(f.name for f in FORMS), FORMAT)))
        raise UnknownResult(f"{path} is no result that gate0 knows", hint=f"it reads: {known}")
    form, objects = found
    where = f"{path} (read as {form.name})"
    if form.is_one and len(objects) > 1:
        raise InputError(f"{where}: holds {len(objects)} objects, one was expected", hint="give each a file of its own")
    return ForeignFile(
        name=path.name,
        text=text,
        digest=_hex(raw),
        content=form.read(parts_of(objects, where=where)),
        is_detail=form.is_detail,
    )


def merged(files: Sequence[ForeignFile]) -> Foreign:
    """What the files of one tool say together: all their points; requests join the summary when it has one point.

    Raises:
        InputError: They are of different tools.
    """
    tools = sorted({f.content.tool for f in files})
    if len(tools) > 1:
        raise InputError(f"the files are of different tools: {', '.join(tools)}", hint="import each tool by itself")
    summaries = [f.content for f in files if not f.is_detail]
    details = [f.content for f in files if f.is_detail]
    if not summaries or not details:
        first = (summaries or details)[0]
        return replace(first, points=tuple(p for c in (summaries or details) for p in c.points))
    points = [p for c in summaries for p in c.points]
    if len(points) == len(details) == 1:
        return replace(summaries[0], points=(_joined(points[0], details[0].points[0]),))
    return replace(summaries[0], points=(*points, *(p for c in details for p in c.points)))


def _joined(summary: Point, detail: Point) -> Point:
    """The figures of the one with the stamps of the other."""
    cell = replace(
        summary.cell,
        spans_ns=detail.cell.spans_ns,
        definitions={**detail.cell.definitions, **summary.cell.definitions},
        prompt_tok=summary.cell.prompt_tok or detail.cell.prompt_tok,
        output_tok=summary.cell.output_tok or detail.cell.output_tok,
    )
    return Point(cell=cell, requests=detail.requests)


def find_imported(store: Store, files: Sequence[ForeignFile]) -> StoredRun | None:
    """The run that these very files were imported as before."""
    whole = _digest(files)
    good, _ = store.runs()
    return next((r for r in good if r.run.source.get("digest") == whole), None)


def write_foreign(store: Store, files: Sequence[ForeignFile], *, workload: str | None = None, note: str = "") -> str:
    """Write the files as one run; the id of the run.

    Args:
        workload: Name of the workload that its points stand under; default the tool's, of a transcript their own.
        note: What the user wants to be known of it.

    Raises:
        InputError: The files do not belong together. StoreError: It could not be written; then nothing is left.
    """
    found = merged(files)
    points = named(found.points, workload=workload)
    run = _run(found, files, points, note=note)
    secrets = {s.value: s for f in files for s in secrets_in(f.text)}
    directory = store.root / run.id
    writer = store.writer(run.id, secrets=tuple(secrets.values()))
    try:
        for index, file in enumerate(files):
            is_taken = file.name in [f.name for f in files[:index]]
            writer.write_text(f"foreign/{_slug(f'{index}-{file.name}' if is_taken else file.name)}", file.text)
        for point in points:
            writer.write_cell(point.cell, point.requests)
        writer.write_run(run)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return run.id


def _run(found: Foreign, files: Sequence[ForeignFile], points: Sequence[Point], *, note: str) -> RunRecord:
    whole = _digest(files)
    model = found.model or "unknown model"
    now = utc_now()
    name = found.slug[:60] or _slug(model.rstrip("/").rsplit("/", 1)[-1])[:40]
    run = RunRecord(
        id=f"{_stamp(found.created_at)}-{found.tool}-{name}-{whole[:6]}",
        status=RunStatus.IMPORTED.value,
        created_at=found.created_at or now,
        updated_at=now,
        profile_name=found.tool,
        profile_title=model,
        profile_digest=whole,
        engine=found.engine,
        engine_version=found.engine_version,
        duration_s=sum(p.cell.duration_s for p in points),
        tool_version=__version__,
        invocation=("gate0", "import", *(f.name for f in files)),
        vantage="unknown",
        image=found.image,
        model=found.model,
        base_url=found.base_url,
        workloads=tuple(dict.fromkeys(p.cell.workload for p in points)),
        source={
            "tool": found.tool,
            "title": found.title,
            "version": found.version,
            "form": found.form,
            "file": ", ".join(f.name for f in files),
            "digest": whole,
            "note": "; ".join(n for n in (found.note, note) if n),
            "extra": kept(found.extra),
            **found.source,
        },
    )
    return replace(run, **found.run)


def _digest(files: Sequence[ForeignFile]) -> str:
    return _hex("".join(sorted(f.digest for f in files)).encode())


def _hex(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:16]


def _stamp(created_at: str) -> str:
    """When it was measured, as far as told, in the form that run ids sort by; else now."""
    try:
        at = datetime.fromisoformat(created_at.replace("Z", "+00:00"))
    except ValueError:
        at = datetime.now(UTC)
    at = at.astimezone(UTC) if at.tzinfo else at
    return f"{at:%Y%m%dT%H%M%S}Z"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "file"
