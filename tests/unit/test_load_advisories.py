"""What is said of a load before it begins: seats that stay empty, and caches that take an hour to fill."""

from __future__ import annotations

import pytest

from orchestrator.pipeline.planning import load_advisories, priming_advisories
from orchestrator.sweep.loading import load_workload, search_path
from orchestrator.sweep.overrides import parse_overrides
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.workload import Workload


def load(name: str, *overrides: str) -> Workload:
    return load_workload(name, search=search_path(), changes=parse_overrides(overrides))


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        (8, None),
        (9, "1 person + 7 batch = 8 requests at once, the server runs 9: 1 place stays empty"),
        (12, "1 person + 7 batch = 8 requests at once, the server runs 12: 4 places stay empty"),
        (4, "1 person + 7 batch = 8 requests at once, the server runs 4: the rest queues"),
        (None, None),
    ],
)
def test_lanes_that_do_not_fill_the_server_are_said(slots: int | None, said: str | None) -> None:
    found = [a.message for a in load_advisories([load("eight-users-mixed")], slots)]

    assert found == ([] if said is None else [f"workload eight-users-mixed: {said}"])


@pytest.mark.parametrize(
    ("overrides", "kv_tok", "count"),
    [
        ((), 2_000_000, None),
        (("prefix_tokens=2000",), 2_000_000, 1500),
        (("prefix_tokens=2000", "prefixes=40"), 2_000_000, None),
        (("prefix_tokens=2000", "cells=single,cold"), 2_000_000, None),
        (("prefix_tokens=2000",), None, None),
    ],
)
def test_a_cache_that_takes_very_many_prefixes_to_fill_is_said(
    overrides: tuple[str, ...], kv_tok: int | None, count: int | None
) -> None:
    target = LoadTarget(base_url="http://x/v1", model="m", kv_tok=kv_tok)

    found = [a.message for a in priming_advisories([load("swarm-54k", *overrides)], target)]

    assert len(found) == (0 if count is None else 1)
    assert all(f"loads {count} prefixes of 2000 tokens, 3000000 in all" in message for message in found)
    assert all("the server's cache holds 2000000" in message for message in found)
