"""`gate0 validate`: every problem of every profile, in CI style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option

if TYPE_CHECKING:
    from orchestrator.cli.inspecting import Diagnostic, Inspected
    from orchestrator.cli.printer import Printer

SEVERITIES = ("error", "warning", "advice")
SILENCE_HINT = "hint: `silence: [CODE]` in a profile leaves one out; `gate0 docs rules CODE` says more of it"


@click.command()
@click.argument("profiles", nargs=-1)
@click.option("--strict", is_flag=True, help="a warning counts as an error")
@click.option(
    "--least",
    type=click.Choice(SEVERITIES),
    default="advice",
    show_default=True,
    help="the least severe that is shown; all are counted",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "github")),
    default="text",
    show_default=True,
    help="github: annotations of a GitHub workflow",
)
@json_option
def validate(*, profiles: tuple[str, ...], strict: bool, least: str, form: str, as_json: bool) -> int:
    """Check PROFILES (names or files; default: all that can be found) without touching a host.

    Each line is `file:line: error|warning|advice CODE: path: message`. Exit code 2 when there is an error.
    """
    from orchestrator.cli.inspecting import inspect
    from orchestrator.cli.printer import Printer
    from orchestrator.engines.registry import load_engines
    from orchestrator.profile.loading import list_profiles, search_path

    printer, engines = Printer(is_json=as_json), load_engines()
    names = profiles or tuple(str(found.path) for found in list_profiles(search_path()))
    found = [inspect(name, engines) for name in names]
    shown = SEVERITIES[: SEVERITIES.index(least) + 1]
    distinct = tuple(dict.fromkeys(one for profile in found for one in profile.diagnostics))
    counts = {severity: sum(one.severity == severity for one in distinct) for severity in SEVERITIES}
    silenced = sum(len(one.silenced) for one in found)
    _show(printer, [one for one in distinct if one.severity in shown], form)
    printer.answer(_summary(found, counts, silenced))
    printer.document(_document(found, counts, silenced))
    return 2 if counts["error"] or (strict and counts["warning"]) else 0


def _show(printer: Printer, found: Sequence[Diagnostic], form: str) -> None:
    """A line that several children inherit from one parent is in `found` once."""
    from orchestrator.cli.inspecting import github_line

    for one in found:
        if form == "github":
            printer.answer(github_line(one))
            continue
        printer.answer(str(one))
        if one.hint:
            printer.answer(f"  hint: {one.hint}")
        if one.evidence:
            printer.answer(f"  seen: {', '.join(one.evidence)} ({one.standing})")
    if form == "text" and any(one.severity != "error" for one in found):
        printer.answer(SILENCE_HINT)


def _summary(found: Sequence[Inspected], counts: dict[str, int], silenced: int) -> str:
    valid = sum(not one.count("error") for one in found)
    parts = [
        _counted(counts["error"], "error"),
        _counted(counts["warning"], "warning"),
        f"{counts['advice']} advice",
        *([f"{silenced} silenced"] if silenced else []),
    ]
    return f"{valid} of {len(found)} profiles are valid: {', '.join(parts)}"


def _counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def _document(found: Sequence[Inspected], counts: dict[str, int], silenced: int) -> dict[str, object]:
    return {
        "profiles": [
            {
                "profile": one.name,
                "is_valid": not one.count("error"),
                "problems": [diagnostic.as_json() for diagnostic in one.diagnostics],
                "silenced": list(one.silenced),
            }
            for one in found
        ],
        "errors": counts["error"],
        "warnings": counts["warning"],
        "advice": counts["advice"],
        "silenced": silenced,
    }
