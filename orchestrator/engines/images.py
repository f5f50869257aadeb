"""What an image's name tells: the engine's version, when the repository is the engine's own."""

from __future__ import annotations

import re
from collections.abc import Sequence

Version = tuple[int, ...]


def image_version(image: str | None, repositories: Sequence[str]) -> Version | None:
    """`vllm/vllm-openai:v0.31.0-cu130` -> (0, 31, 0); None when the tag says none or the repository is another's.

    A fork's own tag (`ghcr.io/x/dspark-vllm:0.1.1`) is no engine version, so only the named repositories count.
    """
    name, tag = split_image(image or "")
    if name.rpartition("/")[2] not in repositories:
        return None
    found = re.match(r"v?(\d+(?:\.\d+)+)", tag)
    return tuple(int(part) for part in found[1].split(".")) if found else None


def image_tag_version(image: str | None, repositories: Sequence[str]) -> str | None:
    """As `image_version`, as text, and with llama.cpp's builds: `ghcr.io/ggml-org/llama.cpp:server-cuda-b10434`."""
    name, tag = split_image(image or "")
    if name.rpartition("/")[2] not in repositories:
        return None
    if build := re.search(r"(?:^|-)(b\d{3,})(?:$|-)", tag):
        return build[1]
    found = re.match(r"v?(\d+(?:\.\d+)+(?:[.-]?(?:dev|rc)\d*(?:\+\w+)?)?)", tag)
    return found[1] if found else None


def split_image(image: str) -> tuple[str, str]:
    """Name and tag, digest left off: `host:5000/a/b:v1@sha256:…` -> (`host:5000/a/b`, `v1`); no tag is empty."""
    name = image.partition("@")[0]
    head, _, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return (f"{head}/{last}" if head else last), tag


def is_older(version: Version | None, than: Version) -> bool:
    """True when the version is known and lower; an unknown one counts as current."""
    return version is not None and version < than


def version_key(version: str) -> tuple[int, tuple[int, ...], int]:
    """What versions of one engine are ordered by: `b10434` < `0.5.0-dev+0c1e57098` < `0.5.0` < `0.31.0`.

    llama.cpp's build numbers all come before its numbered releases. `0.31` is `0.31.0`; a text without a
    number in front is oldest.
    """
    if build := re.match(r"b(\d+)$", version):
        return (0, (int(build[1]),), 0)
    numbers = re.match(r"v?(\d+(?:\.\d+)*)(.*)", version)
    if numbers is None:
        return (-1, (), 0)
    is_final = re.match(r"[-.]?(?:dev|rc|a|b)", numbers[2]) is None
    parts = [int(part) for part in numbers[1].split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return (1, tuple(parts), int(is_final))
