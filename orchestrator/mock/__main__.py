"""`python -m orchestrator.mock '{"step_s": 0.02}' [PORT]`: the mock in its own process.

The settings are one JSON object of `MockSettings` fields. Prints the base URL once it listens.
"""

from __future__ import annotations

import json
import sys

from orchestrator.errors import Gate0Error
from orchestrator.mock.reading import with_values
from orchestrator.mock.server import serve
from orchestrator.mock.settings import MockSettings


def main(argv: list[str]) -> None:
    settings = with_values(MockSettings(), json.loads(argv[0]) if argv else {})
    serve(settings, port=int(argv[1]) if len(argv) > 1 else 0, on_ready=_say)


def _say(url: str) -> None:
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Gate0Error as exc:
        sys.exit(f"{exc.message} ({exc.hint})" if exc.hint else exc.message)
    except KeyboardInterrupt:
        sys.exit(130)
