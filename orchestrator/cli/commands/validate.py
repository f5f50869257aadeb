"""`gate0 validate`: every problem of every profile, in CI style."""

from __future__ import annotations

import click

from orchestrator.cli.options import json_option


@click.command()
@click.argument("profiles", nargs=-1)
@json_option
def validate(*, profiles: tuple[str, ...], as_json: bool) -> int:
    """Check PROFILES (names or files; default: all that can be found) and report every problem as file:line.

    Exit code 2 when one is wrong.
    """
    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import InputError
    from orchestrator.profile.loading import list_profiles, search_path

    printer = Printer(is_json=as_json)
    names = profiles or tuple(str(found.path) for found in list_profiles(search_path()))
    found: list[dict[str, object]] = []
    for name in names:
        try:
            loaded = compose.load_profile(name)
        except InputError as exc:
            found.append({"profile": name, "is_valid": False, "problems": exc.message.splitlines()})
            printer.answer(exc.message)
            if exc.hint:
                printer.answer(f"hint: {exc.hint}")
        else:
            found.append({"profile": loaded.profile.name, "is_valid": True, "problems": []})
    bad = sum(not f["is_valid"] for f in found)
    printer.answer(f"{len(found) - bad} of {len(found)} profiles are valid")
    printer.document({"profiles": found})
    return 2 if bad else 0
