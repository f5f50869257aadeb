"""The real vLLM's own flag list, asked of its own interpreter, against the shipped list of its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.deploy.own_flags import Subject, own_flags
from orchestrator.deploy.process import ProcessRuntime
from orchestrator.deploy.seen_files import State, look_on_host
from orchestrator.engines.flags.checking import check_words
from orchestrator.engines.flags.comparing import compare
from orchestrator.engines.flags.history import load_history
from orchestrator.engines.flags.loading import load
from orchestrator.engines.flags.model import Chosen, Severity
from orchestrator.engines.flags.reading import spellings
from orchestrator.fleet.local import LocalHost
from orchestrator.profile.model import RuntimeKind
from tools.vllm_parts import VllmParts

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(300)]


def test_the_real_vllms_own_list_is_the_shipped_one_of_its_version(vllm_parts: VllmParts, tmp_path: Path) -> None:
    runtime, shipped = ProcessRuntime(LocalHost()), load("vllm", "0.32.0")
    subject = Subject(engine="vllm", image=str(vllm_parts.vllm), digest="", kind=RuntimeKind.PROCESS)

    own = own_flags(runtime, subject, folder=tmp_path)

    found = compare(shipped, own, load_history("vllm"))
    differing = (found.added, found.removed, found.renamed, found.env_added, found.env_removed)
    assert own.version == "0.32.0"
    assert differing == ((), (), (), (), ())
    assert set(spellings(own)) == set(spellings(shipped))
    assert own_flags(runtime, subject, folder=tmp_path) == own
    assert len(list(tmp_path.iterdir())) == 1


def test_the_real_vllms_parsers_are_those_that_it_would_take(vllm_parts: VllmParts, tmp_path: Path) -> None:
    """0.32.0 registers as many as its help names: 54 for tools, 38 for reasoning."""
    subject = Subject(engine="vllm", image=str(vllm_parts.vllm), digest="", kind=RuntimeKind.PROCESS)
    own, shipped = own_flags(ProcessRuntime(LocalHost()), subject, folder=tmp_path), load("vllm", "0.32.0")
    chosen = Chosen(catalogue=own, wanted=own.version)

    for name, count in (("--tool-call-parser", 54), ("--reasoning-parser", 38)):
        assert (len(own.flags[name].choices), set(own.flags[name].choices)) == (count, set(shipped.flags[name].known))
    found = check_words(chosen, ("m", "--enable-auto-tool-choice", "--tool-call-parser", "mine"), ())
    assert [(one.severity, one.code) for one in found] == [(Severity.ERROR, "flag_choice")]


def test_the_real_vllms_own_templates_are_found_by_their_names(vllm_parts: VllmParts) -> None:
    names = ("template_chatml.jinja", "template_chat.jinja")

    found = look_on_host(LocalHost(), names, engine="vllm", program=str(vllm_parts.vllm))

    assert [one.state for one in found.values()] == [State.FILE, State.ABSENT]
    assert "template_chatml.jinja" in found[names[1]].beside
