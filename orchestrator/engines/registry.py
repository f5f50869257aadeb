"""The engines that are installed, found through the entry points that the built-in ones use too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from orchestrator.engines.engine import Engine
from orchestrator.errors import InputError

GROUP = "gate0.engines"


def load_engines(found: Iterable[EntryPoint] | None = None) -> Mapping[str, Engine]:
    """Every engine by name.

    Args:
        found: Entry points to load, those of the installed packages by default.

    Raises:
        InputError: A plugin cannot be imported, is no engine, or takes a name that is taken; it is named.
    """
    engines: dict[str, Engine] = {}
    for entry in sorted(entry_points(group=GROUP) if found is None else found, key=lambda e: (e.name, e.value)):
        if entry.name in engines:
            raise InputError(
                f"engine {entry.name}: two plugins have this name, one is {entry.value}", hint="uninstall one"
            )
        engines[entry.name] = _load(entry)
    return engines


def get_engine(name: str, engines: Mapping[str, Engine]) -> Engine:
    """The engine that a profile names.

    Raises:
        InputError: It is not installed.
    """
    if name not in engines:
        raise InputError(f"engine {name} is not installed", hint=f"one of {', '.join(sorted(engines))}")
    return engines[name]


def _load(entry: EntryPoint) -> Engine:
    try:
        engine = entry.load()
    except Exception as exc:
        raise InputError(
            f"engine {entry.name}: {entry.value} cannot be loaded: {type(exc).__name__}: {exc}",
            hint="repair or uninstall the package that provides it",
        ) from exc
    missing = [name for name in ("name", "traits", "problems", "command", "advisories") if not hasattr(engine, name)]
    if missing:
        raise InputError(f"engine {entry.name}: {entry.value} is no engine, it has no {', '.join(missing)}")
    loaded: Engine = engine
    return loaded
