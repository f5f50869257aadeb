"""`gate0 profiles`: what can be named."""

from __future__ import annotations

import click

from orchestrator.cli.options import json_option


@click.command()
@json_option
def profiles(*, as_json: bool) -> int:
    """List the profiles and workloads that can be named from here: ./profiles first, then the shipped ones."""
    from orchestrator.cli.printer import Printer
    from orchestrator.profile.loading import list_profiles, search_path
    from orchestrator.sweep.loading import list_workloads
    from orchestrator.sweep.loading import search_path as workload_path

    printer = Printer(is_json=as_json)
    found, loads = list_profiles(search_path()), list_workloads(workload_path())
    printer.table(("profile", "engine", "title"), [(p.name, p.engine or "", p.title or "") for p in found])
    printer.answer("")
    printer.table(("workload", "title"), [(w.name, w.title or "") for w in loads])
    printer.document(
        {
            "profiles": [{"name": p.name, "engine": p.engine, "title": p.title, "path": str(p.path)} for p in found],
            "workloads": [{"name": w.name, "title": w.title} for w in loads],
        }
    )
    return 0
