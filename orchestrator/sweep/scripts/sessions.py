"""sessions: users who talk, turn after turn, each prompt with all that was said before.

`history: scripted`: earlier answers are texts fixed by the seed, so every run sends the same words; what the server can
have kept of a turn is the prompt of the one before. `history: model`: earlier answers are what the model said (as far
as it is text: templates of thinking models leave earlier reasoning out too, so only the answer goes back), and nothing
is promised of later turns' lengths.
"""

from __future__ import annotations

from random import Random

from orchestrator.sweep.prompts import Part, PromptBook
from orchestrator.sweep.scripts.drawn import FreshOfAnyLength, least_tok
from orchestrator.sweep.scripts.script import Script, Texts, body_of, expected_cached_tok, user, warmup_phase
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Message, Phase, Track
from orchestrator.sweep.workload import Cell

SCRIPTED = "scripted"


def script(cell: Cell, book: PromptBook, target: LoadTarget, repeat: int) -> Script:
    """See `script_of`. Lengths that are drawn follow the workload's seed plus the repeat."""
    w, texts = cell.workload, Texts()
    phases = list(warmup_phase(cell, book, texts, target))
    rng = Random(f"{w.seed + repeat}/lengths")
    least = 1 if cell.prompt.is_fixed else least_tok(book)
    sizes = [
        [(max(least, cell.prompt.draw(rng)), cell.output.draw(rng)) for _ in range(w.turns)]
        for _ in range(cell.sessions)
    ]
    opening = FreshOfAnyLength(book, {turns[0][0] for turns in sizes})
    asked = book.questions([tok for turns in sizes for tok, _ in turns[1:]], is_message=True)
    tracks = []
    for number, turns in enumerate(sizes):
        questions = asked[number * (w.turns - 1) : (number + 1) * (w.turns - 1)]
        session = _Session(cell, number, book=book, target=target, texts=texts)
        session.open(opening, *turns[0])
        for question, (_, output_tok) in zip(questions, turns[1:], strict=True):
            session.go_on(question, output_tok)
        tracks.append(Track(jobs=tuple(session.jobs), number=number))
    lane = Lane(tracks=tuple(tracks), users=cell.concurrency, body=body_of(cell, target))
    phases.append(Phase(lanes=(lane,)))
    return Script(texts=texts.table, phases=tuple(phases))


class _Session:
    """One conversation while its turns are written."""

    def __init__(self, cell: Cell, number: int, *, book: PromptBook, target: LoadTarget, texts: Texts) -> None:
        self.jobs: list[Job] = []
        self._cell = cell
        self._book = book
        self._target = target
        self._texts = texts
        self._number = number
        self._said: list[Message] = []

    def open(self, opening: FreshOfAnyLength, prompt_tok: int, output_tok: int) -> None:
        """The first turn, which no cache has seen."""
        fresh = opening.fresh(prompt_tok)
        self._said.append(user(self._texts, fresh))
        self.jobs.append(
            Job(
                messages=tuple(self._said),
                output_tok=output_tok,
                expected_prompt_tok=fresh.prompt_tok,
                expected_cached_tok=expected_cached_tok(self._target),
                nonce=fresh.nonce,
            )
        )

    def go_on(self, question: Part, output_tok: int) -> None:
        """One more turn."""
        before, w, unit = self.jobs[-1], self._cell.workload, self._target.cache_unit_tok
        prompt_tok = shared_tok = None
        if w.history == SCRIPTED:
            answer = self._book.answer(before.output_tok, self._number * w.turns + len(self.jobs) - 1)
            self._said.append(Message(role="assistant", parts=(self._texts.ref(answer.text),)))
            shared_tok = before.expected_prompt_tok
            prompt_tok = _sum(shared_tok, answer.tok, question.tok, self._book.turn_overhead_tok)
        else:
            self._said.append(Message(role="assistant", answer_of=len(self.jobs) - 1))
        self._said.append(Message(parts=(question.nonce, self._texts.ref(question.text))))
        self.jobs.append(
            Job(
                messages=tuple(self._said),
                output_tok=output_tok,
                think_s=w.think_s,
                expected_prompt_tok=prompt_tok,
                expected_cached_tok=None if shared_tok is None else shared_tok // unit * unit,
                shared_tok=shared_tok,
                nonce=before.nonce,
            )
        )


def _sum(*tokens: int | None) -> int | None:
    """None as soon as one is."""
    known = [tok for tok in tokens if tok is not None]
    return sum(known) if len(known) == len(tokens) else None
