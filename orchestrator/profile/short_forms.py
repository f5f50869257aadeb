"""The short forms that a profile may use: mounts, ports, command lines. ValueErrors carry the words to show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from orchestrator.profile.model import Mount, Port

CONTAINER_HOME = "/root"
_VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]+")
_PORT = re.compile(r"(?:(?P<address>[0-9.]{7,15}):(?=[0-9]+:))?(?P<host>[0-9]{1,5})(?::(?P<container>[0-9]{1,5}))?")
_MODES = {"ro": True, "rw": False}


def mount_from(form: str | Mapping[str, Any]) -> Mount:
    """A mount in short or long form.

    Raises:
        ValueError: The source or the target is no place that Docker could mount.
    """
    if not isinstance(form, str):
        source, target = _source(str(form["source"])), str(form["target"])
        return Mount(source=source, target=target, read_only=bool(form.get("read_only", False)))
    parts = form.split(":")
    is_read_only = _MODES.get(parts[-1], False)
    if len(parts) > 1 and parts[-1] in _MODES:
        parts = parts[:-1]
    if len(parts) == 1:
        return Mount(source=_source(parts[0]), target=_same_place(parts[0]), read_only=is_read_only)
    if len(parts) == 2:
        return Mount(source=_source(parts[0]), target=_target(parts[1]), read_only=is_read_only)
    raise ValueError(f"`{form}` has too many colons: expected `source:target` or `source:target:ro`")


def port_from(form: int | str | Mapping[str, Any]) -> Port:
    """A published port: `8000`, `8080:8000` (host, then container), `127.0.0.1:8080:8000` or the long form.

    Raises:
        ValueError: A number is not a port.
    """
    if isinstance(form, Mapping):
        return Port(host=int(form["host"]), container=int(form["container"]), address=form.get("address"))
    pair = _PORT.fullmatch(str(form))
    if pair is None:
        raise ValueError(f"expected a port `8000` or a pair `8080:8000` (host, then container), got `{form}`")
    port = Port(host=int(pair["host"]), container=int(pair["container"] or pair["host"]), address=pair["address"])
    for number in (port.host, port.container):
        if not 1 <= number <= 65535:
            raise ValueError(f"{number} is not a port: expected 1 to 65535")
    return port


def words_from(form: str | list[Any]) -> tuple[str, ...]:
    """The words of a command line given as a list, or as one text that is split as a shell splits it.

    Raises:
        ValueError: A quote in the text is not closed, or the text holds no word.
    """
    if not isinstance(form, str):
        return tuple(word_text(word) for word in form)
    try:
        words = tuple(shlex.split(form))
    except ValueError as exc:
        raise ValueError("a quote is opened and never closed") from exc
    if not words:
        raise ValueError("expected at least one word")
    return words


def word_text(value: bool | int | float | str) -> str:
    """A word from a plain value; booleans in YAML's own spelling."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _source(source: str) -> str:
    if source.startswith(("/", "~/")) or source == "~":
        return source
    if _VOLUME.fullmatch(source):
        return source
    raise ValueError(f"source `{source}` is neither an absolute path, nor below `~/`, nor a volume's name")


def _target(target: str) -> str:
    if not target.startswith("/"):
        raise ValueError(f"target `{target}` is not an absolute path inside the container")
    return target


def _same_place(source: str) -> str:
    if source.startswith("~/"):
        return f"{CONTAINER_HOME}{source[1:]}"
    if source.startswith("/"):
        return source
    raise ValueError(f"`{source}` has no target: write `{source}:/path/in/container`")
