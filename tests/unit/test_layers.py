"""The layers of the house, walked: a module imports only downwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PURE_LINE = [
    ("orchestrator.errors", "orchestrator.values"),
    ("orchestrator.profile",),
    ("orchestrator.engines",),
    (
        "orchestrator.fleet.inventory",
        "orchestrator.fleet.facts",
        "orchestrator.fleet.network",
        "orchestrator.fleet.host",
    ),
    (
        "orchestrator.deploy.runtime",
        "orchestrator.deploy.memory",
        "orchestrator.deploy.plan",
        "orchestrator.deploy.launch",
        "orchestrator.deploy.diagnosis",
        "orchestrator.deploy.progress",
    ),
    ("orchestrator.foreign",),
]
"""Each room imports only rooms to its left (an earlier row), or its own row."""

BASE = {"orchestrator", "orchestrator.errors", "orchestrator.values"}
BESIDE = {
    "orchestrator.wire.chat": BASE,
    "orchestrator.wire.sse": BASE | {"orchestrator.wire.chat"},
    "orchestrator.wire.parse": BASE | {"orchestrator.wire.chat", "orchestrator.wire.sse"},
    "orchestrator.gating.gate": BASE | {"orchestrator.wire.chat"},
    "orchestrator.records.record": BASE,
    "orchestrator.records.lines": BASE | {"orchestrator.records.record"},
    "orchestrator.records.store": BASE | {"orchestrator.records.lines", "orchestrator.records.record"},
    "orchestrator.sweep.lengths": BASE,
    "orchestrator.sweep.workload": BASE | {"orchestrator.sweep.lengths"},
    "orchestrator.sweep.search": BASE,
    "orchestrator.sweep.timing": BASE | {"orchestrator.wire", "orchestrator.records.record"},
}
"""Modules with a list of their own: these and nothing else of ours."""

ROOMS = {
    "orchestrator.figures": BASE | {"orchestrator.records", "orchestrator.figures"},
    "orchestrator.report": BASE | {"orchestrator.records", "orchestrator.figures", "orchestrator.report"},
    "orchestrator.records.exchange.transcript": BASE | {"orchestrator.records", "orchestrator.profile"},
    "orchestrator.records.exchange": BASE | {"orchestrator.records", "orchestrator.figures"},
    "orchestrator.records": BASE | {"orchestrator.records"},
    "orchestrator.wire": BASE | {"orchestrator.wire"},
    "orchestrator.mock": BASE | {"orchestrator.mock", "orchestrator.wire"},
    "orchestrator.sweep.guards": BASE
    | {
        "orchestrator.records.record",
        "orchestrator.sweep.guards",
        "orchestrator.sweep.spec",
        "orchestrator.sweep.truth",
        "orchestrator.sweep.workload",
    },
    "orchestrator.gating": BASE | {"orchestrator.wire", "orchestrator.gating"},
    "gates": BASE | {"orchestrator.wire", "orchestrator.gating", "gates"},
}
EDGE_LIBRARIES = {
    "paramiko": ("orchestrator.fleet.ssh",),
    "docker": ("orchestrator.deploy.docker", "orchestrator.deploy.docker_engine", "orchestrator.deploy.dial"),
    "httpx": ("orchestrator.wire.target",),
    "uvloop": ("orchestrator.sweep", "orchestrator.mock"),
    "aiohttp": ("orchestrator.sweep.aiohttp_backend",),
    "httptools": ("orchestrator.sweep", "orchestrator.mock"),
    "rich": ("orchestrator.cli",),
    "click": ("orchestrator.cli",),
    "jinja2": ("orchestrator.report",),
    "markdown_it": ("orchestrator.report",),
    "vl_convert": ("orchestrator.report.charts.export", "orchestrator.report.notebook.page"),
}
"""Outside libraries and the only modules (or rooms) that may import them."""


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in ("orchestrator", "gates"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found.append((name.removesuffix(".__init__"), path))
    return found


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def is_in(module: str, rooms: object) -> bool:
    return any(module == room or (room != "orchestrator" and module.startswith(f"{room}.")) for room in rooms)  # type: ignore[attr-defined]


ALL = modules()


@pytest.mark.parametrize(("name", "path"), ALL, ids=[n for n, _ in ALL])
def test_imports_point_downwards(name: str, path: Path) -> None:
    ours = [i for i in imports(path) if i.split(".")[0] in {"orchestrator", "gates"}]
    allowed = allowed_for(name)

    wrong = [i for i in ours if allowed is not None and not is_in(i, allowed)]

    assert wrong == [], f"{name} may import only {sorted(allowed or ())}"


@pytest.mark.parametrize(("name", "path"), ALL, ids=[n for n, _ in ALL])
def test_edge_libraries_stay_at_their_edge(name: str, path: Path) -> None:
    tops = {i.split(".")[0] for i in imports(path)}

    wrong = [lib for lib, homes in EDGE_LIBRARIES.items() if lib in tops and not is_in(name, homes)]

    assert wrong == []


@pytest.mark.parametrize(("name", "path"), ALL, ids=[n for n, _ in ALL])
def test_only_the_load_path_and_the_mock_await(name: str, path: Path) -> None:
    has_await = any(isinstance(n, ast.Await | ast.AsyncFunctionDef) for n in ast.walk(ast.parse(path.read_text())))

    assert not has_await or is_in(name, {"orchestrator.sweep", "orchestrator.mock"})


@pytest.mark.parametrize(("name", "path"), ALL, ids=[n for n, _ in ALL])
def test_only_the_command_line_knows_the_command_line(name: str, path: Path) -> None:
    ours = set(imports(path))

    assert is_in(name, {"orchestrator.cli"}) or not any(is_in(i, {"orchestrator.cli"}) for i in ours)
    assert is_in(name, {"gates"}) or not any(is_in(i, {"gates"}) for i in ours)


def allowed_for(name: str) -> set[str] | None:
    if name in BESIDE:
        return BESIDE[name]
    for index, row in enumerate(PURE_LINE):
        if is_in(name, row):
            return BASE | {room for earlier in PURE_LINE[: index + 1] for room in earlier}
    return next((allowed for room, allowed in ROOMS.items() if is_in(name, {room})), None)
