"""The shipped rules, read from their files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from orchestrator.engines.rules.model import Rule
from orchestrator.engines.rules.versions import version_range

FILES = ("cache", "speculation", "memory", "start", "network", "measuring", "serving")
"""In the order in which they are shown."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every shipped rule, by file and place."""
    folder = files("orchestrator.engines.rules") / "data"
    texts = ((folder / f"{name}.yaml").read_text(encoding="utf-8") for name in FILES)
    return tuple(read_rule(entry) for text in texts for entry in yaml.load(text, Loader=_LOADER))


def read_rule(entry: Mapping[str, Any]) -> Rule:
    """One entry of a file.

    Raises:
        KeyError, TypeError, ValueError: It is no rule; a key that no rule has is one of the reasons.
    """
    plain: dict[str, Any] = dict(entry)
    if not plain.get("evidence"):
        raise ValueError(f"{plain.get('code')}: a rule says where it is known from")
    plain |= {key: tuple(plain.get(key, ())) for key in ("evidence", "engines", "paths", "answered_by")}
    if "versions" in plain:
        plain["versions"] = version_range(plain["versions"])
    return Rule(**plain)
