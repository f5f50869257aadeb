"""A gate's parameters by type. They were checked when the suite was read; a wrong type here is our bug."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.values import Json


def whole(params: Mapping[str, Json], name: str) -> int:
    """A whole number.

    Raises:
        TypeError: It is none.
    """
    value = params[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: a whole number is expected, not {value!r}")
    return value


def number(params: Mapping[str, Json], name: str) -> float:
    """A number.

    Raises:
        TypeError: It is none.
    """
    value = params[name]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name}: a number is expected, not {value!r}")
    return float(value)


def is_set(params: Mapping[str, Json], name: str) -> bool:
    """True or false, as given."""
    return params[name] is True


def items(params: Mapping[str, Json], name: str) -> tuple[Json, ...]:
    """A list.

    Raises:
        TypeError: It is none.
    """
    value = params[name]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name}: a list is expected, not {value!r}")
    return tuple(value)
