"""What kind of model a repository holds, by its name: families as data, with where each fact is known from.

A name says what the layers are, which no quantisation changes. It does not say whether a copy still holds the weights
for multi-token prediction: only the checkpoint does (`fleet.facts.checkpoint`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models of one architecture.

    Attributes:
        state: What its layers without attention keep: `gdn`, `mamba`, `kda`, `conv`, `lightning`; None: it has none.
        is_moe: None: the family has both kinds, and the name does not tell.
        has_sparse_attention: Long prompts go through an indexer with a buffer of its own.
        source: Where this is known from.
    """

    name: str
    patterns: tuple[re.Pattern[str], ...]
    state: str | None
    is_moe: bool | None
    has_sliding_window: bool
    has_sparse_attention: bool
    source: str

    @property
    def is_hybrid(self) -> bool:
        return self.state is not None


def find_family(model: str | None, families: Sequence[Family] | None = None) -> Family | None:
    """The family of a repository or path (`unsloth/Qwen3.8-27B-NVFP4`); None: unknown, which is not "none of these".

    The first family with a pattern in the last part of the name wins: the file lists the special before the general.
    Of a path, folders above it are asked too (`…/models--org--name/snapshots/COMMIT`, `…/name/model.gguf`).
    """
    parts = [part for part in (model or "").split("/") if part]
    is_path = (model or "").startswith(("/", "~", "."))
    known = all_families() if families is None else families
    names = [part.rpartition("--")[2] for part in reversed(parts)]
    asked = names if is_path else names[:1]
    return next((f for name in asked for f in known if any(p.search(name) for p in f.patterns)), None)


@cache
def all_families() -> tuple[Family, ...]:
    """The shipped list, in its order."""
    text = (files("orchestrator.engines.rules") / "data" / "families.yaml").read_text(encoding="utf-8")
    return tuple(read_family(entry) for entry in yaml.safe_load(text))


def read_family(entry: Mapping[str, object]) -> Family:
    """One entry of the file.

    Raises:
        KeyError, re.error: It is not one.
    """
    patterns, moe = entry["patterns"], entry.get("is_moe")
    assert isinstance(patterns, list)
    return Family(
        name=str(entry["name"]),
        patterns=tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns),
        state=None if entry.get("state") is None else str(entry["state"]),
        is_moe=None if moe is None else bool(moe),
        has_sliding_window=bool(entry.get("has_sliding_window", False)),
        has_sparse_attention=bool(entry.get("has_sparse_attention", False)),
        source=str(entry["source"]),
    )
