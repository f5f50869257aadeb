"""What was declared beside what ran, as lines of a table: for the terminal, the page, Markdown and JSON alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.record import GateRecord, RunRecord
from orchestrator.report.text import DASH
from orchestrator.values import Json

GATE = "effective"
HEAD = ("Setting", "Declared", "Running", "Agreement", "Read where", "In its words")
TOLD_HEAD = ("Name", "Value", "Read where")
AGREEMENTS: Mapping[str, str] = {
    "contradicted": "contradicted",
    "ignored": "ignored",
    "changed": "changed by the engine",
    "unconfirmed": "not confirmable",
    "same": "same",
}
"""As the record has them, the worst first, and the words for a reader."""
TONES: Mapping[str, str] = {
    "contradicted": "bad",
    "ignored": "bad",
    "changed": "warn",
    "unconfirmed": "soft",
    "same": "good",
}
FAILING = ("contradicted", "ignored")
MOST_CHARS = 160
"""Of a value that was told beside the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveLine:
    """One declared setting, or one thing that the server must be seen to do.

    Attributes:
        agreement: A key of `AGREEMENTS`; an unknown one as it stands.
        words: Why it is so, or the server's own log line where it does not simply agree; empty: neither.
        is_failing: Ignored, contradicted, or changed by the engine for the worse.
    """

    path: str
    declared: str
    running: str
    agreement: str
    where: str
    words: str
    is_failing: bool = False

    @property
    def tone(self) -> str:
        return "bad" if self.is_failing else TONES.get(self.agreement, "")

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of `HEAD`."""
        return (
            self.path,
            self.declared,
            self.running,
            AGREEMENTS.get(self.agreement, self.agreement),
            self.where,
            self.words,
        )


def effective_lines(run: RunRecord, gates: Iterable[GateRecord] = ()) -> tuple[EffectiveLine, ...]:
    """Every setting that was compared, and what the gate saw the server do: failing ones first, else as declared."""
    rows = [*_mappings(run.effective.get("compared")), *behaviours(gates)]
    return tuple(sorted((_line(row) for row in rows), key=_badness))


def _badness(line: EffectiveLine) -> tuple[bool, int]:
    order = list(AGREEMENTS)
    return not line.is_failing, order.index(line.agreement) if line.agreement in order else len(order)


def behaviours(gates: Iterable[GateRecord]) -> list[Mapping[str, Json]]:
    """What the gate looked at beside the settings that were read back."""
    found = (entry for gate in gates if gate.name == GATE for entry in gate.evidence)
    return [entry for entry in found if str(entry.get("path", "")).startswith("behaviour.")]


def told_lines(run: RunRecord) -> tuple[tuple[str, str, str], ...]:
    """Lines of `TOLD_HEAD`: what else the server told; one thing told in several places stands there once."""
    compared = {(str(r.get("source")), _words(r.get("running"))) for r in _mappings(run.effective.get("compared"))}
    readings = _mappings(run.effective.get("readings"))
    found = [(str(r.get("name")), _words(r.get("value")), str(r.get("source") or "")) for r in readings]
    first = {(name, value): where for name, value, where in reversed(found) if value != DASH}
    return tuple((n, _short(v), w) for n, v, w in found if first.get((n, v)) == w and (w, v) not in compared)


def counted_words(lines: Sequence[EffectiveLine]) -> str:
    """`14 same, 2 changed by the engine, 3 not confirmable`; empty for none."""
    counts = {name: sum(line.agreement == name for line in lines) for name in AGREEMENTS}
    return ", ".join(f"{n} {AGREEMENTS[name]}" for name, n in counts.items() if n)


def list_words(run: RunRecord) -> str:
    """By which list of flags it was compared; empty where by none."""
    found = run.effective.get("catalogue")
    if not isinstance(found, Mapping):
        return ""
    note = f" ({found['note']})" if found.get("note") else ""
    return f"compared by the flags of {found.get('engine')} {found.get('version')}{note}"


def _line(row: Mapping[str, Json]) -> EffectiveLine:
    agreement = str(row.get("agreement"))
    return EffectiveLine(
        path=str(row.get("path")),
        declared=_words(row.get("declared")),
        running=_words(row.get("running")),
        agreement=agreement,
        where=str(row.get("source") or ""),
        words=" ".join(str((row.get("quote") if agreement != "same" else None) or row.get("why") or "").split()),
        is_failing=agreement in FAILING or (agreement == "changed" and row.get("is_weaker") is True),
    )


def _words(value: Json) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {_words(v)}" for k, v in value.items()) or "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_words(v) for v in value) or "[]"
    return " ".join(str(value).split())


def _short(text: str) -> str:
    """A whole chat template is in the record; a table has its beginning."""
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return []
    return [v for v in value if isinstance(v, Mapping)]
