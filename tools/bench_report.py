"""What a big results folder costs: records of 10,000 cells with a million requests, made here, read, rendered.

Each figure is of `gate0 report` by its own command line, start-up included: the first time (raw records are read), then
from what was kept of them. The folder lies in the system's temporary one and is removed; the files are in its cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.bench_mock import say
from tools.bench_peers import gate0_program
from tools.bench_show import Target, table
from tools.bench_store import Size, write_store

FULL = Size()
QUICK = Size(runs=20)
RENDER_LIMIT_S, CACHED_LIMIT_S, SORT_LIMIT_MS = 10.0, 4.0, 1000.0
TIMES = 3
FIRST, KEPT, LISTED = "page, raw records read", "page, figures kept", "`results list`, figures kept"
LINE = re.compile(r"(\d+) runs?, (\d+) points?$")

USABLE = """async () => {
  const pause = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const board = [...document.querySelectorAll('.board')].find((b) => !b.hidden);
  const timed = async (act) => {
    const start = performance.now();
    act();
    await pause();
    return performance.now() - start;
  };
  const text = document.querySelector('[data-filter=text]');
  const typed = () => {
    text.value = 'option 17';
    text.dispatchEvent(new Event('input', { bubbles: true }));
  };
  return {
    rows: board.querySelectorAll('tbody tr').length,
    load_ms: performance.getEntriesByType('navigation')[0].loadEventEnd,
    sort_ms: await timed(() => board.querySelector('thead tr:last-child th:last-child button.sort').click()),
    filter_ms: await timed(typed),
  };
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command line: wall time, time on all cores, most memory of a process, what it wrote."""

    name: str
    wall_s: float
    cpu_s: float
    memory_mb: float
    written_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """The page in a browser: until it is loaded, a click on a column's head, a letter in the filter."""

    rows: int
    load_ms: float
    sort_ms: float
    filter_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """usable: None where there is no browser."""

    size: Size
    raw_mb: float
    kept_mb: float
    steps: tuple[Step, ...]
    usable: Usable | None

    def step(self, name: str) -> Step:
        return next(s for s in self.steps if s.name == name)


def measure(size: Size) -> Measured:
    """Make the records, report them, remove them."""
    folder = Path(tempfile.mkdtemp(prefix="gate0-bench-report-"))
    root = folder / "results"
    try:
        say(f"writing {size.all_cells:,} cells with {size.all_requests:,} requests")
        raw = write_store(root, size)
        page, document, site = folder / "page.html", folder / "page.json", folder / "site"
        steps = [_step(FIRST, root, ["-o", str(page)], page, size)]
        steps.append(_best([_step(KEPT, root, ["-o", str(page)], page, size) for _ in range(TIMES)]))
        steps.append(_step("site, figures kept", root, ["-o", str(site), "--format", "site"], site, size))
        steps.append(_step("JSON, figures kept", root, ["-o", str(document)], document, size))
        steps.append(_best([_listed(root, size) for _ in range(TIMES)]))
        kept = _bytes(root / ".derived")
        return Measured(size=size, raw_mb=raw / 1e6, kept_mb=kept / 1e6, steps=tuple(steps), usable=_usable(page))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lines(found: Measured) -> list[str]:
    size = found.size
    rows = [
        [s.name, f"{s.wall_s:.1f}", f"{s.cpu_s:.1f}", f"{s.memory_mb:,.0f}", f"{s.written_mb:.1f}"] for s in found.steps
    ]
    told = [
        f"report of {size.runs} configurations, {size.all_cells:,} cells, {size.all_requests:,} requests"
        f" of {size.tokens} events: {found.raw_mb:,.0f} MB, of which {found.kept_mb:.0f} MB are kept",
        *table(("", "wall s", "CPU s", "memory MB", "written MB"), rows),
    ]
    if found.usable is None:
        return [*told, "  not measured: the page in a browser: no Chromium here"]
    u = found.usable
    return [
        *told,
        f"  the page in Chromium: loaded in {u.load_ms / 1000:.1f} s; a table of {u.rows} rows sorts in"
        f" {u.sort_ms:.0f} ms, filters in {u.filter_ms:.0f} ms",
    ]


def targets(found: Measured) -> list[Target]:
    """Stated for the full size; a smaller one is no proof."""
    if found.size != FULL:
        return []
    of = f"{FULL.runs} configurations and {FULL.all_cells:,} cells"
    listed = found.step(LISTED).wall_s
    return [
        Target(name=f"page of {of}", value=found.step(KEPT).wall_s, limit=RENDER_LIMIT_S, unit=" s"),
        Target(
            name=f"{FULL.all_requests:,} requests from what was kept of them (`gate0 results list`)",
            value=listed,
            limit=CACHED_LIMIT_S,
            unit=" s",
        ),
        Target(
            name=f"table of {FULL.runs} rows sorted by a click",
            value=None if found.usable is None else found.usable.sort_ms,
            limit=SORT_LIMIT_MS,
            unit=" ms",
        ),
    ]


def notes(found: Measured) -> list[str]:
    """What speaks against the wall times."""
    kept = found.step(KEPT)
    if kept.wall_s <= 1.5 * kept.cpu_s:
        return []
    return [f"other jobs held the report up: its page took {kept.cpu_s:.1f} s of a core in {kept.wall_s:.1f} s"]


def _step(name: str, root: Path, words: Sequence[str], output: Path, size: Size) -> Step:
    cost, said = _run([gate0_program(), "report", "--results", str(root), *words])
    told = LINE.search(said.strip())
    if told is None or (int(told[1]), int(told[2])) != (size.runs, size.all_cells):
        raise SystemExit(f"gate0 report told {said.strip()!r}, made were {size.runs} runs with {size.all_cells} points")
    return Step(name=name, **cost, written_mb=_bytes(output) / 1e6)


def _listed(root: Path, size: Size) -> Step:
    cost, said = _run([gate0_program(), "results", "list", "--results", str(root)])
    if sum(line.endswith(f" {size.cells}") for line in said.splitlines()) != size.runs:
        raise SystemExit(f"gate0 results list does not show {size.runs} runs with {size.cells} points each")
    return Step(name=LISTED, **cost, written_mb=0.0)


def _run(command: Sequence[str]) -> tuple[dict[str, float], str]:
    """What it cost, as `Step` has it, and what it said."""
    say(" ".join(command[1:3]))
    with tempfile.TemporaryFile("w+") as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        out.seek(0)
        cost = {"wall_s": wall_s, "cpu_s": usage.ru_utime + usage.ru_stime, "memory_mb": usage.ru_maxrss / 1000}
        return cost, out.read()


def _best(steps: Sequence[Step]) -> Step:
    """That which other jobs held up least."""
    return min(steps, key=lambda s: s.wall_s)


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(p.stat().st_size for p in files if p.is_file())


def _usable(page: Path) -> Usable | None:
    with suppress(ImportError):
        from tools.chromium import ChromiumUnavailable, require_chromium, running

        try:
            chromium = require_chromium()
        except ChromiumUnavailable:
            return None
        say("the page in Chromium")
        with running(chromium) as browser:
            tab = browser.new_page()
            tab.goto(page.as_uri(), wait_until="load")
            return Usable(**json.loads(json.dumps(tab.evaluate(USABLE))))
    return None
