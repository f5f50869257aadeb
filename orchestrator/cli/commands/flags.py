"""`gate0 flags`: what an engine's version takes, what one flag means, what changed between two versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import hosts_option, json_option, on_option

if TYPE_CHECKING:
    from orchestrator.cli.flag_lists import Found
    from orchestrator.cli.printer import Printer

ENGINES = ("vllm", "sglang", "llamacpp")
NAMES = {"llama.cpp": "llamacpp", "llama-server": "llamacpp", "llama": "llamacpp"}


def complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Engines, for the shell."""
    return [name for name in ENGINES if name.startswith(begun)]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("target", required=False, shell_complete=complete)
@click.argument("words", nargs=-1, metavar="[VERSION] [VERSION] [NAME]")
@click.option(
    "--search", metavar="WORD", help="only flags with this in a spelling or a value, or of a group of this name"
)
@click.option("--env", "is_env", is_flag=True, help="environment variables instead of flags")
@click.option("--engine", type=click.Choice(ENGINES), help="of an image whose name does not tell")
@on_option
@hosts_option
@json_option
def flags(
    *,
    target: str | None,
    words: tuple[str, ...],
    search: str | None,
    is_env: bool,
    engine: str | None,
    on: str | None,
    hosts_file: str | None,
    as_json: bool,
) -> int:
    """List, explain and compare the flags of an engine's version, or of an image.

    TARGET is an engine (vllm, sglang, llamacpp) or an image. With --on the image's own list is read on that host,
    without a GPU, and kept.

    \b
    gate0 flags                                          the versions that are known
    gate0 flags vllm 0.31                                all flags of a version
    gate0 flags vllm 0.31 max-num-seqs                   one flag
    gate0 flags vllm 0.31 speculative-config.method      one key of a JSON flag
    gate0 flags vllm 0.31 0.33                           what changed
    gate0 flags vllm 0.31 0.33 speculative-config        what changed of one flag
    gate0 flags vllm 0.31 --search parser
    gate0 flags my/vllm:patched --engine vllm --on spark01
    """
    from orchestrator.cli import flag_lists
    from orchestrator.cli.flag_changes import show_changes
    from orchestrator.cli.printer import Printer
    from orchestrator.errors import InputError

    printer = Printer(is_json=as_json)
    if target is None:
        return _say_versions(printer, ENGINES if engine is None else (engine,))
    named = NAMES.get(target, target)
    image = None if named in ENGINES else target
    if image is None and engine not in (None, named):
        raise InputError(f"{target} is an engine, and `--engine {engine}` another", hint="leave one of them out")
    of = engine or (named if image is None else flag_lists.engine_of(target))
    if on is not None and image is None:
        raise InputError(f"`--on {on}` reads an image's own list, {target} is an engine", hint="give the image's name")
    versions, names = flag_lists.parted(words)
    if image is not None and versions:
        raise InputError(
            f"{target} is an image, and has the flags of one version, not of {versions[0]}",
            hint=f"`gate0 flags {of} {versions[0]}` lists another version",
        )
    if len(versions) > 2 or len(names) > 1:
        raise click.UsageError(f"too many words: {' '.join(words)}")
    flag_lists.refuse_rolling(of, names)
    if len(versions) == 2:
        return show_changes(printer, of, versions, names[0] if names else None, is_env=is_env)
    if image is None and not versions and not names and search is None and not is_env:
        return _say_versions(printer, (of,))
    if image is None:
        found = flag_lists.chosen_list(of, versions[0] if versions else None)
    elif on is None:
        found = flag_lists.image_list(of, image)
    else:
        found = flag_lists.own_list(printer, of, image, on, hosts_file)
    if found.note is not None:
        printer.warning(found.note)
    if names:
        return _explain(printer, found, names[0])
    return _list(printer, found, search=search, is_env=is_env)


def _say_versions(printer: Printer, engines: Sequence[str]) -> int:
    from orchestrator.engines.flags.history import load_history
    from orchestrator.engines.flags.loading import load

    rows, told = [], []
    for engine in engines:
        history = load_history(engine)
        for version in history.versions:
            one = load(engine, version)
            is_whole = version in history.whole
            known = "whole" if is_whole else "names, the rest as in the oldest whole one"
            rows.append((engine, version, str(len(one.flags)), str(len(one.env) or ""), known))
            told.append({"engine": engine, "version": version, "flags": len(one.flags), "is_whole": is_whole})
    printer.table(("engine", "version", "flags", "variables", "list"), rows, right=(2, 3))
    printer.document({"versions": told})
    return 0


def _list(printer: Printer, found: Found, *, search: str | None, is_env: bool) -> int:
    from orchestrator.cli import flag_words
    from orchestrator.engines.flags.document import encode

    catalogue = found.catalogue
    if is_env:
        return _list_env(printer, found, search)
    chosen = list(catalogue.flags.values()) if search is None else flag_words.matching(catalogue, search)
    names = {flag.name for flag in chosen}
    printer.table(("flag", "takes", "default", ""), list(flag_words.list_rows(chosen)))
    printer.answer(f"{len(chosen)} of {len(catalogue.flags)} flags of {flag_words.release(catalogue)}")
    for line in found.own_note:
        printer.answer(line)
    told: dict[str, Any] = encode(catalogue)
    told["flags"] = {name: one for name, one in told["flags"].items() if name in names}
    printer.document({**told, "wanted": found.wanted, "note": found.note, "differences": list(found.own_note)})
    return 0


def _list_env(printer: Printer, found: Found, search: str | None) -> int:
    from orchestrator.cli.flag_words import release

    catalogue = found.catalogue
    own = {flag.env: flag.name for flag in catalogue.flags.values() if flag.env}
    told = {name: default or "" for name, default in catalogue.env.items()}
    told |= {name: f"as {flag}" for name, flag in own.items()}
    wanted = "" if search is None else search.upper().replace("-", "_")
    chosen = {name: told[name] for name in sorted(told) if wanted in name}
    printer.table(("variable", "default"), list(chosen.items()))
    printer.answer(f"{len(chosen)} of {len(told)} variables of {release(catalogue)}")
    printer.document({"engine": catalogue.engine, "version": catalogue.version, "note": found.note, "env": chosen})
    return 0


def _explain(printer: Printer, found: Found, name: str) -> int:
    from dataclasses import replace

    from orchestrator.cli import flag_words
    from orchestrator.cli.flag_lists import VARIABLE, find_flag
    from orchestrator.engines.flags.document import encode

    catalogue, history = found.catalogue, found.history
    if VARIABLE.fullmatch(name):
        return _explain_variable(printer, found, name)
    flag, shown = find_flag(printer, found, name)
    rows = list(flag_words.explain_rows(flag, catalogue, history))
    printer.table((shown, flag_words.release(catalogue)), rows)
    told: Any = encode(replace(catalogue, flags={flag.name: flag}))["flags"]
    printer.document(
        {
            "engine": catalogue.engine,
            "version": catalogue.version,
            "note": found.note,
            "name": shown,
            **told[flag.name],
            "history": [words for what, words in rows if what in {"there", "changed"}],
        }
    )
    return 0


def _explain_variable(printer: Printer, found: Found, name: str) -> int:
    from orchestrator.cli.flag_words import release, variable_rows
    from orchestrator.engines.flags.model import Chosen
    from orchestrator.engines.flags.variables import check_env, meant
    from orchestrator.errors import InputError

    catalogue = found.catalogue
    of_flag = next((flag for flag in catalogue.flags.values() if flag.env == name), None)
    if of_flag is not None:
        return _explain(printer, found, of_flag.name)
    if name not in catalogue.env:
        said = check_env(Chosen(catalogue=catalogue, wanted=catalogue.version), {name: "1"})
        message = said[0].message if said else f"{release(catalogue)} reads no {name}"
        raise InputError(message, hint=(said[0].hint if said else None) or meant(catalogue, name))
    rows = list(variable_rows(catalogue.env[name], found.history.env.get(name), found.history))
    printer.table((name, release(catalogue)), rows)
    printer.document(
        {"engine": catalogue.engine, "version": catalogue.version, "name": name, "default": catalogue.env[name]}
    )
    return 0
