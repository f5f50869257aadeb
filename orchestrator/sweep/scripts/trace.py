"""A trace's rows as requests: prompts of the recorded lengths, sharing what the trace says they share.

Rows with names for their blocks of 512 tokens: blocks of one name are the same text (a few words that only this block
has, then running text), and all prompts of a run begin with one nonce, so an earlier run is in no cache. What a row
shares with earlier ones is the most that a cache could give it; an earlier row may still be on its way, or evicted.
Rows without names are fresh prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from orchestrator.sweep.passages import FILLERS
from orchestrator.sweep.prompts import TOK_PER_WORD, WORDS_IN_NONCE, PromptBook, draw_nonce
from orchestrator.sweep.scripts.drawn import FreshOfAnyLength, least_tok
from orchestrator.sweep.scripts.script import Texts, expected_cached_tok, fresh_job
from orchestrator.sweep.spec import Job, LoadTarget, Message
from orchestrator.sweep.workload import Conversation

BLOCK_TOK = 512


class TraceWriter:
    """Requests for rows of a trace, in the order of their times."""

    def __init__(
        self, conversations: Sequence[Conversation], book: PromptBook, texts: Texts, target: LoadTarget
    ) -> None:
        self._book = book
        self._texts = texts
        self._target = target
        self._held: dict[int, int] = {}
        self._is_first = True
        self._head_tok = self._name_tok = 0
        self._nonce = self._body = ""
        sizes = {p for c in conversations for p in c.prompts if isinstance(p, int)}
        self._least_tok = least_tok(book) if sizes else 0
        self._fresh = FreshOfAnyLength(book, {max(self._least_tok, tok) for tok in sizes})
        if any(c.blocks for c in conversations):
            self._measure()

    def job(self, row: Conversation) -> Job:
        prompt, answer = row.prompts[0], row.answers[0]
        assert isinstance(prompt, int), "a trace's row"
        assert isinstance(answer, int), "a trace's row"
        blocks = row.blocks[: max(0, prompt - self._head_tok) // BLOCK_TOK]
        if not blocks:
            return fresh_job(
                self._texts, self._fresh.fresh(max(self._least_tok, prompt)), self._target, output_tok=answer
            )
        rest_tok = prompt - self._head_tok - BLOCK_TOK * len(blocks)
        sizes = [(block, BLOCK_TOK) for block in blocks]
        if rest_tok > self._name_tok:
            sizes += [(block, rest_tok) for block in row.blocks[len(blocks) : len(blocks) + 1]]
        shared_tok = self._head_tok + self._shared_tok(sizes)
        unit = self._target.cache_unit_tok
        cached_tok = expected_cached_tok(self._target) if self._is_first else shared_tok // unit * unit
        self._is_first = False
        parts: list[int | str] = [self._nonce]
        for block in blocks:
            parts += [self._name(block), self._texts.ref(self._body)]
        parts += self._rest(row, len(blocks), rest_tok)
        return Job(
            messages=(Message(parts=tuple(parts)),),
            output_tok=answer,
            expected_prompt_tok=prompt,
            expected_cached_tok=cached_tok,
            shared_tok=shared_tok,
            nonce=self._nonce,
        )

    def _measure(self) -> None:
        """The run's nonce, a block's text behind its name, and how many tokens their parts have."""
        self._nonce = self._book.nonce()
        guess_tok = round(WORDS_IN_NONCE * TOK_PER_WORD)
        self._head_tok = self._book.count(self._nonce) or (self._book.overhead_tok or 0) + guess_tok
        named_tok = self._book.count(f"{self._nonce} {self._name(0)}")
        self._name_tok = guess_tok if named_tok is None else named_tok - self._head_tok
        self._body = self._book.tail(BLOCK_TOK - self._name_tok)

    def _shared_tok(self, sizes: Sequence[tuple[int, int]]) -> int:
        """Tokens behind the nonce that earlier rows had too; those of this row are known from now on.

        Args:
            sizes: The prompt's blocks with how many tokens of each it has.
        """
        shared_tok, is_same = 0, True
        for block, tok in sizes:
            held = self._held.get(block, 0)
            if is_same:
                shared_tok += min(tok, held)
                is_same = held >= tok
            self._held[block] = max(tok, held)
        return shared_tok

    def _name(self, block: int) -> str:
        """Six words that only this block of this run begins with."""
        return draw_nonce(Random(f"{self._nonce}/{block}"))

    def _rest(self, row: Conversation, used: int, tok: int) -> list[int | str]:
        """What is left of the prompt behind its whole blocks: the head of the next block, or words of its own."""
        if tok <= self._name_tok:
            return [" ".join(FILLERS[i % len(FILLERS)] for i in range(tok))] if tok else []
        name = self._name(row.blocks[used]) if used < len(row.blocks) else self._book.nonce()
        whole = self._body.split()
        n = round((tok - self._name_tok) * len(whole) / (BLOCK_TOK - self._name_tok))
        words = [whole[i % len(whole)] for i in range(n)]
        return [name, self._texts.ref(" ".join(words))] if words else [name]
