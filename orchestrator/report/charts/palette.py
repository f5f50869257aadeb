"""How a configuration looks: a colour, a dash and a shape, so that colour is never alone; the same on all pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

COLOURS = ("#0077bb", "#ee6600", "#8822ff", "#666666", "#cc0022", "#bb55ff", "#cc77aa", "#779977")
"""Each at least 3:1 against white and near-black; chosen so that the nearest two, seen with any common deficiency of
colour vision, are as far apart as such colours can be (CIE76 distance of 20). The first four are the farthest."""

DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (12, 4), (3, 3, 9, 3), (1, 3))
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right", "cross", "triangle-left")
CROSS = "M-.8,-.8L.8,.8M-.8,.8L.8,-.8"
"""Over a point that broke a guard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    colour: str
    dash: tuple[int, ...]
    shape: str


def style_of(place: int) -> Style:
    """Of the n-th configuration; past the eighth a colour comes again, with another dash and shape."""
    turn = place + place // len(COLOURS)
    return Style(
        colour=COLOURS[place % len(COLOURS)],
        dash=DASHES[turn % len(DASHES)],
        shape=SHAPES[turn % len(SHAPES)],
    )


def places(pictures: Sequence[Sequence[str]]) -> Mapping[str, int]:
    """A place for each name, none twice in one picture: the lowest that no neighbour has.

    Args:
        pictures: The names that stand together, in order.
    """
    found: dict[str, int] = {}
    beside: dict[str, set[str]] = {}
    for names in pictures:
        for name in names:
            beside.setdefault(name, set()).update(names)
    for names in pictures:
        for name in names:
            if name not in found:
                taken = {found[other] for other in beside[name] if other in found}
                found[name] = next(i for i in range(len(taken) + 1) if i not in taken)
    return found
