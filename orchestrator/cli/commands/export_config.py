"""`gate0 export-config`: a profile as other programs start it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import hosts_option, json_option, on_option, results_option
from orchestrator.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.cli.printer import Printer
    from orchestrator.foreign.exporting.common import Exported, Subject
    from orchestrator.profile.loading import Loaded
    from orchestrator.profile.model import Profile


@click.command("export-config")
@click.argument("profile")
@click.option("--to", "form", metavar="FORM", required=True, help="docker-run, compose, sparkrun, systemd or k8s")
@click.option(
    "-o", "--output", metavar="FILE|DIR", default="-", help="default stdout; DIR/ for files by their own names"
)
@click.option("--bare", "is_bare", is_flag=True, help="without the words that only measuring needs")
@click.option("--with-digest", "has_digest", is_flag=True, help="pin the image that the newest passing run really ran")
@on_option
@hosts_option
@results_option
@json_option
def export_config(
    *,
    profile: str,
    form: str,
    output: str,
    is_bare: bool,
    has_digest: bool,
    on: str | None,
    hosts_file: str | None,
    results: str | None,
    as_json: bool,
) -> int:
    """Write PROFILE as another program starts the same server, with the same words.

    \b
    docker-run  a line for the shell, one option a row
    compose     a compose file with one service
    sparkrun    a recipe, version 2
    systemd     a user unit: docker in the foreground, or with `runtime: process` the engine's own binary
    k8s         one Kubernetes Deployment

    What a form cannot say is a warning, and a comment in the file. Secrets stay references. A comment carries the
    whole profile: `gate0 import` gives it back, with the same digest, as long as the words still agree with it.

    A profile that spans hosts becomes a file, or a part of one, for each; `--on` names them for their addresses.
    """
    from orchestrator.cli import compose
    from orchestrator.cli.printer import Printer
    from orchestrator.engines.registry import load_engines
    from orchestrator.foreign.exporting.common import STAND_INS, subject_of
    from orchestrator.foreign.exporting.forms import FORMS, find_form

    printer = Printer(is_json=as_json)
    write = FORMS[find_form(form)]
    loaded = compose.load_profile(profile)
    asked = _pinned(printer, loaded.profile, results) if has_digest else loaded.profile
    addresses = _addresses(asked, on, hosts_file) if on else STAND_INS
    subject = subject_of(asked, load_engines()[asked.engine], addresses=addresses, is_bare=is_bare)
    exported = write(subject)
    paths = _paths(exported, output)
    _refuse_own(loaded, paths)
    for item in exported.unsaid:
        printer.warning(str(item))
    _write(printer, exported, paths, is_shown=not as_json)
    printer.document(_document(subject, form, exported, paths))
    return 0


def _addresses(profile: Profile, on: str, hosts_file: str | None) -> tuple[str, ...]:
    """Of the profile's hosts, on the link between them where the inventory names one."""
    from orchestrator.cli import compose

    groups = compose.host_groups(profile, compose.resolve_entries(on, hosts_file))
    return tuple((entry.link.ip if entry.link else None) or entry.address for entry in groups[0])


def _pinned(printer: Printer, profile: Profile, results: str | None) -> Profile:
    """The profile with its image by digest, as the newest run of it that passed had it."""
    import dataclasses

    from orchestrator.cli.compose import results_root
    from orchestrator.profile.digest import profile_digest
    from orchestrator.records.record import RunStatus
    from orchestrator.records.store import Store

    root, digest = results_root(results), profile_digest(profile)
    runs, _ = Store(root).runs()
    passed = [r.run for r in runs if r.run.profile_digest == digest and r.run.status == RunStatus.PASSED.value]
    run = next((r for r in reversed(passed) if (r.image_digest or "").startswith("sha256:")), None)
    if profile.image is None or "@" in profile.image:
        return profile
    if run is None:
        printer.warning(f"{root} has no run of this profile that passed and tells its image's digest: the tag stays")
        return profile
    printer.progress(f"image pinned as {run.id} ran it: {run.image_digest}")
    return dataclasses.replace(profile, image=f"{profile.image}@{run.image_digest}")


def _write(printer: Printer, exported: Exported, paths: Sequence[Path], *, is_shown: bool) -> None:
    """To the paths, without any to stdout."""
    import sys

    from orchestrator.cli.files import write_file

    for path, file in zip(paths, exported.files, strict=bool(paths)):
        write_file(path, file.text)
        printer.progress(f"wrote {path}")
    for index, file in enumerate(exported.files if is_shown and not paths else ()):
        several = len(exported.files) > 1
        head = f"# file: {file.name}\n" if several else ""
        sys.stdout.write(("\n" if index else "") + head + file.text)


def _paths(exported: Exported, output: str) -> Sequence[Path]:
    """A file's own name in a DIR; a FILE for one, and with the rank before its suffix for several; () is stdout."""
    if output == "-":
        return []
    place = Path(output).expanduser()
    if output.endswith("/") or place.is_dir():
        return [place / file.name for file in exported.files]
    if len(exported.files) == 1:
        return [place]
    return [place.with_name(f"{place.stem}-{rank}{place.suffix}") for rank in range(len(exported.files))]


def _refuse_own(loaded: Loaded, paths: Sequence[Path]) -> None:
    """
    Raises:
        InputError: An export would take the place of the profile, or of a parent of it.
    """
    own = {Path(source).resolve() for source in (loaded.path, *(p.source for p in loaded.parents)) if source}
    for path in paths:
        if path.resolve() in own:
            raise InputError(f"{path} is the profile itself", hint="choose another place with `-o`")


def _document(subject: Subject, form: str, exported: Exported, paths: Sequence[Path]) -> dict[str, object]:
    from orchestrator.profile.digest import profile_digest

    places = [str(path) for path in paths] if paths else [None for _ in exported.files]
    files = zip(exported.files, places, strict=True)
    return {
        "profile": subject.profile.name,
        "digest": profile_digest(subject.profile),
        "form": form,
        "files": [{"name": file.name, "path": path, "text": file.text} for file, path in files],
        "added": [{"words": list(added.words), "reason": added.reason} for added in subject.added],
        "unsaid": [{"path": item.path, "message": item.message} for item in exported.unsaid],
    }
