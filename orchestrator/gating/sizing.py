"""Texts of a wanted token length, by the server's own tokenizer where it has one, else by what it once counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.gating.prompts import Fact, station_log
from orchestrator.values import Json
from orchestrator.wire.chat import Target
from orchestrator.wire.listing import find_listed

SAMPLE_WORDS = 300
UNKNOWN_TOK_PER_WORD = 1.6
"""For a server that counts nothing for us: on the safe side for English."""
CORRECTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A text and its length. `tok` None: estimated, not counted."""

    text: str
    tok: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """How this server counts.

    Attributes:
        tok_per_word: Tokens per word of our texts.
        overhead_tok: What the chat template adds to a user message, None when it could not be measured.
        can_count: The server has a tokenizer endpoint.
    """

    tok_per_word: float
    overhead_tok: int | None
    can_count: bool


def user(content: str) -> list[Json]:
    """One user message as the `messages` of a body."""
    return [{"role": "user", "content": content}]


def measure(target: Target, *, nonce: str, timeout_s: float = 600.0) -> Ruler:
    """Find out how the server counts, with one tokenizer call and one short request."""
    sample = station_log(SAMPLE_WORDS, nonce=nonce, seed=0)
    words = len(sample.split())
    counted = target.count_tokens(sample)
    body: Mapping[str, Json] = {"messages": user(sample), "max_tokens": 1}
    prompt_tok = target.chat(body, timeout_s=timeout_s).usage.prompt_tok
    if counted:
        overhead = None if prompt_tok is None else max(0, prompt_tok - counted)
        return Ruler(tok_per_word=counted / words, overhead_tok=overhead, can_count=True)
    if prompt_tok:
        return Ruler(tok_per_word=prompt_tok / words, overhead_tok=None, can_count=False)
    return Ruler(tok_per_word=UNKNOWN_TOK_PER_WORD, overhead_tok=None, can_count=False)


def text_of(target: Target, ruler: Ruler, tokens: int, *, nonce: str, seed: int, fact: Fact | None = None) -> Sized:
    """A log of at most `tokens` tokens, as near as a sentence allows where the server counts."""
    words = max(1, int(tokens / ruler.tok_per_word))
    best: Sized | None = None
    for _ in range(CORRECTIONS):
        text = station_log(words, nonce=nonce, seed=seed, fact=fact)
        tok = target.count_tokens(text) if ruler.can_count else None
        if tok is None:
            return Sized(text=text, tok=None)
        if tok <= tokens and (best is None or tok > (best.tok or 0)):
            best = Sized(text=text, tok=tok)
        step = int((tokens - tok) / ruler.tok_per_word)
        if step == 0 and tok <= tokens:
            break
        words = max(1, words + (step or -5))
    return best or Sized(text=text, tok=tok)


def served_max_len(target: Target) -> int | None:
    """Tokens of one request as the server itself lists them, None when it does not."""
    listed = find_listed(target.get_json("/v1/models"), target.model)
    return None if listed is None else listed.max_model_len


def longest_prompt(target: Target, *, output_tok: int, reserve_tok: int) -> int | None:
    """The longest text that fits one request beside its template and answer; None: nobody says how long one may be."""
    known = [n for n in (target.claims.max_model_len, served_max_len(target)) if n is not None]
    return min(known) - output_tok - reserve_tok if known else None
