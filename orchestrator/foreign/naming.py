"""A profile's name and title from what the source is called."""

from __future__ import annotations

import re
from pathlib import PurePath

from orchestrator.foreign.model import Launch

MAX_NAME = 80
_SUFFIXES = (".yaml", ".yml", ".sh", ".service", ".json", ".md", ".txt")


def profile_name(launch: Launch, model: str | None) -> str:
    """Lower case, letters, digits, `.`, `_` and `-`: the source's own name, else the model's."""
    given = launch.name or (model or "").rstrip("/").rpartition("/")[2] or PurePath(launch.source).name
    for suffix in _SUFFIXES:
        given = given.removesuffix(suffix)
    slug = re.sub(r"[^a-z0-9._-]+", "-", given.lower()).strip("-._")
    slug = re.sub(r"-{2,}", "-", slug)[:MAX_NAME].rstrip("-._")
    return slug or "imported"


def profile_title(launch: Launch, name: str) -> str | None:
    """The source's own title, or its name where that says more than the profile's."""
    title = launch.title or launch.name
    if not title or title == name:
        return None
    return " ".join(title.split())[:120]
