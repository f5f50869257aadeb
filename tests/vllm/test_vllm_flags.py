"""The real vLLM's own flag list, asked of its own interpreter, against the shipped list of its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.deploy.own_flags import Subject, own_flags
from orchestrator.deploy.process import ProcessRuntime
from orchestrator.engines.flags.comparing import compare
from orchestrator.engines.flags.history import load_history
from orchestrator.engines.flags.loading import load
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
