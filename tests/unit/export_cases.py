"""The profiles that exports are tried on: all shipped ones, and those whose words are hard to quote."""

from __future__ import annotations

from pathlib import Path

from orchestrator.engines.registry import load_engines
from orchestrator.foreign.exporting.common import Subject, subject_of
from orchestrator.profile.finding import list_files
from orchestrator.profile.loading import load_file
from orchestrator.profile.model import Profile, RuntimeKind

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles"
HARD = ROOT / "tests" / "cases" / "foreign" / "export"
ENGINES = load_engines()


def load(path: Path) -> Profile:
    return load_file(path, search=(PROFILES,), engines=ENGINES).profile


def subject(profile: Profile, *, is_bare: bool = False) -> Subject:
    return subject_of(profile, ENGINES[profile.engine], is_bare=is_bare)


SHIPPED = tuple(load(entry.path) for entry in list_files((PROFILES,), other_folders=frozenset({"workloads"})))
ALL = (*SHIPPED, *(load(path) for path in sorted(HARD.glob("*.yaml"))))
IN_DOCKER = tuple(profile for profile in ALL if profile.runtime is RuntimeKind.DOCKER)
AS_PROCESS = tuple(profile for profile in ALL if profile.runtime is RuntimeKind.PROCESS)


def name_of(profile: object) -> str:
    return profile.name if isinstance(profile, Profile) else str(profile)
