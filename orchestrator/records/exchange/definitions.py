"""What a figure of a cell means, by a tag, and whether two may stand in one comparison.

A tag names a formula, not a number: the same word stands for six different clocks among the tools (TTFT) and for two
swapped ones (TPOT and ITL). Ours are in `CellRecord.definitions`; another tool's are `<tool>/<its own name>`, and
`MEANINGS` says in words what we know of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.records.record import CellRecord

UNITS = ("_ms", "_s", "_tok_per_s", "_tok")

MEANINGS: Mapping[str, str] = {
    "vllm/ttft": "first chunk with choices (completions) or a token (chat; no reasoning_content) - before the POST",
    "vllm/tpot": "(E2E - TTFT) / (output tokens - 1), also where the first chunk carries several tokens",
    "vllm/itl": "gap between chunks, whatever number of tokens they carry",
    "vllm/e2el": "last token chunk - before the POST",
    "vllm/output_throughput": "output tokens / duration of the whole run, prefill and drain included",
    "vllm/max_output_tokens_per_s": "most chunks in one whole second of the run",
    "vllm/max_concurrent_requests": "most requests that touch one whole second: more than ever ran at once",
    "llama-benchy/ttfr": "first chunk with choices, the role-only one too - before the POST",
    "llama-benchy/e2e_ttft": "first content or reasoning - before the POST; tool calls are not seen",
    "llama-benchy/est_ppt": "ttfr - the measured latency",
    "llama-benchy/pp_throughput": "prompt tokens / est_ppt, or with several users / (last first token - first start)",
    "llama-benchy/tg_throughput": "tokens after each request's first stamp / (last token - first first token)",
    "llama-benchy/tg_req_throughput": "tokens after the first stamp / (last - first stamp), per request",
    "llama-benchy/peak_throughput": "most tokens in any one second, per second; in a shorter run / its length",
    "sglang/ttft": "first content or reasoning - before a POST on a new connection: its TCP handshake is inside",
    "sglang/tpot": "(E2E - TTFT) / (output tokens - 1)",
    "sglang/itl": "gap between chunks (per token on its native path)",
    "sglang/e2e_latency": "[DONE] - before the POST",
    "sglang/output_throughput": "output tokens / duration of the whole run, one more request to the server included",
    "guidellm/time_to_first_token": "first token - headers on their way; the wait for a connection is not in it",
    "guidellm/time_to_first_output_token": "first token after the reasoning - headers on their way",
    "guidellm/inter_token_latency": "(last - first token) / (output tokens - 1), one value a request",
    "guidellm/time_per_output_token": "E2E / output tokens: the first token's time is inside",
    "aiperf/time_to_first_token": "first non-empty response - before the request",
    "aiperf/inter_token_latency": "(E2E - TTFT) / (output tokens - 1), one value a request",
    "aiperf/inter_chunk_latency": "gap between chunks",
    "inference-perf/time_to_first_token": "first chunk with content - before the POST",
    "inference-perf/time_per_output_token": "(E2E - TTFT) / (output tokens - 1)",
    "inference-perf/normalized_time_per_output_token": "E2E / output tokens",
    "inference-perf/inter_token_latency": "gap between two token stamps; tokens of one chunk are 0 apart",
    "llama-bench/pp": "prompt tokens / time of decoding the prompt batch, in process: no HTTP, tokenizer or sampler",
    "llama-bench/tg": "tokens / time of decoding them one by one, in process",
    "inferencex/tput_per_gpu": "all tokens / duration / GPUs",
    "inferencex/intvty": "1000 / TPOT in ms of the same percentile: its p99 is the slow tail",
}
"""Tags of other tools that we know the formula of, in words."""


def definition_of(cell: CellRecord, figure: str) -> str | None:
    """The tag of a figure (`ttft_ms`, `output_tok_per_s`); None when its tool did not give it.

    A figure of ours without a tag of its own is `gate0/<figure>`.
    """
    for name in (figure, *(figure.removesuffix(u) for u in UNITS if figure.endswith(u))):
        if name in cell.definitions:
            return cell.definitions[name]
    if figure in cell.stated:
        return str(cell.stated[figure].get("definition"))
    return None if cell.source else f"gate0/{figure}"


def comparable(a: CellRecord, b: CellRecord, figure: str, *, force: bool = False) -> str | None:
    """Why this figure of two cells must not be compared; None when it may be.

    Args:
        force: Compare although the definitions or the places that the load came from differ. A cell that broke a guard,
            another load and a figure that one of them does not have stay refused: there is no number to defend.
    """
    for cell in (a, b):
        if not cell.is_valid:
            return f"{cell.id} is invalid: {cell.guards[0].get('name', 'a guard')} broken"
    if sizes := other_sizes(a, b):
        return sizes
    of_a, of_b = definition_of(a, figure), definition_of(b, figure)
    for cell, tag in ((a, of_a), (b, of_b)):
        if tag is None:
            return f"{cell.id} has no {figure}"
    if force:
        return None
    if of_a != of_b:
        return f"other definitions of {figure}: {of_a} and {of_b}"
    if a.vantage != b.vantage:
        return f"load from other places: {a.vantage} and {b.vantage}"
    if "unknown" in (a.vantage, b.vantage) and a.source.get("tool") != b.source.get("tool"):
        return "load from other places: one of them is not told"
    return None


def other_sizes(a: CellRecord, b: CellRecord) -> str | None:
    """The first of kind, level and sizes that two cells do not share; None when they share all."""
    load_a, load_b = _load(a), _load(b)
    for name, value in load_a.items():
        if load_b[name] != value:
            return f"another load: {name} {value} and {load_b[name]}"
    return None


def _load(cell: CellRecord) -> dict[str, object]:
    return {
        "kind": cell.kind,
        "variant": cell.variant or None,
        "concurrency": cell.concurrency,
        "rate": cell.rate_rps,
        "prompt_tok": cell.prompt_tok,
        "output_tok": cell.output_tok,
        "depth_tok": cell.depth_tok,
        "prefix_tok": cell.prefix_tok,
    }
