"""The loss report: what became of each thing in the source, for a table, for JSON, and as comments in a profile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.texts import shorten
from orchestrator.values import Json

HEAD = ("fate", "where", "what", "became")
MAX_COMMENTS = 60
COMMENT_WIDTH = 118
_LINE = re.compile(r"line ([0-9]+)")


def in_order(notes: Sequence[Note]) -> tuple[Note, ...]:
    """By line of the source, what has none last; each said once."""
    unique = list(dict.fromkeys(notes))
    return tuple(sorted(unique, key=lambda note: _line(note.where)))


def rows(notes: Sequence[Note]) -> list[tuple[str, str, str, str]]:
    """The report as table rows."""
    return [(note.fate.value, note.where, shorten(note.what, 78), note.why) for note in notes]


def counts(notes: Sequence[Note]) -> dict[str, int]:
    """How many notes there are of each fate, all four named."""
    return {fate.value: sum(note.fate is fate for note in notes) for fate in Fate}


def summary(notes: Sequence[Note]) -> str:
    """`23 kept, 9 translated, 4 dropped, 2 need a person`."""
    found = counts(notes)
    person = found[Fate.PERSON.value]
    needs = f"{person} need{'s' if person == 1 else ''} a person"
    return f"{found['kept']} kept, {found['translated']} translated, {found['dropped']} dropped, {needs}"


def as_json(notes: Sequence[Note]) -> list[dict[str, Json]]:
    return [{"fate": n.fate.value, "what": n.what, "where": n.where, "why": n.why} for n in notes]


def comments(notes: Sequence[Note], source: str) -> str:
    """The report as a comment block; what stands in the profile anyway is only counted, and it is bounded."""
    shown = [note for note in in_order(notes) if note.fate is not Fate.KEPT and not _is_plain(note)]
    shown.sort(key=lambda note: note.fate is not Fate.PERSON)
    lines = [f"imported from {source}: {summary(notes)}"]
    lines += [line for note in shown[:MAX_COMMENTS] for line in _comment(note)]
    if len(shown) > MAX_COMMENTS:
        lines.append(f"… and {len(shown) - MAX_COMMENTS} more; import it again to see them")
    return "".join(f"# {_printable(line)}\n" for line in lines)


def _printable(line: str) -> str:
    """Without what ends a comment or is no text in YAML."""
    return "".join(sign if sign.isprintable() else "?" for sign in line)


def _is_plain(note: Note) -> bool:
    """A flag that became a setting of the same meaning: the profile itself says it."""
    return note.fate is Fate.TRANSLATED and note.why.startswith("serve.") and " " not in note.why


def _comment(note: Note) -> Iterator[str]:
    head = "NEEDS A PERSON" if note.fate is Fate.PERSON else note.fate.value
    text = f"{head}: {note.where}: {shorten(note.what, 70)}"
    yield shorten(f"{text}: {note.why}" if note.why else text, 2 * COMMENT_WIDTH)


def _line(where: str) -> int:
    found = _LINE.match(where)
    return int(found[1]) if found else 10**9
