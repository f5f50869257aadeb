"""Which names stand for secrets, and texts with their values hidden."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
MIN_SECRET = 4
"""Shorter values (`1`, `no`) stand elsewhere too: replacing them would hide nothing."""
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|API_?KEYS?|KEY|PASSWORD|PASSWD|PASS|SECRET|SECRET_?KEY|ACCESS_?KEY|CREDENTIALS?)(?:_ID)?$", re.I
)
_SWITCH = frozenset({"", "0", "1", "true", "false", "yes", "no", "on", "off"})
SECRET_FLAGS = frozenset({"--api-key", "--api_key", "--admin-api-key", "--hf-token", "--hf_token", "-hft", "--token"})
_KEY_WORD = re.compile(r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{16,}|ghp_[A-Za-z0-9]{16,})")
_ASSIGNED = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)=(\"[^\"]*\"|'[^']*'|[^\s\"']+)")
_FLAGGED = re.compile(rf"(?<!\S)({'|'.join(sorted(SECRET_FLAGS))})([ =])(\"[^\"]*\"|'[^']*'|\S+)")


def is_secret_name(name: str) -> bool:
    """True for a variable that by its name holds a secret: `HF_TOKEN`, `VLLM_API_KEY`, `DB_PASSWORD`."""
    return _SECRET_NAME.search(name) is not None


def is_secret(name: str, value: str) -> bool:
    """True when the value must not be shown: a secret's name, and more than a switch's value."""
    return (is_secret_name(name) and value.lower() not in _SWITCH) or _KEY_WORD.search(value) is not None


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with `***` for each of these values, if it is long enough to be one."""
    for secret in sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def hidden(text: str) -> str:
    """The text with `***` for values that look like secrets: `TOKEN=…`, `--api-key …`, `hf_…`. References stay."""

    def assignment(found: re.Match[str]) -> str:
        value = found[2].strip("\"'")
        shows = value.startswith("$") or not is_secret(found[1], value)
        return found[0] if shows else f"{found[1]}={MASK}"

    def flag(found: re.Match[str]) -> str:
        return found[0] if found[3].strip("\"'").startswith("$") else f"{found[1]}{found[2]}{MASK}"

    return _KEY_WORD.sub(MASK, _FLAGGED.sub(flag, _ASSIGNED.sub(assignment, text)))
