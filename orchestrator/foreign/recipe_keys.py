"""What becomes of a recipe's keys that are neither the command nor its values: a fate and a reason for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.foreign.hiding import MASK, hidden, is_literal, is_secret_key
from orchestrator.foreign.lenient_yaml import Read
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.texts import shorten

READ = frozenset(
    {
        *("name", "description", "model", "model_revision", "runtime", "container", "containers", "defaults", "env"),
        *("command", "launch", "executor_config", "volumes", "cluster_only", "solo_only", "mode", "min_nodes"),
        *("max_nodes", "mods", "patches", "build_args", "engine_version", "runtime_version"),
    }
)
"""Keys that the recipe's reader itself answers for; `command_…` too."""

_FATES: Mapping[str, tuple[Fate, str]] = {
    "recipe_version": (Fate.DROPPED, "numbers the recipe's form"),
    "sparkrun_version": (Fate.DROPPED, "the version of the other tool"),
    "metadata": (Fate.DROPPED, "feeds the other tool's lists and memory estimate; gate0 measures"),
    "maintainer": (Fate.DROPPED, "a remark"),
    "tags": (Fate.DROPPED, "a remark"),
    "specs": (Fate.DROPPED, "a remark"),
    "notes": (Fate.DROPPED, "a remark"),
    "context": (Fate.DROPPED, "a remark: the command says how long a request may be"),
    "benchmark": (Fate.DROPPED, "what is measured is said by gate0's workloads"),
    "builder": (Fate.PERSON, "the image is made or pulled by the other tool: have it on the host, or name one to pull"),
    "builder_config": (Fate.PERSON, "how the image is made: have it on the host, or name one to pull"),
    "build": (Fate.PERSON, "how the server is built: have the image on the host, or name one to pull"),
    "runtime_config": (Fate.PERSON, "settings of the other tool's launcher"),
    "distribution_config": (Fate.PERSON, "what is copied to the hosts: see that weights and image are there"),
    "pre_exec": (Fate.PERSON, "runs in the container before the server: put it into the image"),
    "post_exec": (Fate.PERSON, "runs in the container once it serves: gate0's gates check the server"),
    "post_commands": (Fate.PERSON, "runs on the control machine once it serves: run it yourself"),
    "stop_after_post": (Fate.DROPPED, "gate0 stops what it measured unless it is told to keep it"),
    "variants": (Fate.PERSON, "other values for the same recipe: write each as a profile that `extends` this one"),
    "overrides": (Fate.PERSON, "other values for the same recipe: write each as a profile that `extends` this one"),
    "includes": (Fate.PERSON, "other files that the recipe takes in: not read"),
    "draft_model": (Fate.DROPPED, "the command names the drafter, where it has one"),
    "ssh": (Fate.DROPPED, "hosts are named in hosts.yaml or with `--on`"),
    "target_host": (Fate.DROPPED, "hosts are named in hosts.yaml or with `--on`"),
    "executor": (Fate.DROPPED, "gate0 runs it with Docker"),
    "runtime_cache": (Fate.DROPPED, "mounts below `container` hold what is compiled"),
    "readiness": (Fate.DROPPED, "gate0 waits for the first token (`ready`)"),
    "scheduler": (Fate.DROPPED, "gate0 runs one profile on a host at a time"),
    "layout": (Fate.DROPPED, "gate0 places the ranks itself"),
}


def other_keys(recipe: Mapping[str, Any], read: Read) -> Iterator[Note]:
    """A note for each key that the recipe's reader does not answer for."""
    for key, value in recipe.items():
        name = str(key)
        if name in READ or name.startswith("command_"):
            continue
        fate, why = _FATES.get(name, (Fate.PERSON, "not known to gate0: see what it means"))
        is_empty = value in (None, "", [], {}) or value is False
        yield Note(
            fate=Fate.DROPPED if is_empty else fate,
            what=shown(name, value),
            where=read.where(name),
            why="says nothing" if is_empty else why,
        )


def patches(recipe: Mapping[str, Any], read: Read) -> Iterator[Note]:
    """A note for each mod, patch and build option: what changes the image's engine."""
    whys = {
        "mods": "changes the image before it serves: build an image that has it, or know that it is not needed",
        "patches": "changes the image before it serves: build an image that has it",
        "build_args": "how the image is built: have that image on the host, or name one to pull",
    }
    for key, why in whys.items():
        value = recipe.get(key)
        items = value if isinstance(value, list) else [] if value in (None, "", {}) else [value]
        if key == "build_args" and items:
            items = [" ".join(str(item) for item in items)]
        for index, item in enumerate(items):
            where = read.where(key, index) if isinstance(value, list) and key != "build_args" else read.where(key)
            yield Note(fate=Fate.PERSON, what=shown(key, item), where=where, why=why)


def shown(key: str, value: Any) -> str:
    """`key: value` on one short line, secrets hidden."""
    if isinstance(value, Mapping):
        inner = ", ".join(str(k) for k in value)
        return shorten(f"{key}: {{{inner}}}")
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        return f"{key}: {len(value)} entries"
    return shorten(f"{key}: {MASK}" if is_secret_key(key) and is_literal(str(value)) else hidden(f"{key}: {value}"))
