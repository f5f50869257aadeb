"""Everything that is wrong with a profile, or worth knowing of it, each at its line of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import InputError, InvalidFile

if TYPE_CHECKING:
    from orchestrator.engines.engine import Engine
    from orchestrator.profile.loading import Loaded
    from orchestrator.values import Json

SEVERITIES = ("error", "warning", "advice")
"""The worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One thing about one place in one file.

    Attributes:
        file: Relative to the working directory when it is below it.
        line: 1-based; None: the whole file.
        code: `profile` for what the format or the engine refuses, else the flag check's or the rule's.
        evidence, standing: Of a rule: where it was seen, and how sure that is.
    """

    severity: str
    code: str
    file: str
    line: int | None
    path: str
    message: str
    hint: str | None = None
    evidence: tuple[str, ...] = ()
    standing: str | None = None

    @property
    def where(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        return f"{self.where}: {self.severity} {self.code}: {path}{self.message}"

    def as_json(self) -> dict[str, Json]:
        return {
            "file": self.file,
            "line": self.line,
            "severity": self.severity,
            "code": self.code,
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
            "evidence": list(self.evidence),
            "standing": self.standing,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """One profile looked at. `name`: as the file says, or as it was asked for. `silenced`: codes left out."""

    name: str
    diagnostics: tuple[Diagnostic, ...]
    silenced: tuple[str, ...] = ()

    def count(self, severity: str) -> int:
        return sum(one.severity == severity for one in self.diagnostics)


def inspect(name: str, engines: Mapping[str, Engine]) -> Inspected:
    """Look at a profile, by name or path, in all the ways that need no host."""
    from orchestrator.profile import loading

    try:
        loaded = loading.load_profile(name, search=loading.search_path(), engines=tuple(engines))
    except InputError as exc:
        return Inspected(name=name, diagnostics=tuple(_refused(name, exc)))
    return _inspected(loaded, engines[loaded.profile.engine])


def github_line(one: Diagnostic) -> str:
    """A workflow command that GitHub shows as an annotation at the line."""
    command = {"error": "error", "warning": "warning", "advice": "notice"}[one.severity]
    line = "" if one.line is None else f",line={one.line}"
    path = f"{one.path}: " if one.path else ""
    hint = f"\nhint: {one.hint}" if one.hint else ""
    text = _escaped(f"{path}{one.message}{hint}")
    return f"::{command} file={_property(one.file)}{line},title={_property(one.code)}::{text}"


def _inspected(loaded: Loaded, engine: Engine) -> Inspected:
    from orchestrator.deploy.own_flags import kept_list
    from orchestrator.engines.remarks import CODES, remarks
    from orchestrator.engines.rules.silencing import unknown_codes
    from orchestrator.profile.loading import problems_at

    said = remarks(engine, loaded.profile, kept_list(loaded.profile))
    found = list(_problems(problems_at(loaded, said.problems)))
    for error in said.errors:
        (problem,) = problems_at(loaded, [(error.path, error.message)]).problems
        found.append(_at(loaded, "error", error.code, error.path, problem.message, hint=error.hint))
    for a in said.heard.advisories:
        path = a.path or ""
        one = _at(loaded, a.severity, a.code, path, a.message, hint=a.hint, evidence=a.evidence, standing=a.source)
        found.append(one)
    for path, message in unknown_codes(loaded.profile.silence, CODES):
        found.append(_at(loaded, "warning", "unknown_code", path, message))
    found += _choices(loaded)
    return Inspected(name=loaded.profile.name, diagnostics=tuple(_sorted(found)), silenced=said.heard.silenced)


def _choices(loaded: Loaded) -> Iterator[Diagnostic]:
    """A suite or a workload that the profile names and that is not there, or does not fit it."""
    from orchestrator.cli.compose import load_suite, load_workloads

    try:
        load_suite(loaded.profile)
    except InputError as exc:
        yield _at(loaded, "error", "gates", "gates", exc.message, hint=exc.hint)
    for index, name in enumerate(loaded.profile.workloads):
        try:
            load_workloads((name,), (), profile=loaded.profile)
        except InputError as exc:
            yield _at(loaded, "error", "workload", f"workloads[{index}]", exc.message, hint=exc.hint)


def _at(
    loaded: Loaded,
    severity: str,
    code: str,
    path: str,
    message: str,
    *,
    hint: str | None = None,
    evidence: tuple[str, ...] = (),
    standing: str | None = None,
) -> Diagnostic:
    place = loaded.place_of(path)
    return Diagnostic(
        severity=severity,
        code=code,
        file=shown_path(place.file),
        line=place.line,
        path=path,
        message=message,
        hint=hint,
        evidence=evidence,
        standing=standing,
    )


def _refused(name: str, exc: InputError) -> Iterator[Diagnostic]:
    if isinstance(exc, InvalidFile):
        yield from _problems(exc)
    else:
        yield Diagnostic(
            severity="error", code="profile", file=name, line=None, path="", message=exc.message, hint=exc.hint
        )


def _problems(exc: InvalidFile) -> Iterator[Diagnostic]:
    for p in exc.problems:
        file = shown_path(p.file)
        yield Diagnostic(severity="error", code="profile", file=file, line=p.line, path=p.path, message=p.message)


def _sorted(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The worst first, then by place; what shares a place stays in its order."""
    return sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.file, one.line or 0))


def shown_path(file: str) -> str:
    """Relative to the working directory when it is below it, else as it is."""
    path, here = Path(file).absolute(), Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else file


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
