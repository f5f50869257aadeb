"""The real vLLM and its models, for tests that serve them; made by `tools/vllm_parts.py`."""

from __future__ import annotations

import os

import pytest

from tools.vllm_parts import VllmParts, parts_of


@pytest.fixture(scope="session")
def vllm_parts() -> VllmParts:
    """Paths of the real vLLM, its models and the chat template.

    Skips unless GATE0_TEST_VLLM=1: one start of the server takes half a minute and both cores. Asked for and
    not there is a failure, not a skip: a run that says it tests vLLM must not pass without it.
    """
    if os.environ.get("GATE0_TEST_VLLM") != "1":
        pytest.skip("needs the real vLLM: run `make test-vllm` (sets GATE0_TEST_VLLM=1)")
    parts = parts_of()
    if parts.missing:
        missing = ", ".join(str(path) for path in parts.missing)
        pytest.fail(f"not made yet: {missing}; run `python tools/vllm_parts.py`")
    return parts
