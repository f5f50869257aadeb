"""`gate0 import` for configurations: profiles out of other people's files, and what became of everything in them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import InputError

if TYPE_CHECKING:
    from orchestrator.cli.inspecting import Inspected
    from orchestrator.cli.printer import Printer
    from orchestrator.engines.engine import Engine
    from orchestrator.foreign.importing import Imported, Outcome

STDIN = "-"
MAX_BYTES = 4_000_000
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
OBJECTED = 1
"""Exit code: written, but something stands against the profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user asked for. `output`: `-` is stdout, a name that ends in `/` or a folder takes a file a profile."""

    output: str = STDIN
    service: str | None = None
    image: str | None = None
    is_forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text and what it is called."""

    name: str
    text: str


def read_source(name: str) -> Source:
    """A file's text, or standard input's.

    Raises:
        InputError: It cannot be read, is no text, or is too large for a configuration.
    """
    shown = "standard input" if name == STDIN else name
    try:
        raw = sys.stdin.buffer.read(MAX_BYTES + 1) if name == STDIN else Path(name).read_bytes()
    except IsADirectoryError as exc:
        raise InputError(f"{shown} is a folder", hint=f"name the files in it: {shown.rstrip('/')}/*.yaml") from exc
    except OSError as exc:
        raise InputError(f"cannot read {shown}: {exc.strerror or exc}") from exc
    try:
        # PowerShell's `>` writes UTF-16.
        return Source(name=shown, text=raw.decode("utf-16" if raw[:2] in _UTF_16 else "utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise InputError(f"{shown} is no text: byte {exc.start} is not UTF-8") from exc


def is_typed() -> bool:
    """True when standard input is a terminal: somebody has to type."""
    return sys.stdin.isatty()


def is_configuration(source: Source) -> bool:
    """True when the text says what to serve; False: it may be a result.

    Raises:
        InputError: It is a configuration that no profile is made of; the message says what it is.
    """
    from orchestrator.foreign.recognising import recognise

    return len(source.text) <= MAX_BYTES and recognise(source.text, source.name) is not None


def neither(sources: Sequence[Source], refusal: InputError) -> InputError:
    """The refusal of texts that are neither configurations nor, as `refusal` says, results: what they seem to be."""
    from orchestrator.foreign.recognising import SUPPORTED
    from orchestrator.foreign.seeming import seems

    source = next((each for each in sources if refusal.message.startswith(f"{each.name} ")), sources[0])
    seeming = seems(source.text)
    if seeming is None and "broken JSON" in refusal.message:
        return refusal
    if seeming is None:
        hint = f"a configuration is {SUPPORTED}; of results {refusal.hint}" if refusal.hint else refusal.hint
        return InputError(f"{refusal.message}, and no configuration", hint=hint)
    what = "is empty" if seeming.what == "empty" else f"seems to be {seeming.what}"
    return InputError(f"{source.name} is no configuration and no result that gate0 knows: it {what}", hint=seeming.hint)


def import_configurations(sources: Sequence[Source], wish: Wish, printer: Printer) -> int:
    """Write a profile for each server of each source, with its loss report.

    Returns:
        0; `OBJECTED` when a written profile does not pass the checks.

    Raises:
        InputError: Nothing can be made of a source, or the profiles do not fit where they are to go.
    """
    from orchestrator.engines.registry import load_engines

    engines = load_engines()
    outcomes = [(source, _outcome(source, wish, engines)) for source in sources]
    profiles = [one for _, outcome in outcomes for one in outcome.profiles]
    places = _places(profiles, wish)
    checked = [_inspected(one, engines) for one in profiles]
    for source, outcome in outcomes:
        _report(printer, source, outcome)
    for one, inspected in zip(profiles, checked, strict=True):
        _objections(printer, one, inspected)
    for one, place in zip(profiles, places, strict=True):
        _write(printer, one, place, wish)
    printer.document({"profiles": [_as_json(o, p, c) for o, p, c in zip(profiles, places, checked, strict=True)]})
    return OBJECTED if any(inspected.count("error") for inspected in checked) else 0


def _outcome(source: Source, wish: Wish, engines: Mapping[str, Engine]) -> Outcome:
    from orchestrator.foreign.importing import import_text

    folder = Path.cwd() if source.name == "standard input" else Path(source.name).resolve().parent
    return import_text(
        source.text,
        source=source.name,
        engines=engines,
        read_file=_reader_in(folder),
        values={"PWD": str(folder)},
        service=wish.service,
        image=wish.image,
    )


def _reader_in(folder: Path) -> Callable[[str], str | None]:
    """Files that a source names, as long as they lie in its folder or below."""

    def read(name: str) -> str | None:
        try:
            path = (folder / name).resolve()
            if not path.is_relative_to(folder) or not path.is_file() or path.stat().st_size > MAX_BYTES:
                return None
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    return read


def _places(profiles: Sequence[Imported], wish: Wish) -> list[Path | None]:
    """Where each profile goes; None is stdout.

    Raises:
        InputError: Several would go to one place, or a file is there already.
    """
    if wish.output == STDIN:
        if len(profiles) > 1:
            names = ", ".join(str(one.launch.name or one.name) for one in profiles)
            raise InputError(
                f"{len(profiles)} servers: {names}",
                hint="choose one with `--service NAME`, or write all with `-o DIR/`",
            )
        return [None] * len(profiles)
    output = Path(wish.output)
    if wish.output.endswith("/") or output.is_dir():
        places = [output / f"{one.name}.yaml" for one in profiles]
    elif len(profiles) == 1:
        places = [output]
    else:
        raise InputError(f"{len(profiles)} servers do not go into one file", hint="give a folder: `-o DIR/`")
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        names = " and ".join(one.launch.source for one, place in zip(profiles, places, strict=True) if place == twice)
        raise InputError(f"{names} would both be written to {twice}", hint="import them one after the other")
    for place in places:
        if place.exists() and not wish.is_forced:
            raise InputError(f"{place} is there already", hint="`--force` writes over it, or choose another `-o`")
    return list(places)


def _inspected(one: Imported, engines: Mapping[str, Engine]) -> Inspected:
    """The profile looked at as `gate0 validate` does, in a file of its own."""
    from orchestrator.cli.inspecting import inspect

    with tempfile.TemporaryDirectory(prefix="gate0-import-") as folder:
        path = Path(folder) / f"{one.name}.yaml"
        path.write_text(one.text, encoding="utf-8")
        return inspect(str(path), engines)


def _report(printer: Printer, source: Source, outcome: Outcome) -> None:
    from orchestrator.foreign import loss

    for one in outcome.profiles:
        kinds = ", ".join(dict.fromkeys((str(outcome.kind), str(one.launch.form))))
        printer.progress(f"{source.name}: {kinds} -> profile {one.name}")
        printer.progress_table(loss.HEAD, loss.rows(one.draft.notes))
        printer.progress(loss.summary(one.draft.notes))
    for note in outcome.notes:
        printer.progress(f"{note.where}: {note.what}: {note.why}")
    for refusal in outcome.refused:
        printer.warning(refusal.message)


def _objections(printer: Printer, one: Imported, inspected: Inspected) -> None:
    for diagnostic in inspected.diagnostics:
        path = f"{diagnostic.path}: " if diagnostic.path else ""
        line = f"{one.name}: {diagnostic.severity} {diagnostic.code}: {path}{diagnostic.message}"
        printer.progress(line + (f" ({diagnostic.hint})" if diagnostic.hint else ""))
    errors = inspected.count("error")
    stands = "passes validate" if not errors else f"does not pass validate: {errors} error{'s' if errors > 1 else ''}"
    printer.progress(f"{one.name} {stands}")


def _write(printer: Printer, one: Imported, place: Path | None, wish: Wish) -> None:
    from orchestrator.cli.files import write_file

    if place is None:
        if not printer.is_json:
            sys.stdout.write(one.text)
        return
    if not wish.is_forced and place.exists():
        raise InputError(f"{place} is there already", hint="`--force` writes over it, or choose another `-o`")
    write_file(place, one.text)
    printer.answer(f"wrote {os.fspath(place)}")


def _as_json(one: Imported, place: Path | None, inspected: Inspected) -> dict[str, object]:
    from orchestrator.foreign import loss

    return {
        "profile": one.name,
        "source": one.launch.source,
        "form": one.launch.form,
        "file": None if place is None else str(place),
        "text": one.text,
        "is_valid": not inspected.count("error"),
        "counts": loss.counts(one.draft.notes),
        "report": loss.as_json(one.draft.notes),
        "problems": [
            {**diagnostic.as_json(), "file": None if place is None else str(place)}
            for diagnostic in inspected.diagnostics
        ],
    }
