"""What the mock knows of itself: the counters of /metrics, and the truth of each answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """What /metrics tells; tokens unless named otherwise. `cached` and `queries` count look-ups of the prefix cache.

    Attributes:
        finished: Requests by finish reason.
        drafts, draft_tok, accepted_tok, accepted_at: Under speculation: steps, tokens drafted and accepted, and
            accepted by position.
        timed: Streams whose times are in the sums; seconds.
    """

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    queries: int = 0
    output: int = 0
    most_running: int = 0
    steps: int = 0
    busy: int = 0
    shed: int = 0
    finished: Counter[str] = field(default_factory=Counter)
    drafts: int = 0
    draft_tok: int = 0
    accepted_tok: int = 0
    accepted_at: Counter[int] = field(default_factory=Counter)
    timed: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    ttft_s: float = 0.0
    decode_s: float = 0.0

    def took(self, tokens: int, drafted: int) -> None:
        """One event left. `drafted`: beside its first token."""
        self.output += tokens
        if drafted:
            self.drafts += 1
            self.draft_tok += drafted
            self.accepted_tok += tokens - 1
            for position in range(tokens - 1):
                self.accepted_at[position] += 1


@dataclass(frozen=True, slots=True)
class Truth:
    """A streamed answer as it was. Monotonic ns: the whole request in hand, just before the first and the last event
    with tokens. `first_tok` tokens left in the first write. `started_ns`: its prefill began."""

    received_ns: int
    first_ns: int
    last_ns: int
    events: int
    output_tok: int
    first_tok: int
    started_ns: int = 0
    prompt_tok: int = 0
    cached_tok: int = 0
