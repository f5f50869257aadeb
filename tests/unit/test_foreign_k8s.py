"""Kubernetes manifests as launches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.foreign.k8s import looks_like_k8s, read_k8s
from tests.unit.foreign_launches import foreign_cases, plain_found, plain_notes


@pytest.mark.parametrize("case", foreign_cases("k8s", "launches.yaml"))
def test_a_container_that_serves_becomes_a_launch(case: dict[str, Any]) -> None:
    found = read_k8s(case["text"], source="m.yaml")

    assert plain_found(found) == case["launches"]
    assert plain_notes(found.notes) == case.get("others", [])
    assert [note for launch in found.launches for note in plain_notes(launch.notes)] == case.get("notes", [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: v1\nkind: Service\n", "m.yaml: no workload with containers"),
        ("a: 1\n---\nb: 'x\n", "m.yaml:3: a quote is opened here and never closed"),
    ],
)
def test_what_holds_no_server_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_k8s(text, source="m.yaml")

    assert caught.value.message == message


def test_a_manifest_is_recognised_by_its_kind() -> None:
    texts = ("apiVersion: apps/v1\nkind: Deployment\n", "apiVersion: v1\nkind: Service\n", "kind: Pod\n")

    assert [looks_like_k8s(text) for text in texts] == [True, False, False]


KEYS = "image command args env envFrom ports resources volumeMounts securityContext"
VALUES = ["vllm", "[a, b]", "{a: b}", "[{name: A, value: b}]", "[{name: A, valueFrom: {secretKeyRef: {}}}]", "~", "1"]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS.split()), st.sampled_from([*VALUES, "[{containerPort: x}]"]), max_size=7))
def test_any_container_is_read_or_refused_and_nothing_else(container: dict[str, str]) -> None:
    text = "apiVersion: v1\nkind: Pod\nspec:\n  volumes: [{name: a, emptyDir: {}}]\n  containers:\n  - name: c\n"
    text += "".join(f"    {key}: {value}\n" for key, value in container.items())

    found = read_k8s(text, source="m.yaml")

    assert len(found.launches) + len(found.notes) == 1
