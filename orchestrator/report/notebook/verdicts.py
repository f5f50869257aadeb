"""A run's verdict as a word to filter by, a tone to show it in, and words."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.report.tables import GOOD, RunRow

VERDICTS: Mapping[str, str] = {
    "passed": "passed",
    "unstable": "unstable",
    "failed": "failed",
    "error": "could not tell",
    "none": "not gated",
    "foreign": "not measured here",
}
TONES = {"pass": "good", "fail": "bad", "error": "bad", "unstable": "warn", "skip": "soft"}
"""Of one gate's status."""


def verdict_of(row: RunRow) -> str:
    """A key of `VERDICTS`."""
    if row.run.source:
        return "foreign"
    if not row.run.gates:
        return "none"
    found = required(row)
    order = ("fail", "failed"), ("error", "error"), ("unstable", "unstable")
    return next((name for status, name in order if status in found), "passed")


def tone_of(row: RunRow) -> str:
    """Good only where every verdict is: a gate that may fail and did is no reason to stop, and no tick either."""
    if required(row) & {"fail", "error"}:
        return "bad"
    if set(row.run.gates.values()) - set(GOOD):
        return "warn"
    return "good" if row.run.gates and not row.run.source else "soft"


def verdict_words(row: RunRow) -> str:
    """Of another's report what its own check said, in its words."""
    gate = row.run.source.get("gate") if row.run.source else None
    if not isinstance(gate, Mapping):
        return row.verdict
    return f"its own check: {gate.get('word') or gate.get('verdict')}"


def required(row: RunRow) -> set[str]:
    """What the gates found that had to pass."""
    optional = {g.name for g in row.gates if not g.is_required}
    return {status for gate, status in row.run.gates.items() if gate not in optional}
