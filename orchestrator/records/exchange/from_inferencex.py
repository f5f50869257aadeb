"""InferenceX aggregate (`agg_*.json`): one point a file, per GPU, latencies in seconds.

`*_intvty` is 1000 / TPOT of the same percentile, so its p99 is the slow tail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.records.exchange.foreign import Foreign, Point, make_point, scalar, told
from orchestrator.records.exchange.parts import Part
from orchestrator.values import Json

TOOL = "inferencex"
LATENCIES = {"ttft": "ttft_ms", "tpot": "tpot_ms", "itl": "itl_ms", "e2el": "e2e_ms"}
PER_GPU = {
    "total_tok_per_s_per_gpu": "tput_per_gpu",
    "output_tok_per_s_per_gpu": "output_tput_per_gpu",
    "input_tok_per_s_per_gpu": "input_tput_per_gpu",
}
_KEY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el|intvty)")
WORDS = {"median": "p50", "std": "sd"}


def is_such(document: Mapping[str, Any]) -> bool:
    return {"tput_per_gpu", "conc"} <= set(document)


def read(parts: Sequence[Part]) -> Foreign:
    first = parts[0]
    return Foreign(
        tool=TOOL,
        title=TOOL,
        form="InferenceX aggregate",
        points=tuple(_point(part) for part in parts),
        engine=first.find_text("framework") or "unknown",
        model=first.find_text("model") or "",
        image=first.find_text("image"),
    )


def _point(part: Part) -> Point:
    per_gpu = {ours: part.find_number(theirs) for ours, theirs in PER_GPU.items()}
    stated: dict[str, Mapping[str, Json] | None] = {
        ours: scalar(value, "tok/s/GPU", f"{TOOL}/{PER_GPU[ours]}") for ours, value in per_gpu.items()
    }
    if _is_one_gpu(part):
        whole = per_gpu["output_tok_per_s_per_gpu"]
        stated["output_tok_per_s"] = scalar(whole, "tok/s", f"{TOOL}/output_tput_per_gpu")
    return make_point(
        tool=TOOL,
        kind="closed",
        concurrency=part.count("conc"),
        prompt_tok=part.find_number("isl"),
        output_tok=part.find_number("osl"),
        stated=told({**stated, **_latencies(part)}),
        extra=part.rest(),
    )


def _latencies(part: Part) -> dict[str, Mapping[str, Json]]:
    found: dict[str, dict[str, Json]] = {}
    for key in part.raw:
        match = _KEY.fullmatch(key)
        value = part.find_number(key) if match else None
        if match is None or value is None:
            continue
        is_speed = match[2] == "intvty"
        name = "decode_tok_per_s" if is_speed else LATENCIES[match[2]]
        head: dict[str, Json] = {"unit": "tok/s" if is_speed else "ms", "definition": f"{TOOL}/{match[2]}"}
        word = WORDS.get(match[1], match[1])
        found.setdefault(name, head)[word] = value if is_speed else value * 1000
    return dict(found)


def _is_one_gpu(part: Part) -> bool:
    """Only then is a figure per GPU one of the whole server, however they count GPUs."""
    sizes = [part.raw.get(k) for k in ("tp", "pp", "dcp_size", "pcp_size", "ep")]
    return part.raw.get("is_multinode") is False and part.raw.get("tp") == 1 and all(s in (None, 1) for s in sizes)
