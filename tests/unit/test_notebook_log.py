"""The log: notes by their dates among the runs, and of Markdown only what cannot act."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.records.notes import MOST_BYTES, note_files
from orchestrator.report.notebook.book import DatedNote
from orchestrator.report.notebook.notes_file import dated_note
from orchestrator.report.notebook.prose import prose
from tests.unit.notebook_pages import parsed, tree
from tests.unit.test_report import run, write


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("2026-11-30-first-look.md", "Just text.\n\nMore.", ("2026-11-30", "first look", "Just text.\n\nMore.")),
        ("2026-11-30-x.md", "# A first look\n\nText.", ("2026-11-30", "A first look", "Text.")),
        ("look.md", "2026-10-06: MTP1 reached 203\nText.", ("2026-10-06", "MTP1 reached 203", "Text.")),
        ("look.md", "# 2026-10-06 MTP1 ##\nText.", ("2026-10-06", "MTP1", "Text.")),
        ("2026-11-30.md", "# 2026-11-30\nText.", ("2026-11-30", "Note", "Text.")),
        ("2026-11-30.md", "", ("2026-11-30", "Note", "")),
        ("look.md", "No date here, 2026-10-06 comes late.", None),
        ("2026-13-30-x.md", "Text.", None),
        ("2026-11-301.md", "Text.", None),
    ],
    ids=["name", "heading", "line", "heading-date", "date-only", "empty", "none", "no-month", "no-day"],
)
def test_a_notes_day_and_title(name: str, text: str, found: tuple[str, str, str] | None) -> None:
    expected = None if found is None else DatedNote(day=found[0], title=found[1], text=found[2])

    assert dated_note(name, text) == expected


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a *b* **c** `d`", "<p>a <em>b</em> <strong>c</strong> <code>d</code></p>\n"),
        ("# h", "<h4>h</h4>\n"),
        ("###### h", "<h6>h</h6>\n"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        ("```sh\na <b>\n```", '<pre><code class="language-sh">a &lt;b&gt;\n</code></pre>\n'),
        ("[a](https://x.org/)", '<p><a href="https://x.org/" rel="noopener noreferrer">a</a></p>\n'),
        ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>\n"),
        ("[a](data:text/html,x)", "<p>[a](data:text/html,x)</p>\n"),
        ("[a](file:///etc/passwd)", "<p>[a](file:///etc/passwd)</p>\n"),
        ("[a](//x.org)", "<p>[a](//x.org)</p>\n"),
        ("<javascript:alert(1)>", "<p>&lt;javascript:alert(1)&gt;</p>\n"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
        ("a <img src=x onerror=alert(1)>", "<p>a &lt;img src=x onerror=alert(1)&gt;</p>\n"),
        ('[a](https://x/"b=")', '<p><a href="https://x/%22b=%22" rel="noopener noreferrer">a</a></p>\n'),
        ('```"><script>\nx\n```', '<pre><code class="language-&quot;&gt;&lt;script&gt;">x\n</code></pre>\n'),
    ],
)  # fmt: skip
def test_of_markdown_only_what_cannot_act_is_more_than_text(text: str, html: str) -> None:
    assert prose(text) == html


def test_an_image_is_a_link_at_most() -> None:
    found = parsed(prose("![a](https://x.org/a.png) ![b](data:image/png;base64,AA)"))

    assert found.every("img") == []
    assert [a.attributes["href"] for a in found.every("a")] == ["https://x.org/a.png"]


def test_a_table_scrolls_in_a_region_of_its_own() -> None:
    found = parsed(prose("| a | b |\n|---|---:|\n| 1 | 2 |"))

    region = found.the("div", cls="scroll")
    assert (region.attributes["role"], region.attributes["tabindex"]) == ("region", "0")
    assert [td.words for td in region.the("table").every("td")] == ["1", "2"]


def test_notes_are_woven_in_by_day_newest_first_above_the_runs_of_their_day(tmp_path: Path) -> None:
    rows = [
        write(tmp_path, run("a", created_at="2026-11-28T08:00:00Z"), {8: 90}),
        write(tmp_path, run("b", created_at="2026-11-30T09:30:00Z", gates={"coherence": "fail"}), {8: 70}),
        write(tmp_path, run("c", created_at="2026-11-30T11:00:00Z", status="failed", error={"message": "died"}), {}),
    ]
    notes = [DatedNote(day=d, title=f"note of {d}", text="*seen*") for d in ("2026-11-29", "2026-11-30")]

    days = tree(rows, notes=notes).every("article", cls="day")

    assert [(d.every("h3")[0].words, [li.words for li in d.every("li")]) for d in days] == [
        (
            "2026-11-30",
            [
                "note of 2026-11-30 seen",
                "11:00 title of c on spark01 · Gate 0 passed · failed died",
                "09:30 title of b on spark01 · 70.0 tok/s at 8 (concurrency) · Gate 0 failed: coherence",
            ],
        ),
        ("2026-11-29", ["note of 2026-11-29 seen"]),
        ("2026-11-28", ["08:00 title of a on spark01 · 90.0 tok/s at 8 (concurrency) · Gate 0 passed"]),
    ]


def test_notes_are_read_in_order_and_a_broken_one_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "b.md").write_text("b")
    (folder / "a.md").write_bytes(b"\xff")
    (folder / "c.txt").write_text("c")
    (folder / "d.md").write_text("x" * (MOST_BYTES + 1))

    assert [(n.name, n.text, n.problem) for n in note_files(tmp_path)] == [
        ("a.md", "", "is not UTF-8"),
        ("b.md", "b", ""),
        ("d.md", "", "longer than 1 MB"),
    ]
    assert list(note_files(tmp_path / "nowhere")) == []
