"""The uses, in the page's order. Where their limits come from: `use_rules`."""

from __future__ import annotations

import math

from orchestrator.report.use_rules import (
    AGENT_S,
    AGENT_TOK_PER_S,
    ANALYSIS_S,
    ANSWERS,
    ATTENTION_S,
    BATCH_S,
    CHAT_S,
    OFFICE_S,
    READING_ROOM_TOK_PER_S,
    READING_TOK_PER_S,
    VOICE_TOK_PER_S,
    Limit,
    Rule,
    Use,
)

_ANSWERED = Limit(figure="good", yes=0.99, careful=0.95, is_required=False)
_READ = Limit(figure="each", yes=READING_ROOM_TOK_PER_S, careful=READING_TOK_PER_S)
_TOGETHER = ("output", "each", "ttft_p50", "ttft_p95")


def _team(users: int, most: int, workload: str) -> Use:
    """People or tools that ask short questions, so many of them waiting at any time."""
    rule = Rule(
        load=f"{users} at once, short prompts",
        kinds=("closed", "batch"),
        users=(users, most),
        target=users,
        context=(0, 2048),
        output=(0, 1024),
        limits=(Limit(figure="ttft_p95", yes=OFFICE_S, careful=ATTENTION_S), _READ, _ANSWERED),
        ranks=("output", "ttft_p95", "ttft_p50"),
        shows=_TOGETHER,
    )
    return Use(key=f"team-{users}", title=f"A team of {users}", rules=(rule,), workload=workload)


USES: tuple[Use, ...] = (
    Use(
        key="one-person",
        title="One interactive person",
        workload="concurrency",
        rules=(
            Rule(
                load="one at a time, short prompts",
                kinds=("closed", "batch"),
                users=(1, 1),
                context=(0, 2048),
                limits=(
                    Limit(figure="ttft_p50", yes=CHAT_S, careful=OFFICE_S),
                    Limit(figure="each", yes=VOICE_TOK_PER_S, careful=READING_TOK_PER_S),
                    _ANSWERED,
                ),
                ranks=("single", "ttft_p50"),
                shows=("single", "ttft_p50"),
            ),
        ),
    ),
    Use(
        key="lead-agent",
        title="One lead agent",
        workload="swarm-54k",
        rules=tuple(
            Rule(
                load=load,
                kinds=kinds,
                variants=variants,
                users=(1, 1),
                context=(16_000, math.inf),
                limits=(
                    Limit(figure="ttft_p50", yes=AGENT_S, careful=3 * AGENT_S),
                    Limit(figure="each", yes=AGENT_TOK_PER_S, careful=AGENT_TOK_PER_S / 2),
                    _ANSWERED,
                ),
                ranks=("single", "ttft_p50"),
                shows=("single", "ttft_p50", "cached"),
            )
            for load, kinds, variants in (
                ("one agent on a long, warm context", ("swarm",), ("single",)),
                ("one at a time, long prompts", ("closed", "batch", "sessions"), ()),
            )
        ),
    ),
    _team(8, 10, "concurrency"),
    _team(16, 20, "batching"),
    Use(
        key="office",
        title="An office of 10 to 25",
        workload="test-i",
        rules=(
            # 25 people who ask every one to two minutes are 0.2 to 0.4 requests/s. What people really type comes
            # nearest; made-up prompts of 4k are the harder load.
            *(
                Rule(
                    load=load,
                    kinds=(kind,),
                    context=(0, 6000),
                    rate=(0.2, 0.5),
                    limits=(Limit(figure="ttft_p95", yes=OFFICE_S, careful=ATTENTION_S), _READ, _ANSWERED),
                    ranks=("ttft_p95", "ttft_p50"),
                    shows=("ttft_p95", "ttft_p50", "each"),
                )
                for kind, load in (
                    ("replay", "recorded conversations, 0.2 to 0.5 a second"),
                    ("open", "0.2 to 0.5 a second"),
                )
            ),
            Rule(
                load="10 to 25 at once",
                kinds=("closed", "batch", "sessions"),
                users=(10, 25),
                target=10,
                context=(0, 6000),
                limits=(Limit(figure="ttft_p95", yes=OFFICE_S, careful=ATTENTION_S), _READ, _ANSWERED),
                ranks=("ttft_p95", "ttft_p50", "output"),
                shows=("ttft_p95", "ttft_p50", "each"),
            ),
        ),
    ),
    Use(
        key="rag-8k",
        title="RAG at 8k",
        workload="run-f",
        rules=(
            Rule(
                load="5 to 20 at once, about 8k in",
                kinds=("closed", "batch"),
                users=(5, 20),
                target=10,
                context=(6_000, 12_000),
                output=(64, 1024),
                limits=(Limit(figure="ttft_p50", yes=ATTENTION_S, careful=ANALYSIS_S), _READ, _ANSWERED),
                ranks=("ttft_p50", "output"),
                shows=("ttft_p50", "each", "output"),
            ),
        ),
    ),
    Use(
        key="long-context",
        title="Ten people with 25k each",
        workload="run-b",
        rules=(
            Rule(
                load="5 to 20 at once, about 25k in",
                kinds=("closed", "batch"),
                users=(5, 20),
                target=10,
                context=(20_000, 40_000),
                limits=(Limit(figure="ttft_p50", yes=ATTENTION_S, careful=ANALYSIS_S), _READ, _ANSWERED),
                ranks=("ttft_p50", "output"),
                shows=("ttft_p50", "each", "output"),
            ),
        ),
    ),
    Use(
        key="long-output",
        title="Agents with long outputs",
        workload="run-g",
        rules=(
            Rule(
                load="5 to 16 at once, 2k or more out",
                kinds=("closed", "batch"),
                users=(5, 16),
                target=10,
                context=(1, 2048),
                output=(2048, math.inf),
                limits=(
                    Limit(figure="ttft_p50", yes=AGENT_S, careful=3 * AGENT_S),
                    Limit(figure="each", yes=10.0, careful=5.0),
                    _ANSWERED,
                ),
                ranks=("output", "ttft_p50"),
                shows=("each", "output", "ttft_p50"),
            ),
        ),
    ),
    Use(
        key="swarm-32",
        title="A swarm of 32 on one context",
        workload="swarm-54k",
        rules=tuple(
            Rule(
                load=f"32 agents, {words}",
                kinds=("swarm",),
                variants=(variant,),
                users=(32, 32),
                context=(8_000, math.inf),
                limits=(
                    Limit(figure="ttft_p50", yes=15.0, careful=ANALYSIS_S),
                    Limit(figure="cached", yes=0.95, careful=0.90),
                    Limit(figure="each", yes=3.0, careful=1.5),
                    _ANSWERED,
                ),
                ranks=("output", "ttft_p50"),
                shows=("output", "ttft_p50", "cached", "each"),
            )
            for variant, words in (("primed", "the prefix loaded first"), ("cold", "all at once on an empty cache"))
        ),
    ),
    Use(
        key="batch",
        title=f"A batch of {ANSWERS} answers",
        workload="batching",
        answers=ANSWERS,
        rules=(
            Rule(
                load="short prompts, at the best level",
                kinds=("closed", "batch"),
                users=(1, math.inf),
                context=(0, 2048),
                output=(0, 1024),
                is_any_level=True,
                limits=(
                    Limit(figure="good", yes=0.99, careful=0.95),
                    Limit(figure="e2e_p95", yes=BATCH_S, careful=3 * BATCH_S, is_required=False),
                ),
                ranks=("output",),
                shows=("output",),
            ),
        ),
    ),
    Use(
        key="ingest",
        title="Taking in documents",
        workload="ingest",
        rules=(
            Rule(
                load="long in, short out, at the best level",
                kinds=("ingest",),
                users=(1, math.inf),
                is_any_level=True,
                limits=(
                    Limit(figure="good", yes=0.99, careful=0.95),
                    Limit(figure="e2e_p95", yes=BATCH_S, careful=3 * BATCH_S, is_required=False),
                ),
                ranks=("prompt",),
                shows=("prompt", "documents"),
            ),
            Rule(
                load="long prompts, at the best level",
                kinds=("closed", "batch"),
                users=(1, math.inf),
                context=(4_096, 12_288),
                output=(1, 512),
                is_any_level=True,
                limits=(_ANSWERED,),
                ranks=("prefill",),
                shows=("prefill",),
                caveat="no document load was run, only how fast prompts are read",
            ),
        ),
    ),
)
"""In the page's order."""
