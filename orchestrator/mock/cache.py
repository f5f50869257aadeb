"""The mock's prefix cache: whole blocks, remembered for ever, or as long as there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

Token = str | int


class PrefixCache:
    """Knows every block of `block_tok` tokens together with all that came before it.

    Args:
        capacity: So many blocks; the least recently used go first, of one prompt the last ones. 0: without end.
    """

    def __init__(self, block_tok: int, *, capacity: int = 0) -> None:
        self._block_tok = block_tok
        self._capacity = capacity
        self._known: OrderedDict[int, None] = OrderedDict()

    @property
    def blocks(self) -> int:
        """How many are known."""
        return len(self._known)

    def keys(self, prompt: Sequence[Token], salt: str) -> list[int]:
        """Of each whole block, in order."""
        return self.extended((), prompt, salt)

    def extended(self, keys: Sequence[int], rest: Sequence[Token], salt: str) -> list[int]:
        """The keys of a longer prompt; `rest` is what follows the blocks that have theirs already."""
        longer = list(keys)
        so_far = longer[-1] if longer else hash(salt)
        for at in range(0, len(rest) - self._block_tok + 1, self._block_tok):
            so_far = hash((so_far, *rest[at : at + self._block_tok]))
            longer.append(so_far)
        return longer

    def find_keys(self, keys: Sequence[int], prompt_tok: int) -> int:
        """Tokens that are cached; at least one token is always computed. They count as used now."""
        hit = 0
        for key in keys[: (prompt_tok - 1) // self._block_tok]:
            if key not in self._known:
                break
            hit += 1
        for key in reversed(keys[:hit]):
            self._known.move_to_end(key)
        return hit * self._block_tok

    def add_keys(self, keys: Sequence[int]) -> None:
        for key in reversed(keys):
            self._known[key] = None
            self._known.move_to_end(key)
        while self._capacity and len(self._known) > self._capacity:
            self._known.popitem(last=False)

    def find(self, prompt: Sequence[Token], salt: str) -> int:
        return self.find_keys(self.keys(prompt, salt), len(prompt))

    def add(self, prompt: Sequence[Token], salt: str) -> None:
        self.add_keys(self.keys(prompt, salt))

    def clear(self) -> None:
        self._known.clear()
