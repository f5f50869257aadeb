"""A suite: which gates, which of them must pass, with which parameters; and how to read its file.

title: everything that a configuration must show before it is measured
gates:
  - gate: prefix_cache
  - gate: prefix_sharing
    required: false
    params: {requests: 4}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

import yaml

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.gating.gate import Gate
from orchestrator.gating.plugins import BrokenGate
from orchestrator.values import Json

MAIN_SUITE = "gate0"
_ITEM_KEYS = ("gate", "required", "params")
_SUITE_KEYS = ("title", "gates")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteItem:
    """One gate of a suite. `params`: complete, the gate's defaults filled in."""

    gate: Gate
    is_required: bool = True
    params: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Gates in the order in which they run.

    Attributes:
        is_shipped: Came with gate0, not from a file of the user.
        is_modified: Parameters or requirements differ from the suite's file.
    """

    name: str
    title: str = ""
    items: tuple[SuiteItem, ...]
    is_shipped: bool = False
    is_modified: bool = False

    @property
    def is_main(self) -> bool:
        """True for the one suite of which it may be said that Gate 0 passed: shipped, and as shipped."""
        return self.name == MAIN_SUITE and self.is_shipped and not self.is_modified


def shipped_suites() -> tuple[str, ...]:
    """Names of the suites that come with gate0."""
    folder = files("gates").joinpath("suites")
    return tuple(sorted(p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml")))


def load_suite(name: str, gates: Mapping[str, Gate]) -> Suite:
    """Load a suite by its shipped name or by a path to a `.yaml` file.

    Raises:
        InputError: No such suite.
        InvalidFile: Its file has problems, all of them listed.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise InputError(f"cannot read the suite {name}: {exc}") from exc
        return parse_suite(text, gates, name=path.stem, file=name)
    shipped = shipped_suites()
    if name not in shipped:
        raise InputError(f"no suite is named {name!r}{_did_you_mean(name, shipped)}", hint=_known("suites", shipped))
    text = files("gates").joinpath("suites", f"{name}.yaml").read_text(encoding="utf-8")
    return replace(parse_suite(text, gates, name=name, file=f"gates/suites/{name}.yaml"), is_shipped=True)


def parse_suite(text: str, gates: Mapping[str, Gate], *, name: str, file: str) -> Suite:
    """Read a suite's text.

    Raises:
        InvalidFile: With every problem in it.
    """
    try:
        doubled = _doubled_keys(yaml.compose(text, Loader=yaml.SafeLoader))
        raw: Json = yaml.safe_load(text)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else None
        raise InvalidFile([Problem(file=file, line=line, path="", message=str(exc.problem))]) from exc
    if doubled:
        raise InvalidFile([Problem(file=file, line=line, path="", message=what) for line, what in doubled])
    found = [*_shape_problems(raw)]
    items = raw.get("gates") if isinstance(raw, Mapping) else None
    items = items if isinstance(items, list) else []
    for index, item in enumerate(items):
        found += [(f"gates[{index}]{at}", message) for at, message in _item_problems(item, gates)]
    names = [item.get("gate") for item in items if isinstance(item, Mapping)]
    found += [("gates", f"{n!r} is listed twice") for n in sorted({str(n) for n in names if names.count(n) > 1})]
    if found:
        raise InvalidFile([Problem(file=file, line=None, path=at, message=message) for at, message in found])
    title = raw.get("title", "") if isinstance(raw, Mapping) else ""
    return Suite(name=name, title=str(title), items=tuple(_item(i, gates) for i in items))


def adjust_suite(
    suite: Suite, *, params: Mapping[str, Mapping[str, Json]], optional: Sequence[str], where: str = "gates"
) -> Suite:
    """The suite with a profile's parameters and its list of gates that may fail.

    Raises:
        InputError: A gate that the suite does not run, or a parameter that the gate does not take.
    """
    by_name = {item.gate.name: item for item in suite.items}
    strangers = [n for n in (*params, *optional) if n not in by_name]
    found = [
        f"{where}: the suite {suite.name!r} runs no gate {n!r}{_did_you_mean(n, by_name)}"
        for n in dict.fromkeys(strangers)
    ]
    for name, given in params.items():
        if name in by_name:
            found += [f"{where}.params.{name}{at}: {m}" for at, m in _param_problems(given, by_name[name].gate)]
    if found:
        raise InputError("\n".join(found), hint=_known("gates of this suite", by_name))
    items = tuple(
        replace(
            item,
            is_required=item.is_required and item.gate.name not in optional,
            params={**item.params, **params.get(item.gate.name, {})},
        )
        for item in suite.items
    )
    return replace(suite, items=items, is_modified=suite.is_modified or items != suite.items)


def _doubled_keys(node: yaml.Node | None) -> list[tuple[int, str]]:
    """Each key that a mapping has twice, with its line: YAML's reader would keep the last one and say nothing."""
    found: list[tuple[int, str]] = []
    if isinstance(node, yaml.SequenceNode):
        return [problem for part in node.value for problem in _doubled_keys(part)]
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line, name = key.start_mark.line + 1, str(key.value)
            if name in lines:
                found.append((line, f"key `{name}` is written twice: lines {lines[name]} and {line}"))
            lines.setdefault(name, line)
            found += _doubled_keys(value)
    return found


def _item(raw: Mapping[str, Json], gates: Mapping[str, Gate]) -> SuiteItem:
    gate = gates[str(raw["gate"])]
    params = raw.get("params") or {}
    assert isinstance(params, Mapping)
    return SuiteItem(gate=gate, is_required=raw.get("required", True) is True, params={**gate.defaults, **params})


def _shape_problems(raw: Json) -> list[tuple[str, str]]:
    if not isinstance(raw, Mapping):
        return [("", f"a mapping is expected, not {_kind(raw)}")]
    found = [(str(k), f"unknown key{_did_you_mean(str(k), _SUITE_KEYS)}") for k in raw if k not in _SUITE_KEYS]
    if not isinstance(raw.get("title", ""), str):
        found.append(("title", f"a text is expected, not {_kind(raw['title'])}"))
    if not isinstance(raw.get("gates"), list) or not raw["gates"]:
        found.append(("gates", f"a list with at least one gate is expected, not {_kind(raw.get('gates'))}"))
    return found


def _item_problems(item: Json, gates: Mapping[str, Gate]) -> list[tuple[str, str]]:
    if not isinstance(item, Mapping):
        return [("", f"a mapping with `gate` is expected, not {_kind(item)}")]
    found = [(f".{k}", f"unknown key{_did_you_mean(str(k), _ITEM_KEYS)}") for k in item if k not in _ITEM_KEYS]
    if not isinstance(item.get("required", True), bool):
        found.append((".required", f"true or false is expected, not {_kind(item['required'])}"))
    name = item.get("gate")
    if not isinstance(name, str):
        return [*found, (".gate", f"a gate's name is expected, not {_kind(name)}")]
    if name not in gates:
        return [*found, (".gate", f"no gate is named {name!r}{_did_you_mean(name, gates)}")]
    params = item.get("params")
    if params is None:
        return found
    if not isinstance(params, Mapping):
        return [*found, (".params", f"a mapping is expected, not {_kind(params)}")]
    return [*found, *((f".params{at}", m) for at, m in _param_problems(params, gates[name]))]


def _param_problems(params: Mapping[str, Json], gate: Gate) -> list[tuple[str, str]]:
    if isinstance(gate, BrokenGate):
        return []  # It could not say what it takes; its check says why it is broken.
    found = []
    for key, value in params.items():
        if key not in gate.defaults:
            words = (
                _did_you_mean(str(key), gate.defaults) or f"; {gate.name} takes {', '.join(gate.defaults) or 'none'}"
            )
            found.append((f".{key}", f"unknown parameter{words}"))
        elif not _is_like(value, gate.defaults[key]):
            found.append((f".{key}", f"{_kind(gate.defaults[key])} is expected, not {_kind(value)}: {value!r}"))
    return found


def _is_like(value: Json, default: Json) -> bool:
    """True when the value has the default's type; a whole number also stands for a fractional one."""
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int):
        return isinstance(value, int) and value >= 0
    if isinstance(default, float):
        return isinstance(value, int | float)
    if isinstance(default, str):
        return isinstance(value, str)
    if isinstance(default, Mapping):
        return isinstance(value, Mapping)
    return default is None or (isinstance(value, Sequence) and not isinstance(value, str))


def _kind(value: Json) -> str:
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number"),
        (str, "a text"),
        (Mapping, "a mapping"),
        (Sequence, "a list"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), "nothing")


def _did_you_mean(word: str, known: Mapping[str, object] | Sequence[str]) -> str:
    near = get_close_matches(word, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def _known(what: str, names: Mapping[str, object] | Sequence[str]) -> str:
    return f"known {what}: {', '.join(names)}"
