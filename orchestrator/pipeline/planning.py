"""The plan: all that `run` would do, worked out from files alone. No host is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.deploy.launch import command_line, server_spec
from orchestrator.engines.engine import Added, Advisory, Engine, Placement
from orchestrator.engines.flags.model import Chosen
from orchestrator.engines.remarks import remarks
from orchestrator.engines.rules.answering import PastRun, Served, answered
from orchestrator.engines.rules.silencing import without_silenced
from orchestrator.fleet.inventory import HostEntry
from orchestrator.gating.suite import Suite
from orchestrator.profile.digest import profile_digest
from orchestrator.profile.model import EnvValue, Profile, RuntimeKind, SecretRef
from orchestrator.sweep.estimate import estimate
from orchestrator.sweep.scripts.swarm import prefixes_of
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.workload import Kind, SwarmCell, Workload
from orchestrator.values import Json, Secret

MANY_PREFIXES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """What one host would be told. `command` is the exact line, secrets redacted."""

    host: str
    rank: int
    command: str
    name: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that `run` would do."""

    profile: str
    digest: str
    hosts: tuple[HostPlan, ...]
    added: tuple[Added, ...]
    notes: tuple[str, ...]
    advisories: tuple[Advisory, ...]
    silenced: tuple[str, ...]
    replaces: str
    suite: str
    gates: tuple[tuple[str, bool], ...]
    cells: tuple[str, ...]
    minutes: float
    minutes_assume: str

    def as_json(self) -> dict[str, Json]:
        return {
            "profile": self.profile,
            "digest": self.digest,
            "hosts": [{"host": h.host, "rank": h.rank, "name": h.name, "command": h.command} for h in self.hosts],
            "added": [{"words": list(a.words), "reason": a.reason} for a in self.added],
            "notes": list(self.notes),
            "advisories": [_advisory_json(a) for a in self.advisories],
            "silenced": list(self.silenced),
            "replaces": self.replaces,
            "suite": self.suite,
            "gates": [{"gate": name, "is_required": required} for name, required in self.gates],
            "cells": list(self.cells),
            "estimated_minutes": self.minutes,
            "estimate_assumes": self.minutes_assume,
        }


def make_plan(
    profile: Profile,
    engine: Engine,
    groups: Sequence[Sequence[HostEntry]],
    *,
    suite: Suite,
    workloads: Sequence[Workload],
    past_runs: Sequence[PastRun] = (),
    chosen: Chosen | None = None,
) -> Plan:
    """Work it out for each host group. Memory of the hosts is unknown here, so GiB figures are left to `run`.

    Args:
        past_runs: Runs that may answer an advisory, oldest first.
        chosen: The flag list to hold it against; None: the shipped one of its version.
    """
    digest = profile_digest(profile)
    hosts: list[HostPlan] = []
    added: tuple[Added, ...] = ()
    notes: tuple[str, ...] = ()
    slots = profile.slots
    for group in groups:
        for rank, entry in enumerate(group):
            place = _placement(rank, entry, group)
            command = engine.command(profile, place)
            added, notes, slots = command.added, command.notes, command.slots or slots
            declared = {**command.env, **profile.env}
            env = {name: _shown(name, value) for name, value in declared.items() if value is not None}
            if profile.serve.api_key is not None and command.api_key_env:
                env[command.api_key_env] = Secret(command.api_key_env, "")
            gpus = profile.container.gpus != "none" and profile.runtime is RuntimeKind.DOCKER
            spec = server_spec(profile, command, rank=rank, run_id="RUN", digest=digest, env=env, gpus=gpus, home="~")
            line = command_line(spec, profile.runtime)
            hosts.append(HostPlan(host=entry.name, rank=rank, command=line, name=spec.name, port=command.port))
    estimates = [estimate(w) for w in workloads]
    heard = remarks(engine, profile, chosen).heard
    loads = without_silenced(load_advisories(workloads, profile.serve.max_num_seqs or slots), profile.silence)
    return Plan(
        profile=profile.name,
        digest=digest,
        hosts=tuple(hosts),
        added=added,
        notes=notes,
        advisories=(*answered(heard.advisories, served(profile), past_runs), *loads.advisories),
        silenced=(*heard.silenced, *loads.silenced),
        replaces=_replaces(hosts),
        suite=suite.name,
        gates=tuple((item.gate.name, item.is_required) for item in suite.items),
        cells=tuple(f"{w.name}/{cell.id}" for w in workloads for cell in w.cells()),
        minutes=round(sum(e.minutes for e in estimates) * max(1, len(groups)), 1),
        minutes_assume="; ".join(sorted({e.assumption for e in estimates})),
    )


def served(profile: Profile, image_digest: str | None = None) -> Served:
    """What a past run must have been of to answer for this profile.

    Args:
        image_digest: As the host has it; None: as the profile pins it, if it does.
    """
    pinned = (profile.image or "").partition("@")[2] or None
    return Served(
        engine=profile.engine,
        model=profile.model.display,
        profile_digest=profile_digest(profile),
        image_digest=image_digest or pinned,
    )


def load_advisories(workloads: Sequence[Workload], slots: int | None) -> tuple[Advisory, ...]:
    """Mixed workloads whose lanes together ask for another number of requests at once than the server runs."""
    found: list[Advisory] = []
    for w in workloads:
        asked = sum(lane.concurrency or 0 for lane in w.lanes)
        if Kind.MIXED not in w.kinds or slots is None or not asked or asked == slots:
            continue
        lanes = " + ".join(f"{lane.concurrency} {lane.name}" for lane in w.lanes if lane.concurrency)
        idle = "1 place stays empty" if slots - asked == 1 else f"{slots - asked} places stay empty"
        what = "the rest queues" if asked > slots else idle
        found.append(
            Advisory(
                code="lanes_and_slots",
                message=f"workload {w.name}: {lanes} = {asked} requests at once, the server runs {slots}: {what}",
                hint=f"serve: {{max_num_seqs: {asked}}}, or lanes that add up to {slots}",
            )
        )
    return tuple(found)


def priming_advisories(workloads: Sequence[Workload], load: LoadTarget) -> tuple[Advisory, ...]:
    """Evicting cells that load very many short prefixes before each repeat, because the cache holds so much."""
    found: list[Advisory] = []
    for w in workloads:
        evicting = [c for c in w.cells() if c.variant == SwarmCell.EVICTING]
        most = max(evicting, key=lambda c: prefixes_of(c, load), default=None)
        if most is None or w.prefixes is not None or load.kv_tok is None:
            continue
        n = prefixes_of(most, load)
        if n <= MANY_PREFIXES:
            continue
        found.append(
            Advisory(
                code="many_prefixes",
                message=f"workload {w.name}: each repeat of {most.id} first loads {n} prefixes of {most.prefix_tok} "
                f"tokens, {n * most.prefix_tok} in all: the server's cache holds {load.kv_tok}",
                hint="longer prefixes, `--set prefixes=N`, or without: `--set cells=single,cold,primed`",
            )
        )
    return tuple(found)


def _advisory_json(advisory: Advisory) -> dict[str, Json]:
    return {
        "code": advisory.code,
        "severity": advisory.severity,
        "path": advisory.path,
        "message": advisory.message,
        "hint": advisory.hint,
        "evidence": list(advisory.evidence),
        "standing": advisory.source,
        "answered_by": list(advisory.gates),
        "answer": advisory.answer,
        "seen": advisory.seen,
    }


def _placement(rank: int, entry: HostEntry, group: Sequence[HostEntry]) -> Placement:
    first = group[0]
    return Placement(
        rank=rank,
        nodes=len(group),
        address=(entry.link.ip if entry.link else None) or entry.address,
        master_address=(first.link.ip if first.link else None) or first.address,
    )


def _shown(name: str, value: EnvValue) -> str | Secret:
    return Secret(name, "") if isinstance(value, SecretRef) else value or ""


def _replaces(hosts: Sequence[HostPlan]) -> str:
    if not hosts:
        return "nothing: the server is someone else's"
    names = ", ".join(sorted({h.name for h in hosts}))
    ports = ", ".join(sorted({str(h.port) for h in hosts}))
    return f"only a server that gate0 itself started under the name {names} or on port {ports}, if it differs"
