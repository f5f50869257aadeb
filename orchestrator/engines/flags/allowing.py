"""What a profile accepts although the list lacks it: `allow_unknown_flags`.

An entry is the name of a flag, in any spelling: the flag may be there, and may have values that the list does not
offer. Or it is the dotted name of one key of a JSON flag, `speculative-config.draft_attention_backend`: the key may be
there, and may have other values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.flags.reading import Given, spellings


class Allowed:
    """The entries of one profile, by the names that this list has for the flags."""

    def __init__(self, catalogue: Catalogue, entries: Collection[str]) -> None:
        self._names = {_canonical(catalogue, entry) for entry in entries}

    def has_flag(self, given: Given) -> bool:
        """An unknown flag is accepted; by one of its keys too, where it is given by that key."""
        name = bare(given.name)
        return name in self._names or (given.dotted is not None and f"{name}.{given.dotted}" in self._names)

    def has_value(self, flag: str, key: str | None = None) -> bool:
        """What the list does not offer for this flag is accepted. `key`: for this key of its JSON value."""
        return (bare(flag) if key is None else f"{bare(flag)}.{key}") in self._names


def is_given(catalogue: Catalogue, entry: str, givens: Sequence[Given]) -> bool:
    """The flag that an entry is about stands on the command line."""
    flag = _canonical(catalogue, entry).partition(".")[0]
    return any(bare(given.name) == flag for given in givens)


def bare(name: str) -> str:
    """A flag's name without what differs between its spellings: `--max_num_seqs` -> `max-num-seqs`."""
    return name.lstrip("-").replace("_", "-").partition(".")[0].partition("=")[0]


def _canonical(catalogue: Catalogue, entry: str) -> str:
    head, dot, keys = entry.lstrip("-").partition(".")
    known = spellings(catalogue)
    named = next((known[one] for one in (f"--{bare(head)}", f"-{head}") if one in known), None)
    return f"{bare(named.flag.name if named else head)}{dot}{keys}"
