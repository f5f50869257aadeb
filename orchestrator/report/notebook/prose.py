"""Notes as HTML: a safe part of Markdown, everything else is text. No HTML, no images, links to the web alone."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

DEEPER = 3
"""A note's first heading stands below the page's, the section's and the entry's."""

OFF = ("image", "html_block", "html_inline", "reference")
SCHEMES = ("http://", "https://")


def prose(text: str) -> Markup:
    """Headings, paragraphs, lists, code, emphasis, quotes, rules, tables and links."""
    return Markup(_reader().render(text))


class _Reader(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return url.strip().lower().startswith(SCHEMES)


@cache
def _reader() -> MarkdownIt:
    reader = _Reader("commonmark", {"html": False, "linkify": False}).enable("table").disable(OFF)
    reader.core.ruler.push("deeper", _deeper)
    for name, write in _WRITERS:
        reader.add_render_rule(name, write)
    return reader


def _deeper(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + DEEPER)}"


def _link(
    self: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    tokens[place].attrSet("rel", "noopener noreferrer")
    return self.renderToken(tokens, place, options, env)


def _head(
    self: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    tokens[place].attrSet("scope", "col")
    return self.renderToken(tokens, place, options, env)


def _table_open(self: RendererHTML, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'


def _table_close(self: RendererHTML, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    return "</table></div>\n"


_WRITERS = (("link_open", _link), ("th_open", _head), ("table_open", _table_open), ("table_close", _table_close))
