"""The report as a folder: names that stay, links that lead somewhere, and nothing removed that is not ours."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from orchestrator.cli.main import main
from orchestrator.cli.reporting import record_links
from orchestrator.records.store import Store, StoredRun
from orchestrator.report.notebook.book import Book
from orchestrator.report.notebook.identity import configurations_of
from orchestrator.report.raw import RawRecords
from orchestrator.report.site.folder import MARKER, write_site
from orchestrator.report.site.links import linked
from orchestrator.report.site.pages import file_names, site
from orchestrator.report.tables import run_row
from tests.unit import chart_records as made

HOSTILE = "<script>alert(1)</script>\" onload='x' ../../etc"


def runs(folder: Path) -> list[StoredRun]:
    """Two configurations, one of them with two runs, and one with a hostile name."""
    cells = [made.closed(n, 100 * n, 0.5) for n in (1, 4)]
    return [
        made.write(folder, "20261101T000000Z-a", cells, profile_name="a", profile_digest="1"),
        made.write(folder, "20261102T000000Z-a", cells, profile_name="a", profile_digest="1"),
        made.write(folder, "20261103T000000Z-b--b", cells, profile_name="b", profile_digest="2"),
        made.write(folder, "20261104T000000Z-c", cells, profile_name=HOSTILE, profile_title=HOSTILE),
    ]


def book_of(stored: Sequence[StoredRun], **more: Any) -> Book:
    links = {s.run.id: f"../records/{s.run.id}/" for s in stored}
    values: dict[str, Any] = {
        "rows": tuple(map(run_row, stored)),
        "raw": RawRecords.of(stored),
        "record_links": links,
        **more,
    }
    return Book(**values)


def local_links(text: str) -> list[str]:
    return [
        link for link in re.findall(r'(?:href|src)="([^"]*)"', text) if "../records/" not in link and link != "data:,"
    ]


def test_every_link_leads_to_a_file_and_an_anchor_of_the_folder(tmp_path: Path) -> None:
    files = site(book_of(runs(tmp_path)))

    missing = []
    for path, text in files.items():
        if not path.endswith(".html"):
            continue
        for link in local_links(text):
            there, _, anchor = link.partition("#")
            target = path if not there else str((Path("/") / path).parent.joinpath(unquote(there)).resolve())[1:]
            if target not in files or (anchor and f' id="{anchor}"' not in files[target]):
                missing.append((path, link))
    assert missing == []
    assert len([p for p in files if p.startswith("configurations/")]) == 3
    assert sorted(p for p in files if "/" not in p) == ["index.html", "page.js", "site.js", "style.css", "vega.js"]


def test_a_line_of_the_index_leads_to_the_page_of_its_configuration(tmp_path: Path) -> None:
    stored = runs(tmp_path)
    book = book_of(stored)
    (a, _, _) = file_names(configurations_of(book.rows))

    index = site(book)["index.html"]

    assert f'href="{a}#run-20261102T000000Z-a' in index
    places = json.loads(index.partition('id="places">')[2].partition("</script>")[0])
    assert places["run-20261101T000000Z-a"] == places["run-20261102T000000Z-a"] == a
    assert 'id="run-20261101T000000Z-a"' in site(book)[a]


def test_records_are_linked_from_each_page_as_it_lies(tmp_path: Path) -> None:
    stored = runs(tmp_path)
    book = book_of(stored)
    (a, _, _) = file_names(configurations_of(book.rows))

    files = site(book)

    assert 'href="../../records/20261102T000000Z-a/"' in files[a]
    assert "../records/20261102T000000Z-a/sweeps/concurrency/closed-p128-o100-c1.json" in files["index.html"]


def test_nothing_of_the_index_is_repeated_on_the_pages(tmp_path: Path) -> None:
    files = site(book_of(runs(tmp_path)))

    for path, text in files.items():
        if path.endswith(".html"):
            assert ('id="configurations"' in text) == (path == "index.html")
            assert ('id="details"' in text) == (path != "index.html")
            assert "<style" not in text


def test_a_new_run_changes_no_name_and_a_name_is_safe(tmp_path: Path) -> None:
    stored = runs(tmp_path)
    names = [file_names(configurations_of(book_of(part).rows)) for part in (stored, stored[1:])]

    assert names[0] == names[1]
    assert all(re.fullmatch(r"configurations/[a-z0-9.-]+-[0-9a-f]{8}\.html", name) for name in names[0])
    assert [name[len("configurations/") :][:30] for name in names[0]][2].startswith("script-alert-1-script-onload-x")


def test_a_run_that_ended_early_leaves_its_configuration_its_name(tmp_path: Path) -> None:
    rows = [run_row(stored) for stored in runs(tmp_path)[:1]]
    early = replace(
        rows[0],
        run=replace(rows[0].run, id="later", created_at="2026-12-01T00:00:00Z", engine_version=None, image_digest=None),
    )

    assert file_names(configurations_of([*rows, early])) == file_names(configurations_of(rows))


def test_two_configurations_of_one_profile_have_two_names(tmp_path: Path) -> None:
    rows = [run_row(stored) for stored in runs(tmp_path)[:2]]
    rows[1] = replace(rows[1], run=replace(rows[1].run, engine_version="0.32.0"))

    assert len(set(file_names(configurations_of(rows)))) == 2


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    files = site(book_of(runs(tmp_path)))

    assert all("<script>alert" not in text for path, text in files.items() if path.endswith(".html"))


def test_a_live_site_reloads_itself(tmp_path: Path) -> None:
    stored = runs(tmp_path)

    live, still = (site(book_of(stored, is_live=is_live)) for is_live in (True, False))

    assert all('http-equiv="refresh"' in text for path, text in live.items() if path.endswith(".html"))
    assert all('http-equiv="refresh"' not in text for path, text in still.items() if path.endswith(".html"))


def test_links_between_pages_are_made_by_their_ids() -> None:
    pages = {
        "index.html": '<p id="top"><a href="#x--1"> <a href="#top"> <a href="#nowhere">',
        "c/a b.html": '<i id="x--1"> <a href="#top"> <p id="y"> <a href="#y">',
    }

    assert linked(pages) == {
        "index.html": '<p id="top"><a href="c/a%20b.html#x--1"> <a href="#top"> <a href="#nowhere">',
        "c/a b.html": '<i id="x--1"> <a href="../index.html#top"> <p id="y"> <a href="#y">',
    }


def test_what_is_gone_from_the_records_is_removed_and_nothing_else(tmp_path: Path) -> None:
    write_site({"index.html": "1", "configurations/a.html": "a", "configurations/b.html": "b"}, tmp_path)
    (tmp_path / "configurations" / "notes.html").write_text("theirs")
    (tmp_path / "CNAME").write_text("theirs")

    write_site({"index.html": "2", "configurations/b.html": "b"}, tmp_path)

    found = {p.relative_to(tmp_path).as_posix(): p.read_text() for p in tmp_path.rglob("*") if p.is_file()}
    found.pop(MARKER)
    assert found == {
        "index.html": "2",
        "configurations/b.html": "b",
        "configurations/notes.html": "theirs",
        "CNAME": "theirs",
    }


@pytest.mark.parametrize(
    "marker", [None, "{", "[]", '{"format": "other/1", "files": []}', '{"format": "gate0-site/1"}'], ids=str
)
def test_a_folder_that_is_not_ours_is_left_as_it_is(marker: str | None, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("theirs")
    if marker is not None:
        (tmp_path / MARKER).write_text(marker)

    with pytest.raises(Exception, match="not written by `gate0 report") as caught:
        write_site({"index.html": "ours"}, tmp_path)

    assert getattr(caught.value, "exit_code", None) == 2
    assert (tmp_path / "index.html").read_text() == "theirs"


@pytest.mark.parametrize("name", ["../outside.html", "/etc/x.html", "notes.md", "a/b.html", "configurations/../x.html"])
def test_a_marker_cannot_name_what_is_not_ours(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    write_site({"index.html": "1"}, folder)
    (folder / "a").mkdir()
    (folder / "configurations").mkdir()
    for victim in (tmp_path / "outside.html", folder / "notes.md", folder / "a" / "b.html", folder / "x.html"):
        victim.write_text("theirs")
    (folder / MARKER).write_text(json.dumps({"format": "gate0-site/1", "files": ["index.html", name]}))

    write_site({"index.html": "2"}, folder)

    assert (folder / "index.html").read_text() == "2"
    for victim in (tmp_path / "outside.html", folder / "notes.md", folder / "a" / "b.html", folder / "x.html"):
        assert victim.read_text() == "theirs"


def test_a_file_that_says_the_same_is_not_written_again(tmp_path: Path) -> None:
    write_site({"index.html": "1", "style.css": "s"}, tmp_path)
    before = {name: (tmp_path / name).stat().st_ino for name in ("index.html", "style.css")}

    write_site({"index.html": "2", "style.css": "s"}, tmp_path)

    after = {name: (tmp_path / name).stat().st_ino for name in before}
    assert after["style.css"] == before["style.css"]
    assert after["index.html"] != before["index.html"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("results", "a%20run/"),
        ("results/site", "../a%20run/"),
        (".", "results/a%20run/"),
        ("elsewhere/deep", None),
        (None, None),
    ],
)
def test_a_record_is_linked_where_no_path_of_the_machine_shows(
    place: str | None, expected: str | None, tmp_path: Path
) -> None:
    root = tmp_path / "results"
    stored = made.write(root, "a run", [made.closed(1, 100, 0.5)])

    found = record_links([stored], root, None if place is None else tmp_path / place)

    assert found.get("a run") == expected


def test_the_command_writes_a_site_and_forgets_a_run_that_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = runs(tmp_path)
    words = ["report", "--format", "site", "--results", str(tmp_path)]

    codes = [main(words)]
    first = sorted(p.name for p in (tmp_path / "site" / "configurations").iterdir())
    (stored[2].directory / "run.json").unlink()
    codes.append(main(words))
    second = sorted(p.name for p in (tmp_path / "site" / "configurations").iterdir())

    assert codes == [0, 0]
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/site: 4 runs, 8 points",
        f"{tmp_path}/site: 3 runs, 6 points",
    ]
    assert [name for name in first if name not in second] == [first[1]]
    assert first[1].startswith("b-")
    assert len(Store(tmp_path).runs()[0]) == 3


def test_a_site_has_no_place_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--format", "site", "-o", "-", "--results", str(tmp_path)]) == 2

    assert "name a folder" in capsys.readouterr().err
