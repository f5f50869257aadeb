"""What is known of machines, weights and models beside the records (`models.json`): bandwidth, bits, active parameters.

Told by others, with the source; what is not there is unknown and stays so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from orchestrator.figures.server import number_of
from orchestrator.records.record import RunRecord
from orchestrator.values import Json

ACTIVE_IN_NAME = re.compile(r"(?i)(?<![a-z0-9])a(\d+(?:\.\d+)?)b(?![a-z0-9])")
BITS_A_BYTE = 8
KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """Of one host's memory, GB/s (10^9). method: `stated` by its maker or a report, or `measured`."""

    gb_per_s: float
    method: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Of the weights. A quantised checkpoint keeps some layers in 16 bits: these bits are the least it has."""

    name: str
    bits: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """
    Attributes:
        active_params: Read for one token.
        kv_bytes_per_tok: Of context that each new token reads again, in 16 bits; None: not known.
    """

    name: str
    active_params: float
    kv_bytes_per_tok: float | None
    source: str
    default_precision: str = ""


def find_bandwidth(host: Mapping[str, Json]) -> Bandwidth | None:
    """Measured on the host, else stated by its maker, else by the report that the record is of."""
    for facts in (host.get("before"), host.get("after"), host):
        value = number_of(facts, "memory_bandwidth_gb_per_s") if isinstance(facts, Mapping) else None
        if value is not None:
            return Bandwidth(gb_per_s=value, method="measured", source="the record of this host")
    text = " ".join(_host_words(host)).lower()
    for raw in _facts()["machines"]:
        if re.search(raw["match"], text):
            return Bandwidth(gb_per_s=float(raw["bandwidth_gb_per_s"]), method="stated", source=raw["source"])
    return None


def find_model(run: RunRecord) -> ModelFacts | None:
    """By its name; of a model that is not listed, by active parameters in the name (`35B-A3B`)."""
    text = " ".join(_model_words(run)).lower()
    for raw in _facts()["models"]:
        if re.search(raw["match"], text):
            kv = raw["kv_kib_per_tok"]
            return ModelFacts(
                name=raw["name"],
                active_params=raw["active_b"] * 1e9,
                kv_bytes_per_tok=None if kv is None else kv * KIB,
                source=raw["source"],
                default_precision=raw["precision"] or "",
            )
    found = ACTIVE_IN_NAME.search(text)
    if found is None:
        return None
    name = run.model.rsplit("/", 1)[-1]
    return ModelFacts(name=name, active_params=float(found[1]) * 1e9, kv_bytes_per_tok=None, source="the model's name")


def find_precision(run: RunRecord) -> Precision | None:
    """As told, else by the model's name or file, else the one that the model is published in; never that of a GGUF."""
    texts = [*_quantisation(run), *_model_words(run)]
    model = find_model(run)
    is_gguf = any("gguf" in text.lower() for text in texts)
    texts += [model.default_precision] if model is not None and not is_gguf else []
    for text in texts:
        if (found := _precision(text.lower())) is not None:
            return found
    return None


def kv_share(run: RunRecord) -> float:
    """Bytes of the cache's type over those of 16 bits."""
    serve = run.profile.get("serve")
    told = str(serve.get("kv_cache_dtype") or "") if isinstance(serve, Mapping) else ""
    return 0.5 if "8" in told else 1.0


def _precision(text: str) -> Precision | None:
    for raw in _facts()["precisions"]:
        if (found := re.search(raw["match"], text)) is not None:
            bits = float(found[1]) if raw["bits"] is None else float(raw["bits"])
            return Precision(name=raw["name"], bits=bits, source=raw["source"])
    return None


def _quantisation(run: RunRecord) -> Iterator[str]:
    serve = run.profile.get("serve")
    for told in (run.source.get("precision"), serve.get("quantization") if isinstance(serve, Mapping) else None):
        if isinstance(told, str):
            yield told


def _model_words(run: RunRecord) -> Iterator[str]:
    """Before those of the profile stands what the run itself says."""
    yield run.model
    model = run.profile.get("model")
    if isinstance(model, Mapping):
        yield from (str(model[key]) for key in ("repo", "file", "path") if model.get(key))
    elif isinstance(model, str):
        yield model


def _host_words(host: Mapping[str, Json]) -> Iterator[str]:
    yield str(host.get("kind") or "")
    for facts in (host.get("before"), host.get("after")):
        if isinstance(facts, Mapping):
            yield str(facts.get("machine") or "")
            gpus = facts.get("gpus")
            yield from (
                (str(g.get("name")) for g in gpus if isinstance(g, Mapping)) if isinstance(gpus, Sequence) else ()
            )


@cache
def _facts() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((files("orchestrator.report") / "models.json").read_text(encoding="utf-8"))
    return found
