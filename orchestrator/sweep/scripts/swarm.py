"""swarm: agents that share one long prefix, each with a question of its own behind it.

`cold`: all at once, nobody has the prefix yet. `primed`: a request of phase `prime` loads it, then all at once.
`single`: the same with one agent. `evicting`: more prefixes than the cache holds are loaded one after the other, then
the agents come, spread over them.

The nonce in front of a prefix is fresh in each repeat, so no repeat finds the prefix of an earlier one. The question
differs from those of the others in its first token: what agents share is the template's head and the prefix, no more.
"""

from __future__ import annotations

import math
from random import Random

from orchestrator.sweep.prompts import Fresh, Part, PromptBook
from orchestrator.sweep.scripts.drawn import least_tok
from orchestrator.sweep.scripts.script import (
    Script,
    Texts,
    body_of,
    expected_cached_tok,
    shared_head_tok,
    single_tracks,
    user,
    warmup_phase,
)
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Message, Phase
from orchestrator.sweep.workload import Cell, SwarmCell

PRIME = "prime"
PRIME_OUTPUT_TOK = 1
WARMUP_PROMPT_TOK = 64
"""Behind the template: a warm-up with the prefix would load it."""
BEYOND_CACHE = 1.5
PREFIXES_PER_AGENT = 2
"""Where the server does not say how much its cache holds."""


def script(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """See `script_of`. Lengths that are drawn follow the workload's seed plus the repeat."""
    w, n, texts = cell.workload, cell.concurrency, Texts()
    phases = list(warmup_phase(cell, book, texts, target, prompt_tok=WARMUP_PROMPT_TOK + (book.overhead_tok or 0)))
    prefixes = [book.prefix(cell.prefix_tok, i) for i in range(prefixes_of(cell, target))]
    primes = 0 if cell.variant == SwarmCell.COLD else len(prefixes)
    rng = Random(f"{w.seed + repeat}/lengths")
    least = 1 if cell.prompt.is_fixed else least_tok(book)
    sizes = [(max(least, cell.prompt.draw(rng)), cell.output.draw(rng)) for _ in range(n)]
    questions = book.questions([tok for tok, _ in sizes] + [cell.prompt_tok] * primes)
    writer = _Writer(cell, target, texts)
    body = body_of(cell, target)
    if primes:
        jobs = [writer.prime(p, q) for p, q in zip(prefixes, questions[n:], strict=True)]
        phases.append(Phase(name=PRIME, lanes=(Lane(tracks=single_tracks(jobs), users=1, body=body),)))
    jobs = [
        writer.agent(prefixes[i * len(prefixes) // n], question, output_tok)
        for i, (question, (_, output_tok)) in enumerate(zip(questions[:n], sizes, strict=True))
    ]
    phases.append(Phase(lanes=(Lane(tracks=single_tracks(jobs), users=n, body=body),)))
    return Script(texts=texts.table, phases=tuple(phases))


def prefixes_of(cell: Cell, target: LoadTarget) -> int:
    """How many different ones a repeat has."""
    if cell.variant != SwarmCell.EVICTING:
        return 1
    if cell.workload.prefixes is not None:
        return cell.workload.prefixes
    if target.kv_tok is None:
        return PREFIXES_PER_AGENT * cell.concurrency
    return max(2, math.ceil(BEYOND_CACHE * target.kv_tok / cell.prefix_tok))


class _Writer:
    """Turns prefixes and questions into jobs."""

    def __init__(self, cell: Cell, target: LoadTarget, texts: Texts) -> None:
        self._cell = cell
        self._target = target
        self._texts = texts

    def prime(self, prefix: Fresh, question: Part) -> Job:
        """Loads a prefix: fresh to every cache."""
        return self._job(prefix, question, PRIME_OUTPUT_TOK, cached_tok=expected_cached_tok(self._target))

    def agent(self, prefix: Fresh, question: Part, output_tok: int) -> Job:
        """One of the agents. Where they come before the prefix is loaded, or after it may be gone, the cache's part
        is what is measured and nothing is expected of it."""
        variant, unit, cached_tok = self._cell.variant, self._target.cache_unit_tok, None
        shared_tok = self._shared_tok(prefix)
        if variant in {SwarmCell.PRIMED, SwarmCell.SINGLE} and shared_tok is not None:
            cached_tok = shared_tok // unit * unit
        elif variant == SwarmCell.COLD and self._cell.concurrency == 1:
            cached_tok = expected_cached_tok(self._target)
        return self._job(prefix, question, output_tok, cached_tok=cached_tok)

    def _job(self, prefix: Fresh, question: Part, output_tok: int, *, cached_tok: int | None) -> Job:
        prompt_tok = None if prefix.prompt_tok is None or question.tok is None else prefix.prompt_tok + question.tok
        head = user(self._texts, prefix)
        parts = (*head.parts, question.nonce, self._texts.ref(question.text))
        return Job(
            messages=(Message(parts=parts),),
            output_tok=output_tok,
            expected_prompt_tok=prompt_tok,
            expected_cached_tok=cached_tok,
            shared_tok=self._shared_tok(prefix),
            nonce=prefix.nonce,
        )

    def _shared_tok(self, prefix: Fresh) -> int | None:
        """Template head and prefix: all of the prefix alone as a prompt but the template's end."""
        if prefix.prompt_tok is None:
            return None
        return shared_head_tok(prefix.prompt_tok, self._cell, self._target)
