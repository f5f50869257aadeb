"""Which tool wrote a file, by its content alone: names of files are chosen by people."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.records.exchange import (
    from_aiperf,
    from_guidellm,
    from_inference_perf,
    from_inferencex,
    from_llama_bench,
    from_llama_benchy,
    from_sglang,
    from_vllm,
)
from orchestrator.records.exchange.foreign import Foreign
from orchestrator.records.exchange.parts import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One form that can be read.

    Attributes:
        name: In words, as messages say it.
        is_such: Whether an object of the file (a line of a CSV) is of this form.
        read: Reads them all.
        is_one: The file is one object, not several.
        is_detail: It holds requests only; its tool's summary says the rest.
    """

    name: str
    is_such: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Sequence[Part]], Foreign]
    is_one: bool = False
    is_detail: bool = False


FORMS = (
    Form(name="SGLang bench_serving result", is_such=from_sglang.is_such, read=from_sglang.read),
    Form(name="AIPerf or GenAI-Perf profile export", is_such=from_aiperf.is_such, read=from_aiperf.read, is_one=True),
    Form(name="vLLM bench serve result", is_such=from_vllm.is_such, read=from_vllm.read),
    Form(name="llama-benchy JSON", is_such=from_llama_benchy.is_such, read=from_llama_benchy.read, is_one=True),
    Form(name="llama-benchy CSV", is_such=from_llama_benchy.is_line, read=from_llama_benchy.read_lines),
    Form(name="GuideLLM report", is_such=from_guidellm.is_such, read=from_guidellm.read, is_one=True),
    Form(
        name="AIPerf per-request records",
        is_such=from_aiperf.is_record,
        read=from_aiperf.read_records,
        is_detail=True,
    ),
    Form(
        name="inference-perf lifecycle metrics",
        is_such=from_inference_perf.is_such,
        read=from_inference_perf.read,
        is_one=True,
    ),
    Form(
        name="inference-perf per-request metrics",
        is_such=from_inference_perf.is_record,
        read=from_inference_perf.read_records,
        is_detail=True,
    ),
    Form(name="llama-bench result", is_such=from_llama_bench.is_such, read=from_llama_bench.read),
    Form(name="InferenceX aggregate", is_such=from_inferencex.is_such, read=from_inferencex.read),
)


def recognise(text: str) -> tuple[Form, tuple[Mapping[str, Any], ...]] | None:
    """The form of a file and its objects, or a CSV's lines; None when it is none of `FORMS`.

    Raises:
        ValueError: It begins as JSON and is none; says where it breaks.
    """
    objects = _objects(text)
    if not objects:
        return None
    form = next((f for f in FORMS if f.is_such(objects[0])), None)
    return None if form is None else (form, objects)


def _objects(text: str) -> tuple[Mapping[str, Any], ...]:
    """One object, a list of them, several after each other (JSON Lines, appended results), or a CSV with a head."""
    found = _documents(text)
    if found is None:
        try:
            lines = list(csv.DictReader(io.StringIO(text)))
        except csv.Error:
            return ()
        return tuple(lines) if lines and len(lines[0]) > 2 else ()
    if len(found) == 1 and isinstance(found[0], list):
        found = found[0]
    return tuple(found) if found and all(isinstance(d, Mapping) for d in found) else ()


def _documents(text: str) -> list[Any] | None:
    """None when it is no JSON at all. `Infinity` and `NaN` are read as Python's `json` writes them."""
    decoder, found, at = json.JSONDecoder(), [], 0
    text = text.lstrip("\ufeff")
    while at < len(text):
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            break
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            if text.lstrip()[:1] in ("{", "["):
                raise
            return None
        except RecursionError:
            raise ValueError("nested too deeply") from None
        found.append(document)
    return found or None
