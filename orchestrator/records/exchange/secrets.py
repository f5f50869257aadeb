"""Keys and passwords that other tools write into their results: arguments, headers, addresses; shown as `***`."""

from __future__ import annotations

import re

from orchestrator.values import MIN_REDACTED, Secret

_NAME = (
    r"(?:api[_-]?key|authorization|password|passwd|secret"
    r"|(?:hf|hugging[_-]?face(?:[_-]?hub)?|access|auth|api|bearer|refresh)[_-]?token)"
)
"""The end of a name: what stands before it (`OPENAI_API_KEY`) is not looked at, so that long words cost nothing."""

_VALUE = r"([^\s\"'\\,;}{\]\[]+)"
PATTERNS = (
    re.compile(rf"{_NAME}\b[\"'\\]*\s*[:=]\s*[\"'\\]*{_VALUE}", re.IGNORECASE),
    re.compile(rf"--[a-z-]{{0,20}}{_NAME}[\s=]+[\"'\\]*{_VALUE}", re.IGNORECASE),
    re.compile(r"\b(?:Bearer|Basic)\s+([A-Za-z0-9._~+/=-]+)"),
    re.compile(r"\b(sk-[A-Za-z0-9_-]{12,}|hf_[A-Za-z0-9]{12,}|nvapi-[A-Za-z0-9_-]{12,})"),
    re.compile(r"://[^/\s:@\"']+:([^@\s\"'/]+)@"),
)
WORDS = frozenset({"null", "none", "true", "false", "bearer", "basic", "dummy", "not-needed", "default"})
"""What stands in the place of a key and is none."""


def secrets_in(text: str) -> tuple[Secret, ...]:
    """All values that stand where a key or a password stands; short ones and words that are none are left."""
    found = {match[1] for pattern in PATTERNS for match in pattern.finditer(text)}
    return tuple(Secret("foreign", v) for v in sorted(found) if len(v) >= MIN_REDACTED and v.lower() not in WORDS)
