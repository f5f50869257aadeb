"""What `gate0 flags` says of two versions: all that changed, or what changed of one flag or variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from orchestrator.cli.flag_lists import VARIABLE, Found, chosen_list, find_flag
from orchestrator.cli.flag_words import difference_rows, release, variable_difference_rows
from orchestrator.engines.flags.comparing import Differences, compare
from orchestrator.engines.flags.facts import load_facts
from orchestrator.engines.flags.model import Catalogue, Flag
from orchestrator.engines.flags.reading import spellings
from orchestrator.engines.flags.variables import meant
from orchestrator.errors import InputError

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer


def show_changes(printer: Printer, engine: str, versions: Sequence[str], name: str | None, *, is_env: bool) -> int:
    """Print what changed from one version to the other, of everything or of what is named.

    Raises:
        InputError: Neither version has what is named.
    """
    before, after = (chosen_list(engine, version) for version in versions)
    for one in (before, after):
        if one.note is not None:
            printer.warning(one.note)
    shown, found = _found(printer, before, after, name)
    head = (release(before.catalogue), release(after.catalogue))
    of_flags = list(difference_rows(found, before.catalogue, after.catalogue))
    of_variables = list(variable_difference_rows(found))
    if name is not None:
        rows = [*of_flags, *of_variables]
        _say_one(printer, shown, rows, head)
    elif is_env:
        printer.table(("change", "variable", *head), of_variables)
        printer.answer(f"{len(of_variables)} changes of variables from {head[0]} to {head[1]}")
    else:
        printer.table(("change", "flag", *head), of_flags)
        printer.answer(f"{len(of_flags)} changes from {head[0]} to {head[1]}")
        if of_variables:
            count = f"{len(found.env_added)} variables added, {len(found.env_removed)} removed"
            printer.answer(f"and {count}; `--env` names them")
    told = {"engine": engine, "before": before.catalogue.version, "after": after.catalogue.version}
    printer.document({**told, **({} if name is None else {"name": shown}), **asdict(found)})
    return 0


def _say_one(printer: Printer, shown: str, rows: Sequence[tuple[str, ...]], head: tuple[str, str]) -> None:
    if rows:
        printer.table(("change", "flag", *head), rows)
    else:
        printer.answer(f"nothing changed of {shown} from {head[0]} to {head[1]}")


def _found(printer: Printer, before: Found, after: Found, name: str | None) -> tuple[str, Differences]:
    whole = compare(before.catalogue, after.catalogue, after.history)
    if name is None:
        return "", whole
    if VARIABLE.fullmatch(name):
        of_flag = next(
            (flag for one in (after, before) for flag in one.catalogue.flags.values() if flag.env == name), None
        )
        if of_flag is None:
            return name, _of_variable(whole, before.catalogue, after.catalogue, name)
        name = of_flag.name
    there = [_find(printer, one, name) for one in (before, after)]
    if there == [None, None]:
        find_flag(printer, after, name)
    shown = next(shown for _, shown in filter(None, reversed(there)))
    flags = [None if one is None else replace(one[0], name=one[1]) for one in there]
    narrow = [_narrowed(one.catalogue, flag) for one, flag in zip((before, after), flags, strict=True)]
    old, new = _renamed_too(before.catalogue, narrow[0], narrow[1]), _heirs_too(after.catalogue, narrow[0], narrow[1])
    return shown, compare(old, new, after.history)


def _of_variable(whole: Differences, before: Catalogue, after: Catalogue, name: str) -> Differences:
    if name not in before.env and name not in after.env:
        raise InputError(f"neither {release(before)} nor {release(after)} reads {name}", hint=meant(after, name))
    return Differences(
        env_added=tuple(one for one in whole.env_added if one == name),
        env_removed=tuple(one for one in whole.env_removed if one == name),
    )


def _find(printer: Printer, found: Found, name: str) -> tuple[Flag, str] | None:
    try:
        return find_flag(printer, found, name)
    except InputError:
        return None


def _narrowed(catalogue: Catalogue, flag: Flag | None) -> Catalogue:
    """The list with this flag and the keys of its JSON alone."""
    classes = frozenset(() if flag is None else _classes(catalogue, flag))
    return replace(
        catalogue,
        flags={} if flag is None else {flag.name: flag},
        json_classes={name: keys for name, keys in catalogue.json_classes.items() if name in classes},
        env={},
    )


def _classes(catalogue: Catalogue, flag: Flag) -> Iterator[str]:
    waiting, seen = [flag.json_class], set[str]()
    while waiting:
        name = waiting.pop()
        if name is None or name in seen:
            continue
        seen.add(name)
        yield name
        waiting += [key.json_class for key in catalogue.json_classes.get(name, {}).values()]


def _heirs_too(whole: Catalogue, old: Catalogue, new: Catalogue) -> Catalogue:
    """The newer list with the flags that took over from the one that is asked for."""
    known, renames = spellings(whole), load_facts(whole.engine).renames
    heirs = [word.partition(" ")[0] for name in old.flags if name in renames for word in renames[name].new]
    return replace(
        new, flags={**new.flags, **{known[word].flag.name: known[word].flag for word in heirs if word in known}}
    )


def _renamed_too(whole: Catalogue, old: Catalogue, new: Catalogue) -> Catalogue:
    """The older list with the flags from which the one that is asked for took over."""
    renames = load_facts(whole.engine).renames.values()
    before = [one.old for one in renames if any(word.partition(" ")[0] in new.flags for word in one.new)]
    return replace(old, flags={**old.flags, **{name: whole.flags[name] for name in before if name in whole.flags}})
