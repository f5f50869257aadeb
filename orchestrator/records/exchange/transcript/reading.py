"""A report's figures, typed off into `gate0-transcript/1`, read as one foreign run for each configuration.

A configuration that a shipped profile declares carries that profile, as a run of ours would: what it extends, and
thereby what it changes. What the report's own check said stays its word (`RunRecord.source["gate"]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.profile.checking import in_order, require
from orchestrator.profile.digest import profile_digest
from orchestrator.profile.finding import shipped_dir
from orchestrator.profile.loading import Loaded, load_profile
from orchestrator.profile.schemas import Schema, read_schema
from orchestrator.profile.steps import dotted
from orchestrator.profile.yaml_lines import Document, Node, Steps, load_document
from orchestrator.records.exchange.foreign import Foreign, Point, make_point
from orchestrator.records.exchange.transcript.figures import Reader
from orchestrator.values import Json

FORMAT = "gate0-transcript/1"
TOOL = "transcript"
NOTE = "not measured here"
HEAD = ("name", "title", "by", "link", "language", "date", "note", "contradictions")
TOLD = ("precision", "told", "gate", "measured", "place")
_COMMENT = re.compile(r"^\s*(?:#.*|---\s*)$", re.MULTILINE)
_FIRST_KEY = re.compile(r"\s*\{?\s*[\"']?format[\"']?\s*:\s*[\"']?gate0-transcript/")
_HEAD_CHARS = 20_000


def is_transcript(text: str) -> bool:
    """Its first key says so; of any version."""
    return _FIRST_KEY.match(_COMMENT.sub("", text[:_HEAD_CHARS].removeprefix("\ufeff"))) is not None


def transcript_schema() -> Schema:
    return read_schema("orchestrator.records.exchange.transcript", "transcript.schema.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What all runs of one file share."""

    document: Document
    file: str
    reader: Reader
    value: Mapping[str, Any]
    hosts: Mapping[str, Mapping[str, Json]]
    stated: Mapping[str, Mapping[str, Json]]


def read_transcript(text: str, file: str) -> tuple[Foreign, ...]:
    """One foreign run a configuration, in the file's order.

    Args:
        file: Its name in messages.

    Raises:
        InvalidFile: With all that is wrong with it, each at its line.
    """
    document = load_document(text.removeprefix("\ufeff"), file)
    require(document, transcript_schema(), file)
    value: Any = document.value
    report = _report(document, file, value)
    runs = [_run(report, index) for index in range(len(value["runs"]))]
    problems = [*report.reader.problems, *_doubled(document, runs)]
    if problems:
        raise InvalidFile(in_order(problems))
    return tuple(runs)


def _report(document: Document, file: str, value: Mapping[str, Any]) -> _Report:
    columns = document.find(("columns",))
    known = columns.content if columns is not None and isinstance(columns.content, Mapping) else {}
    reader = Reader(file=file, columns=known)
    hosts = {}
    for name, machine in value.get("machines", {}).items():
        steps: Steps = ("machines", name, "stated")
        hosts[name] = {
            "name": machine["title"],
            "kind": machine.get("kind", ""),
            "told": machine.get("facts", {}),
            "stated": reader.stated(document.find(steps), steps, place=None),
        }
    stated = reader.stated(document.find(("stated",)), ("stated",), place=None)
    return _Report(document=document, file=file, reader=reader, value=value, hosts=hosts, stated=stated)


def _run(report: _Report, index: int) -> Foreign:
    steps: Steps = ("runs", index)
    raw: Mapping[str, Any] = report.value["runs"][index]
    loaded = _profile(report, steps, raw.get("profile"))
    name = raw.get("name") or raw.get("profile")
    if not name:
        _complain(report, steps, "missing: a run without a `profile` needs a `name`")
    stated_at: Steps = (*steps, "stated")
    source: dict[str, Json] = {
        "report": {**{k: report.value[k] for k in HEAD if k in report.value}, "stated": report.stated},
        **{k: raw[k] for k in TOLD if k in raw},
        "remark": raw.get("note", ""),
        "stated": report.reader.stated(report.document.find(stated_at), stated_at, place=raw.get("place")),
    }
    return Foreign(
        tool=TOOL,
        title=str(report.value["title"]),
        form=FORMAT,
        points=tuple(_point(report, steps, i, cell) for i, cell in enumerate(raw["cells"])),
        version=report.value.get("date"),
        engine=raw["engine"],
        engine_version=raw.get("engine_version"),
        model=raw.get("model", ""),
        image=raw.get("image"),
        created_at=report.value.get("date") or "",
        slug=str(name),
        note=NOTE,
        run={
            "profile_name": str(name),
            "profile_title": raw["title"],
            "hosts": tuple(_hosts(report, steps, raw["hosts"])),
            "slots": raw.get("slots"),
            "slots_source": "declared" if "slots" in raw else "unknown",
            **(_declared(loaded) if loaded else {}),
        },
        source=source,
    )


def _declared(loaded: Loaded) -> dict[str, Any]:
    """What a run of ours would say of its profile."""
    return {
        "profile": loaded.resolved,
        "profile_source": loaded.text,
        "profile_digest": profile_digest(loaded.profile),
        "lineage": loaded.profile.lineage,
    }


def _profile(report: _Report, steps: Steps, name: str | None) -> Loaded | None:
    if name is None:
        return None
    try:
        return load_profile(name, search=(shipped_dir(),))
    except InputError as exc:
        _complain(report, (*steps, "profile"), exc.message if not exc.hint else f"{exc.message}; {exc.hint}")
        return None


def _hosts(report: _Report, steps: Steps, told: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Json]]:
    rank = 0
    for index, host in enumerate(told):
        machine = report.hosts.get(host["machine"])
        if machine is None:
            known = ", ".join(report.hosts) or "none"
            _complain(report, (*steps, "hosts", index, "machine"), f"no such machine; known: {known}")
            continue
        for _ in range(host.get("count", 1)):
            yield {**machine, "rank": rank}
            rank += 1


def _point(report: _Report, run: Steps, index: int, raw: Mapping[str, Any]) -> Point:
    steps: Steps = (*run, "cells", index)
    stated_at: Steps = (*steps, "stated")
    if "cap" in raw and "concurrency" in raw:
        _complain(report, (*steps, "cap"), "a cell has `concurrency` or `cap`, not both")
    repeats = raw.get("repeats", 1)
    slots = report.value["runs"][run[1]].get("slots")
    told = {k: raw[k] for k in ("tool", "place", "note") if k in raw}
    return make_point(
        tool=f"{TOOL}/{report.value['name']}",
        workload=raw["workload"],
        kind=raw["kind"],
        variant=raw.get("variant", ""),
        concurrency=raw.get("concurrency", raw.get("cap", 0)),
        prompt_tok=raw.get("prompt_tok"),
        output_tok=raw.get("output_tok"),
        prefix_tok=raw.get("prefix_tok", 0),
        depth_tok=raw.get("depth_tok", 0),
        rate_rps=raw.get("rate_rps"),
        burstiness=raw.get("burstiness"),
        repeats=repeats,
        repeats_done=repeats,
        requests_per_repeat=raw.get("requests", 0),
        batch_answers=raw.get("batch_answers", 200),
        slots=slots,
        slots_source="declared" if slots else "unknown",
        load=raw.get("load", {}),
        stated=report.reader.stated(report.document.find(stated_at), stated_at, place=raw.get("place")),
        extra=told,
    )


def _doubled(document: Document, runs: list[Foreign]) -> Iterator[Problem]:
    names = [run.slug for run in runs]
    for index, name in enumerate(names):
        if name and name in names[:index]:
            yield _problem(document, ("runs", index), f"`{name}` is there twice: give this run a `name` of its own")


def _complain(report: _Report, steps: Steps, message: str) -> None:
    report.reader.problems.append(_problem(report.document, steps, message))


def _problem(document: Document, steps: Steps, message: str) -> Problem:
    node: Node | None = document.find(steps)
    place = node.place if node is not None else document.place_of(steps)
    return Problem(file=place.file, line=place.line, path=dotted(steps), message=message)
