"""closed, batch, ingest: fresh prompts of one size; with `depth` behind a context of so many tokens.

`depth_cache: cold`: context and prompt are one fresh prompt. `warm`: a request of phase `context` with the context
alone comes first (one token out), then the measured one with the same context before its own prompt, of which the
cache should give the context.
"""

from __future__ import annotations

from orchestrator.sweep.prompts import Fresh, PromptBook
from orchestrator.sweep.scripts.script import (
    Script,
    Texts,
    body_of,
    expected_cached_tok,
    fresh_job,
    shared_head_tok,
    single_tracks,
    user,
    warmup_phase,
)
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Message, Phase
from orchestrator.sweep.workload import Cell

CONTEXT = "context"
CONTEXT_OUTPUT_TOK = 1


def script(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """See `script_of`."""
    texts, n = Texts(), cell.requests_per_repeat
    phases = list(warmup_phase(cell, book, texts, target))
    body = body_of(cell, target)
    if cell.depth_tok and cell.workload.depth_cache == "warm":
        contexts = [book.fresh(cell.depth_tok) for _ in range(n)]
        loading = [fresh_job(texts, c, target, output_tok=CONTEXT_OUTPUT_TOK) for c in contexts]
        lane = Lane(tracks=single_tracks(loading), users=cell.concurrency, body=body)
        phases.append(Phase(name=CONTEXT, lanes=(lane,)))
        jobs = [_behind(cell, texts, context, book, target) for context in contexts]
    else:
        whole_tok = cell.depth_tok + cell.prompt_tok
        jobs = [fresh_job(texts, book.fresh(whole_tok), target, output_tok=cell.output_tok) for _ in range(n)]
    phases.append(Phase(lanes=(Lane(tracks=single_tracks(jobs), users=cell.concurrency, body=body),)))
    return Script(texts=texts.table, phases=tuple(phases))


def _behind(cell: Cell, texts: Texts, context: Fresh, book: PromptBook, target: LoadTarget) -> Job:
    """The context again, in the same message, and a prompt of its own behind it."""
    own = book.tail(cell.prompt_tok)
    message = user(texts, context)
    shared_tok = shared_head_tok(cell.depth_tok, cell, target)
    unit = target.cache_unit_tok
    cached_tok = shared_tok // unit * unit
    return Job(
        messages=(Message(role=message.role, parts=(*message.parts, own)),),
        output_tok=cell.output_tok,
        expected_prompt_tok=cell.depth_tok + cell.prompt_tok,
        expected_cached_tok=max(cached_tok, expected_cached_tok(target) or 0),
        shared_tok=shared_tok,
        nonce=context.nonce,
    )
