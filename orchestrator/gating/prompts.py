"""Long prompts that look like real text: deterministic from a seed, unique through a nonce, with a fact planted.

The nonce is the first word, so that it falls into the first cache block and nothing of an earlier run can be hit.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass

Nonce = Callable[[], str]
"""Gives a fresh word at each call."""

_PEOPLE = ("Mara", "Ilir", "Jonas", "Petra", "Samuel", "Noor", "Ewa", "Tomas", "Lucia", "Bram", "Anouk", "Viktor")
_PLACES = ("the north pump", "the boiler room", "the east gate", "the workshop", "the cooling loop", "the store room")
_ACTS = ("checked", "cleaned", "repaired", "inspected", "measured", "opened", "painted", "closed", "replaced a part of")
_FINDS = (
    "nothing unusual was found",
    "a worn seal was noted for the next round",
    "the pressure stayed steady all day",
    "one lamp was dark and got a new bulb",
    "the reading was written into the ledger",
    "a small leak dried up before evening",
)
_TIMES = ("In the morning", "After lunch", "Late in the day", "Before the bell", "During the night shift", "At noon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact planted in a text. `answer` is what a reader must give back."""

    sentence: str
    question: str
    answer: str


def fresh_nonce() -> str:
    """Sixteen random hex digits."""
    return secrets.token_hex(8)


def fact_of(seed: int) -> Fact:
    """A fact that stands in no training text, the same for the same seed."""
    number = random.Random(f"fact {seed}").randint(1000, 9999)
    return Fact(
        sentence=f"Remember this: the code of the blue door is {number}.",
        question="What is the code of the blue door? Answer with the number only.",
        answer=str(number),
    )


def station_log(words: int, *, nonce: str, seed: int, fact: Fact | None = None) -> str:
    """About `words` words of a station's log; the nonce comes first, then the fact, then the days.

    The length is exact to one sentence, never above `words` unless the opening alone is longer.
    """
    rng = random.Random(f"log {seed}")
    opening = f"{nonce} is the number of this station log. {fact.sentence if fact else ''}".strip()
    parts = [opening]
    length = len(opening.split())
    while True:
        sentence = _sentence(rng)
        length += len(sentence.split())
        if length > words:
            return " ".join(parts)
        parts.append(sentence)


def _sentence(rng: random.Random) -> str:
    who, where = rng.choice(_PEOPLE), rng.choice(_PLACES)
    return f"{rng.choice(_TIMES)} {who} {rng.choice(_ACTS)} {where}, and {rng.choice(_FINDS)}."
