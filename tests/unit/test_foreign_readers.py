"""Every reader on damaged texts: launches, notes, or a refusal, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.foreign.command import read_command
from orchestrator.foreign.compose import read_compose
from orchestrator.foreign.docker_run import read_docker_run
from orchestrator.foreign.found import Found
from orchestrator.foreign.k8s import read_k8s
from orchestrator.foreign.systemd import read_systemd
from tests.unit.foreign_launches import CASES

READERS: dict[str, Callable[[str], Found]] = {
    "command": lambda text: read_command(text, source="x"),
    "compose": lambda text: read_compose(text, source="x", read_file=lambda path: text),
    "docker_run": lambda text: read_docker_run(text, source="x", read_file=lambda path: text),
    "k8s": lambda text: read_k8s(text, source="x"),
    "systemd": lambda text: read_systemd(text, source="x", read_file=lambda path: text),
}
SIGNS = [
    "'",
    '"',
    "\\",
    "\n",
    "${",
    "}",
    "$(",
    ")",
    "`",
    "{",
    "[",
    ":",
    "- ",
    "=",
    "&",
    "|",
    "<<",
    "*a",
    "&a ",
    "\t",
    "\0",
]


def texts(form: str) -> list[str]:
    return [case["text"] for case in yaml.safe_load((CASES / form / "launches.yaml").read_text())]


@pytest.mark.parametrize("form", READERS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_text_is_read_or_refused(form: str, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(texts(form)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.sampled_from(SIGNS)) + text[at + cut :]
    found, refused = Found(), ""
    try:
        found = READERS[form](text)
    except InputError as exc:
        refused = exc.message

    assert refused or all(launch.form for launch in found.launches)
