"""`python -m orchestrator.mock '{"step_s": 0.02}' [PORT]`: the mock in its own process.

The settings are one JSON object of `MockSettings` fields. Prints the base URL once it listens.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from orchestrator.mock.server import serve
from orchestrator.mock.settings import Fault, Flavour, MockSettings


def settings_of(raw: dict[str, Any]) -> MockSettings:
    """
    Raises:
        TypeError, ValueError: A field is unknown or of a wrong kind.
    """
    if "flavour" in raw:
        raw["flavour"] = Flavour(raw["flavour"])
    if raw.get("fault") is not None:
        raw["fault"] = Fault(raw["fault"])
    if "refused_fields" in raw:
        raw["refused_fields"] = tuple(raw["refused_fields"])
    return MockSettings(**raw)


def main(argv: list[str]) -> None:
    settings = settings_of(json.loads(argv[0]) if argv else {})
    serve(settings, port=int(argv[1]) if len(argv) > 1 else 0, on_ready=_say)


def _say(url: str) -> None:
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
