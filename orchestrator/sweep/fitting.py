"""Text of an exact length in the server's own tokens: search by counting, as seldom as each question is dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.errors import InputError, TargetError
from orchestrator.sweep.passages import FILLERS

Count = Callable[[str], int | None]
"""The whole prompt's tokens, template included, when the user's text is this; None: the server cannot tell."""

FIT_TRIES = 16
TOK_PER_WORD = 1.3
SAMPLE_WORDS = 400
SAMPLE_PLACES = 12
SHORT_OF = 0.97
SELDOM_TRIES = 4
GROWING_WORDS = 8
"""So many more words are more tokens with every tokenizer."""
CLOSE_TOK = 32
"""So many missing tokens are filled up with words of one token each, unasked."""
CLOSE_SHARE = 0.001
"""And so much too long is left as it is."""


def fit_passage(
    count: Count,
    prompt_tok: int,
    *,
    nonce: str,
    words: Sequence[str],
    tok_per_word: float = TOK_PER_WORD,
    what: str = "prompt_tokens",
) -> str:
    """Running text that makes `<nonce> <text>` exactly `prompt_tok` long where words allow it, never longer.

    Searches on the number of words by the slope seen so far, then fills up with words of one token.

    Args:
        tok_per_word: Where the search begins.
        what: The key that the length stands under, for the message.

    Raises:
        InputError: Template and nonce alone are longer.
        TargetError: The count does not grow with the text.
    """

    def text_of(n: int) -> str:
        return " ".join(words[i % len(words)] for i in range(n))

    low, low_tok = 0, count(nonce)
    if low_tok is None:
        return text_of(max(1, round(prompt_tok / tok_per_word) - len(nonce.split())))
    if low_tok >= prompt_tok:
        raise too_short(what, prompt_tok, low_tok)
    high: int | None = None
    slope = tok_per_word
    for _ in range(FIT_TRIES):
        if low_tok == prompt_tok or (high is not None and high - low <= 1):
            return _filled(count, text_of(low), prompt_tok - low_tok, nonce=nonce)
        n = max(low + 1, low + int((prompt_tok - low_tok) / slope))
        if high is not None:
            n = min(n, high - 1)
        tok = counted(count, f"{nonce} {text_of(n)}")
        if tok <= low_tok and n - low >= GROWING_WORDS:
            raise TargetError(
                f"the server counts {tok} tokens for a text and as many for one {n - low} words longer",
                hint="its tokenizer endpoint is not to be trusted: see what `/tokenize` answers",
            )
        if tok <= prompt_tok:
            slope = max(0.1, (tok - low_tok) / (n - low)) if tok > low_tok else slope / 2
            low, low_tok = n, tok
        else:
            high = n
            slope = max(slope, (tok - low_tok) / (n - low))
    return _filled(count, text_of(low), prompt_tok - low_tok, nonce=nonce)


def fit_seldom(count: Count, prompt_tok: int, *, nonce: str, words: Sequence[str], what: str = "prompt_tokens") -> str:
    """Running text that makes `<nonce> <text>` nearly `prompt_tok` long, where each question is a prefill.

    Asks for a sample (an eighth), then for a little less than the whole, then corrects: a long text costs one prefill
    and, where the server keeps prefixes, little more for each correction. Needs a server that tells.

    Raises:
        InputError: Template and nonce alone are longer.
        TargetError: The server stopped telling.
    """
    empty_tok = counted(count, nonce)
    if empty_tok >= prompt_tok:
        raise too_short(what, prompt_tok, empty_tok)
    slope = tok_per_word_of(count, nonce, words[: max(1, prompt_tok // 2)]) or TOK_PER_WORD
    n, tok = 0, empty_tok
    for _ in range(SELDOM_TRIES):
        missing = prompt_tok - tok
        if -prompt_tok * CLOSE_SHARE <= missing <= CLOSE_TOK:
            break
        step = int(missing / slope) or (1 if missing > 0 else -1)
        n, last_n, last_tok = min(len(words), max(1, n + step)), n, tok
        tok = counted(count, f"{nonce} {' '.join(words[:n])}")
        if n != last_n:
            slope = min(2 * slope, max(slope / 2, (tok - last_tok) / (n - last_n)))
    fillers = [FILLERS[i % len(FILLERS)] for i in range(min(CLOSE_TOK, max(0, prompt_tok - tok)))]
    return " ".join([*words[:n], *fillers])


def tok_per_word_of(count: Count, nonce: str, words: Sequence[str]) -> float | None:
    """Of a sample from all over the text, and a little more, so that a search that begins with it comes from below."""
    places = min(SAMPLE_PLACES, len(words))
    size = max(1, min(len(words), max(SAMPLE_WORDS, len(words) // 8)) // places)
    sample = [w for i in range(places) for w in words[i * len(words) // places :][:size]]
    empty_tok = count(nonce)
    tok = None if empty_tok is None else count(f"{nonce} {' '.join(sample)}")
    if empty_tok is None or tok is None:
        return None
    return max(0.1, (tok - empty_tok) / len(sample) / SHORT_OF)


def too_short(what: str, prompt_tok: int, least_tok: int) -> InputError:
    return InputError(
        f"{what} {prompt_tok}: the chat template and the nonce alone take {least_tok}",
        hint=f"ask for {least_tok + 16} tokens or more",
    )


def _filled(count: Count, text: str, missing_tok: int, *, nonce: str) -> str:
    if missing_tok == 0:
        return text
    have = counted(count, f"{nonce} {text}")
    goal = have + missing_tok
    for filler in FILLERS * (1 + missing_tok // len(FILLERS)):
        tok = counted(count, f"{nonce} {text} {filler}")
        if have < tok <= goal:
            text, have = f"{text} {filler}", tok
        if have == goal:
            break
    return text


def counted(count: Count, text: str) -> int:
    tok = count(text)
    if tok is None:
        raise TargetError("the server stopped telling how many tokens a text has", hint="look at the server's log")
    return tok
