"""`gate0 show`: one run at a glance, and what its server said of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import json_option, results_option

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.records.record import GateRecord, RunRecord
    from orchestrator.records.store import StoredRun
    from orchestrator.values import Json

LAST = ("last", "latest")
SHOWN_QUOTE = 100
UNDECLARED = "nothing to compare: the server was taken as it is"


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--effective", "is_effective", is_flag=True, help="every setting: declared, running, where it was read")
@click.option("--gates", "is_gates", is_flag=True, help="what each gate sent and what came back")
@click.option("--log", "is_log", is_flag=True, help="where the servers' logs lie")
@results_option
@json_option
def show(*, run: str, is_effective: bool, is_gates: bool, is_log: bool, results: str | None, as_json: bool) -> int:
    """Show RUN: an id or a part of one, a directory, a profile's name (`@host` behind it), or `last`."""
    from orchestrator.cli.compose import results_root
    from orchestrator.cli.printer import Printer
    from orchestrator.records.naming import find_run
    from orchestrator.records.store import Store

    printer = Printer(is_json=as_json)
    stored = find_run(Store(results_root(results)), "latest" if run in LAST else run)
    gates = _ordered(stored)
    document: dict[str, Any] = {"run": stored.run.id, "directory": str(stored.directory)}
    if not (is_effective or is_gates or is_log):
        document |= _summary(printer, stored, gates)
    if is_effective:
        document["effective"] = _effective(printer, stored, gates)
    if is_gates:
        document["gates"] = _gates(printer, gates)
    if is_log:
        document["logs"] = _logs(printer, stored)
    for broken in stored.unreadable_gates():
        printer.warning(f"{broken.path}: {broken.reason}")
    printer.document(document)
    return 0


def _ordered(stored: StoredRun) -> tuple[GateRecord, ...]:
    """As they ran."""
    found = {gate.name: gate for gate in stored.gates()}
    return tuple(found[name] for name in dict.fromkeys((*stored.run.gates, *found)) if name in found)


def _summary(printer: Printer, stored: StoredRun, gates: Sequence[GateRecord]) -> dict[str, Json]:
    from orchestrator.report.effective import counted_words, effective_lines, told_lines
    from orchestrator.report.tables import gate_verdict

    r = stored.run
    lines = effective_lines(r, gates)
    cells, invalid = _cells(stored)
    verdict = gate_verdict(r, gates)
    printer.answer(f"{r.profile_title} ({r.profile_name})")
    facts = {
        **_facts(r),
        "declared": counted_words(lines) or (UNDECLARED if told_lines(r) else "nothing was read back"),
        "cells": f"{cells}{f', {invalid} invalid' if invalid else ''}",
        "files": str(stored.directory),
    }
    for name, words in facts.items():
        if words:
            printer.answer(f"{name:<9} {words}")
    _stages(printer, r)
    printer.answer(f"\ngates: {verdict}")
    if gates:
        printer.table(("gate", "verdict", "what was seen"), [(g.name, g.status, g.summary) for g in gates])
    for line in (x for x in lines if x.is_failing):
        printer.warning(f"{line.path}: declared {line.declared}, running {line.running}: {line.agreement}")
    if r.error:
        printer.error(str(r.error.get("message")), str(r.error["hint"]) if r.error.get("hint") else None)
    return {
        **_identity(r),
        "verdict": verdict,
        "stages": [dict(s) for s in r.stages],
        "gates": [{"name": g.name, "status": g.status, "summary": g.summary} for g in gates],
        "agreement": {
            name: sum(x.agreement == name for x in lines) for name in dict.fromkeys(x.agreement for x in lines)
        },
        "cells": cells,
        "invalid_cells": invalid,
        "error": None if r.error is None else dict(r.error),
    }


def _facts(r: RunRecord) -> dict[str, str]:
    """What it was, for a person. Of an imported one nobody knows how long it took."""
    from orchestrator.cli.commands.run import ending
    from orchestrator.report.text import duration

    took = "" if r.source else f", {duration(r.duration_s)}"
    return {
        "run": r.id,
        "status": f"{ending(r)}{took}{f' over {r.attempts} attempts' if r.attempts > 1 else ''}",
        "hosts": ", ".join(str(h.get("name")) for h in r.hosts) or (r.base_url or ""),
        "engine": f"{r.engine} {r.engine_version or ''}".strip(),
        "image": " ".join(word for word in (r.image or r.runtime, r.image_digest) if word),
        "model": r.model if r.served_name in ("", r.model) else f"{r.model}, served as {r.served_name}",
        "gate0": f"{r.tool_version}{f', revision {r.git_revision}' if r.git_revision else ''}",
    }


def _stages(printer: Printer, r: RunRecord) -> None:
    rows = [
        (str(s.get("name")), str(s.get("status")), _seconds(s.get("duration_s")), str(s.get("detail") or ""))
        for s in r.stages
    ]
    if rows:
        printer.answer("")
        printer.table(("stage", "ended", "took s", "what it says"), rows, right=(2,))


def _identity(r: RunRecord) -> dict[str, Json]:
    """The same for a program."""
    return {
        "status": r.status,
        "profile": r.profile_name,
        "title": r.profile_title,
        "hosts": [str(h.get("name")) for h in r.hosts],
        "base_url": r.base_url,
        "engine": r.engine,
        "engine_version": r.engine_version,
        "image": r.image,
        "image_digest": r.image_digest,
        "model": r.model,
        "served_name": r.served_name,
        "tool_version": r.tool_version,
        "git_revision": r.git_revision,
        "duration_s": r.duration_s,
        "attempts": r.attempts,
    }


def _effective(printer: Printer, stored: StoredRun, gates: Sequence[GateRecord]) -> dict[str, Json]:
    from orchestrator.report.effective import (
        TOLD_HEAD,
        behaviours,
        counted_words,
        effective_lines,
        list_words,
        told_lines,
    )

    run = stored.run
    lines, told = effective_lines(run, gates), told_lines(run)
    if not lines and not told:
        printer.answer(f"{run.id}: nothing was read back from its server")
    if told and not lines:
        printer.answer(f"{run.id}: {UNDECLARED}")
    if lines:
        printer.answer(f"{run.id}: {counted_words(lines)}")
        if words := list_words(run):
            printer.answer(words)
        printer.table(
            ("setting", "declared", "running", "agreement", "where it was read"),
            [(*x.fields[:4], _where(x.where, x.words)) for x in lines],
        )
    if told:
        printer.answer("")
        printer.answer("also told")
        printer.table([h.lower() for h in TOLD_HEAD], told)
    return {**run.effective, "behaviours": [dict(b) for b in behaviours(gates)]}


def _where(where: str, words: str) -> str:
    short = words if len(words) <= SHOWN_QUOTE else f"{words[: SHOWN_QUOTE - 1]}…"
    return "\n".join(w for w in (where, short) if w)


def _gates(printer: Printer, gates: Sequence[GateRecord]) -> list[Json]:
    for gate in gates:
        printer.answer(f"-- {gate.name}: {gate.status}: {gate.summary}")
        printer.answer(f"measured {json.dumps(dict(gate.measured), ensure_ascii=False)}")
        for entry in gate.evidence:
            printer.answer(json.dumps(entry, indent=1, ensure_ascii=False))
    return [gate.as_json() for gate in gates]


def _logs(printer: Printer, stored: StoredRun) -> list[Json]:
    found = list(_log_files(stored))
    for path in found:
        printer.answer(path)
    if not found:
        printer.answer(f"{stored.run.id}: no log was kept")
    return list(found)


def _log_files(stored: StoredRun) -> Iterator[str]:
    yield from (str(path) for path in sorted(stored.directory.glob("*.log")))


def _cells(stored: StoredRun) -> tuple[int, int]:
    """How many there are, and how many of them broke a guard; their requests stay unread."""
    found = []
    for path in stored.cell_files():
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return len(found), sum(bool(cell.get("guards")) for cell in found if isinstance(cell, dict))


def _seconds(value: Json) -> str:
    return f"{value:.1f}" if isinstance(value, int | float) else ""
