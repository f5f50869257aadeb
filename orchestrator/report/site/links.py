"""Links within one page made links between pages: by the ids that each page has."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from urllib.parse import quote

_ID = re.compile(r'\sid="([^"]+)"')
_LINK = re.compile(r'href="#([^"]+)"')


def linked(pages: Mapping[str, str]) -> dict[str, str]:
    """The pages by their paths, each `href="#id"` whose id stands on another page leading there.

    An id that several pages have (a section's) is its own page's; what no page has stays as it is.
    """
    ids = {path: frozenset(_ID.findall(text)) for path, text in pages.items()}
    home = {name: path for path in reversed(list(pages)) for name in ids[path]}

    def on(path: str, text: str) -> str:
        def there(found: re.Match[str]) -> str:
            name = found[1]
            if name in ids[path] or name not in home:
                return found[0]
            return f'href="{relative(path, home[name])}#{name}"'

        return _LINK.sub(there, text)

    return {path: on(path, text) for path, text in pages.items()}


def relative(page: str, to: str) -> str:
    """The address of one file of the folder as seen from another."""
    return quote(posixpath.relpath(to, posixpath.dirname(page) or "."))
