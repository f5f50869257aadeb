"""Write the README's generated parts from the schemas; `--check` says whether they are up to date."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from orchestrator.cli.commands.docs import load_schema
from orchestrator.profile.docs import describe

README = Path(__file__).resolve().parents[1] / "README.md"


def generated(text: str) -> str:
    """The README's text with each generated part made anew."""

    def fill(found: re.Match[str]) -> str:
        body = re.sub(r"^#", "###", describe(load_schema(found[1])).strip(), flags=re.M)
        return f"<!-- generated: {found[1]} -->\n{body}\n<!-- end -->"

    return re.sub(r"<!-- generated: (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.S)


def main() -> int:
    text = README.read_text(encoding="utf-8")
    made = generated(text)
    if "--check" in sys.argv:
        return 0 if made == text else 1
    README.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
