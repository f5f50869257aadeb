"""A request on its way through the mock, and the connection that its answer goes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.mock.ask import Ask
from orchestrator.mock.settings import Fault
from orchestrator.mock.told import Times


class Wire(Protocol):
    """The connection an answer goes to."""

    def begin(self, length: int | None) -> None:
        """The head of a stream; `length`: bytes of the whole body, None where nobody says."""
        ...

    def write(self, piece: bytes) -> None: ...

    def reply_json(self, status: int, body: bytes) -> None: ...

    def finish(self) -> None:
        """The answer is complete."""
        ...

    def drop(self, *, is_reset: bool = False) -> None:
        """Hang up."""
        ...


@dataclass(slots=True, eq=False)
class Stream:
    """One request on its way. Times: monotonic ns, 0 for what has not happened."""

    ask: Ask
    wire: Wire
    fault: Fault | None
    number: int
    received_ns: int
    started_ns: int = 0
    role_ns: int = 0
    ready_ns: int = 0
    first_ns: int = 0
    last_ns: int = 0
    ping_ns: int = 0
    cached_tok: int = 0
    is_gone: bool = False
    is_open: bool = False
    events: int = 0
    draft_tok: int = 0
    accepted_tok: int = 0
    keys: Sequence[int] = ()
    steps: Iterator[None] = field(default_factory=lambda: iter(()))

    @property
    def times(self) -> Times:
        return Times(
            received_ns=self.received_ns,
            started_ns=self.started_ns,
            first_ns=self.first_ns,
            last_ns=self.last_ns,
            events=self.events,
            draft_tok=self.draft_tok,
            accepted_tok=self.accepted_tok,
        )
