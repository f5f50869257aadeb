"""The files of the folder as text, by their paths in it.

    index.html                       configurations, uses, curves, changes, roofline, log
    configurations/<name>.html       everything about one: gates with their evidence, tables, provenance
    style.css, page.js, site.js, vega.js

Names are made of the profile's name and of what tells its configuration from others: a new run changes none. Links are
relative, so the folder opens from disk and from any host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.report.notebook.book import Book, Section, newest, run_anchor
from orchestrator.report.notebook.identity import Configuration, configurations_of
from orchestrator.report.notebook.page import SECTIONS, asset, environment, script_json, sections, vega_bundle
from orchestrator.report.site.links import linked, relative
from orchestrator.values import digest

INDEX = "index.html"
FOLDER = "configurations"
ASSETS = {"style.css": "notebook.css", "page.js": "notebook.js", "site.js": "site.js"}
"""By name, the file of `report/page` that it is."""
VEGA = "vega.js"
OWN = ("details",)
"""Sections of a configuration's page; the index has the others."""
LONGEST = 60


def site(book: Book, names: Sequence[str] = SECTIONS) -> dict[str, str]:
    """Text by path.

    Args:
        book: `record_links` as seen from the index.
    """
    found = configurations_of(book.rows)
    files = dict(zip(file_names(found), found, strict=True))
    places = {run_anchor(row): path for path, c in files.items() for row in c.rows}
    index = sections(book, [name for name in names if name not in OWN])
    pages = {INDEX: _page(book, index, path=INDEX, title="Serving configurations", places=places)}
    for path, c in files.items():
        up = {run_id: f"../{address}" for run_id, address in book.record_links.items()}
        own = replace(book, rows=c.rows, record_links=up, notes=(), warnings=())
        shown = sections(own, [name for name in names if name in OWN])
        pages[path] = _page(own, shown, path=path, title=c.name, places={})
    has_charts = any(section.charts for section in index)
    texts = {name: asset(of) for name, of in ASSETS.items()} | ({VEGA: vega_bundle()} if has_charts else {})
    return {**linked(pages), **texts}


def file_names(configurations: Sequence[Configuration]) -> tuple[str, ...]:
    """One each, in their order, letters and digits of ASCII; the same as long as the configuration is."""
    found: list[str] = []
    for c in configurations:
        words = re.sub(r"[^a-z0-9.]+", "-", c.newest.run.profile_name.lower()).strip("-.")[:LONGEST] or "configuration"
        name = f"{FOLDER}/{words}-{digest(_identity(c))[:8]}"
        found.append(f"{name}.html" if f"{name}.html" not in found else f"{name}-{len(found)}.html")
    return tuple(found)


def _identity(c: Configuration) -> list[str | None]:
    """Of the newest run that got as far as its engine: one that ended before says less of the same configuration."""
    rows = [row for row in c.rows if row.run.engine_version or row.run.image_digest] or list(c.rows)
    r = rows[0].run
    hosts = [str(h.get("name")) for h in r.hosts]
    source = str(r.source.get("file") or "") if r.source else None
    return [r.profile_name, r.profile_digest, *hosts, r.engine, r.engine_version, r.image_digest or r.image, source]


def _page(book: Book, shown: Sequence[Section], *, path: str, title: str, places: Mapping[str, str]) -> str:
    charts = {chart.id: chart.spec for section in shown for chart in section.charts}
    rows = book.rows
    text: str = (
        environment()
        .get_template("site.html.j2")
        .render(
            sections=shown,
            title=title,
            is_index=path == INDEX,
            index=relative(path, INDEX),
            assets={name.partition(".")[0]: relative(path, name) for name in (*ASSETS, VEGA)},
            charts=script_json(charts),
            has_charts=bool(charts),
            places=script_json(places),
            runs=len(rows),
            configurations=len(configurations_of(rows)),
            points=sum(len(r.points) for r in rows),
            newest=newest(rows),
            warnings=[*book.warnings, *(w for row in rows for w in row.warnings)],
            is_live=book.is_live,
        )
    )
    return text.encode("utf-8", "replace").decode("utf-8")
