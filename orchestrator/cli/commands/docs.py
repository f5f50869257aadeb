"""`gate0 docs`: the manual of each file format, from the schema that checks it."""

from __future__ import annotations

import click

TOPICS = ("profile", "workload", "hosts", "suite")


@click.command()
@click.argument("topic", type=click.Choice(TOPICS))
@click.option("--schema", "as_schema", is_flag=True, help="the JSON Schema itself, for an editor")
def docs(*, topic: str, as_schema: bool) -> int:
    """Print the manual of a file format as Markdown."""
    import json

    from orchestrator.cli.printer import Printer
    from orchestrator.profile.docs import describe

    printer = Printer()
    schema = load_schema(topic)
    printer.answer(json.dumps(schema, indent=2, ensure_ascii=False) if as_schema else describe(schema))
    return 0


def load_schema(topic: str) -> dict[str, object]:
    """The schema that a format's loader checks with."""
    import json
    from importlib.resources import files

    places = {
        "profile": ("orchestrator.profile", "schema/profile.schema.json"),
        "workload": ("orchestrator.sweep", "workload.schema.json"),
        "hosts": ("orchestrator.fleet", "hosts.schema.json"),
        "suite": ("orchestrator.gating", "suite.schema.json"),
    }
    package, name = places[topic]
    found = json.loads((files(package) / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
