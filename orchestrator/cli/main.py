"""`gate0`: verbs imported when called, so that `--help` stays fast; here alone errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from orchestrator import __version__
from orchestrator.errors import Gate0Error

VERBS: dict[str, tuple[str, str]] = {
    "run": ("run", "deploy, gate, sweep and record one profile on its hosts"),
    "plan": ("plan", "show all that `run` would do, without touching a host"),
    "validate": ("validate", "check profiles and report every problem"),
    "flags": ("flags", "list, explain and compare the flags of engine versions and images"),
    "deploy": ("deploy", "start a profile's server, wait for its first token, leave it up"),
    "check": ("check", "gate a server: by URL, or one that gate0 started"),
    "sweep": ("sweep", "measure a server by URL"),
    "ps": ("ps", "list the servers that gate0 started"),
    "logs": ("logs", "show a server's log"),
    "stop": ("stop", "stop servers that gate0 started, and nothing else"),
    "hosts": ("hosts", "list, check and trust hosts"),
    "show": ("show", "one run at a glance; with --effective all that its server was declared and seen to run"),
    "results": ("results", "list and show records"),
    "compare": ("compare", "set one run against another: what differs, and what that did"),
    "export": ("export", "write a record as another tool would: vllm, llama-benchy, inferencex, csv"),
    "export-config": ("export_config", "write a profile as docker run, compose, sparkrun, systemd or k8s"),
    "import": ("import_", "turn other people's configurations into profiles, and results into foreign records"),
    "report": ("report", "write the page from the records"),
    "profiles": ("profiles", "list the profiles and workloads that can be named"),
    "docs": ("docs", "the manual of a file format, from its schema"),
    "calibrate": ("calibrate", "measure this machine's own client error; every record then carries it"),
    "mock": ("mock", "a server with known truth, to test clients against"),
}
"""Verb -> module under `cli/commands` (its click command has the module's name), and the line in `--help`."""


class Verbs(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"orchestrator.cli.commands.{VERBS[cmd_name][0]}")
        command = getattr(module, VERBS[cmd_name][0])
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else "; `gate0 --help` lists the verbs"
            raise click.UsageError(f"no such verb: {args[0]}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gate0")
def gate0() -> None:
    """Serve an LLM on your own boxes, and know that it is right and what it delivers.

    \b
    gate0 run PROFILE --on HOST[,HOST] --workload NAME
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Returns:
        0 passed, 1 a gate or threshold said no, 2 the user's input, 3 the box, 4 our bug, 130 interrupted.
    """
    from orchestrator.cli.printer import Printer

    printer = Printer()
    try:
        result = gate0.main(args=None if argv is None else list(argv), prog_name="gate0", standalone_mode=False)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.Abort:
        printer.error("interrupted")
        return 130
    except click.ClickException as exc:
        return _usage(exc, printer)
    except Gate0Error as exc:
        printer.error(exc.message, exc.hint)
        return exc.exit_code
    except KeyboardInterrupt:
        printer.error("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as exc:
        return _bug(exc, printer)
    return result if isinstance(result, int) else 0


def _usage(exc: click.ClickException, printer: object) -> int:
    from orchestrator.cli.printer import Printer

    assert isinstance(printer, Printer)
    context = getattr(exc, "ctx", None)
    hint = f"`{context.command_path} --help` shows how" if context else None
    printer.error(exc.format_message(), hint)
    return 2


def _bug(exc: Exception, printer: object) -> int:
    import traceback

    from orchestrator.cli.printer import Printer

    assert isinstance(printer, Printer)
    if os.environ.get("GATE0_TRACE"):
        traceback.print_exception(exc)
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    where = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    printer.error(f"gate0 itself failed: {type(exc).__name__}: {exc} ({where})", "set GATE0_TRACE=1 to see where")
    return 4


def run() -> None:
    """The console script."""
    sys.exit(main())
