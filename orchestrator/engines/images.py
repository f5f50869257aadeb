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


def split_image(image: str) -> tuple[str, str]:
    """Name and tag, digest left off: `host:5000/a/b:v1@sha256:…` -> (`host:5000/a/b`, `v1`); no tag is empty."""
    name = image.partition("@")[0]
    head, _, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return (f"{head}/{last}" if head else last), tag


def is_older(version: Version | None, than: Version) -> bool:
    """True when the version is known and lower; an unknown one counts as current."""
    return version is not None and version < than
