"""The forms that a profile can be exported to, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.errors import InputError
from orchestrator.foreign.exporting import compose, docker_run, k8s, sparkrun, systemd
from orchestrator.foreign.exporting.common import Exported, Subject
from orchestrator.profile.wording import did_you_mean

FORMS: Mapping[str, Callable[[Subject], Exported]] = {
    "docker-run": docker_run.export,
    "compose": compose.export,
    "sparkrun": sparkrun.export,
    "systemd": systemd.export,
    "k8s": k8s.export,
}


def find_form(name: str) -> str:
    """The form of that name.

    Raises:
        InputError: There is none, with the nearest name.
    """
    if name not in FORMS:
        raise InputError(
            f"no form is named `{name}`{did_you_mean(name, FORMS)}", hint=f"it is one of {', '.join(FORMS)}"
        )
    return name
