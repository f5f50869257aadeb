"""What a schema cannot say of a workload: which keys its kinds take, and which values contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.errors import Problem
from orchestrator.profile.schemas import Schema
from orchestrator.profile.steps import dotted
from orchestrator.profile.wording import did_you_mean
from orchestrator.profile.yaml_lines import Document, Steps
from orchestrator.records.slo_presets import PRESETS
from orchestrator.sweep.overrides import is_override
from orchestrator.sweep.workload import GRID, Kind

Finding = tuple[Steps, str]
Values = Mapping[str, Any]

LEAST_REPEATS_FOR_TIGHT = 3
USERS = GRID | {Kind.SESSIONS}
DRAWING = {Kind.OPEN, Kind.OVERLOAD}
"""Kinds that draw each request's lengths; lanes of a mixed workload do too."""
LENGTH_FORMS = ("around", "median", "file")
WITH: Mapping[str, tuple[str, ...]] = {"around": ("spread",), "median": ("sigma",), "file": ()}
"""What each form of a distribution needs."""
ONLY_WITH = {"spread": "around", "sigma": "median", "column": "file"}


def kinds_in(value: Values) -> tuple[Kind, ...]:
    """The kinds of a document that fits the schema."""
    written = value.get("kind") or "closed"
    return tuple(Kind(k) for k in (written if isinstance(written, list) else [written]))


def cross_problems(document: Document, written: Document, schema: Schema) -> tuple[Problem, ...]:
    """All contradictions, each at its own line.

    Args:
        document: Fits the schema, overrides included.
        written: The same before the overrides. Overrides that only choose among its kinds leave keys of the others
            without use, which is no mistake.
    """
    value, before = document.value, written.value
    assert isinstance(value, dict), "checked against the schema"
    kinds = kinds_in(value)
    own = _kinds_or_none(before if isinstance(before, dict) else {})
    is_choice = own is not None and set(kinds) <= set(own)
    found = list(_foreign_keys(document, kinds, own if is_choice and own else kinds, schema))
    for rule in RULES:
        found += rule(value, kinds)
    return tuple(_problem(document, steps, message) for steps, message in found)


def _kinds_or_none(before: Values) -> tuple[Kind, ...] | None:
    try:
        return kinds_in(before)
    except (ValueError, TypeError):
        return None


def _problem(document: Document, steps: Steps, message: str) -> Problem:
    place = document.place_of(steps)
    return Problem(file=place.file, line=place.line, path=dotted(steps), message=message)


def _foreign_keys(document: Document, kinds: Sequence[Kind], own: Sequence[Kind], schema: Schema) -> Iterator[Finding]:
    """Keys that no kind of the workload takes: dropped in silence they would be believed to hold."""
    value = document.value
    assert isinstance(value, dict)
    for key, inner in value.items():
        takers = schema["properties"][key].get("x-kinds")
        if takers is None or inner is None:
            continue
        asked = kinds if is_override(document.place_of((key,)).file) else own
        if not {k.value for k in asked} & set(takers):
            here = ", ".join(k.value for k in kinds)
            is_old = is_override(document.place_of(("kind",)).file) and not is_override(document.place_of((key,)).file)
            way_out = f"; `--set {key}=null` leaves it out" if is_old else ""
            yield (key,), f"not a key of kind {here}; it belongs to {', '.join(takers)}{way_out}"


def _lengths(value: Values, kinds: Sequence[Kind]) -> Iterator[Finding]:
    equal = ", ".join(k for k in kinds if k not in DRAWING)
    for key in ("prompt_tokens", "output_tokens"):
        yield from _length_forms((key,), value.get(key))
        if equal and any(isinstance(v, dict) for v in _listed(value.get(key))):
            yield (key,), f"kind {equal} sends one length only: give numbers"
        for i, lane in enumerate(value.get("lanes") or ()):
            yield from _length_forms(("lanes", i, key), lane.get(key))


def _length_forms(steps: Steps, value: Any) -> Iterator[Finding]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _length_forms((*steps, i), item)
    if not isinstance(value, dict):
        return
    forms = [form for form in LENGTH_FORMS if form in value]
    if len(forms) != 1:
        yield steps, f"expected one of around, median and file, got {' and '.join(forms) or 'none of them'}"
        return
    for needed in WITH[forms[0]]:
        if needed not in value:
            yield steps, f"`{forms[0]}` needs `{needed}`"
    for key, form in ONLY_WITH.items():
        if key in value and form != forms[0]:
            yield (*steps, key), f"goes with `{form}`, not with `{forms[0]}`"
    if value.get("least", 1) > value.get("most", value.get("least", 1)):
        yield (*steps, "least"), f"{value['least']} is more than `most`, {value['most']}"


def _answers(value: Values, _kinds: Sequence[Kind]) -> Iterator[Finding]:
    if value.get("must_finish") and value.get("ignore_eos", True):
        yield ("must_finish",), "no answer can end by itself while `ignore_eos` is true; set `ignore_eos: false`"
    if value.get("endpoint") == "completions":
        for key, nothing in (("thinking", None), ("tools", 0)):
            if value.get(key, nothing) != nothing:
                yield (key,), "is said to a chat template, which `endpoint: completions` has not"
    if value.get("tight") is not None and value.get("repeats", 5) < LEAST_REPEATS_FOR_TIGHT:
        yield ("tight",), f"needs `repeats` of at least {LEAST_REPEATS_FOR_TIGHT}, got {value['repeats']}"


def _slo(value: Values, _kinds: Sequence[Kind]) -> Iterator[Finding]:
    search = value.get("search") or {}
    for steps, slo in ((("slo",), value.get("slo")), (("search", "slo"), search.get("slo"))):
        if isinstance(slo, str) and slo not in PRESETS:
            yield steps, f"expected one of {', '.join(PRESETS)} or a mapping, got `{slo}`{did_you_mean(slo, PRESETS)}"
        if isinstance(slo, dict) and not {"ttft_s", "tpot_ms", "e2e_s"} & slo.keys():
            yield steps, "limits nothing: give `ttft_s`, `tpot_ms` or `e2e_s`"


def _search(value: Values, kinds: Sequence[Kind]) -> Iterator[Finding]:
    search = value.get("search")
    if search is None:
        return
    if search.get("slo") is None and value.get("slo") is None:
        yield ("search",), "needs `slo`, here or for the whole workload"
    levels = {"concurrency" for k in kinds if k in USERS} | {"rate" for k in kinds if k is Kind.OPEN}
    over = search.get("over")
    if len(levels) > 1:
        yield ("search",), "cannot search users and rates in one workload: give it one sort of kind"
    elif over is not None and levels and over not in levels:
        yield ("search", "over"), f"kind {', '.join(kinds)} has a {levels.pop()}, not a {over}"
    low, high = search.get("low", 1), search.get("high", 256)
    if low >= high:
        yield ("search", "low" if "low" in search else "high"), f"`low` {low} must be below `high` {high}"
    if over == "rate" or levels == {"rate"}:
        if value.get("ramp") is not None:
            yield ("ramp",), "tells the rates, which `search` wants to choose; take one of them away"
        return
    for key, level in (("low", low), ("high", high)):
        if level != int(level):
            yield ("search", key), f"users are whole numbers, got {level}"
    if Kind.SESSIONS in kinds and value.get("sessions") is not None and value["sessions"] < high:
        yield ("sessions",), f"{value['sessions']} conversations are too few for a search up to {high} users"


def _grid(value: Values, _kinds: Sequence[Kind]) -> Iterator[Finding]:
    if value.get("depth_cache") == "warm" and not any(_listed(value.get("depth", 0))):
        yield ("depth_cache",), "there is no context to be warm: give `depth` a number above 0"


def _swarm(value: Values, kinds: Sequence[Kind]) -> Iterator[Finding]:
    if Kind.SWARM not in kinds:
        return
    cells = value.get("cells")
    if value.get("agents") is None and _listed(cells) != ["single"]:
        yield ("agents",), "missing: a swarm needs the number of its agents"
    if value.get("prefixes") is not None and cells is not None and "evicting" not in _listed(cells):
        yield ("prefixes",), "is for the cell `evicting`, which is not among `cells`"


def _timed(value: Values, kinds: Sequence[Kind]) -> Iterator[Finding]:
    if value.get("ramp") is not None and value.get("rate") is not None:
        yield ("rate",), "`ramp` tells the rates; take one of them away"
    if Kind.SESSIONS in kinds and value.get("sessions") is not None:
        most = max(_listed(value.get("concurrency", [1, 2, 4, 8])))
        if value["sessions"] < most:
            yield ("sessions",), f"{value['sessions']} conversations are too few for {most} users"


def _replay(value: Values, kinds: Sequence[Kind]) -> Iterator[Finding]:
    if Kind.REPLAY not in kinds:
        return
    if value.get("file") is None:
        yield ("file",), "missing: a replay needs a recording"
    if value.get("speed") is not None and value.get("rate") is not None:
        yield ("speed",), "scales a trace's own times, which `rate` leaves aside; take one of them away"
    if value.get("pick") == "random" and value.get("limit") is None:
        yield ("pick",), "picks among all there are: give `limit` too"


def _mixed(value: Values, kinds: Sequence[Kind]) -> Iterator[Finding]:
    if Kind.MIXED not in kinds:
        return
    lanes = value.get("lanes")
    if lanes is None:
        yield ("lanes",), "missing: a mixed workload needs two lanes or more"
        return
    names = [lane["name"] for lane in lanes]
    for i, lane in enumerate(lanes):
        if lane["name"] in names[:i]:
            yield ("lanes", i, "name"), f"a lane `{lane['name']}` is there already"
        yield from _lane(("lanes", i), lane)


def _lane(steps: Steps, lane: Values) -> Iterator[Finding]:
    has_users, has_rate = "concurrency" in lane, "rate" in lane
    if has_users == has_rate:
        seen = "both" if has_users else "neither"
        yield steps, f"lane `{lane['name']}`: expected either `concurrency` or `rate`, got {seen}"
    elif has_users and "burstiness" in lane:
        yield (*steps, "burstiness"), "goes with `rate`: a lane with users has no arrivals"
    elif has_rate and "think_s" in lane:
        yield (*steps, "think_s"), "goes with `concurrency`: a lane with a rate waits for nobody"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


RULES: Sequence[Callable[[Values, Sequence[Kind]], Iterator[Finding]]] = (
    _lengths,
    _answers,
    _slo,
    _search,
    _grid,
    _swarm,
    _timed,
    _replay,
    _mixed,
)
