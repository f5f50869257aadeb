"""Write the README's generated tables, of keys and of shipped workloads; `--check` says whether they are up to date."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.cli.commands.docs import load_schema
from orchestrator.profile.docs import describe
from orchestrator.sweep.loading import list_workloads, load_workload

README = Path(__file__).resolve().parents[1] / "README.md"
DEPTH = 2


def generated(text: str) -> str:
    """The README's text with each generated part made anew."""

    def fill(found: re.Match[str]) -> str:
        if found[1] == "shipped":
            head, lines = ("workload", "kind", "what it asks for"), shipped_rows()
        else:
            head, lines = ("key", "value", "what it says"), rows_of(describe(load_schema(found[1])))
        table = "\n".join([f"| {' | '.join(head)} |", "|---|---|---|", *lines])
        return f"<!-- generated: {found[1]} -->\n{table}\n<!-- end -->"

    return re.sub(r"<!-- generated: (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.S)


def rows_of(manual: str) -> Iterator[str]:
    """One table row a key of the manual: its name, its kind and default, the first sentence of its description."""
    for section in re.split(r"^#{2,5} (?=`)", manual, flags=re.M)[1:]:
        key, facts, description = (part.strip() for part in [*section.split("\n\n"), "", ""][:3])
        if key.count(".") < DEPTH:
            sentence = re.split(r"(?<=[a-z`)])[.] ", description, maxsplit=1)[0].rstrip(".")
            yield f"| {key} | {cell(facts.strip('*'))} | {cell(sentence)} |"


def shipped_rows() -> Iterator[str]:
    """One table row for each workload that ships, with its title."""
    shipped = (README.parent / "profiles" / "workloads",)
    for found in list_workloads(shipped):
        workload = load_workload(found.name, search=shipped)
        yield f"| `{found.name}` | {', '.join(workload.kinds)} | {cell(workload.title or '')} |"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(argv: list[str]) -> Any:
    text = README.read_text(encoding="utf-8")
    made = generated(text)
    if "--check" in argv:
        return 0 if made == text else "README.md is not up to date: run `make readme`"
    README.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
