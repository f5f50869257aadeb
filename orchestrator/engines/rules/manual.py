"""The rules as a page to read: one table, and what stands behind each rule below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.engines.rules.model import Rule
from orchestrator.values import Json

NAMES = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama-server"}


def manual(rules: Sequence[Rule]) -> str:
    """Markdown: what they are, the table, then each rule with its evidence."""
    return "\n\n".join((_INTRODUCTION, table(rules), *(_section(rule) for rule in rules))) + "\n"


def table(rules: Sequence[Rule]) -> str:
    """One row a rule: its code, whom it is about, what, and which gates answer it."""
    head = ("| code | engine | about | answered by |", "|---|---|---|---|")
    rows = (
        f"| `{rule.code}` | {_whom(rule)} | {_cell(rule.title)} | {', '.join(f'`{g}`' for g in rule.answered_by)} |"
        for rule in rules
    )
    return "\n".join((*head, *rows))


def as_json(rule: Rule) -> dict[str, Json]:
    """A rule for a program; the conditions as they are written."""
    return {
        "code": rule.code,
        "title": rule.title,
        "engines": list(rule.engines),
        "versions": None if rule.versions is None else rule.versions.text,
        "when": dict(rule.when),
        "message": rule.message,
        "message_unknown": rule.message_unknown,
        "hint": rule.hint,
        "evidence": list(rule.evidence),
        "standing": rule.standing,
        "answered_by": list(rule.answered_by),
    }


_INTRODUCTION = """# Rules

What is known to go wrong on a DGX Spark (`GB10-…`) or on any box (`SERVE-…`), each with where it was seen. A rule that
fits a profile is an advisory in `gate0 plan`, `gate0 validate` and before a start; it never stops anything. The gates
that it names answer it once they have passed for this profile on the same image; `silence: [CODE]` silences it."""


def _section(rule: Rule) -> str:
    return "\n\n".join(_parts(rule))


def _parts(rule: Rule) -> Iterator[str]:
    yield f"## `{rule.code}`: {rule.title}"
    yield f"{rule.message}."
    if rule.message_unknown:
        yield f"Of an image that does not tell its version: {rule.message_unknown}."
    yield f"What to do: {rule.hint}."
    yield f"Seen: {', '.join(rule.evidence)} ({rule.standing})."


def _whom(rule: Rule) -> str:
    engines = ", ".join(NAMES.get(name, name) for name in rule.engines) or "any"
    return f"{engines} {_cell(rule.versions.text)}" if rule.versions is not None else engines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
