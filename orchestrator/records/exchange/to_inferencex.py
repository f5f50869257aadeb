"""A cell of ours as InferenceX's aggregate: what the vLLM shape holds, per GPU, latencies in seconds, speeds per user.

`p99_intvty` is 1000 / the p99 TPOT, the slow tail, as InferenceX has it. What a record does not tell is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.records.exchange.to_vllm import vllm_result
from orchestrator.records.record import CellRecord, RequestRecord, RunRecord
from orchestrator.values import Json


def inferencex_aggregate(run: RunRecord, cell: CellRecord, requests: Sequence[RequestRecord]) -> dict[str, Json]:
    """
    Raises:
        InputError: The cell has no requests.
    """
    result = vllm_result(run, cell, requests)
    tensor, pipeline = _size(run, "tensor_parallel"), _size(run, "pipeline_parallel")
    gpus = tensor * pipeline
    return {
        "hw": ", ".join(str(h.get("name")) for h in run.hosts) or None,
        "conc": cell.concurrency,
        "image": run.image,
        "model": run.model or run.served_name,
        "infmax_model_prefix": (run.model or run.served_name).rsplit("/", 1)[-1].lower(),
        "framework": run.engine,
        "precision": None,
        "spec_decoding": None,
        "disagg": False,
        "recipe_fingerprint": run.profile_digest,
        "isl": cell.prompt_tok,
        "osl": cell.output_tok,
        "is_multinode": len(run.hosts) > 1,
        "tp": tensor,
        "pp": pipeline,
        "ep": 1,
        "dp_attention": False,
        "tput_per_gpu": _share(result["total_token_throughput"], gpus),
        "output_tput_per_gpu": _share(result["output_throughput"], gpus),
        "input_tput_per_gpu": _difference(result, gpus),
        **_seconds(result),
        "exported_by": result["exported_by"],
        "gate0_run": run.id,
        "gate0_cell": result["gate0_cell"],
    }


def _seconds(result: Mapping[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in result.items():
        if not key.endswith("_ms") or not isinstance(value, int | float):
            continue
        name = key.removesuffix("_ms")
        found[name] = value / 1000
        if name.endswith("_tpot") and not name.startswith("std"):
            found[name.replace("_tpot", "_intvty")] = 1000 / value if value > 0 else None
    return found


def _size(run: RunRecord, name: str) -> int:
    """GPUs side by side, as the profile asks for them; a profile that says nothing runs on one."""
    serve = run.profile.get("serve")
    value = serve.get(name) if isinstance(serve, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 1


def _share(value: Json, gpus: int) -> float | None:
    return value / gpus if isinstance(value, int | float) else None


def _difference(result: Mapping[str, Json], gpus: int) -> float | None:
    whole, output = result["total_token_throughput"], result["output_throughput"]
    if not isinstance(whole, int | float) or not isinstance(output, int | float):
        return None
    return (whole - output) / gpus
