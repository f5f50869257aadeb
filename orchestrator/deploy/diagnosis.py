"""Why a server died: its last words against what its engine is known to say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import Symptom

OOM_KILLED_EXIT_CODE = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A named cause with its remedy.

    Attributes:
        cause: Short name, as in `Symptom.cause`.
        line: The log line that told, None when the exit code alone did.
    """

    cause: str
    message: str
    hint: str
    line: str | None = None


def diagnose(
    log_lines: Sequence[str], exit_code: int | None, oom_killed: bool, symptoms: Sequence[Symptom]
) -> Diagnosis | None:
    """The first symptom, in the engine's own order, that the log or the exit code shows.

    Args:
        log_lines: Oldest first; progress bars' carriage returns are taken apart.
        exit_code: None when the server vanished or still runs.
        oom_killed: The runtime saw the kernel kill it: counts as exit code 137.
        symptoms: Most telling first: a cause before its consequences.

    Returns:
        None when nothing is known.
    """
    code = OOM_KILLED_EXIT_CODE if oom_killed else exit_code
    lines = [part for line in log_lines for part in line.split("\r")]
    for symptom in symptoms:
        if symptom.exit_codes and code not in symptom.exit_codes:
            continue
        if symptom.pattern is None:
            return Diagnosis(cause=symptom.cause, message=symptom.message, hint=symptom.hint)
        pattern = re.compile(symptom.pattern)
        for line in lines:
            if found := pattern.search(line):
                return _filled(symptom, found, line)
    return None


def _filled(symptom: Symptom, found: re.Match[str], line: str) -> Diagnosis:
    return Diagnosis(
        cause=symptom.cause,
        message=_with_groups(symptom.message, found).rstrip(": "),
        hint=_with_groups(symptom.hint, found),
        line=line.strip(),
    )


def _with_groups(text: str, found: re.Match[str]) -> str:
    """Put the match's groups into `{name}`; other braces (YAML in a hint) stay."""
    groups = found.groupdict()
    return re.sub(r"\{(\w+)\}", lambda m: (groups[m[1]] or "").strip() if m[1] in groups else m[0], text)
