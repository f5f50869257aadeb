"""What ran, exactly: image, engine, host, client, command; and what of the host changed while it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.report.notebook.told import plain_words
from orchestrator.report.notes import error_bar, stamp_lag_ms, stamp_words
from orchestrator.report.tables import RunRow
from orchestrator.report.text import DASH, duration
from orchestrator.report.words import engine_words
from orchestrator.values import Json

GIB = 1 << 30
UNSHOWN = {"host", "user", "home", "read_at", "uptime_s"}
"""Facts that a page which is given away must not tell, and those that always differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    name: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        return DASH != self.before != self.after != DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """Of one host; `changed` and `same` together are all that is known."""

    name: str
    changed: tuple[Fact, ...]
    same: tuple[Fact, ...]
    has_after: bool


def provenance(row: RunRow) -> list[tuple[str, str]]:
    """Names and words; what is not told is left out."""
    r = row.run
    digest = r.image_digest or ""
    found: dict[str, str | None] = {
        "Image": r.image or (r.runtime and f"none, runtime: {r.runtime}"),
        "Digest": digest,
        "Engine": engine_words(row),
        "Model": r.model,
        "Served as": r.served_name if r.served_name != r.model else "",
        "Driver": _of_hosts(row, "driver"),
        "Kernel": _of_hosts(row, "kernel"),
        "System": _of_hosts(row, "os"),
        "Machine": _of_hosts(row, "machine"),
        "Slots": f"{r.slots} ({r.slots_source})" if r.slots is not None else "",
        "Load from": "" if r.source else r.vantage,
        "Client error": "" if r.source else _client_error(row),
        "Gates": f"suite {r.suite}{'' if r.is_suite_unmodified else ', modified'}" if r.suite else "",
        "Wall time": f"{duration(r.duration_s)} (measured{_attempts(r.attempts)})" if r.duration_s else "",
        "Tool": f"gate0 {r.tool_version}{f', revision {r.git_revision}' if r.git_revision else ''}",
        "Memory given back": plain_words({k: _returned(v) for k, v in r.memory_returned.items()}),
        "Added by gate0": "; ".join(_added(a) for a in r.added),
        "Record": r.id,
    }
    return [(name, words) for name, words in found.items() if words]


def host_facts(row: RunRow) -> tuple[HostFacts, ...]:
    return tuple(_host(h) for h in row.run.hosts if isinstance(h.get("before"), Mapping))


def _host(host: Mapping[str, Json]) -> HostFacts:
    before, after = dict(_leaves(host.get("before"))), dict(_leaves(host.get("after")))
    home = str(_mapping(host.get("before")).get("home") or "")
    facts = [
        Fact(
            name=name.replace(home, "~") if home else name,
            before=_words(name, before.get(name)),
            after=_words(name, after.get(name)),
        )
        for name in dict.fromkeys((*before, *after))
    ]
    return HostFacts(
        name=str(host.get("name")),
        changed=tuple(f for f in facts if f.is_changed),
        same=tuple(f for f in facts if not f.is_changed and (f.before != DASH or f.after != DASH)),
        has_after=bool(after),
    )


def _leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if path or key not in UNSHOWN:
                yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(v, Mapping) for v in value):
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{place}")
    else:
        yield path, value


def _words(name: str, value: Json) -> str:
    if value is None or (isinstance(value, Sequence) and not value):
        return DASH
    is_bytes = "_bytes" in name and isinstance(value, int) and not isinstance(value, bool)
    return f"{value / GIB:.2f} GiB" if is_bytes and isinstance(value, int) else plain_words(value)


def _of_hosts(row: RunRow, name: str) -> str:
    """`6.14.0 (spark01), 6.11.0 (spark02)`; once where all say the same."""
    said = {}
    for host in row.run.hosts:
        facts = _mapping(host.get("before"))
        gpus = facts.get("gpus")
        first = gpus[0] if isinstance(gpus, Sequence) and gpus and isinstance(gpus[0], Mapping) else {}
        value = first.get(name) if name == "driver" and isinstance(first, Mapping) else facts.get(name)
        if value:
            said[str(host.get("name"))] = str(value)
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return ", ".join(f"{value} ({host})" for host, value in said.items())


def _client_error(row: RunRow) -> str:
    """The error bars of its cells, from the fewest streams on."""
    cells = sorted((p.figures.cell for p in row.points), key=lambda c: c.concurrency)
    bars = dict.fromkeys(error_bar(c) for c in cells)
    lags = [lag for c in cells if (lag := stamp_lag_ms(c)) is not None]
    return "; ".join(w for w in (*bars, stamp_words(max(lags)) if lags else "") if w)


def _attempts(count: int) -> str:
    return f", over {count} attempts" if count > 1 else ""


def _returned(value: Json) -> str:
    found = _mapping(value)
    returned, missing = found.get("returned_bytes"), found.get("missing_bytes")
    words = f"{returned / GIB:.2f} GiB" if isinstance(returned, int) else "unknown"
    return f"{words}, {missing / GIB:.2f} GiB missing" if isinstance(missing, int) and missing > 0 else words


def _added(value: Mapping[str, Json]) -> str:
    words = value.get("words")
    shown = (
        " ".join(str(w) for w in words) if isinstance(words, Sequence) and not isinstance(words, str) else str(words)
    )
    return f"{shown} ({value.get('reason')})"


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
