"""The clients as a user runs them: each one's command line for a closed loop, and what its result file then says.

The words differ. TPOT here is the time per token after the first event: vLLM's TPOT, GuideLLM's and AIPerf's ITL, the
inverse of llama-benchy's t/s per request. Gap is the time between two events: vLLM's ITL, AIPerf's ICL. llama-benchy
sends batches, not a loop that refills, and its total is of the decode window alone.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench_install import program, write_book, write_tokenizer

MODEL = "mock-model"
PROMPT_TOK = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A closed loop: `streams` in flight until each has had `per_stream` answers."""

    url: str
    streams: int
    per_stream: int
    output_tok: int

    @property
    def requests(self) -> int:
        return self.streams * self.per_stream

    @property
    def root_url(self) -> str:
        return self.url.removesuffix("/v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a client says. None: it has no such figure."""

    requests: int
    ttft_ms: float
    output_tok_per_s: float
    tpot_ms: float | None
    gap_ms: float | None = None
    output_tok: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One tool.

    Attributes:
        command, read: Both get the folder for its results, empty before.
        answer: The file in that folder that gets the command's stdout; None: stdout is of no use.
        is_batched: Its total is of the decode window of each batch.
        tpot_word, gap_word: Its own names for the two.
    """

    name: str
    command: Callable[[Asked, Path], tuple[str, ...]]
    read: Callable[[Path], Reported]
    tpot_word: str
    gap_word: str | None
    answer: str | None = None
    is_batched: bool = False
    is_offline: bool = True


def gate0_program() -> str:
    return str(Path(sys.executable).with_name("gate0"))


def gate0_sweep(url: str, workload: Path, folder: Path) -> tuple[str, ...]:
    """The command that sweeps with a workload file; its records go into the folder too."""
    return (
        *(gate0_program(), "sweep", "--url", url, "--engine", "vllm", "--workload", str(workload)),
        *("--results", str(folder), "--json", "-q"),
    )


def gate0_point(folder: Path) -> dict[str, Any]:
    """The one point of a sweep's answer."""
    (run,) = json.loads((folder / "sweep.json").read_text())["runs"]
    (point,) = run["points"]
    found: dict[str, Any] = point
    return found


def _gate0_command(asked: Asked, folder: Path) -> tuple[str, ...]:
    workload = folder / "bench-closed.yaml"
    workload.write_text(
        f"name: bench-closed\nkind: closed\nprompt_tokens: {PROMPT_TOK}\noutput_tokens: {asked.output_tok}\n"
        f"concurrency: [{asked.streams}]\nrequests_per_user: {asked.per_stream}\nrepeats: 1\n"
    )
    return gate0_sweep(asked.url, workload, folder)


def _gate0_read(folder: Path) -> Reported:
    point = gate0_point(folder)
    return Reported(
        requests=point["good"],
        ttft_ms=point["ttft_ms"]["mean"],
        tpot_ms=point["tpot_ms"]["mean"],
        gap_ms=point["itl_ms"]["mean"],
        output_tok=point["client"]["tokens"],
        output_tok_per_s=point["output_tok_per_s"],
    )


def vllm_bench(url: str, folder: Path, *, output_tok: int, requests: int) -> tuple[str, ...]:
    """`vllm bench serve` on random prompts, but for how they are to arrive."""
    return (
        *(str(program("vllm")), "bench", "serve", "--backend", "openai-chat", "--base-url", url.removesuffix("/v1")),
        *("--endpoint", "/v1/chat/completions", "--model", MODEL, "--tokenizer", str(write_tokenizer())),
        *("--dataset-name", "random", "--random-input-len", str(PROMPT_TOK), "--random-output-len", str(output_tok)),
        *("--num-prompts", str(requests), "--ignore-eos", "--disable-tqdm"),
        *("--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result", "--save-detailed"),
        *("--result-dir", str(folder), "--result-filename", "result.json"),
    )


def _vllm_command(asked: Asked, folder: Path) -> tuple[str, ...]:
    common = vllm_bench(asked.url, folder, output_tok=asked.output_tok, requests=asked.requests)
    return (*common, "--max-concurrency", str(asked.streams))


def _vllm_read(folder: Path) -> Reported:
    result = json.loads((folder / "result.json").read_text())
    return Reported(
        requests=result["completed"],
        ttft_ms=result["mean_ttft_ms"],
        tpot_ms=result["mean_tpot_ms"],
        gap_ms=result["mean_itl_ms"],
        output_tok=result["total_output_tokens"],
        output_tok_per_s=result["output_throughput"],
    )


def _benchy_command(asked: Asked, folder: Path) -> tuple[str, ...]:
    return (
        *(str(program("llama-benchy")), "--base-url", asked.url, "--model", MODEL),
        *("--tokenizer", str(write_tokenizer()), "--book-url", write_book(), "--skip-coherence"),
        *("--pp", str(PROMPT_TOK), "--tg", str(asked.output_tok), "--concurrency", str(asked.streams)),
        *("--runs", str(asked.per_stream), "--save-result", str(folder / "result.json"), "--format", "json"),
        *("--emit-progress", str(folder / "progress.jsonl")),
    )


def _benchy_read(folder: Path) -> Reported:
    (cell,) = json.loads((folder / "result.json").read_text())["benchmarks"]
    rates = cell["tg_req_throughput"]["values"]
    return Reported(
        requests=len(rates),
        ttft_ms=cell["e2e_ttft"]["mean"],
        tpot_ms=statistics.fmean(1000 / rate for rate in rates),
        output_tok_per_s=cell["tg_throughput"]["mean"],
    )


def _guidellm_command(asked: Asked, folder: Path) -> tuple[str, ...]:
    return (
        *(str(program("guidellm")), "run", "--backend", f"kind=openai_http,target={asked.root_url},model={MODEL}"),
        *("--profile", f"kind=concurrent,streams={asked.streams}"),
        *("--constraint", f"kind=max_requests,count={asked.requests}"),
        *("--tokenizer", f"kind=hf_auto,model={write_tokenizer()}"),
        *("--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOK},output_tokens={asked.output_tok}"),
        *("--output", f"kind=json,path={folder / 'result.json'}", "--disable-console"),
    )


def _guidellm_read(folder: Path) -> Reported:
    (run,) = json.loads((folder / "result.json").read_text())["benchmarks"]
    good = {name: figure["successful"] for name, figure in run["metrics"].items() if _has_successes(figure)}
    return Reported(
        requests=run["metrics"]["request_totals"]["successful"],
        ttft_ms=good["time_to_first_token_ms"]["mean"],
        tpot_ms=good["inter_token_latency_ms"]["mean"],
        output_tok=round(good["output_token_count"]["total_sum"]),
        output_tok_per_s=good["output_tokens_per_second"]["mean"],
    )


def _has_successes(figure: Any) -> bool:
    return isinstance(figure, dict) and isinstance(figure.get("successful"), dict)


def _aiperf_command(asked: Asked, folder: Path) -> tuple[str, ...]:
    return (
        *(str(program("aiperf")), "profile", "--model", MODEL, "--url", asked.root_url, "--endpoint-type", "chat"),
        *("--streaming", "--tokenizer", str(write_tokenizer()), "--extra-inputs", "ignore_eos:true"),
        *("--isl", str(PROMPT_TOK), "--osl", str(asked.output_tok)),
        *("--concurrency", str(asked.streams), "--request-count", str(asked.requests)),
        *("--output-artifact-dir", str(folder), "--ui", "none"),
    )


def _aiperf_read(folder: Path) -> Reported:
    result = json.loads((folder / "profile_export_aiperf.json").read_text())
    return Reported(
        requests=round(result["request_count"]["avg"]),
        ttft_ms=result["time_to_first_token"]["avg"],
        tpot_ms=result["inter_token_latency"]["avg"],
        gap_ms=result["inter_chunk_latency"]["avg"],
        output_tok=round(result["total_output_tokens"]["avg"]),
        output_tok_per_s=result["output_token_throughput"]["avg"],
    )


CLIENTS = (
    Client(
        name="gate0",
        command=_gate0_command,
        read=_gate0_read,
        tpot_word="TPOT",
        gap_word="ITL",
        answer="sweep.json",
    ),
    Client(name="vllm", command=_vllm_command, read=_vllm_read, tpot_word="TPOT", gap_word="ITL"),
    Client(
        name="llama-benchy",
        command=_benchy_command,
        read=_benchy_read,
        tpot_word="1/(t/s req)",
        gap_word=None,
        is_batched=True,
    ),
    Client(name="guidellm", command=_guidellm_command, read=_guidellm_read, tpot_word="ITL", gap_word=None),
    Client(
        name="aiperf",
        command=_aiperf_command,
        read=_aiperf_read,
        tpot_word="ITL",
        gap_word="ICL",
        is_offline=False,
    ),
)
"""In the order in which they are run and shown."""
