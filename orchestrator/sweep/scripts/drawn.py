"""Requests whose lengths are drawn: fresh prompts of many sizes, without a fit for each where that would be dear.

Up to `MOST_FITS` different lengths are fitted exactly, one by one. Beyond that (or beyond `MOST_DEAR_FITS` where each
question to the server is a prefill) the longest is fitted and the others are pieces of it by its tokens a word: off by
a percent or so, and therefore sent without a promise of their length.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from orchestrator.sweep.lengths import Lengths
from orchestrator.sweep.prompts import TOK_PER_WORD, WORDS_IN_NONCE, Fresh, PromptBook
from orchestrator.sweep.scripts.script import Texts, fresh_job
from orchestrator.sweep.spec import Job, LoadTarget

MOST_FITS = 256
MOST_DEAR_FITS = 4
VARIETY = 8
"""Different passages in all, where few lengths are asked for."""
ROOM_TOK = 8
"""What a drawn prompt has at least behind its nonce: words for the fit to choose from."""


def least_tok(book: PromptBook) -> int:
    """The shortest prompt that can be asked for: template, nonce and a few words."""
    return (book.count(book.nonce()) or 0) + ROOM_TOK


def drawn_jobs(
    prompt: Lengths, output: Lengths, n: int, *, seed: str, book: PromptBook, texts: Texts, target: LoadTarget
) -> list[Job]:
    """n requests with fresh prompts, lengths drawn by the seed: of each request the prompt's first, then the answer's.

    Raises:
        InputError: A fixed length is less than what template and nonce take; drawn ones are moved up to it.
    """
    rng = Random(f"{seed}/lengths")
    sizes = [(prompt.draw(rng), output.draw(rng)) for _ in range(n)]
    if not prompt.is_fixed:
        least = least_tok(book)
        sizes = [(max(least, tok), answer_tok) for tok, answer_tok in sizes]
    writer = FreshOfAnyLength(book, {tok for tok, _ in sizes})
    return [fresh_job(texts, writer.fresh(tok), target, output_tok=answer_tok) for tok, answer_tok in sizes]


class FreshOfAnyLength:
    """Fresh prompts of the lengths that were announced."""

    def __init__(self, book: PromptBook, lengths: Collection[int]) -> None:
        self._book = book
        self._variety = max(1, VARIETY // max(1, len(lengths)))
        self._whole: Sequence[str] = ()
        self._turn = 0
        if len(lengths) > (MOST_FITS if book.is_cheap else MOST_DEAR_FITS):
            self._measure(max(lengths))

    def fresh(self, tok: int) -> Fresh:
        """One of `tok` tokens. `prompt_tok` None: it is a piece of a longer one, nearly as long as asked."""
        if not self._whole:
            return self._book.fresh(tok, variety=self._variety if self._book.is_cheap else None)
        n = max(1, round((tok - self._empty_tok) / self._tok_per_word))
        start = self._turn * 97 % len(self._whole)
        self._turn += 1
        words = (self._whole[(start + i) % len(self._whole)] for i in range(n))
        return Fresh(nonce=self._book.nonce(), text=" ".join(words), prompt_tok=None)

    def _measure(self, longest: int) -> None:
        whole = self._book.fresh(longest, variety=1)
        self._whole = whole.text.split()
        empty_tok = self._book.count(whole.nonce)
        if empty_tok is None or whole.prompt_tok is None:
            self._empty_tok, self._tok_per_word = round(WORDS_IN_NONCE * TOK_PER_WORD), TOK_PER_WORD
        else:
            self._empty_tok = empty_tok
            self._tok_per_word = (whole.prompt_tok - empty_tok) / len(self._whole)
