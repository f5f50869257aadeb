"""`gate0 docs`: the manual of each file format, from the schema that checks it, of every published figure, and rule."""

from __future__ import annotations

import click

from orchestrator.cli.options import json_option

TOPICS = ("profile", "workload", "hosts", "suite")
METRICS = "metrics"
RULES = "rules"


@click.command()
@click.argument("topic", type=click.Choice((*TOPICS, METRICS, RULES)))
@click.argument("name", required=False)
@click.option("--schema", "as_schema", is_flag=True, help="the JSON Schema itself, for an editor")
@json_option
def docs(*, topic: str, name: str | None, as_schema: bool, as_json: bool) -> int:
    """Print a manual as Markdown: of a file format, of the figures (`metrics`) or of the rules that advise (`rules`).

    With NAME one figure, or the rules whose code begins so.
    """
    if topic == METRICS:
        return _metrics(name, as_schema=as_schema, as_json=as_json)
    if topic == RULES:
        return _rules(name, as_schema=as_schema, as_json=as_json)
    if name is not None:
        raise click.UsageError(f"`docs {topic}` takes no name; `docs {METRICS} NAME` and `docs {RULES} CODE` do")
    import json

    from orchestrator.cli.printer import Printer
    from orchestrator.profile.docs import describe

    schema = load_schema(topic)
    is_plain = as_schema or as_json
    Printer().answer(json.dumps(schema, indent=2, ensure_ascii=False) if is_plain else describe(schema))
    return 0


def _metrics(name: str | None, *, as_schema: bool, as_json: bool) -> int:
    from orchestrator.cli.printer import Printer
    from orchestrator.figures.definitions import all_definitions, find_definition, manual

    if as_schema:
        raise click.UsageError("figures have no schema; `--json` gives their definitions")
    found = all_definitions() if name is None else (find_definition(name),)
    printer = Printer(is_json=as_json)
    printer.answer(manual(found).rstrip("\n"))
    printer.document({"definitions": [d.as_json() for d in found]})
    return 0


def _rules(name: str | None, *, as_schema: bool, as_json: bool) -> int:
    from orchestrator.cli.printer import Printer
    from orchestrator.engines.rules.manual import as_json as rule_json
    from orchestrator.engines.rules.manual import manual
    from orchestrator.engines.rules.reading import all_rules
    from orchestrator.errors import InputError
    from orchestrator.profile.wording import did_you_mean

    if as_schema:
        raise click.UsageError("rules have no schema; `--json` gives them whole")
    found = tuple(rule for rule in all_rules() if rule.code.startswith((name or "").upper()))
    if not found:
        near = did_you_mean(name or "", [rule.code for rule in all_rules()])
        raise InputError(f"no rule has the code {name}{near}", hint=f"`gate0 docs {RULES}` lists them")
    printer = Printer(is_json=as_json)
    printer.answer(manual(found).rstrip("\n"))
    printer.document({"rules": [rule_json(rule) for rule in found]})
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
