"""What was told, in the shape in which a declared setting asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from orchestrator.engines.effective.model import Agreement, Compared, Notice, NoticeKind, Reading, Telling, Told
from orchestrator.engines.effective.sameness import Likeness, liken
from orchestrator.engines.flags.model import Catalogue
from orchestrator.values import Json

_STRENGTH = {Telling.SEEN: 2, Telling.RESOLVED: 1, Telling.ECHOED: 0}
_CHOICES = ("backend", "dtype", "type_k", "type_v", "algorithm", "quantization", "architecture", "_mode", "kernel")
LOGGED_WHEN_VERBOSE = "llama-server logs it with -lv 4 only"
ECHO_ONLY = "the engine repeats what it was given; nothing shows what it does with it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Readings by name, the surest first; what the engine admits; its list of flags.

    Attributes:
        engine: Whose voice this is: `vllm`, `sglang`, `llamacpp`, or another.
        has_echo: Every flag that differs from its default stands among the readings (vLLM's line, whole).
        variables: The engine's own environment variables as it reads them; empty: it does not tell.
        words: The engine's names to ours.
    """

    engine: str
    readings: Mapping[str, tuple[Reading, ...]]
    notices: tuple[Notice, ...] = ()
    told: Told = field(default_factory=Told)
    catalogue: Catalogue | None = None
    has_echo: bool = False
    variables: Mapping[str, Json] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def best(self, name: str) -> Reading | None:
        """The surest reading of this name, None: nothing tells."""
        return next(iter(self.readings.get(name, ())), None)

    def notice(self, name: str, kind: NoticeKind) -> Notice | None:
        """What the engine admits of this name; the last word counts."""
        return next((n for n in reversed(self.notices) if n.about == name and n.kind is kind), None)


def by_name(readings: Iterable[Reading]) -> dict[str, tuple[Reading, ...]]:
    """Readings by name, the surest first, of equals the first told."""
    found: dict[str, list[Reading]] = {}
    for reading in readings:
        found.setdefault(reading.name, []).append(reading)
    return {name: tuple(sorted(told, key=lambda r: -_STRENGTH[r.telling])) for name, told in found.items()}


def is_choice(name: str) -> bool:
    """The value is one word of a list, so its case doesn't matter."""
    return name.endswith(_CHOICES)


def settle(path: str, declared: Json, name: str, evidence: Evidence) -> Compared | None:
    """Compare one value with what is told under one name; None when nothing tells of it.

    1. The engine says that it does not take it: IGNORED.
    2. The surest reading is the same: SAME; `auto` is the same as whatever it became.
    3. The engine says that it runs something else: CHANGED, with its line.
    4. Another value runs: CONTRADICTED. A value of another kind says nothing: UNCONFIRMED.
    """
    if (ignored := evidence.notice(name, NoticeKind.IGNORED)) is not None:
        return confess(path, declared, ignored)
    changed = evidence.notice(name, NoticeKind.CHANGED)
    reading = evidence.best(name)
    if reading is None:
        return None if changed is None or is_auto(declared) else confess(path, declared, changed)
    likeness = liken(declared, reading.value, is_word=is_choice(name))
    # Documents may still show what the engine has given up since.
    if changed is not None and _speaks_against(changed, declared, name):
        return confess(path, declared, changed)
    if likeness is Likeness.SAME:
        only = ECHO_ONLY if reading.telling is Telling.ECHOED else None
        return agree(path, declared, Agreement.SAME, reading, why=only)
    if is_auto(declared):
        return agree(path, declared, Agreement.SAME, reading, why=f"auto -> {reading.value}")
    if likeness is Likeness.INCOMPARABLE:
        for other in evidence.readings[name]:
            if liken(declared, other.value, is_word=is_choice(name)) is Likeness.SAME:
                return agree(path, declared, Agreement.SAME, other, why=ECHO_ONLY)
        return agree(path, declared, Agreement.UNCONFIRMED, reading, why="told in another form")
    return agree(path, declared, Agreement.CONTRADICTED, reading, why="another value runs, and no line says why")


def _speaks_against(changed: Notice, declared: Json, name: str) -> bool:
    if changed.value is None or is_auto(declared):
        return False
    return liken(declared, changed.value, is_word=is_choice(name)) is Likeness.DIFFERENT


def confess(path: str, declared: Json, notice: Notice, *, is_weaker: bool = False) -> Compared:
    """A row out of the engine's own words."""
    is_ignored = notice.kind is NoticeKind.IGNORED
    return Compared(
        path=path,
        declared=declared,
        agreement=Agreement.IGNORED if is_ignored else Agreement.CHANGED,
        running=notice.value,
        source="log",
        quote=notice.quote,
        why="the engine says that it does nothing" if is_ignored else "the engine says so itself",
        is_weaker=is_weaker,
    )


def agree(path: str, declared: Json, agreement: Agreement, reading: Reading, *, why: str | None = None) -> Compared:
    """A row out of a reading."""
    return Compared(
        path=path,
        declared=declared,
        agreement=agreement,
        running=reading.value,
        source=reading.source,
        quote=reading.quote,
        why=why,
    )


def untold(path: str, declared: Json, why: str = "the engine has no place that tells") -> Compared:
    """A row of which nothing can be said."""
    return Compared(path=path, declared=declared, agreement=Agreement.UNCONFIRMED, why=why)


def is_auto(value: Json) -> bool:
    """The engine was asked to choose."""
    return isinstance(value, str) and value.lower() == "auto"
