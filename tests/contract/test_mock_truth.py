"""What the mock says of itself: `/mock/truth`, by which clients are judged."""

from __future__ import annotations

import httpx

from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import MockSettings

TTFT_S = 0.01


def test_truth_has_the_times_and_tokens_of_each_answer_until_it_is_taken() -> None:
    settings = MockSettings(ttft_s=TTFT_S, tokens_per_event=4)
    with MockServer(settings) as server, httpx.Client(trust_env=False) as client:
        truth_url = server.base_url.removesuffix("/v1") + "/mock/truth"
        body = {"prompt": "one two", "max_tokens": 10, "stream": True}
        client.post(f"{server.base_url}/completions", json=body).raise_for_status()
        taken = client.post(truth_url).json()
        after = client.get(truth_url).json()

    assert [(t["events"], t["output_tok"], t["first_tok"]) for t in taken] == [(3, 10, 4)]
    assert taken[0]["first_ns"] - taken[0]["received_ns"] >= TTFT_S * 1e9
    assert taken[0]["last_ns"] > taken[0]["first_ns"]
    assert after == []
