"""replay: recorded conversations with all their turns, or a trace's lengths at a trace's times.

A conversation is a track: its turns follow each other, the next one `think_s` after the last answer. A nonce stands in
front of its first message, so no run is served from an earlier one. Answers get as many tokens as the recorded ones
have, by the server's count where it has a tokenizer.

A trace's row is one request, see `scripts.trace`.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.sweep.arrivals import arrivals
from orchestrator.sweep.prompts import TOK_PER_WORD, PromptBook
from orchestrator.sweep.scripts.drawn import least_tok
from orchestrator.sweep.scripts.script import Script, Texts, body_of, expected_cached_tok, warmup_phase
from orchestrator.sweep.scripts.trace import TraceWriter
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Message, Phase, Track
from orchestrator.sweep.workload import Cell, Conversation


def script(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """See `script_of`. The times are the trace's own, or drawn by the workload's seed plus the repeat."""
    w, texts = cell.workload, Texts()
    phases = list(warmup_phase(cell, book, texts, target, prompt_tok=max(least_tok(book), cell.prompt_tok)))
    if w.is_timed_replay:
        at_s: Sequence[float] = [(c.at_s or 0.0) / w.speed for c in w.conversations]
    else:
        n, seed = len(w.conversations), str(w.seed + repeat)
        at_s = arrivals(n, cell.rate_rps or 1.0, burstiness=cell.burstiness, mode=w.arrivals, seed=seed)
    trace = TraceWriter(w.conversations, book, texts, target)
    tracks = []
    for i, (conversation, at) in enumerate(zip(w.conversations, at_s, strict=True)):
        if isinstance(conversation.prompts[0], int):
            jobs: tuple[Job, ...] = (trace.job(conversation),)
        else:
            jobs = _turns(cell, conversation, book, texts, target)
        tracks.append(Track(jobs=jobs, at_s=at, number=i))
    lane = Lane(tracks=tuple(tracks), body=body_of(cell, target), cap=cell.concurrency or None)
    phases.append(Phase(lanes=(lane,)))
    return Script(texts=texts.table, phases=tuple(phases))


def _turns(
    cell: Cell, conversation: Conversation, book: PromptBook, texts: Texts, target: LoadTarget
) -> tuple[Job, ...]:
    """The conversation's requests, each with all that was said before it."""
    w, nonce = cell.workload, book.nonce()
    said: list[Message] = []
    if conversation.system is not None:
        said.append(Message(role="system", parts=(nonce, texts.ref(conversation.system))))
    jobs = []
    for turn, (prompt, answer) in enumerate(zip(conversation.prompts, conversation.answers, strict=True)):
        words, reply = str(prompt), str(answer)
        head = () if said else (nonce,)
        said.append(Message(parts=(*head, texts.ref(words))))
        is_alone = len(said) == 1 and book.is_cheap
        jobs.append(
            Job(
                messages=tuple(said),
                output_tok=_answer_tok(book, reply),
                think_s=w.think_s if turn else 0.0,
                expected_prompt_tok=book.count(f"{nonce} {words}") if is_alone else None,
                expected_cached_tok=None if turn else expected_cached_tok(target),
                nonce=nonce,
            )
        )
        own = w.history == "model"
        parts = () if own else (texts.ref(reply),)
        said.append(Message(role="assistant", parts=parts, answer_of=turn if own else None))
    return tuple(jobs)


def _answer_tok(book: PromptBook, answer: str) -> int:
    """Tokens of a recorded answer: by the server's tokenizer, else estimated."""
    counted = book.count(answer) if book.is_cheap and book.overhead_tok is not None else None
    if counted is None:
        return max(1, round(TOK_PER_WORD * len(answer.split())))
    return max(1, counted - (book.overhead_tok or 0))
