"""What a load sleeps on, so that a cancel can wake it: the clock, and a place below a cap."""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field
from time import monotonic_ns


@dataclass(slots=True, eq=False)
class Waits:
    """Everything that sleeps, so that a cancel can wake it."""

    futures: set[asyncio.Future[None]] = field(default_factory=set)
    is_cancelled: bool = False

    async def until(self, due_ns: int) -> None:
        """Return at `due_ns`, never before it, or at once when cancelled."""
        loop = asyncio.get_running_loop()
        while not self.is_cancelled and (left_ns := due_ns - monotonic_ns()) > 0:
            future = loop.create_future()
            handle = loop.call_later(left_ns / 1e9, _resolve, future)
            await self.wait(future)
            handle.cancel()

    async def wait(self, future: asyncio.Future[None]) -> None:
        self.futures.add(future)
        try:
            await future
        finally:
            self.futures.discard(future)

    def cancel(self) -> None:
        self.is_cancelled = True
        for future in tuple(self.futures):
            _resolve(future)


class Gate:
    """At most `cap` inside; the others wait in the order they were due."""

    def __init__(self, cap: int, waits: Waits) -> None:
        self._free = cap
        self._expected = 0
        self._waits = waits
        self._queue: list[tuple[int, int, asyncio.Future[None]]] = []
        self._came = 0

    @property
    def is_open(self) -> bool:
        """Whoever comes now need not wait."""
        return self._free > 0 and not self._queue

    def expect(self) -> bool:
        """True, and a place is thought of as taken, when one more that is due soon will find one as things stand."""
        is_expected = self.is_open and self._free > self._expected
        self._expected += is_expected
        return is_expected

    def arrive(self) -> None:
        """One that was expected is here."""
        self._expected -= 1

    async def enter(self, due_ns: int) -> bool:
        """True when it had to wait."""
        if self.is_open:
            self._free -= 1
            return False
        future = asyncio.get_running_loop().create_future()
        self._came += 1
        heapq.heappush(self._queue, (due_ns, self._came, future))
        await self._waits.wait(future)
        return True

    def leave(self) -> None:
        while self._queue:
            future = heapq.heappop(self._queue)[2]
            if not future.done():
                future.set_result(None)
                return
        self._free += 1


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
