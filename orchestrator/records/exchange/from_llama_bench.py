"""llama-bench JSON, JSONL and CSV: in process, one line a test; columns grow with each build and are read by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.records.exchange.foreign import Foreign, Point, make_point, scalar, told
from orchestrator.records.exchange.parts import Part
from orchestrator.values import Json

TOOL = "llama-bench"
FIGURES = {"pp": "prefill_tok_per_s", "tg": "decode_tok_per_s", "pg": "total_tok_per_s"}


def is_such(document: Mapping[str, Any]) -> bool:
    return {"n_prompt", "n_gen", "avg_ts"} <= set(document)


def read(parts: Sequence[Part]) -> Foreign:
    rows = [Part(_numbers(p.raw), where=p.where, path=p.path) for p in parts]
    first = rows[0]
    build, commit = first.find_count("build_number"), first.find_text("build_commit")
    version = " ".join(w for w in (f"b{build}" if build else "", f"({commit})" if commit else "") if w)
    return Foreign(
        tool=TOOL,
        title=TOOL,
        form="llama-bench result",
        points=tuple(_point(row) for row in rows),
        version=version or None,
        engine="llamacpp",
        engine_version=version or None,
        model=first.find_text("model_type") or first.find_text("model_filename") or "",
        created_at=str(first.raw.get("test_time") or ""),
    )


def _point(row: Part) -> Point:
    prompt, output = row.count("n_prompt"), row.count("n_gen")
    test = "pg" if prompt and output else "pp" if prompt else "tg"
    samples = row.find_numbers("samples_ts") or []
    figure: dict[str, Json] = {
        "mean": row.number("avg_ts"),
        "sd": row.find_number("stddev_ts"),
        "unit": "tok/s",
        "definition": f"{TOOL}/{test}",
    }
    if samples:
        figure |= {"values": samples, "n": len(samples)}
    took = row.find_number("avg_ns")
    stated = {FIGURES[test]: figure, "test_ms": scalar(None if took is None else took / 1e6, "ms", f"{TOOL}/avg_ns")}
    return make_point(
        tool=TOOL,
        kind="batch",
        concurrency=1,
        prompt_tok=prompt,
        output_tok=output,
        depth_tok=row.find_count("n_depth") or 0,
        variant=test,
        stated=told(stated),
        repeats=max(1, len(samples)),
        repeats_done=max(1, len(samples)),
        requests_per_repeat=1,
        started_at=str(row.raw.get("test_time") or ""),
        definitions={"clock": "llama-bench: in process, no HTTP"},
        extra=row.rest(but=("test_time",)),
    )


def _numbers(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A CSV's texts as the JSON would have them; `build_commit` may look like a number and is none."""
    return {k: _number(v) if isinstance(v, str) and k != "build_commit" else v for k, v in raw.items()}


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text or None
