"""Reports that follow a store: written again when a record changes, only that run read again, still at the end."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.cli import reporting
from orchestrator.cli.main import main
from orchestrator.cli.printer import Printer
from orchestrator.cli.reporting import Reporter
from orchestrator.cli.watching import watch
from orchestrator.records.changes import store_stamp
from orchestrator.records.store import Store, StoredRun
from orchestrator.report.derived import rows as derived_rows
from tests.unit import chart_records as made


def write(root: Path, name: str, *users: int, **changes: object) -> StoredRun:
    return made.write(root, name, [made.closed(n, 100 * n, 0.5) for n in users], **changes)


def drawn(stamps: list[object], end: Callable[[], None]) -> list[bool]:
    """What `watch` draws while the stamp goes through these; then `end` is called where it sleeps."""
    found: list[bool] = []
    left: Iterator[object] = iter(stamps)
    state = {"now": next(left)}

    def sleep(_: float) -> None:
        try:
            state["now"] = next(left)
        except StopIteration:
            end()

    watch(found.append, lambda: state["now"], every_s=5, sleep=sleep)
    return found


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("end", [interrupt, lambda: os.kill(os.getpid(), signal.SIGTERM)], ids=["Ctrl-C", "SIGTERM"])
def test_it_is_drawn_at_once_at_each_change_and_still_at_the_end(end: Callable[[], None]) -> None:
    before = signal.getsignal(signal.SIGTERM)

    assert drawn([(), (), (1,), (1,), ()], end) == [True, True, True, False]
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_interrupt_while_it_draws_ends_it_too() -> None:
    found: list[bool] = []

    def draw(is_live: bool) -> None:
        found.append(is_live)
        if is_live:
            raise KeyboardInterrupt

    watch(draw, lambda: 1, every_s=5, sleep=lambda _: None)

    assert found == [True, False]


CHANGES: dict[str, tuple[Callable[[StoredRun], object], bool]] = {
    "nothing": (lambda _: None, False),
    "a cell": (lambda run: write(run.directory.parent, "a", 1, 2), True),
    "the same cell again": (lambda run: write(run.directory.parent, "a", 1), True),
    "a new run": (lambda run: write(run.directory.parent, "b", 1), True),
    "a cell that is gone": (lambda run: run.cell_files()[0].unlink(), True),
    "an event": (lambda run: Store(run.directory.parent).new_run("a").append_event("search", {}), True),
    "a note": (lambda run: note(run.directory.parent), True),
    "telemetry": (lambda run: made.tell(run, [{"at": "x"}]), False),
    "what is derived": (lambda run: derived_rows.rows_of([run], run.directory.parent), False),
    "another file": (lambda run: (run.directory.parent / "notebook.html").write_text("x"), False),
}


def note(root: Path) -> None:
    (root / "notes").mkdir()
    (root / "notes" / "2026-11-30-a.md").write_text("x")


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_report_shows_changes_the_stamp(name: str, tmp_path: Path) -> None:
    change, is_seen = CHANGES[name]
    run = write(tmp_path, "a", 1)
    before = store_stamp(tmp_path)

    change(run)

    assert (store_stamp(tmp_path) != before) is is_seen


def test_a_store_that_is_not_there_yet_has_a_stamp(tmp_path: Path) -> None:
    before = store_stamp(tmp_path / "results")

    write(tmp_path / "results", "a", 1)

    assert store_stamp(tmp_path / "results") != before


def reporter(root: Path, err: io.StringIO | None = None, **more: object) -> Reporter:
    values = {"names": (), "style": "html", "output": str(root / "page.html"), **more}
    return Reporter(printer=Printer(stderr=err or io.StringIO()), root=root, **values)  # type: ignore[arg-type]


def test_only_the_run_that_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    whole = derived_rows.rows_of

    def counted(runs: list[StoredRun], *rest: object, **more: object) -> object:
        asked.append([run.run.id for run in runs])
        return whole(runs, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(derived_rows, "rows_of", counted)
    for name in ("a", "b"):
        write(tmp_path, name, 1)
    of_all = reporter(tmp_path)

    of_all.read()
    write(tmp_path, "b", 1, 2)
    _, rows, _ = of_all.read()

    assert asked == [["a", "b"], ["b"]]
    assert [(row.run.id, len(row.points)) for row in rows] == [("a", 1), ("b", 2)]


def test_half_a_record_is_a_warning_until_it_is_whole(tmp_path: Path) -> None:
    write(tmp_path, "a", 1)
    run = write(tmp_path, "b", 1, 2)
    whole = {path: path.read_bytes() for path in (run.directory / "run.json", run.cell_files()[0])}
    err = io.StringIO()
    of_all = reporter(tmp_path, err)
    shown = []

    for halves in ((run.cell_files()[0],), (run.directory / "run.json",), ()):
        for path, content in whole.items():
            path.write_bytes(content[: len(content) // 2] if path in halves else content)
        shown.append(of_all.draw(is_live=True).rpartition("html: ")[2])

    assert shown == ["2 runs, 2 points", "1 run, 1 point", "2 runs, 3 points"]
    assert [line.split(": ")[1].rpartition("/")[2] for line in err.getvalue().splitlines()] == [
        "closed-p128-o100-c1.json",
        "b",
    ]


def test_a_live_page_reloads_itself_and_the_last_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "a", 1)
    page = tmp_path / "notebook.html"
    seen: list[tuple[bool, bool]] = []

    def sleep(_: float) -> None:
        text = page.read_text()
        seen.append(('http-equiv="refresh"' in text, "title of b" in text))
        if len(seen) == 2:
            raise KeyboardInterrupt
        write(tmp_path, "b", 1)

    monkeypatch.setattr(watch, "__kwdefaults__", {"sleep": sleep})

    code = main(["report", "--watch", "--results", str(tmp_path)])

    assert code == 0
    assert seen == [(True, False), (True, True)]
    assert 'http-equiv="refresh"' not in page.read_text()
    assert "title of b" in page.read_text()
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "Ctrl-C ends it",
        "1 run, 1 point",
        "2 runs, 2 points",
        "2 runs, 2 points",
    ]


@pytest.mark.parametrize("more", [["-o", "-"], ["--charts", "c"]], ids=["stdout", "charts"])
def test_what_cannot_be_followed_is_said(more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--watch", *more, "--results", str(tmp_path)]) == 2

    assert "leave out" in capsys.readouterr().err


def test_the_collector_runs_again_after_a_report(tmp_path: Path) -> None:
    with reporting.without_collector():
        assert not reporting.gc.isenabled()

    assert reporting.gc.isenabled()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["a1", "a2", "b"]),
        (["a2"], ["a2"]),
        (["latest"], ["b"]),
        (["model-a"], ["a2"]),
        (["title of a1"], ["a1"]),
        (["model-a@spark02"], ["a1"]),
        (["b", "model-a"], ["b", "a2"]),
        (["b", "b", "title of b"], ["b"]),
    ],
)
def test_runs_are_named_as_for_compare(words: list[str], expected: list[str], tmp_path: Path) -> None:
    write(tmp_path, "a1", 1, profile_name="model-a", hosts=({"name": "spark02"},))
    write(tmp_path, "a2", 1, profile_name="model-a")
    write(tmp_path, "b", 1)

    runs, rows, _ = reporter(tmp_path, names=tuple(words)).read()

    assert [run.run.id for run in runs] == expected
    assert [row.run.id for row in rows] == expected


def test_a_run_that_is_not_there_is_named_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "a1", 1, profile_name="model-a")

    assert main(["report", "modle-a", "--results", str(tmp_path)]) == 2

    assert "did you mean `model-a`" in capsys.readouterr().err
