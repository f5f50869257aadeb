"""What an engine's own parser takes, asked inside its image: `python3 -c SCRIPT vllm` (or `sglang`), without a GPU.

This file runs where gate0 is not, with the standard library and the engine alone: it is read as text and handed over.
stdout gets one line, MARK and a JSON object; whatever the engine itself prints goes to stderr. The object:

    engine, version
    positional   names of the words without a flag
    flags        names, negatives, action, nargs, type {word, nullable, class}, choices, default, metavar, group, …
    classes      keys of each JSON-valued flag's class: kinds, choices, nullable, class, default, bounds
    registered   flag: the values that are registered for it, plugins of the image's own packages included
    env          variable: default as text, null when it has none that can be told

Where the parser is made has moved between versions (`PARSERS`), so each place is tried in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import enum
import importlib
import json
import os
import re
import sys
import typing
from typing import Any

MARK = "gate0-argparse/1 "
PARSERS = {
    "vllm": (
        ("vllm.entrypoints.common.cli_args", "make_arg_parser"),
        ("vllm.entrypoints.launchers.cli_args", "make_arg_parser"),
        ("vllm.entrypoints.openai.cli_args", "make_arg_parser"),
    ),
    "sglang": (("sglang.srt.server_args", "ServerArgs"), ("sglang.srt.arg_groups.server_args", "ServerArgs")),
}
REGISTRIES = {
    "--tool-call-parser": (
        ("vllm.tool_parsers", "ToolParserManager"),
        ("vllm.entrypoints.openai.tool_parsers", "ToolParserManager"),
    ),
    "--reasoning-parser": (("vllm.reasoning", "ReasoningParserManager"),),
}
FLEXIBLE = ("vllm.utils.argparse_utils", "vllm.utils.arg_utils", "vllm.utils")
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")
SCALAR = (str, int, float, bool, type(None))
WORDS = {bool: "bool", int: "int", float: "float", str: "str", dict: "json"}
SERIES = (list, tuple, set, frozenset)


def first(places: Any) -> Any:
    """The first `(module, name)` that can be imported; the last one's error when none can."""
    last: Exception = ImportError("no place to look")
    for module, name in places:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as exc:
            last = exc
    raise last


def make_parser(engine: str) -> Any:
    """The parser of the engine's server, filled."""
    if engine == "sglang":
        parser = argparse.ArgumentParser()
        first(PARSERS[engine]).add_cli_args(parser)
        return parser
    pretend_device()
    flexible = first((module, "FlexibleArgumentParser") for module in FLEXIBLE)
    return first(PARSERS[engine])(flexible())


def pretend_device() -> None:
    """Without a GPU vLLM knows no device, and its configuration classes refuse to be made: the one it is built for."""
    with contextlib.suppress(Exception):
        platform = importlib.import_module("vllm.platforms").current_platform
        if not platform.device_type:
            type(platform).device_type = "cpu"
            built_for = importlib.import_module("torch").version
            type(platform).device_type = "cuda" if built_for.cuda or built_for.hip else "cpu"


def plain(value: Any) -> Any:
    """The value if JSON can hold it, else None."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if not isinstance(value, (*SCALAR, *SERIES, dict)):
        return None
    told = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
    try:
        return json.loads(json.dumps(told, allow_nan=False))
    except (TypeError, ValueError):
        return None


def told_default(value: Any) -> dict[str, Any]:
    """As a value when JSON can hold it, else in words."""
    if value is argparse.SUPPRESS or value is dataclasses.MISSING:
        return {}
    if dataclasses.is_dataclass(value):
        return {"default_text": f"{type(value).__name__}()"}
    found = plain(value)
    if found is None and value is not None:
        return {"default_text": re.sub(r" object at 0x\w+", "", repr(value))[:80]}
    return {"default": found}


def told_type(action: Any, classes: dict[str, Any]) -> dict[str, Any]:
    """What the function that reads the value is: vLLM wraps it, the wrapped one is in the closure."""
    reader, is_nullable, record = action.type, False, None
    for _ in range(4):
        if reader is None or isinstance(reader, type):
            break
        inside = [cell.cell_contents for cell in getattr(reader, "__closure__", None) or ()]
        held = [*(getattr(reader, "__defaults__", None) or ()), *inside]
        record = record or next((one for one in held if isinstance(one, type) and dataclasses.is_dataclass(one)), None)
        is_nullable = is_nullable or "optional" in getattr(reader, "__name__", "")
        inner = next((one for one in inside if callable(one) and one is not record), None)
        if inner is None:
            break
        reader = inner
    word = getattr(reader, "__name__", None) if reader is not None else None
    found: dict[str, Any] = {"word": word, "nullable": is_nullable}
    record = record or config_class(action.dest, word)
    if record is not None:
        found["class"] = add_class(record, classes)
    return found


def config_class(dest: str, word: str | None) -> Any:
    """`--speculative-config` is read as plain JSON and becomes a SpeculativeConfig later."""
    if word != "loads" or not dest.endswith("_config"):
        return None
    name = "".join(part.capitalize() for part in dest.split("_"))
    found = None
    with contextlib.suppress(Exception):
        found = getattr(importlib.import_module("vllm.config"), name, None)
    return found if found is not None and dataclasses.is_dataclass(found) else None


def add_class(record: Any, classes: dict[str, Any]) -> str:
    """Note the keys of a class, and of those inside it; returns its name."""
    name: str = record.__name__
    if name not in classes:
        classes[name] = {}
        hints: dict[str, Any] = {}
        with contextlib.suppress(Exception):
            hints = typing.get_type_hints(record, include_extras=True)
        for field in record.__dataclass_fields__.values():  # with those that the class takes and does not keep
            is_class_wide = field._field_type.name == "_FIELD_CLASSVAR"
            if not is_class_wide and field.init and getattr(field.default, "init", True) is not False:
                classes[name][field.name] = told_field(field, hints.get(field.name, field.type), classes)
    return name


def told_field(field: Any, hint: Any, classes: dict[str, Any]) -> dict[str, Any]:
    """One key: `pydantic.Field(ge=1, default=2)` holds bounds and default, a plain field its default alone."""
    found: dict[str, Any] = {"kinds": [], "choices": [], "nullable": False, "bounds": {}}
    note_hint(hint, found, classes)
    found["kinds"] = sorted(set(found["kinds"]))
    given = field.default
    note_bounds(getattr(given, "metadata", ()), found)
    if hasattr(given, "default_factory") and hasattr(given, "default"):
        given = given.default if given.default_factory is None else dataclasses.MISSING
    if type(given).__name__ not in ("_MISSING_TYPE", "PydanticUndefinedType", "ellipsis"):
        found.update(told_default(given))
    return found


def note_hint(hint: Any, found: dict[str, Any], classes: dict[str, Any]) -> None:
    """Add what a type hint allows."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"):
        note_bounds(hint.__metadata__, found)
        note_hint(hint.__origin__, found, classes)
    elif origin is typing.Literal:
        found["choices"] += [str(one) for one in inside]
        found["kinds"] += ["bool" if isinstance(one, bool) else WORDS.get(type(one), "str") for one in inside]
    elif origin is not None and type(None) not in inside and origin in SERIES:
        found["kinds"].append("list")
    elif origin is dict:
        found["kinds"].append("json")
    elif inside:
        for one in inside:
            note_hint(one, found, classes)
    elif isinstance(hint, dataclasses.InitVar):
        note_hint(hint.type, found, classes)
    elif hint in (None, type(None)):
        found["nullable"] = True
    elif hint in SERIES:
        found["kinds"].append("list")
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        found["kinds"].append("str")
    elif isinstance(hint, type) and dataclasses.is_dataclass(hint):
        found["kinds"].append("json")
        found["class"] = add_class(hint, classes)
    else:
        found["kinds"].append(next((word for kind, word in WORDS.items() if hint is kind), "any"))


def note_bounds(metadata: Any, found: dict[str, Any]) -> None:
    """`annotated_types.Ge(ge=1)` and the like."""
    for one in metadata:
        for name in ("gt", "ge", "lt", "le"):
            bound = getattr(one, name, None)
            if isinstance(bound, (int, float)) and not isinstance(bound, bool):
                found["bounds"][name] = bound


def negatives(parser: Any, action: Any, names: list[str]) -> list[str]:
    """The spellings that set a bare switch to false: found by using each one."""
    said = {}
    for name in names:
        space = argparse.Namespace()
        with contextlib.suppress(Exception, SystemExit):
            action(parser, space, [], name)
        said[name] = getattr(space, action.dest, None)
    found = [name for name, value in said.items() if value is False]
    return found if len(found) < len(names) else []


def told_action(parser: Any, action: Any, names: list[str], group: str | None, classes: dict[str, Any]) -> Any:
    """One flag."""
    words = action.help if isinstance(action.help, str) else ""
    is_old = getattr(action, "deprecated", False) or action in getattr(parser, "_deprecated", ())
    deprecated: Any = bool(is_old or "Deprecated" in type(action).__name__ or re.search(r"(?i)\bdeprecated\b", words))
    if getattr(action, "new_flag", None):
        deprecated = f"use {action.new_flag}"
    elif deprecated and words and words != "==SUPPRESS==":
        deprecated = " ".join(words.split())[:200]
    return {
        "names": names,
        "negatives": negatives(parser, action, names) if action.nargs == 0 else [],
        "action": type(action).__name__,
        "nargs": action.nargs,
        "type": told_type(action, classes),
        "choices": [str(one) for one in action.choices] if action.choices else [],
        "metavar": action.metavar if isinstance(action.metavar, str) else None,
        "group": group,
        "deprecated": deprecated,
        "removed": getattr(action, "error_message", None),
        **told_default(action.default),
    }


def told_flags(parser: Any, classes: dict[str, Any]) -> list[Any]:
    """Every flag, hidden spellings too; help and version are none."""
    groups = {id(action): group.title for group in parser._action_groups for action in group._group_actions}
    names: dict[int, list[str]] = {}
    for name, action in parser._option_string_actions.items():
        names.setdefault(id(action), []).append(name)
    return [
        told_action(parser, action, names.get(id(action), list(action.option_strings)), groups.get(id(action)), classes)
        for action in parser._actions
        if action.option_strings and type(action).__name__ not in ("_HelpAction", "_VersionAction")
    ]


def told_registered(engine: str) -> dict[str, list[str]]:
    """What vLLM will compare the names of parsers with; asked when the parser is made, as that loads its plugins."""
    found: dict[str, list[str]] = {}
    for flag, places in REGISTRIES.items() if engine == "vllm" else ():
        with contextlib.suppress(Exception):
            found[flag] = sorted(str(one) for one in first(places).list_registered())
    return found


def told_env(engine: str) -> dict[str, str | None]:
    """The variables that the engine declares; of SGLang also those that its sources read by name."""
    found: dict[str, str | None] = {}
    with contextlib.suppress(Exception):
        if engine == "vllm":
            for name, read in importlib.import_module("vllm.envs").environment_variables.items():
                found[name] = None
                with contextlib.suppress(Exception):
                    found[name] = text_of(name, read())
        else:
            for name, declared in vars(importlib.import_module("sglang.srt.environ").Envs).items():
                if hasattr(declared, "default"):
                    found[name] = text_of(name, declared.default)
            for name in named_in_sources(os.path.dirname(importlib.import_module("sglang").__file__ or "")):
                found.setdefault(name, None)
    return found


def named_in_sources(folder: str) -> set[str]:
    """`SGLANG_…` and `SGL_…` in quotes, anywhere in the package."""
    found: set[str] = set()
    for place, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".py"):
                with contextlib.suppress(OSError), open(os.path.join(place, name), encoding="utf-8") as file:
                    found.update(re.findall(r"[\"']((?:SGLANG|SGL)_[A-Z0-9_]+)[\"']", file.read()))
    return found


def text_of(name: str, value: Any) -> str | None:
    """A variable's default as one would write it; nothing that could be a secret."""
    if value is None or SECRET.search(name) or not isinstance(value, SCALAR):
        return None
    return str(int(value)) if isinstance(value, bool) else str(value)


def main() -> None:
    """Print the table. An engine that cannot be imported ends it with its traceback."""
    engine = sys.argv[1]
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        if engine == "vllm":  # the `vllm` program does not look for modules in the folder it is started in
            sys.path[:] = [place for place in sys.path if place]
        sys.argv = [engine, "serve"]
        parser = make_parser(engine)
        classes: dict[str, Any] = {}
        table = {
            "engine": engine,
            "version": getattr(importlib.import_module(engine), "__version__", None),
            "positional": [action.dest for action in parser._actions if not action.option_strings],
            "flags": told_flags(parser, classes),
            "classes": classes,
            "registered": told_registered(engine),
            "env": told_env(engine),
        }
        answer.write(MARK + json.dumps(table) + "\n")


if __name__ == "__main__":
    main()
