"""The page put together: sections, styles, script and charts in one file that opens from disk."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from orchestrator.report.notebook.book import Book, Section, SectionMaker, newest
from orchestrator.report.notebook.identity import configurations_of

SECTIONS = ("uses", "configurations", "curves", "changes", "roofline", "details", "log")
"""Modules of this package, in the page's order; each has `section(book) -> Section | None`."""


def sections(book: Book, names: Sequence[str] = SECTIONS) -> tuple[Section, ...]:
    """Those that have something to show."""
    return tuple(found for maker in _makers(names) if (found := maker(book)) is not None)


def _makers(names: Sequence[str]) -> Iterator[SectionMaker]:
    for name in names:
        maker: SectionMaker = importlib.import_module(f"orchestrator.report.notebook.{name}").section
        yield maker


def page(book: Book, names: Sequence[str] = SECTIONS) -> str:
    """The whole page as text: no network, nothing outside the file."""
    found = sections(book, names)
    charts = {chart.id: chart.spec for section in found for chart in section.charts}
    rows = book.rows
    text: str = (
        environment()
        .get_template("notebook.html.j2")
        .render(
            sections=found,
            style=Markup(asset("notebook.css")),
            script=Markup(asset("notebook.js")),
            charts=script_json(charts),
            vega=Markup(vega_bundle()) if charts else "",
            runs=len(rows),
            configurations=len(configurations_of(rows)),
            points=sum(len(r.points) for r in rows),
            newest=newest(rows),
            warnings=[*book.warnings, *(w for row in rows for w in row.warnings)],
            is_live=book.is_live,
        )
    )
    return text.encode("utf-8", "replace").decode("utf-8")  # half a character in a record must not stop the page


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("orchestrator.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["script_json"] = script_json
    return made


@cache
def asset(name: str) -> str:
    """A file of `report/page`, ours: it is put into the page as it is."""
    return (files("orchestrator.report") / "page" / name).read_text(encoding="utf-8")


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script (about 0.9 MB), with no end tag that could close ours."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return "(()=>{" + bundle.replace("</script", "<\\/script") + "})();"


def script_json(value: object) -> Markup:
    """JSON for a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))
