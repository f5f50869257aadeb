"""What sets two runs' configurations apart, as far as their records tell: what may explain a changed figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.figures.plain import Plain
from orchestrator.records.record import RunRecord
from orchestrator.values import Json

NOT_SERVED = frozenset(
    {"name", "title", "note", "engine", "image", "model", "served_name", "gates", "workloads", "ready", "extends"}
)
"""Keys of a profile that do not change what runs, and those that the run itself tells."""


class Group(StrEnum):
    """In the order in which they are shown."""

    SERVING = "serving"
    SETTINGS = "settings"
    HOSTS = "hosts"
    GATES = "gates"
    MEASURING = "measuring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Plain):
    """One thing that the two give differently; None: not set, or not told, there.

    Attributes:
        name: Of a setting its dotted path in the profile.
    """

    group: Group
    name: str
    a: Json
    b: Json


def differences(a: RunRecord, b: RunRecord) -> tuple[Difference, ...]:
    """Of the hosts' software what one record does not tell is left out; of all else that is a difference too."""
    return tuple(
        Difference(group=group, name=name, a=of_a, b=of_b)
        for group, pairs in (
            (Group.SERVING, _pairs(_serving(a), _serving(b))),
            (Group.SETTINGS, _settings(a, b)),
            (Group.HOSTS, _hosts(a, b)),
            (Group.GATES, _pairs(_gates(a), _gates(b))),
            (Group.MEASURING, _pairs(_measuring(a), _measuring(b))),
        )
        for name, of_a, of_b in pairs
        if of_a != of_b
    )


Told = Mapping[str, Json]
Pair = tuple[str, Json, Json]


def _pairs(a: Told, b: Told) -> Iterator[Pair]:
    yield from ((name, a.get(name), b.get(name)) for name in dict.fromkeys((*a, *b)))


def _serving(run: RunRecord) -> Told:
    return {
        "image": run.image,
        "image digest": run.image_digest,
        "engine": run.engine,
        "engine version": run.engine_version,
        "model": run.model or None,
        **{f"model {key}": run_value for key, run_value in _pinned(run).items()},
        "requests at once": run.slots,
        "longest request (tok)": run.capabilities.get("max_model_len"),
        "added by gate0": [w for added in run.added for w in _words(added)] or None,
    }


def _pinned(run: RunRecord) -> Told:
    model = run.profile.get("model")
    return {k: model[k] for k in ("revision", "file") if k in model} if isinstance(model, Mapping) else {}


def _words(added: Mapping[str, Json]) -> Iterator[str]:
    words = added.get("words")
    yield from (str(w) for w in words) if isinstance(words, Sequence) else ()


def _settings(a: RunRecord, b: RunRecord) -> Iterator[Pair]:
    """Leaf by leaf; of two records without a profile what they tell else; one against one without is said once."""
    if not a.profile and not b.profile:
        yield from _pairs(*(dict(_leaves("", run.source.get("told") or {})) for run in (a, b)))
        return
    if not a.profile or not b.profile:
        told = ["in the record" if run.profile else None for run in (a, b)]
        yield "profile", told[0], told[1]
        return
    flat = [
        {k: v for key, v in run.profile.items() if key not in NOT_SERVED for k, v in _leaves(key, v)} for run in (a, b)
    ]
    yield from ((path, flat[0].get(path), flat[1].get(path)) for path in sorted({*flat[0], *flat[1]}))


def _leaves(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    """A list is one value."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    elif path:
        yield path, list(value) if isinstance(value, tuple) else value


def _hosts(a: RunRecord, b: RunRecord) -> Iterator[Pair]:
    names = [[str(h.get("name")) for h in run.hosts] for run in (a, b)]
    yield "hosts", names[0] or None, names[1] or None
    for rank, (of_a, of_b) in enumerate(zip(a.hosts, b.hosts, strict=False)):
        label = "" if max(len(a.hosts), len(b.hosts)) == 1 else f" of rank {rank}"
        facts = [_facts(host) for host in (of_a, of_b)]
        for name, told_a, told_b in _pairs(*facts):
            if told_a is not None and told_b is not None:
                yield f"{name}{label}", told_a, told_b


def _facts(host: Mapping[str, Json]) -> Told:
    """As read before the server started."""
    facts = next((f for key in ("before", "after") if isinstance(f := host.get(key), Mapping)), {})
    gpus = facts.get("gpus")
    first = next((g for g in gpus if isinstance(g, Mapping)), {}) if isinstance(gpus, Sequence) else {}
    docker = facts.get("docker")
    memory = facts.get("memory")
    total = memory.get("total_bytes") if isinstance(memory, Mapping) else None
    return {
        "machine": facts.get("machine"),
        "GPU": first.get("name"),
        "driver": first.get("driver"),
        "CUDA of the driver": facts.get("cuda_driver"),
        "kernel": facts.get("kernel"),
        "Docker": docker.get("version") if isinstance(docker, Mapping) else None,
        "OS": facts.get("os"),
        "DGX OS": facts.get("dgx_release"),
        "memory (GiB)": round(total / 2**30) if isinstance(total, int | float) else None,
        "firmware": facts.get("firmware") or None,
    }


def _gates(run: RunRecord) -> Told:
    """Of a report that was typed off also what its own check said."""
    own = run.source.get("gate")
    return {
        **({str(own.get("name")): own.get("word")} if isinstance(own, Mapping) else {}),
        "suite": None if run.suite is None else run.suite + ("" if run.is_suite_unmodified else " (modified)"),
        **run.gates,
        "measured": "ungated" if run.is_ungated else "after its gates" if run.gates else "without gates",
    }


def _measuring(run: RunRecord) -> Told:
    source = run.source
    return {
        "by": " ".join(str(source[k]) for k in ("title", "version") if source.get(k)) if source else "gate0",
        "load from": run.vantage,
        "tool version": run.tool_version or None,
        "client error": "calibrated" if run.client_error else "unknown",
    }
