"""Turn extracted flag lists into the catalogues that gate0 ships: `python tools/catalogs.py FOLDER`.

FOLDER holds `<engine>-<version>.json` for vllm, sglang and llamacpp, as an extractor wrote them from a release, and
`history-<engine>.json` for the first two. What is known by hand (renames, what has no effect, which flags go together)
is in `facts-<engine>.json` beside the results and stays as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
if str(CHECKOUT) not in sys.path:  # run as a script: its own folder is there, the checkout is not
    sys.path.insert(0, str(CHECKOUT))

from orchestrator.engines.flags.document import encode  # noqa: E402
from orchestrator.engines.flags.model import Catalogue, Conventions, Flag, ValueKind  # noqa: E402
from orchestrator.engines.images import version_key  # noqa: E402

HOME = CHECKOUT / "orchestrator" / "engines" / "catalogs"
ENGINES = ("vllm", "sglang", "llamacpp")
PREFIXES = {"vllm": "VLLM_", "sglang": "SGLANG_", "llamacpp": "LLAMA_ARG_"}
LEVELS = ("0", "1", "2", "3")
"""vLLM takes `-O3` and the bare number for its optimisation level, neither of which is in its table."""

MISSED_MEMBERS = {"CUDAGraphMode": ("FULL_AND_PIECEWISE",)}
"""Members of an enumeration that are made of others, which a list of names passes over."""

DEVICES = ("auto", "cpu", "cuda")
"""What a list of choices comes to that depends on the machine."""

ANY_CASE = ("--linear-backend", "--moe-backend", "--sparse-indexer-topk-backend")
"""Closed lists of vLLM whose words are folded before they are looked up."""

REPEATABLE = {
    "llamacpp": (
        *("--control-vector", "--control-vector-scaled", "--dry-sequence-breaker", "--logit-bias", "--lora"),
        *("--lora-scaled", "--override-kv", "--override-tensor", "--spec-draft-override-tensor"),
    )
}
SETS_A_CONSTANT = ("DeprecatedStoreConstAction", "DeprecatedAction")


def conventions_of(engine: str, told: Mapping[str, Any]) -> Conventions:
    """How the parser reads words: partly told by the list, partly the engine's nature."""
    return Conventions(
        underscores=bool(told["underscores_equal_dashes"]),
        abbreviations=bool(told["abbreviations_accepted"]),
        dotted=bool(told.get("json_dotted_keys")),
        equals=engine != "llamacpp",
        positional=tuple(told.get("positional", ())),
        null_word=told.get("nullable_literal"),
    )


def flag_of(engine: str, told: Mapping[str, Any]) -> Flag:
    """One entry of an extracted list."""
    kind = _kind(told)
    has_value = kind not in {ValueKind.NONE, ValueKind.BOOL}
    default, text = _default(told)
    name = told["name"]
    level = (LEVELS, ("-O",)) if name == "--optimization-level" else ((), ())
    return Flag(
        name=name,
        kind=kind,
        aliases=(*told.get("aliases", ()), *level[1]),
        negatives=tuple(told.get("negatives", ())),
        item=ValueKind(told["item"]) if "item" in told else (ValueKind.STR if kind is ValueKind.LIST else None),
        nargs=told.get("nargs") if has_value else None,
        choices=tuple(str(choice) for choice in told.get("choices", ())) if has_value else (),
        known=_known(told),
        is_any_case=name in ANY_CASE or bool(told.get("case_insensitive_enum") or told.get("case_insensitive")),
        also=(*(str(word) for word in told.get("also", ())), *level[0], *_truths(engine, told)),
        default=default,
        default_text=text,
        is_repeatable=bool(told.get("repeatable")) or name in REPEATABLE.get(engine, ()),
        is_nullable=engine == "vllm" and bool(told.get("nullable")),
        is_human_int=bool(told.get("human_int")) or told.get("parser") == "human_readable_int",
        bounds={key: float(limit) for key, limit in told.get("constraints", {}).items()},
        json_class=told.get("json_class"),
        deprecated=_deprecated(told),
        is_inert=told.get("action") == "DeprecatedAction",
        is_removed=bool(told.get("removed")),
        env=told.get("env"),
        group=told.get("group"),
    )


def _deprecated(told: Mapping[str, Any]) -> str | None:
    if told.get("deprecated"):
        return "it will go"
    return "its own help says so" if told.get("deprecated_mentioned") else None


def _kind(told: Mapping[str, Any]) -> ValueKind:
    if told.get("store") == "store_true" or told.get("action") in SETS_A_CONSTANT:
        return ValueKind.NONE
    if told["value"] == "bool" and "name" in told and told["name"].startswith("--") and not told.get("negatives"):
        return ValueKind.NONE
    return ValueKind(told["value"])


def _known(told: Mapping[str, Any]) -> tuple[str, ...]:
    if "choices_expr" in told:
        return DEVICES
    missed = MISSED_MEMBERS.get(told.get("case_insensitive_enum", ""), ())
    return tuple(dict.fromkeys((*(str(value) for value in told.get("known_values", ())), *missed)))


def _truths(engine: str, told: Mapping[str, Any]) -> tuple[str, ...]:
    """What llama-server takes for `on`, `off` and `auto` beside these words."""
    choices = told.get("choices", ())
    if engine != "llamacpp" or not {"on", "off"} <= set(choices):
        return ()
    return ("enabled", "true", "1", "disabled", "false", "0", *(("-1",) if "auto" in choices else ()))


def _default(told: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The default as a value, and as the engine's own words where there is no plain value."""
    default, text = told.get("default"), told.get("default_text") or told.get("default_expr")
    if isinstance(default, str) and default.startswith("<"):
        return None, default.strip("<>")
    if isinstance(default, str) and told["value"] == "bool":
        return None, default
    if default is None and "fallback" in told:
        return told["fallback"], text
    return default, text


def catalogue_of(told: Mapping[str, Any]) -> Catalogue:
    """A whole extracted list."""
    engine = told["engine"]
    flags = {flag["name"]: flag_of(engine, flag) for flag in told["flags"]}
    classes = {
        name: {key: flag_of(engine, {**entry, "name": key}) for key, entry in keys.items()}
        for name, keys in told.get("json_classes", {}).items()
    }
    env = {name: _env_default(entry) for name, entry in told.get("env", {}).items()}
    if engine == "llamacpp":
        env = {flag.env: None for flag in flags.values() if flag.env}
    return Catalogue(
        engine=engine,
        version=told["version"],
        flags=flags,
        conventions=conventions_of(engine, told["conventions"]),
        json_classes=classes,
        env=dict(sorted(env.items())),
        env_prefix=PREFIXES[engine],
    )


def _env_default(told: Mapping[str, Any]) -> str | None:
    default = told.get("default")
    return None if default is None else default if isinstance(default, str) else json.dumps(default)


def history_of(engine: str, lists: Sequence[Catalogue], told: Mapping[str, Any] | None) -> dict[str, Any]:
    """When each flag came and went, for those that were not always there, and what changed of the others.

    `first` null: it was there in the oldest version known.
    """
    whole = [one.version for one in lists]
    versions = list(told["versions"]) if told else whole
    flags = _told_history(told, versions) if told else _folded(lists)
    return {
        "engine": engine,
        "versions": versions,
        "whole": whole,
        "flags": flags,
        "env": _spans({one.version: one.env for one in lists}),
    }


def _told_history(told: Mapping[str, Any], versions: Sequence[str]) -> dict[str, Any]:
    found = {}
    for name, entry in sorted(told["flags"].items()):
        first = None if entry["first"].startswith("<=") else entry["first"]
        changes = entry.get("changes", [])
        if first or entry["last"] != versions[-1] or changes or "alias_of" in entry:
            alias = {"alias_of": entry["alias_of"]} if "alias_of" in entry else {}
            found[name] = {"first": first, "last": entry["last"], **alias, **({"changes": changes} if changes else {})}
    return found


def _folded(lists: Sequence[Catalogue]) -> dict[str, Any]:
    return _spans({one.version: one.flags for one in lists})


def _spans(by_version: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """First and last version of each name that is not in all of them."""
    versions = list(by_version)
    found = {}
    for name in sorted({name for names in by_version.values() for name in names}):
        inside = [version for version in versions if name in by_version[version]]
        if inside != versions:
            found[name] = {"first": None if inside[0] == versions[0] else inside[0], "last": inside[-1]}
    return found


def write(path: Path, document: Mapping[str, Any]) -> None:
    """One entry a line two levels down, so that a change of one flag is a change of one line."""
    path.write_text(_lines(document) + "\n")
    print(f"{path.relative_to(CHECKOUT)}: {path.stat().st_size / 1024:.0f} KiB")


def _lines(document: Mapping[str, Any]) -> str:
    parts = []
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            inner = ",\n".join(f"{json.dumps(name)}:{_compact(entry)}" for name, entry in value.items())
            parts.append(f"{json.dumps(key)}:{{\n{inner}}}")
        else:
            parts.append(f"{json.dumps(key)}:{_compact(value)}")
    return "{" + ",\n".join(parts) + "}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="flag catalogues from extracted lists")
    parser.add_argument("folder", type=Path, help="with <engine>-<version>.json and history-<engine>.json")
    folder = parser.parse_args(argv).folder
    for engine in ENGINES:
        lists = [catalogue_of(json.loads(path.read_text())) for path in sorted(folder.glob(f"{engine}-*.json"))]
        lists.sort(key=lambda one: version_key(one.version))
        for one in lists:
            write(HOME / f"{engine}-{one.version}.json", encode(one))
        history = folder / f"history-{engine}.json"
        told = json.loads(history.read_text()) if history.exists() else None
        write(HOME / f"history-{engine}.json", history_of(engine, lists, told))


if __name__ == "__main__":
    main()
