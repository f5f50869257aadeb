"""Endless text with code in it, out of a small stock: what a system prompt with a memory file of a repository is like.

Theory of operation. A long prefix needs more text than anyone writes by hand, and a text that repeats itself flatters a
server that drafts tokens by n-grams of the prompt. So pieces are dealt in a shuffled order, pass after pass, and each
time a piece is dealt its things, deeds and qualities get other names (the same ones throughout the piece, whether they
stand in prose or in an identifier) and its numbers other digits. All from one seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import TypeVar

from orchestrator.sweep.passages import PASSAGES

TEXTS = Path(__file__).with_name("texts")
FILES = ("python.txt", "rust.txt", "sql.txt", "shell.txt", "data.txt", "notes.txt")
PIECE_MARK = "%%\n"
PROSE = "markdown"
SENTENCES = (3, 4, 5)

LOCALS = "locals"
CAST = {
    "things": """
        parcel depot courier ledger sensor basket ticket roster pump valve orchard voucher tram lesson recipe tenant
        invoice kiln ferry beacon boat van harbour town market bridge river road bend council engineer survey clock
        observatory cellar pier assistant column kitchen oven baker library drawer valley dam geographer record
        hive veil scout chimney letter dance mechanic bearing spring factory ridge walker farmer field fence
        telephone orchestra oboe string violist player note breath car summer winter county island price school captain
        visitor morning night recorder building controller gate belt shift table label person people week hour hand
        piece place day man woman year temperature surface decision wall shoulder student news soil abutment proposal
        islander majority voter skipper flour loaf dough number machine instrument decade reed
        maker bank pipe basement ear
        """,
    "deeds": "dispatch reconcile weigh inspect archive forecast allocate escalate annotate throttle",
    "qualities": """
        stale pending fragile urgent seasonal dormant cold warm heavy young small large narrow early quiet empty
        expensive poor old whole different
        """,
    LOCALS: """
        level burst refill seen passed start waits reading middle spread smoothing tolerance warmth gain ripened beside
        tree row near pairs ahead behind platform gap percent amount owed silence taken longest overlap starts ends
        remark target last silent retries pressure kpa state slots patience carried weight days plans title minutes
        steps hold age complaints window board printed second expected total cents neighbours columns annex north south
        moved before reader writer file stop cells bunched open_count pending_s
        """,
    "numbers": "two three four five six nine ten eleven twenty thirty forty hundred thousand",
}
"""Words that the stock says again and again, by what may stand in their place; no word of a language's own.
`locals` are renamed in code only."""

POOL = {
    "things": """
        anchor badge barrel barrow bell bicycle blanket bottle bracket brick broom bucket button cabin cable camel
        candle canyon carpet cart castle ceiling chart chisel cinema circuit cleaner client coat coin collar comet
        corridor cottage counter crane crate cricket crystal cupboard curtain customer dentist desk diagram
        dragon driver drum editor engine entrance envelope falcon fiddle filter flag flask forest fountain furnace
        garden gardener garment guitar hammer hangar helmet hotel jacket janitor journal kernel kettle keyboard ladder
        lantern lawyer lemon lighthouse locker locksmith magnet mailbox manual margin marker mirror mixer monitor
        motor museum needle notebook nurse oar painter palace parser partner passage patient pepper pilot pistol
        planet plumber pocket poster printer prism puzzle rabbit radiator railing receipt reactor reader reel
        reporter ribbon rider robot rocket roof rudder saddle sailor sample scanner scarf schedule sculptor seed
        shutter signal sketch socket spoon stable station stove submarine surgeon switch tailor tanker teacher
        temple tent theatre thread throne tile timer token toolbox towel tractor trailer transformer trumpet tunnel
        turbine turtle umbrella uniform vacuum vase vault vendor vessel village vineyard violin wagon waiter wallet
        warden weaver wheel whistle widget window wizard workshop writer yacht zipper
        """,
    "deeds": """
        adjust admit assemble balance borrow bundle calibrate cancel certify collate compress convert cultivate declare
        deliver digest discard divide draft embed enlist estimate examine exclude extend extract flatten gather harvest
        imitate index install invite merge migrate mount notify observe overlay paint
        polish postpone prepare publish purge quantify recall register release relocate renew repair resolve restore
        reward scrub settle sharpen sift stamp stitch summon tally translate trim
        unload validate verify withdraw
        """,
    "qualities": """
        abrupt absent ancient awkward bitter blunt brave bright broad broken busy calm careful clever clumsy common
        costly crooked curious damp dark deaf deep distant dull eager early faint familiar famous firm flat foreign
        formal gentle glad golden grave greedy harsh hidden hollow honest humble idle jealous keen late lazy lively
        lonely loose loud mild modest muddy naked noble odd pale patient plain polite proud rapid rare raw rough rude
        sacred salty secret severe shallow sharp short silent simple sleepy slow smooth solid sour steady steep stiff
        strange strict sudden sweet tame tender thick thin tidy tight timid tiny tough vague vivid weary wet wild wise
        """,
    "numbers": """
        two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
        nineteen twenty thirty forty fifty sixty seventy eighty ninety
        """,
}
WORDS_OF = {kind: tuple(text.split()) for kind, text in POOL.items()}
KIND_OF = {word: kind for kind, text in CAST.items() for word in text.split()}


def _cast_word(words: Iterable[str]) -> re.Pattern[str]:
    """A word of the cast, alone or as a part of an identifier, in lower, camel or upper case; an `s` may follow."""
    low = "|".join(sorted(words, key=len, reverse=True))
    camel = "|".join(word.capitalize() for word in low.split("|"))
    return re.compile(
        rf"(?<![A-Za-z])(?P<low>{low})(?P<s>s?)(?![a-z])"
        rf"|(?<![A-Z])(?P<camel>{camel})(?P<camel_s>s?)(?![a-z])"
        rf"|(?<![A-Z])(?P<up>{low.upper()})(?P<up_s>S?)(?![A-Z])"
    )


IN_CODE = _cast_word(KIND_OF)
IN_PROSE = _cast_word(word for word, kind in KIND_OF.items() if kind != LOCALS)
NUMBER = re.compile(r"(?<![\w.])\d{2,}(?!\w)|(?<=\d\.)\d{2,}(?!\w)")
WORD_END = re.compile(r"(?<=\S) ")
Card = TypeVar("Card")
ARTICLE = re.compile(r"\b([Aa])n? (?=([A-Za-z]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One file or paragraph of the stock. `language`: as a fence names it."""

    language: str
    name: str
    text: str


@cache
def stock() -> tuple[Piece, ...]:
    """All pieces of `texts/`, as they were written."""
    pieces = []
    for file in FILES:
        for raw in (TEXTS / file).read_text().split(PIECE_MARK):
            head, _, text = raw.partition("\n")
            language, _, name = head.partition(" ")
            pieces.append(Piece(language=language, name=name, text=text.strip("\n")))
    return tuple(pieces)


@cache
def sentences() -> tuple[str, ...]:
    """Of the running prose."""
    paragraphs = (" ".join(p.split()) for p in PASSAGES.strip().split("\n\n"))
    return tuple(s for p in paragraphs for s in re.split(r"(?<=[.!?]) (?=[A-Z])", p))


def sections(seed: int | str) -> Iterator[str]:
    """Without end: a piece of the stock, a paragraph of prose, and so on, each under names of its own."""
    rng = Random(f"{seed}/sections")
    prose = _dealt(sentences(), rng)
    for piece in _dealt(stock(), rng):
        yield _shown(piece, rng)
        yield renamed(" ".join(islice(prose, rng.choice(SENTENCES))), rng)


def words_with_code(seed: int | str, n: int) -> tuple[str, ...]:
    """The first `n` words, to be joined by single spaces: line ends and indents stand before or in them."""
    text: list[str] = []
    spaces = 0
    for section in sections(seed):
        text.append(section)
        spaces += len(WORD_END.findall(section))
        if spaces >= n:
            break
    return tuple(WORD_END.split("\n\n".join(text))[:n])


def renamed(text: str, rng: Random, *, is_code: bool = False) -> str:
    """The text with its cast under other names and its numbers with other digits."""
    names: dict[str, str] = {}
    digits: dict[str, str] = {}

    def name_of(word: str) -> str:
        if word not in names:
            names[word] = _name(KIND_OF[word], set(names.values()), rng)
        return names[word]

    def replaced(match: re.Match[str]) -> str:
        if match["low"]:
            return name_of(match["low"]) + match["s"]
        if match["camel"]:
            parts = name_of(match["camel"].lower()).split("_")
            return "".join(part.capitalize() for part in parts) + match["camel_s"]
        return name_of(match["up"].lower()).upper() + match["up_s"]

    def number_of(match: re.Match[str]) -> str:
        said = match[0]
        if said not in digits:
            first = "0" if said[0] == "0" else str(1 + int(rng.random() * 9))
            digits[said] = first + "".join(str(int(rng.random() * 10)) for _ in said[1:])
        return digits[said]

    named = (IN_CODE if is_code else IN_PROSE).sub(replaced, text)
    return ARTICLE.sub(_article, NUMBER.sub(number_of, named))


def _name(kind: str, taken: set[str], rng: Random) -> str:
    """One that nothing else in the piece has; of a local sometimes one of two words."""
    if kind == LOCALS:
        thing = _name("things", taken, rng)
        return thing if rng.random() < 0.5 else f"{_drawn(WORDS_OF['qualities'], rng)}_{thing}"
    return _drawn([w for w in WORDS_OF[kind] if w not in taken] or WORDS_OF[kind], rng)


def _drawn(words: Sequence[str], rng: Random) -> str:
    return words[int(rng.random() * len(words))]


def _article(match: re.Match[str]) -> str:
    return f"{match[1]}n " if match[2].lower() in "aeiou" else f"{match[1]} "


def _dealt(cards: tuple[Card, ...], rng: Random) -> Iterator[Card]:
    """All in a shuffled order, again and again."""
    while True:
        yield from sorted(cards, key=lambda _: rng.random())


def _shown(piece: Piece, rng: Random) -> str:
    """A piece as it stands in a memory file: prose as it is, code under its name and in a fence."""
    if piece.language == PROSE:
        return renamed(piece.text, rng)
    imports, *parts = piece.text.split("\n\n\n")
    text = "\n\n\n".join([imports, *sorted(parts, key=lambda _: rng.random())])
    code = f"`{_drawn(WORDS_OF['things'], rng)}/{piece.name}`:\n```{piece.language}\n{text}\n```"
    return renamed(code, rng, is_code=True)
