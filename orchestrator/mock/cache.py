"""The mock's prefix cache: whole blocks, remembered for ever."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice


class PrefixCache:
    """Knows every block of `block_tok` tokens together with all that came before it."""

    def __init__(self, block_tok: int) -> None:
        self._block_tok = block_tok
        self._known: set[int] = set()

    def find(self, prompt: Sequence[str], salt: str) -> int:
        """Tokens that are cached; at least one token is always computed."""
        hit_tok = 0
        for key in islice(self._keys(prompt, salt), (len(prompt) - 1) // self._block_tok):
            if key not in self._known:
                break
            hit_tok += self._block_tok
        return hit_tok

    def add(self, prompt: Sequence[str], salt: str) -> None:
        self._known.update(self._keys(prompt, salt))

    def clear(self) -> None:
        self._known.clear()

    def _keys(self, prompt: Sequence[str], salt: str) -> list[int]:
        keys, so_far = [], hash(salt)
        for start in range(0, len(prompt) - self._block_tok + 1, self._block_tok):
            so_far = hash((so_far, *prompt[start : start + self._block_tok]))
            keys.append(so_far)
        return keys
