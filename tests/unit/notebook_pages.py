"""The page as a tree, to be asked what a reader would find in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from orchestrator.report.notebook.book import Book, DatedNote
from orchestrator.report.notebook.page import page as notebook
from orchestrator.report.tables import RunRow

SECTIONS = ("configurations", "details", "log")
"""The tables, their evidence and the log; pictures and advice have tests of their own."""

VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}


@dataclass(slots=True, eq=False)
class Element:
    """A tag with what is in it; texts stand as they are read, entities resolved."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(x if isinstance(x, str) else x.text for x in self.inside)

    @property
    def words(self) -> str:
        """On one line."""
        return " ".join(self.text.split())

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    def every(self, tag: str = "", cls: str = "", **attributes: str) -> list[Element]:
        """In the page's order; an attribute's `_` stands for `-`."""
        wanted = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items()}
        return [
            e
            for e in self._walk()
            if (not tag or e.tag == tag)
            and (not cls or cls in e.classes)
            and all(e.attributes.get(k) == v for k, v in wanted.items())
        ]

    def the(self, tag: str = "", cls: str = "", **attributes: str) -> Element:
        """The only one."""
        (found,) = self.every(tag, cls, **attributes)
        return found

    def _walk(self) -> Iterator[Element]:
        for x in self.inside:
            if isinstance(x, Element):
                yield x
                yield from x._walk()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element(tag="", attributes={})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag=tag, attributes={k: v or "" for k, v in attrs})
        self.open[-1].inside.append(element)
        if tag == "br":
            element.inside.append(" ")
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def parsed(text: str) -> Element:
    """Every end tag must close what is open."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root


def page(
    rows: Sequence[RunRow],
    warnings: Sequence[str] = (),
    *,
    notes: Sequence[DatedNote] = (),
    record_links: Mapping[str, str] | None = None,
    **book: Any,
) -> str:
    """As `report.html.page`, of `SECTIONS` alone."""
    made = Book(rows=tuple(rows), notes=tuple(notes), warnings=tuple(warnings), record_links=record_links or {}, **book)
    return notebook(made, SECTIONS)


def tree(rows: Sequence[RunRow], **more: Any) -> Element:
    return parsed(page(rows, **more))


def boards(root: Element) -> dict[str, Element]:
    """Tables of configurations by their load."""
    return {b.every("h3")[0].words: b for b in root.every(cls="board")}


def cells(board: Element, name: str) -> list[Element]:
    """The line of a configuration, its name first."""
    for row in board.every("tbody")[0].every("tr"):
        found = [x for x in row.inside if isinstance(x, Element)]
        if name in found[0].words:
            return found
    raise AssertionError(f"no line of {name}")


def heads(board: Element) -> list[str]:
    """The last line of the head."""
    return [th.words for th in board.every("thead")[0].every("tr")[-1].every("th")]


def bests(board: Element, head: str) -> list[str]:
    """The names of the configurations whose figure in this column is marked."""
    place = heads(board).index(head)
    lines = [[x for x in row.inside if isinstance(x, Element)] for row in board.every("tbody")[0].every("tr")]
    return [line[0].every("a")[0].words for line in lines if line[place].every("a", cls="best")]
