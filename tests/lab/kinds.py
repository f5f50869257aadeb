"""One small workload of every kind, for a server that gives a few dozen tokens a second."""

from __future__ import annotations

import json
from pathlib import Path

SHAREGPT = [
    {
        "conversations": [
            {"from": "human", "value": "Name two rivers."},
            {"from": "gpt", "value": "The Po and the Elbe are two rivers of Europe."},
            {"from": "human", "value": "Which is longer?"},
            {"from": "gpt", "value": "The Elbe is the longer one of the two."},
        ]
    },
    {
        "conversations": [
            {"from": "human", "value": "What is a weir?"},
            {"from": "gpt", "value": "A low wall across a river that raises its level."},
        ]
    },
]
TRACE = [
    {"timestamp": 0, "input_length": 90, "output_length": 8},
    {"timestamp": 400, "input_length": 120, "output_length": 8},
    {"timestamp": 700, "input_length": 100, "output_length": 6},
]
WORKLOADS: dict[str, dict[str, object]] = {
    "closed": {"kind": "closed", "prompt_tokens": [64, 128], "concurrency": [1, 3], "requests_per_user": 2},
    "depth": {"kind": "batch", "prompt_tokens": 48, "depth": 160, "depth_cache": "warm", "concurrency": 2},
    "ingest": {"kind": "ingest", "prompt_tokens": 320, "output_tokens": 4, "concurrency": 2, "requests_per_user": 2},
    "swarm": {
        "kind": "swarm",
        "prefix_tokens": 200,
        "prompt_tokens": 40,
        "agents": 3,
        "cells": ["single", "cold", "primed", "evicting"],
        "prefixes": 6,
    },
    "open": {"kind": "open", "prompt_tokens": {"around": 64, "spread": 0.25}, "rate": 2, "requests": 10, "cap": 4},
    "overload": {"kind": "overload", "prompt_tokens": 64, "factor": 2, "duration_s": 4, "recovery_s": 6},
    "sessions": {
        "kind": "sessions",
        "prompt_tokens": 48,
        "turns": 3,
        "concurrency": 2,
        "think_s": 0.2,
        "history": "model",
    },
    "replay": {"kind": "replay", "file": "talk.json", "rate": 2, "ignore_eos": False},
    "trace": {"kind": "replay", "file": "trace.jsonl"},
    "mixed": {
        "kind": "mixed",
        "duration_s": 4,
        "lanes": [
            {"name": "person", "rate": 1, "prompt_tokens": 48, "output_tokens": 8},
            {"name": "batch", "concurrency": 2, "prompt_tokens": 64, "output_tokens": 12},
        ],
    },
}
"""By name; each gets `repeats: 1`, and 12 tokens of output where nothing else is said."""
NO_OUTPUT_KEY = {"trace", "mixed", "replay"}


def write_workloads(folder: Path, **changes: dict[str, object]) -> list[str]:
    """Write them and what they read; returns `--workload` words.

    Args:
        changes: By workload: keys that are to be another.
    """
    folder.mkdir(exist_ok=True)
    (folder / "talk.json").write_text(json.dumps(SHAREGPT))
    (folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TRACE))
    words: list[str] = []
    for name, keys in WORKLOADS.items():
        said = {"name": name, "repeats": 1, "warmup": 1, **keys, **changes.get(name, {})}
        if name not in NO_OUTPUT_KEY:
            said.setdefault("output_tokens", 12)
        path = folder / f"{name}.yaml"
        path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in said.items()))
        words += ["--workload", str(path)]
    return words
