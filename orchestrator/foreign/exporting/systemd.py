"""A systemd user unit: docker in the foreground, or the engine's own binary.

A line of words is read by systemd itself, not by a shell: quotes and backslashes as in C, `%` begins a specifier, `$` a
variable (systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestrator.foreign.exporting.common import (
    Exported,
    ExportedFile,
    Rank,
    Subject,
    Unsaid,
    common_unsaid,
    header,
    one_line,
    option_rows,
    plain_name,
    secrets_of,
)
from orchestrator.foreign.exporting.docker_run import command_rows, option_words

DOCKER = "/usr/bin/docker"
STOP_S = 60
RESTART_AFTER_S = 10
_RESTARTS = {"no": "no", "on-failure": "on-failure", "always": "always", "unless-stopped": "always"}
_SAFE = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def export(subject: Subject) -> Exported:
    """A unit for each host."""
    unsaid = tuple(common_unsaid(subject))
    return Exported(files=tuple(_file(subject, rank, unsaid) for rank in subject.ranks), unsaid=unsaid)


def quoted(word: str, *, is_command: bool = True) -> str:
    """One word for a unit file.

    Args:
        is_command: In `Exec…=` lines a `$` begins a variable; in `Environment=` it is a letter like others.
    """
    text = word.replace("\\", "\\\\").replace("%", "%%")
    text = text.replace("$", "$$") if is_command else text
    text = re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", text)
    if _SAFE.fullmatch(word):
        return text
    sign = "'" if "'" not in text else '"'
    return sign + text.replace(sign, f"\\{sign}") + sign


def _file(subject: Subject, rank: Rank, unsaid: Sequence[Unsaid]) -> ExportedFile:
    name = plain_name(subject.profile, rank.number)
    lines = (
        *(f"# {line}".rstrip() for line in header(subject, rank, unsaid if rank.number == 0 else ())),
        *(f"# {line}" for line in _usage(rank, name)),
        "",
        "[Unit]",
        f"Description={one_line(subject.profile.label).replace('%', '%%')}",
        "",
        "[Service]",
        "Type=exec",
        *_service(subject, rank, name),
        "",
        "[Install]",
        "WantedBy=default.target",
    )
    return ExportedFile(name=f"{name}.service", text="".join(f"{line}\n" for line in lines))


def _usage(rank: Rank, name: str) -> Iterator[str]:
    yield f"put it at ~/.config/systemd/user/{name}.service, then: systemctl --user enable --now {name}"
    yield "loginctl enable-linger keeps it up when you log out"
    secrets = secrets_of(rank.spec)
    for variable, secret in secrets.items():
        named = "" if secret == variable else f" (the secret {secret})"
        yield f"before: a line {variable}=…{named} in {_env_file(name).replace('%h', '~')}, mode 600"


def _service(subject: Subject, rank: Rank, name: str) -> Iterator[str]:
    spec = rank.spec
    if secrets_of(spec):
        yield f"EnvironmentFile={_env_file(name)}"
    if subject.is_in_docker:
        yield f"ExecStartPre=-{DOCKER} rm --force {quoted(spec.name)}"
        yield from _folded("ExecStart=", _docker_rows(subject, rank))
        yield f"ExecStop={DOCKER} stop {quoted(spec.name)}"
    else:
        plain = ((variable, value) for variable, value in spec.env.items() if isinstance(value, str))
        yield from (f"Environment={quoted(f'{variable}={value}', is_command=False)}" for variable, value in plain)
        yield from _folded("ExecStart=", _binary_rows(rank))
    yield f"Restart={_RESTARTS[spec.restart]}"
    if spec.restart != "no":
        yield f"RestartSec={RESTART_AFTER_S}"
    yield f"TimeoutStopSec={STOP_S}"


def _docker_rows(subject: Subject, rank: Rank) -> Iterator[str]:
    yield f"{DOCKER} run --rm"
    for option, *values in option_words(rank.spec, subject.profile.pull):
        # Restarting is systemd's; two who restart would fight over the name.
        if option != "--restart":
            yield " ".join((quoted(option), *(_at_home(value, is_mount=option == "-v") for value in values)))
    yield quoted(rank.spec.image)
    yield from (" ".join(quoted(word) for word in row) for row in command_rows(rank.spec))


def _binary_rows(rank: Rank) -> Iterator[str]:
    spec = rank.spec
    yield _at_home(spec.image, is_mount=True)
    yield from (" ".join(_at_home(word, is_mount=True) for word in row) for row in option_rows(spec.command))


def _at_home(word: str, *, is_mount: bool) -> str:
    """A word in which a leading `~` is the home of who runs the unit, which systemd calls `%h`."""
    if not is_mount or not (word == "~" or word.startswith(("~/", "~:"))):
        return quoted(word)
    rest = quoted(word[1:]) if len(word) > 1 else ""
    return f"{rest[0]}%h{rest[1:]}" if rest[:1] in ("'", '"') else f"%h{rest}"


def _env_file(name: str) -> str:
    return f"%h/.config/{name}.env"


def _folded(head: str, rows: Iterator[str]) -> Iterator[str]:
    first, *rest = rows
    lines = [f"{head}{first}", *(f"  {row}" for row in rest)]
    yield from (f"{line} \\" for line in lines[:-1])
    yield lines[-1]
