"""Which runs are of one configuration: the same profile, engine build and hosts. The newest stands for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.report.notebook.book import anchor
from orchestrator.report.series import Series
from orchestrator.report.tables import RunRow
from orchestrator.report.words import engine_words, host_words

Identity = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A profile on an engine build on hosts.

    Attributes:
        rows: Its runs, newest first; at least one.
        name: Its title; with a part of the profile's digest where another configuration reads the same.
    """

    rows: tuple[RunRow, ...]
    name: str

    @property
    def newest(self) -> RunRow:
        return self.rows[0]

    @property
    def id(self) -> str:
        """Anchor of its details; that of a run is `run_anchor`."""
        return f"config-{anchor(self.newest.run.id)}"


def configurations_of(rows: Sequence[RunRow]) -> tuple[Configuration, ...]:
    """In the order of their newest runs, the newest configuration last."""
    found: dict[Identity, list[RunRow]] = {}
    for row in sorted(rows, key=lambda r: (r.run.created_at, r.run.id)):
        key = _key(row, found)
        found[key] = [row, *found.pop(key, [])]
    plain = [Configuration(rows=tuple(of_one), name=of_one[0].run.profile_title) for of_one in found.values()]
    looks = [_looks(c) for c in plain]
    return tuple(replace(c, name=_told_apart(c)) if looks.count(_looks(c)) > 1 else c for c in plain)


def by_run(configurations: Sequence[Configuration]) -> Mapping[str, Configuration]:
    """The configuration of each run, by the run's id."""
    return {row.run.id: c for c in configurations for row in c.rows}


def newest_only(series: Series, of_run: Mapping[str, Configuration]) -> Series:
    """A series with one line a configuration: its newest run that carried this load."""
    places = {line.row.run.id: line for line in series.lines}
    standing = {
        next(row.run.id for row in of_run[run_id].rows if row.run.id in places): of_run[run_id].id for run_id in places
    }
    lines = tuple(line for line in series.lines if line.row.run.id in standing)
    levels = tuple(sorted({x.cell.concurrency for line in lines for x in line.lines}))
    return replace(series, lines=lines, levels=levels)


def older_runs(configuration: Configuration, run_id: str) -> tuple[RunRow, ...]:
    """Those before the run that stands."""
    ids = [row.run.id for row in configuration.rows]
    return configuration.rows[ids.index(run_id) + 1 :]


def is_foreign(row: RunRow) -> bool:
    return bool(row.run.source)


def _key(row: RunRow, found: Mapping[Identity, object]) -> Identity:
    """A run that ended before its engine was known is of the configuration that is otherwise the same."""
    r = row.run
    hosts = tuple(str(h.get("name")) for h in r.hosts)
    base = (r.profile_name, r.profile_digest, hosts, str(r.source.get("file") or "") if r.source else None)
    if r.engine_version is None and r.image_digest is None:
        return next((key for key in reversed(list(found)) if key[:4] == base), (*base, r.engine, None, r.image))
    return (*base, r.engine, r.engine_version, r.image_digest or r.image)


def _looks(c: Configuration) -> tuple[str, str, str]:
    return c.newest.run.profile_title, engine_words(c.newest), host_words(c.newest)


def _told_apart(c: Configuration) -> str:
    r = c.newest.run
    mark = r.profile_digest[:6] or (r.image_digest or "")[-6:]
    return f"{r.profile_title} [{mark}]" if mark else r.profile_title
