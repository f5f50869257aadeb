"""A transcript's figures as a record keeps them: the printed number in the unit that the figure's name says.

A figure is a mapping of statistics (`value`, `mean`, `sd`, `p50` …, `low` and `high` of a range) or `not_measured`.
Several values that a report gives for one figure stand in a list: the first is the figure, the others go under `also`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from orchestrator.errors import Problem
from orchestrator.profile.steps import dotted
from orchestrator.profile.yaml_lines import Node, Steps
from orchestrator.values import Json

STATISTICS = ("value", "mean", "sd", "p50", "p90", "p95", "p99", "low", "high")
HEADLINES = ("value", "mean", "p50", "low", "high")
"""At least one of them must be there where it was measured."""

WORDS = ("about", "rounded", "basis", "against", "note")
"""Kept as they are when a figure has them."""

_TIMES_S = {"ms": Decimal("0.001"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600)}
_TIMES_MS = {unit: factor * 1000 for unit, factor in _TIMES_S.items()}
_SHARES = {"": Decimal(1), "%": Decimal("0.01")}
_TOKENS = {"tok": Decimal(1), "Ktok": Decimal(1000)}
_SHARE_NAMES = frozenset({"efficiency"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The unit that a figure is kept in, and what each printed unit is multiplied by; no factors: kept as printed."""

    unit: str
    factors: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Reader:
    """Reads figures of one file.

    Args:
        file: For problems.
        columns: What figures of a name are unless they say otherwise: `unit`, `definition`, `column`.
    """

    file: str
    columns: Mapping[str, Node]
    problems: list[Problem] = field(default_factory=list)

    def stated(self, node: Node | None, steps: Steps, *, place: str | None) -> dict[str, Mapping[str, Json]]:
        """All figures under a `stated`.

        Args:
            place: Where in the report they stand; a figure's own `place` wins, else its column is added.
        """
        figures = node.content if node is not None and isinstance(node.content, Mapping) else {}
        return {name: self._figure(name, inner, (*steps, name), place) for name, inner in figures.items()}

    def _figure(self, name: str, node: Node, steps: Steps, place: str | None) -> Mapping[str, Json]:
        if not isinstance(node.content, tuple):
            return self._value(name, node, steps, place)
        first, *others = [self._value(name, n, (*steps, i), place) for i, n in enumerate(node.content)]
        return {**first, "also": others}

    def _value(self, name: str, node: Node, steps: Steps, place: str | None) -> dict[str, Json]:
        told = _entries(node)
        column = _entries(self.columns.get(name))
        where = told.get("place") or _joined(place, column.get("column"))
        if where is None:
            self._problem(node, steps, "no place: give `place`, or the cell's `place` and the column's `column`")
        found: dict[str, Json] = {}
        printed = told.get("unit", column.get("unit"))
        scale = scale_of(name)
        if "not_measured" in told:
            found["not_measured"] = True
        else:
            found |= self._numbers(node, steps, printed, scale)
        return {
            **found,
            "unit": scale.unit if scale.factors else printed or "",
            "definition": told.get("definition") or column.get("definition") or f"report/{name}",
            "place": where,
            **{word: told[word] for word in WORDS if word in told},
        }

    def _numbers(self, node: Node, steps: Steps, printed: Json, scale: Scale) -> dict[str, Json]:
        entries = node.content if isinstance(node.content, Mapping) else {}
        if not any(word in entries for word in HEADLINES):
            self._problem(node, steps, f"no number: give one of {', '.join(HEADLINES)}, or `not_measured: true`")
        if scale.factors and printed not in scale.factors:
            self._problem(node, steps, f"unit: expected one of {_units(scale)}, got {printed!r}")
            return {}
        if printed is None:
            self._problem(node, steps, "no unit: give `unit`, as printed; an empty text for a count")
        written = {word: str(entries[word].written) for word in STATISTICS if word in entries}
        factor = scale.factors.get(str(printed), Decimal(1))
        numbers: dict[str, Json] = {word: _number(text, factor) for word, text in written.items()}
        if any(str(numbers[word]) != text for word, text in written.items()):
            numbers["printed"] = {**written, "unit": printed}
        if "of" in entries:
            numbers["of"] = entries["of"].plain()
        return numbers

    def _problem(self, node: Node, steps: Steps, message: str) -> None:
        place = node.place
        self.problems.append(Problem(file=place.file, line=place.line, path=dotted(steps), message=message))


def scale_of(name: str) -> Scale:
    """By the end of the figure's name."""
    if name.endswith("_per_s"):
        return Scale(unit="")
    if name in _SHARE_NAMES or name.endswith("_share"):
        return Scale(unit="", factors=_SHARES)
    for end, scale in (
        ("_ms", Scale(unit="ms", factors=_TIMES_MS)),
        ("_s", Scale(unit="s", factors=_TIMES_S)),
        ("_tok", Scale(unit="tok", factors=_TOKENS)),
    ):
        if name.endswith(end):
            return scale
    return Scale(unit="")


def _number(written: str, factor: Decimal) -> int | float:
    number = Decimal(written) * factor
    is_whole = "." not in written and number == number.to_integral_value()
    return int(number) if is_whole else float(number)


def _entries(node: Node | None) -> Mapping[str, Json]:
    plain = None if node is None else node.plain()
    return plain if isinstance(plain, Mapping) else {}


def _joined(place: str | None, column: Json) -> str | None:
    return f"{place}, column {column}" if place and column else None


def _units(scale: Scale) -> str:
    return ", ".join(repr(unit) for unit in scale.factors)
