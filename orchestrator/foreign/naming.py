"""A profile's name and title from what the source is called."""

from __future__ import annotations

import re
from pathlib import PurePath

from orchestrator.foreign.model import Launch
from orchestrator.foreign.waiting import is_named_gap, waits

MAX_NAME = 80
SAYS_NOTHING = re.compile(
    r"(?:my[-_])?(?:vllm|sglang|sgl|llama(?:[-_.]?cpp)?|llm|ai|model|inference|openai)?[-_]?(?:node|server|serve|service|api|"
    r"openai|engine|container|app|llm|box|gpu|spark)?[-_]?[0-9]{0,2}"
)
"""Names of services and containers that tell only which engine runs in them: the model tells more."""

_FILE = re.compile(r"(?:-[0-9]{5}-of-[0-9]{5})?\.gguf$", re.IGNORECASE)
_CALLED = frozenset({"docker-run", "compose", "k8s"})
"""Forms whose names are those of containers and services."""

_SUFFIXES = (".yaml", ".yml", ".sh", ".service", ".json", ".md", ".txt")


def profile_name(launch: Launch, model: str | None) -> str:
    """Lower case, letters, digits, `.`, `_` and `-`: the source's own name, else the model's."""
    of_model = _FILE.sub("", (model or "").rstrip("/").rpartition("/")[2])
    is_plain = bool(of_model) and not waits(of_model) and launch.form in _CALLED and _says_nothing(launch.name or "")
    given = None if is_plain or waits(launch.name or "") else launch.name
    given = given or ("" if _is_open(of_model, launch.source) else of_model) or PurePath(launch.source).name
    for suffix in _SUFFIXES:
        given = given.removesuffix(suffix)
    slug = re.sub(r"[^a-z0-9._-]+", "-", given.lower()).strip("-._")
    slug = re.sub(r"-{2,}", "-", slug)[:MAX_NAME].rstrip("-._")
    return slug or "imported"


def _is_open(of_model: str, source: str) -> bool:
    """A model that only a shell or the reader knows, in a file, whose name then tells more."""
    return (waits(of_model) or is_named_gap(of_model)) and "." in source


def _says_nothing(name: str) -> bool:
    return SAYS_NOTHING.fullmatch(name.lower()) is not None


def profile_title(launch: Launch, name: str) -> str | None:
    """The source's own title, or its name where that says more than the profile's."""
    title = launch.title or launch.name
    if not title or title == name or (launch.title is None and launch.form in _CALLED and _says_nothing(title)):
        return None
    return " ".join(title.split())[:120]
