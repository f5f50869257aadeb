"""What was declared beside what servers were seen to tell; faults planted in the declarations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.engines import llamacpp, sglang, vllm
from orchestrator.engines.effective.comparing import compare
from orchestrator.engines.effective.model import Agreement, Compared, Effective
from orchestrator.engines.effective.reading import read
from orchestrator.engines.engine import Engine, EngineCommand, Placement
from orchestrator.engines.flags.loading import load as load_list
from orchestrator.engines.flags.model import Catalogue, Flag, ValueKind
from orchestrator.profile.building import build_profile
from orchestrator.profile.model import Profile

from .effective_cases import ROOT, engine_of, load, told

ENGINES: dict[str, Engine] = {"vllm": vllm.ENGINE, "sglang": sglang.ENGINE, "llamacpp": llamacpp.ENGINE}
IMAGES = {"vllm": "vllm/vllm-openai:v0.32.0", "sglang": "lmsysorg/sglang:v0.5.22", "llamacpp": "llama:b10434"}
LIST = Catalogue(
    engine="vllm",
    version="0.32.0",
    flags={
        flag.name: flag
        for flag in (
            Flag(name="--scheduling-policy", kind=ValueKind.STR, default="fcfs"),
            Flag(name="--stream-interval", kind=ValueKind.INT, default=1),
            Flag(name="--attention-backend", kind=ValueKind.STR),
            Flag(name="--optimization-level", kind=ValueKind.STR, default="O2"),
            Flag(name="--swap-space", kind=ValueKind.FLOAT, is_inert=True, deprecated="it does nothing any more"),
        )
    },
)


def cases() -> list[Any]:
    files = sorted((ROOT / "compared").glob("*.json"))
    return [pytest.param(case, id=f"{f.stem}-{case['name']}") for f in files for case in json.loads(f.read_text())]


def profile_of(case: dict[str, Any]) -> Profile:
    engine = case["profile"].get("engine") or engine_of(case["told"])
    image = {} if engine == "endpoint" else {"image": IMAGES[engine]}
    return build_profile({"name": "case", "engine": engine, **image, **case["profile"]})


def compared(case: dict[str, Any]) -> Effective:
    profile = profile_of(case)
    heard = told(
        case["told"],
        without=tuple(case.get("without", ())),
        more_log=tuple(case.get("more_log", ())),
        **case.get("metrics", {}),
    )
    engine = ENGINES.get(profile.engine)
    command = engine.command(profile, Placement()) if engine else EngineCommand(argv=(), port=8000)
    readings = read(engine_of(case["told"]), heard)
    listed = case.get("catalogue")
    catalogue = load_list("llamacpp", listed) if isinstance(listed, str) else LIST if listed else None
    return compare(profile, command, readings, heard, engine=case.get("engine"), catalogue=catalogue)


def written(row: Compared) -> list[Any]:
    return [f"{row.agreement.value}{'!' if row.is_failing else ''}", json.loads(json.dumps(row.running))]


@pytest.mark.parametrize("case", cases())
def test_each_declared_setting_is_set_beside_what_runs(case: dict[str, Any]) -> None:
    found = compared(case)

    rows = {row.path: written(row) for row in found.compared}
    # As text: true is not 1 there, and the rows' order counts.
    assert json.dumps(rows) == json.dumps(case["rows"])


def test_what_the_engine_changed_is_quoted_in_its_own_words() -> None:
    quoted = []
    for case in (c.values[0] for c in cases()):
        heard = told(case["told"], more_log=tuple(case.get("more_log", ())))
        changed = [row for row in compared(case).compared if row.agreement is Agreement.CHANGED]
        quoted += [(row.path, bool(row.quote and any(row.quote in line for line in heard.log))) for row in changed]

    assert len(quoted) >= 5
    assert [path for path, is_said in quoted if not is_said] == []


def test_a_row_that_fails_says_why() -> None:
    failing = [row for case in cases() for row in compared(case.values[0]).failing]

    assert len(failing) > 25
    assert [row for row in failing if not row.why] == []


def test_the_record_holds_readings_rows_and_notices() -> None:
    case = next(c.values[0] for c in cases() if "unknown variable" in c.values[0]["name"])

    kept = compared(case).as_json()

    assert json.loads(json.dumps(kept)) == kept
    assert sorted(kept) == ["compared", "notices", "readings"]


def test_a_declared_secret_stays_one() -> None:
    case = next(c.values[0] for c in cases() if "unknown variable" in c.values[0]["name"])

    row = next(r for r in compared(case).compared if r.path == "env.VLLM_NVFP4_GEMM_BACKEND")

    assert row.declared == "(secret)"


def test_a_memory_size_is_compared_as_the_fraction_it_became() -> None:
    profile = build_profile(
        {
            "name": "case",
            "engine": "vllm",
            "image": IMAGES["vllm"],
            "model": {"path": "/models/tiny-hybrid"},
            "serve": {"memory_gib": 70},
        }
    )
    heard = told("vllm-hybrid-dev-mode")

    place = Placement(total_bytes=100 * 1024**3)
    rows = compare(profile, vllm.ENGINE.command(profile, place), read("vllm", heard), heard).compared

    row = next(r for r in rows if r.path == "serve.memory_gib")
    assert (row.declared, row.agreement, row.running) == ("0.7", Agreement.SAME, 0.7)


def test_every_told_server_is_compared_with_something() -> None:
    used = {case.values[0]["told"] for case in cases()}

    assert used == {path.stem for path in (ROOT / "told").glob("*.json")}
    assert all(load(f"told/{name}.json")["origin"].startswith(("captured: ", "constructed ")) for name in used)
