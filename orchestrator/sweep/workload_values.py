"""From a checked document to a `Workload`: names turned into values, files read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.errors import InputError, InvalidFile
from orchestrator.profile.steps import dotted
from orchestrator.profile.yaml_lines import Document, Steps, read_text
from orchestrator.records.slo_presets import PRESETS
from orchestrator.sweep.arrivals import mean_rate
from orchestrator.sweep.conversations import TOK_PER_WORD, Recording, read_recording
from orchestrator.sweep.lengths import Lengths, fixed, lengths_of
from orchestrator.sweep.overrides import is_override
from orchestrator.sweep.rows import read_lengths, wrong
from orchestrator.sweep.workload import Conversation, Kind, LaneLoad, Search, Slo, SwarmCell, Workload
from orchestrator.sweep.workload_checks import kinds_in

LISTS = ("depth", "concurrency", "agents", "prefix_tokens")
RATES = ("rate", "burstiness")
FLOATS = (
    "temperature",
    "tight",
    "request_timeout_s",
    "duration_s",
    "factor",
    "recovery_s",
    "think_s",
    "speed",
)
RENAMED = ("kind", "cells", "search", "slo", "lanes", "prompt_tokens", "output_tokens", "file")


def workload_of(document: Document) -> Workload:
    """
    Raises:
        InvalidFile: A file that it names cannot be read, or holds what does not fit.
    """
    value = document.value
    assert isinstance(value, dict), "checked against the schema"
    given: dict[str, Any] = {k: v for k, v in value.items() if v is not None}
    plain: dict[str, Any] = {k: v for k, v in given.items() if k not in RENAMED}
    plain |= {k: tuple(_listed(given[k])) for k in LISTS if k in given}
    plain |= {k: tuple(float(v) for v in _listed(given[k])) for k in RATES if k in given}
    plain |= {k: float(given[k]) for k in FLOATS if k in given}
    plain |= {k: _all_lengths(document, k) for k in ("prompt_tokens", "output_tokens") if k in given}
    plain["kinds"] = kinds = kinds_in(given)
    if "cells" in given:
        plain["cells_of_swarm"] = tuple(SwarmCell(c) for c in _listed(given["cells"]))
    if "slo" in given:
        plain["slo"] = slo_of(given["slo"])
    if "search" in given:
        plain["search"] = _search(given["search"], plain.get("slo"), kinds)
    if "lanes" in given:
        plain["lanes"] = tuple(_lane(document, i, lane) for i, lane in enumerate(given["lanes"]))
    if "ramp" in given:
        plain["rate"] = (mean_rate(given["ramp"]),)
    if Kind.REPLAY in kinds:
        plain |= _replay(document, given)
    return Workload(**plain)


def slo_of(value: str | Mapping[str, Any]) -> Slo:
    """A preset by its name, or limits as a file says them."""
    if isinstance(value, str):
        preset = PRESETS[value]
        return Slo(
            name=preset.name, ttft_s=preset.ttft_s, tpot_ms=preset.tpot_ms, e2e_s=preset.e2e_s, share=preset.share
        )
    limits = {k: float(value[k]) if k in value else None for k in ("ttft_s", "tpot_ms", "e2e_s")}
    return Slo(**limits, share=float(value.get("share", 0.95)))  # type: ignore[arg-type]


def _search(value: Mapping[str, Any], slo: Slo | None, kinds: tuple[Kind, ...]) -> Search:
    over = value.get("over") or ("rate" if Kind.OPEN in kinds else "concurrency")
    own = slo_of(value["slo"]) if "slo" in value else slo
    assert own is not None, "checked before"
    numbers = {k: float(value[k]) for k in ("low", "high", "precision") if k in value}
    return Search(over=over, slo=own, **numbers)


def _lane(document: Document, index: int, value: Mapping[str, Any]) -> LaneLoad:
    plain: dict[str, Any] = {k: v for k, v in value.items() if k not in {"prompt_tokens", "output_tokens"}}
    plain |= {k: float(plain[k]) for k in ("rate", "burstiness", "think_s") if k in plain}
    for key, name in (("prompt_tokens", "prompt"), ("output_tokens", "output")):
        if key in value:
            plain[name] = _lengths(document, ("lanes", index, key), value[key])
    return LaneLoad(**plain)


def _all_lengths(document: Document, key: str) -> tuple[Lengths, ...]:
    value = document.value
    assert isinstance(value, dict)
    if isinstance(value[key], list):
        return tuple(_lengths(document, (key, i), item) for i, item in enumerate(value[key]))
    return (_lengths(document, (key,), value[key]),)


def _lengths(document: Document, steps: Steps, value: int | Mapping[str, Any]) -> Lengths:
    if isinstance(value, int) or "file" not in value:
        return lengths_of(value)
    path, text = _named_file(document, (*steps, "file"), value["file"])
    return lengths_of(value, read_lengths(text, str(path), value.get("column")))


def _replay(document: Document, given: Mapping[str, Any]) -> dict[str, Any]:
    path, text = _named_file(document, ("file",), given["file"])
    found = read_recording(
        text,
        str(path),
        form=given.get("format", "auto"),
        limit=given.get("limit"),
        pick=given.get("pick", "first"),
        seed=given.get("seed", 1),
        most_turns=given.get("most_turns"),
        most_prompt=given.get("most_prompt"),
    )
    if not found.is_timed and given.get("speed") is not None:
        raise _at(document, ("speed",), f"scales a trace's own times, and {path.name} has none; `rate` sets the pace")
    if found.is_timed and given.get("rate") is not None:
        found = found.without_times()
    elif found.is_timed:
        for key in ("burstiness", "arrivals"):
            if given.get(key) is not None:
                raise _at(document, (key,), f"shapes arrivals at a `rate`, but {path.name} has times of its own")
    return {
        "file": path.name,
        "format": found.form,
        "conversations": found.conversations,
        "conversations_digest": found.digest,
        "left_out": found.left_out,
        "cut": found.cut,
        **_mean_sizes(found),
    }


def _mean_sizes(found: Recording) -> dict[str, Any]:
    """What estimates and warm-up go by; each request of a replay has its own size."""
    prompts = [_context_tok(c, turn) for c in found.conversations for turn in range(len(c.prompts))]
    answers = [_tok(a) for c in found.conversations for a in c.answers]
    mean = [fixed(max(1, round(sum(sizes) / len(sizes)))) for sizes in (prompts, answers)]
    return {"prompt_tokens": (mean[0],), "output_tokens": (mean[1],)}


def _context_tok(conversation: Conversation, turn: int) -> float:
    said = (conversation.system or "", *conversation.prompts[: turn + 1], *conversation.answers[:turn])
    return sum(_tok(part) for part in said)


def _tok(part: str | int) -> float:
    return part if isinstance(part, int) else TOK_PER_WORD * len(part.split())


def _named_file(document: Document, steps: Steps, name: str) -> tuple[Path, str]:
    """The file's path and text. A relative path starts at the file that names it, an override's where gate0 runs."""
    written = document.place_of(steps).file
    path = Path(name).expanduser()
    if not is_override(written):
        path = Path(written).parent / path
    try:
        return path, read_text(path)
    except InvalidFile:
        raise
    except InputError as exc:
        raise _at(document, steps, exc.message) from exc


def _at(document: Document, steps: Steps, message: str) -> InvalidFile:
    place = document.place_of(steps)
    return wrong(place.file, place.line, dotted(steps), message)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
