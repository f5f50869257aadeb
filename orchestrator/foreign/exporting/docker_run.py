"""A `docker run` line for the shell: one option a row, JSON in quotes, secrets from the environment of who runs it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from orchestrator.deploy.runtime import ServerSpec
from orchestrator.foreign.exporting.common import (
    Exported,
    ExportedFile,
    Rank,
    Subject,
    common_unsaid,
    header,
    mount_word,
    option_rows,
    port_word,
    refuse_process,
    secrets_of,
)
from orchestrator.profile.model import PullPolicy

FORM = "docker-run"


def export(subject: Subject) -> Exported:
    """One text; with several hosts a block for each.

    Raises:
        InputError: The profile runs without Docker.
    """
    refuse_process(subject, FORM)
    unsaid = tuple(common_unsaid(subject))
    blocks = [_block(subject, rank, unsaid if rank.number == 0 else ()) for rank in subject.ranks]
    return Exported(files=(ExportedFile(name=f"{subject.profile.name}.sh", text="\n".join(blocks)),), unsaid=unsaid)


def option_words(spec: ServerSpec, pull: PullPolicy) -> Iterator[tuple[str, ...]]:
    """`docker run`'s options, each with its value, in rows of plain words; defaults of Docker's are left out.

    `~` in a mount is as the profile has it.
    """
    yield ("--name", spec.name)
    if spec.gpus:
        yield ("--gpus", "all")
    if spec.ipc:
        yield (f"--ipc={spec.ipc}",)
    yield ("--network", spec.network)
    if spec.shm_bytes is not None:
        yield ("--shm-size", str(spec.shm_bytes))
    yield from (("--ulimit", f"{name}={limit}") for name, limit in spec.ulimits.items())
    yield from (("-v", mount_word(m.source, m.target, read_only=m.read_only)) for m in spec.mounts)
    yield from (("-p", port_word(port)) for port in spec.ports)
    secrets = secrets_of(spec)
    yield from (("-e", name if name in secrets else f"{name}={value}") for name, value in spec.env.items())
    if spec.restart != "no":
        yield ("--restart", spec.restart)
    if pull is not PullPolicy.MISSING:
        yield ("--pull", pull.value)
    if spec.entrypoint is not None:
        yield ("--entrypoint", spec.entrypoint[0] if spec.entrypoint else "")


def command_rows(spec: ServerSpec) -> tuple[tuple[str, ...], ...]:
    """What follows the image, an option a row."""
    return option_rows((*(spec.entrypoint or ())[1:], *spec.command))


def _block(subject: Subject, rank: Rank, unsaid: Sequence[object]) -> str:
    spec = rank.spec
    comments = (*header(subject, rank, unsaid), *_secret_lines(spec))
    rows = (
        *(_shell_row(row) for row in option_words(spec, subject.profile.pull)),
        shlex.quote(spec.image),
        *(" ".join(shlex.quote(word) for word in row) for row in command_rows(spec)),
    )
    return "".join(f"# {line}".rstrip() + "\n" for line in comments) + " \\\n  ".join(("docker run -d", *rows)) + "\n"


def _secret_lines(spec: ServerSpec) -> Iterator[str]:
    for name, secret in secrets_of(spec).items():
        named = "" if secret == name else f" (the secret {secret})"
        yield f"before: export {name}=…{named}; its value stands in no command line"


def _shell_row(row: Sequence[str]) -> str:
    option, *values = row
    quote = {"-v": _home_word, "-e": _assigned}.get(option, shlex.quote)
    return " ".join((shlex.quote(option), *(quote(value) for value in values)))


def _home_word(mount: str) -> str:
    """A mount as a word that the shell still puts the home directory into."""
    if mount.startswith("~/"):
        return f"~/{shlex.quote(mount[2:])}" if mount[2:] else "~/"
    return f'"$HOME"{shlex.quote(mount[1:])}' if mount.startswith("~:") else shlex.quote(mount)


def _assigned(variable: str) -> str:
    """`NAME='some value'` rather than `'NAME=some value'`."""
    name, has_value, value = variable.partition("=")
    return f"{name}={shlex.quote(value)}" if has_value else name
