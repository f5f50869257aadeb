"""The records that the page is tested and pictured with: four field reports typed off, measured loads, a hostile one.

Measured figures are known by construction; `RATES` says which closed-loop speeds the page must show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.records.exchange.importing import read_files, write_foreign
from orchestrator.records.record import GateRecord
from orchestrator.records.store import Store, StoredCell
from tests.unit.chart_records import CHAT, closed, opened, stamp, swarm, tell, write
from tests.unit.test_report_kinds import FILES as KINDS
from tests.unit.test_report_kinds import load

ROOT = Path(__file__).resolve().parents[2]
REPORTS = tuple(sorted((ROOT / "samples" / "reports").glob("*.yaml")))
SWARM_REPORT = ROOT / "samples" / "reports" / "swarm-notebook.yaml"

LEVELS = (1, 8, 32, 64)
RATES: Mapping[str, tuple[int, int, int, int]] = {
    "alpha": (40, 200, 400, 480),
    "beta": (50, 180, 450, 900),
    "gamma": (60, 300, 600, 700),
    "delta": (70, 190, 300, 500),
    "epsilon": (10, 500, 100, 90),
}
"""Output tok/s at `LEVELS`, by configuration. Beta's at 64 broke a guard, gamma runs on two hosts, delta was not gated,
epsilon swept although a gate failed: the best are beta, alpha, beta, alpha."""

FIRST_TOKEN_S: Mapping[str, tuple[float, ...]] = {
    "alpha": (0.1, 0.3, 1.2, 2.5),
    "beta": (0.2, 0.4, 0.8, 2.0),
    "gamma": (0.1, 0.2, 0.6, 1.0),
    "delta": (0.3, 0.9, 3.0, 6.0),
    "epsilon": (0.4, 0.5, 4.0, 9.0),
}
CACHED_TOK = 32
"""Of 128 prompt tokens."""

GUARD, GUARD_WORDS = "client_saturated", "the client could not keep up: 31.0 ms late at p99"
PROFILE = "name: alpha\nengine: vllm\nmodel: acme/alpha-27b\nflags: {max-num-seqs: 64}  # more fits in\n"

GUARDED: Mapping[tuple[str, int], str] = {("beta", 64): GUARD}

CAPPED = (
    "0.00.748.743 W srv load_model: the slot context (32768) exceeds the training context of the model (8192) - capping"
)
EFFECTIVE: Mapping[str, Any] = {
    "compared": (
        {
            "path": "serve.max_model_len",
            "declared": 32768,
            "running": 8192,
            "agreement": "changed",
            "source": "log",
            "quote": CAPPED,
            "is_weaker": True,
        },
        {
            "path": "model",
            "declared": "/srv/models/acme/alpha-27b-instruct-UD-Q4_K_XL.gguf",
            "running": "/srv/models/acme/alpha-27b-instruct-UD-Q4_K_XL.gguf",
            "agreement": "same",
            "source": "/props model_path",
        },
        {
            "path": "serve.max_num_batched_tokens",
            "declared": 2048,
            "running": 2048,
            "agreement": "same",
            "source": "/props default_generation_settings.params.n_batch",
        },
        {"path": "added.--metrics", "declared": True, "running": True, "agreement": "same", "source": "/props metrics"},
    ),
    "readings": (
        {"name": "accepted_tok", "value": 0, "source": "metrics llamacpp:spec_decode_num_accepted_tokens_total"},
        {"name": "max_num_batched_tokens", "value": 2048, "source": "log"},
    ),
}

FACTS = {"kernel": "6.17.0", "os": "DGX OS 7.5.0", "machine": "NVIDIA DGX Spark", "gpus": [{"driver": "580.159"}]}
RUNS: Mapping[str, dict[str, Any]] = {
    "alpha": {
        "hosts": ({"name": "spark01", "before": FACTS, "after": {**FACTS, "kernel": "7.0.0"}},),
        "command": ("docker run --gpus all --name gate0-alpha 'acme/vllm:1' --max-num-seqs 64",),
        "invocation": ("gate0", "run", "alpha", "--hosts", "spark01"),
        "profile_source": PROFILE,
        "image": "acme/vllm:1",
        "image_digest": "sha256:" + "ab" * 32,
        "duration_s": 754.0,
        "effective": EFFECTIVE,
    },
    "beta": {"engine": "sglang", "engine_version": "0.6.1", "hosts": ({"name": "spark02"},)},
    "gamma": {"hosts": ({"name": "spark01"}, {"name": "spark02"})},
    "delta": {"engine": "llamacpp", "engine_version": "b9999", "is_ungated": True, "gates": {}},
    "epsilon": {"gates": {"coherence": "pass", "determinism": "fail"}, "is_ungated": True},
}

SCRIPT = "<script>window.pwned=1</script>"
HOSTILE: Mapping[str, str] = {
    "model": f"acme/<img src=x onerror=window.pwned=1>{SCRIPT}",
    "title": f"</script>{SCRIPT}<!-- ' onmouseover='window.pwned=1",
    "host": '"><svg onload=window.pwned=1>',
    "engine": '"autofocus onfocus=window.pwned=1 x="',
    "answer": f"</pre></details>{SCRIPT}\u2028window.pwned=1;\u2029 {{{{7*7}}}} {{% raw %}} ${{7*7}}",
    "guard": f"--><img src=x onerror=window.pwned=1> {{{{7*7}}}} {SCRIPT}",
    "note": f"[a](javascript:window.pwned=1) <a href='javascript:window.pwned=1'>b</a> {SCRIPT} ![i](https://x.invalid/i)",
    "profile": f"name: </pre>{SCRIPT}\nmodel: '\u2028{{{{7*7}}}}'\n",
}


def write_samples(root: Path) -> None:
    """All that the page can be asked to show, in one results folder."""
    import_reports(root, REPORTS)
    write_measured(root)
    write_kinds(root)
    notes = root / "notes"
    notes.mkdir()
    (notes / "2026-11-30-checkpoint.md").write_text("# A note\n\nThe *checkpoint* paid off, see `alpha`.\n")


def import_reports(root: Path, files: Sequence[Path]) -> None:
    for of_one_run in read_files(list(files)):
        write_foreign(Store(root), of_one_run)


def write_measured(root: Path) -> None:
    """Five configurations under the same closed loop, one of them measured twice; alpha carried more loads."""
    write(root, "alpha-older", list(_closed("alpha", slower=0.9)), **_run("alpha", created_at=stamp(-86400)))
    for place, name in enumerate(RATES):
        cells = list(_closed(name))
        if name == "alpha":
            cells += [swarm(n, v, 12.0 * n) for n in (1, 8, 32) for v in ("cold", "primed")]
            cells += [opened(rate, 0.2 * rate, 0.05 * rate) for rate in (0.5, 1.0, 2.0)]
        stored = write(root, name, cells, **_run(name, created_at=stamp(60 * place)))
        writer = Store(root).new_run(name)
        for gate in _gates(name):
            writer.write_gate(gate)
        if name == "alpha":
            tell(stored, [_telemetry(at) for at in range(120)])
    dead = {"message": "the server ended with code 137", "hint": "lower gpu_memory_utilization"}
    never = {"profile_name": "zeta", "profile_title": "zeta", "profile_digest": "digest-zeta", "gates": {}}
    write(root, "zeta", [], **_run("beta", **never, status="failed", error=dead))


def write_kinds(root: Path) -> None:
    """Each hand-worked load of the tables' tests, as a run of its own under a workload of its own."""
    for path in KINDS:
        cells = [StoredCell(cell=replace(c.cell, workload=path.stem), requests=c.requests) for c in load(path)[1]]
        changes = {"profile_title": f"{path.stem} by hand", "model": "acme/small-1b", "created_at": stamp(-3600)}
        write(root, f"kind-{path.stem}", cells, **changes)


def write_hostile(root: Path) -> None:
    """A record each of whose texts tries to become markup or script, beside a plain one."""
    write(root, "alpha", list(_closed("alpha")), **_run("alpha"))
    cells = [
        closed(n, 100.0, 0.5, guards=({"name": HOSTILE["guard"], "message": HOSTILE["guard"]},) if n == 8 else ())
        for n in LEVELS[:2]
    ]
    request = {"messages": [{"role": "user", "content": HOSTILE["answer"]}], "model": HOSTILE["model"]}
    logprobs = [{"token": HOSTILE["answer"], "logprob": -0.1, "top": [[SCRIPT, -0.2]]}]
    reply = {"text": HOSTILE["answer"], "usage": {"prompt_tok": 3, "output_tok": 5}, "logprobs": logprobs}
    evidence: tuple[Mapping[str, Any], ...] = ({"label": HOSTILE["title"], "request": request, "reply": reply},)
    measured: dict[str, Any] = {HOSTILE["guard"]: HOSTILE["answer"], "table": [{HOSTILE["title"]: HOSTILE["answer"]}]}
    stored = write(
        root,
        "hostile",
        cells,
        profile_title=HOSTILE["title"],
        profile={"note": HOSTILE["note"]},
        profile_source=HOSTILE["profile"],
        model=HOSTILE["model"],
        engine=HOSTILE["engine"],
        engine_version=HOSTILE["guard"],
        hosts=({"name": HOSTILE["host"], "before": {"kernel": HOSTILE["guard"]}, "after": {"kernel": "7"}},),
        command=(f"docker run '{HOSTILE['title']}'",),
        image=HOSTILE["title"],
        gates={"coherence": "pass"},
    )
    Store(root).new_run(stored.run.id).write_gate(
        GateRecord(name="coherence", status="pass", summary=HOSTILE["answer"], evidence=evidence, measured=measured)
    )
    notes = root / "notes"
    notes.mkdir()
    (notes / "2026-11-30-hostile.md").write_text(f"# {HOSTILE['title']}\n\n{HOSTILE['note']}\n\n{HOSTILE['answer']}\n")


def _run(name: str, **changes: Any) -> dict[str, Any]:
    base = {"profile_name": name, "profile_title": name, "profile_digest": f"digest-{name}"}
    return {**base, "model": f"acme/{name}-27b", **RUNS[name], **changes}


def _closed(name: str, *, slower: float = 1.0) -> Iterator[StoredCell]:
    for users, rate, first_token_s in zip(LEVELS, RATES[name], FIRST_TOKEN_S[name], strict=True):
        found = closed(users, rate * slower, first_token_s, cached_tok=CACHED_TOK, slo=CHAT)
        guard = GUARDED.get((name, users))
        guards = ({"name": guard, "message": GUARD_WORDS},) if guard else ()
        yield replace(found, cell=replace(found.cell, guards=guards))


def _gates(name: str) -> Iterator[GateRecord]:
    statuses = RUNS[name].get("gates", {"coherence": "pass"})
    for gate, status in statuses.items():
        yield GateRecord(name=gate, status=status, summary=f"3 of 3 {status}", evidence=_evidence(), measured={"n": 3})


def _evidence() -> tuple[Mapping[str, Any], ...]:
    """The same question cold and warm; the answers part at the second token, by 0.2 and by 0.4 nats."""

    def asked(label: str, tokens: dict[str, float], cached: int) -> dict[str, Any]:
        chosen = max(tokens, key=lambda t: tokens[t])
        logprobs = [
            {"token": "sky", "logprob": -0.1, "top": [["sky", -0.1]]},
            {"token": chosen, "logprob": tokens[chosen], "top": [[t, p] for t, p in tokens.items()]},
        ]
        usage = {"prompt_tok": 2048, "cached_tok": cached, "output_tok": 2}
        reply = {"text": f"sky{chosen}", "usage": usage, "logprobs": logprobs, "first_token_s": 0.4, "total_s": 0.5}
        request = {"messages": [{"role": "user", "content": "What is above us? " * 40}], "max_tokens": 2}
        return {"label": label, "request": request, "reply": reply}

    cold, warm = {" blue": -0.6, " grey": -0.8}, {" blue": -0.9, " grey": -0.5}
    return (asked("cold", cold, 0), asked("warm", warm, 2032))


def _telemetry(at_s: int) -> dict[str, Any]:
    gpu = {"utilization_percent": 90, "power_w": 60.0 + at_s % 9, "temperature_c": 61, "sm_clock_mhz": 2400}
    return {"at": stamp(at_s), "where": "spark01", "gpus": [gpu], "memory": {"available_bytes": 9 << 30}}
