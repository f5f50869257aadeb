"""Other tools' result files, read into our shapes: each case names its files and what must come of them, exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InputError, StoreError
from orchestrator.figures.cell import cell_figures
from orchestrator.records.exchange.foreign import Point, named
from orchestrator.records.exchange.importing import find_imported, merged, read_file, write_foreign
from orchestrator.records.exchange.recognise import recognise
from orchestrator.records.exchange.secrets import secrets_in
from orchestrator.records.store import Store

CASES = Path(__file__).parents[1] / "cases" / "exchange"
GOOD: list[dict[str, Any]] = json.loads((CASES / "cases.json").read_text())
BAD: list[dict[str, Any]] = json.loads((CASES / "malformed.json").read_text())


def points_of(case: dict[str, Any]) -> tuple[Point, ...]:
    return named(merged([read_file(CASES / f) for f in case["files"]]).points, workload="w")


POINTS = [
    pytest.param(point, case, index, id=f"{'+'.join(case['files'])}[{index}]")
    for case in GOOD
    for index, point in enumerate(case["points"])
]


@pytest.mark.parametrize("case", GOOD, ids=["+".join(c["files"]) for c in GOOD])
def test_a_file_is_recognised_and_its_head_is_read(case: dict[str, Any]) -> None:
    found = merged([read_file(CASES / f) for f in case["files"]])

    seen = {
        key: getattr(found, key) for key in ("form", "tool", "name", "model", "engine", "created_at") if key in case
    }
    assert seen == {key: case[key] for key in seen}
    assert [p.cell.id for p in points_of(case)] == [p["id"] for p in case["points"]]


@pytest.mark.parametrize(("expected", "case", "index"), POINTS)
def test_a_point_states_its_tools_figures_by_our_names(
    expected: dict[str, Any], case: dict[str, Any], index: int
) -> None:
    cell = points_of(case)[index].cell

    wanted = expected.get("stated", {})
    assert {name: plain(cell.stated.get(name)) for name in wanted} == wanted
    assert [name for name in expected.get("absent", ()) if name in cell.stated] == []
    assert all(cell.definitions[name] == figure["definition"] for name, figure in cell.stated.items())


@pytest.mark.parametrize(("expected", "case", "index"), POINTS)
def test_a_point_has_its_load_and_what_we_have_no_word_for(
    expected: dict[str, Any], case: dict[str, Any], index: int
) -> None:
    cell = points_of(case)[index].cell

    wanted = {**expected.get("cell", {}), "extra": expected.get("extra", {})}
    extra: Any = cell.source["extra"]
    seen = {name: plain(getattr(cell, name)) for name in expected.get("cell", {})}
    assert {**seen, "extra": {k: plain(extra.get(k)) for k in wanted["extra"]}} == wanted
    assert cell.source["tool"] == case["tool"]
    assert cell.vantage == "unknown"


@pytest.mark.parametrize(("expected", "case", "index"), [p for p in POINTS if "requests" in p.values[0]])  # type: ignore[operator]
def test_the_stamps_of_each_request_are_kept(expected: dict[str, Any], case: dict[str, Any], index: int) -> None:
    requests = points_of(case)[index].requests

    seen = [
        {k: plain(getattr(request, k)) for k in wanted}
        for request, wanted in zip(requests, expected["requests"], strict=True)
    ]
    assert seen == expected["requests"]


@pytest.mark.parametrize(("expected", "case", "index"), [p for p in POINTS if "figures" in p.values[0]])  # type: ignore[operator]
def test_our_figures_come_of_their_stamps(expected: dict[str, Any], case: dict[str, Any], index: int) -> None:
    point = points_of(case)[index]
    figures = cell_figures(point.cell, point.requests)

    for name, wanted in expected["figures"].items():
        found: Any = figures
        for part in name.split("."):
            found = getattr(found, part)
        assert found == (None if wanted is None else pytest.approx(wanted, rel=1e-9)), name


@pytest.mark.parametrize("case", BAD, ids=[c["name"] for c in BAD])
def test_a_broken_file_is_refused_by_file_form_and_key(case: dict[str, Any], tmp_path: Path) -> None:
    value = json.loads((CASES / case["file"]).read_text())
    value.update(case.get("set", {}))
    for path, new in (case["set_at"],) if "set_at" in case else ():
        at(value, path[:-1])[path[-1]] = new
    if "drop" in case:
        del at(value, case["drop"][:-1])[case["drop"][-1]]
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(value))

    with pytest.raises(InputError) as caught:
        read_file(file)

    assert caught.value.exit_code == 2
    assert caught.value.message.startswith(f"{file} (read as ")
    assert case["says"] in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "hello, world\n1,2\n",
        '{"a": 1}',
        '{"request_throughput": 1}',
        '[{"n_prompt": 1}, 7]',
        "[[1]]",
        "name: x\n",
    ],
    ids=["empty", "no rows", "no keys", "two columns", "other", "too little", "mixed", "nested", "yaml"],
)
def test_what_no_tool_wrote_is_not_recognised(text: str) -> None:
    assert recognise(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"duration": 1.0, "compl', "is broken JSON: Unterminated string starting at: line 1 column 19"),
        ('{"n_prompt": 1}\n{"n_prompt": ', "is broken JSON: Expecting value: line 2 column 14"),
        ("[" * 100_000, "is broken JSON: nested too deeply"),
    ],
    ids=["cut", "cut line", "deep"],
)
def test_a_file_that_was_cut_off_is_refused_by_the_place(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)

    with pytest.raises(InputError) as caught:
        read_file(file)

    assert says in caught.value.message


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["acme,pp2048 @ 4096,1,1"], "line 2: 'pp2048 @ 4096' is not a test name of llama-benchy"),
        (["acme,pp2048,1,1", "acme,tg32,quick,1"], "line 3: t_s_mean: 'quick' is not a number"),
    ],
)
def test_a_csv_is_refused_by_its_line(lines: list[str], says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("\n".join(["model,test_name,t_s_mean,t_s_std", *lines]) + "\n")

    with pytest.raises(InputError, match="read as llama-benchy CSV") as caught:
        read_file(file)

    assert says in caught.value.message


def test_files_of_two_tools_are_not_one_run() -> None:
    files = [read_file(CASES / name) for name in ("llama-benchy.json", "sglang.jsonl")]

    with pytest.raises(InputError, match="different tools: llama-benchy, sglang"):
        merged(files)


def test_a_foreign_run_is_written_whole_and_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    files = [read_file(CASES / "vllm-detailed.json")]

    run_id = write_foreign(store, files, workload="chat", note="on the second box")

    (stored,), unreadable = store.runs()
    (cell,) = stored.cells()
    assert unreadable == ()
    assert run_id.startswith("20261128T141503Z-vllm-tiny-7b-")
    assert (stored.run.id, stored.run.status, stored.run.gates) == (run_id, "imported", {})
    assert {k: stored.run.source[k] for k in ("tool", "title", "version", "file", "note")} == {
        "tool": "vllm",
        "title": "vllm bench",
        "version": None,
        "file": "vllm-detailed.json",
        "note": "on the second box",
    }
    assert (cell.cell.workload, cell.cell.id, len(cell.requests)) == ("chat", "closed-p150-o4-c2", 3)
    assert (stored.directory / "foreign" / "vllm-detailed.json").read_text() == files[0].text
    assert find_imported(store, files) is not None


@pytest.mark.parametrize(
    ("name", "secret"),
    [("sglang.jsonl", "sg-0123456789abcdef"), ("guidellm.json", "gl-9876543210"), ("aiperf.json", "ai-1122334455")],
)
def test_no_key_of_a_foreign_file_is_kept(name: str, secret: str, tmp_path: Path) -> None:
    file = read_file(CASES / name)
    assert secret in file.text

    write_foreign(Store(tmp_path), [file])

    written = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert [p.name for p in written if secret in p.read_text()] == []
    assert any("***" in p.read_text() for p in written if p.parent.name == "foreign")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"api_key": "abcdef123"', ["abcdef123"]),
        ('{\\"OPENAI_API_KEY\\": \\"abcdef123\\"}', ["abcdef123"]),
        ("vllm serve --api-key abcdef123 --port 1", ["abcdef123"]),
        ('"Authorization": "Bearer abc.def-123"', ["abc.def-123"]),
        ("http://me:pass-word@box:8000/v1", ["pass-word"]),
        ("env HF_TOKEN=abcdef123 x", ["abcdef123"]),
        ("key sk-abcdefghijkl0123", ["sk-abcdefghijkl0123"]),
        ('"api_key": null, "tokenizer_id": "acme/tiny", "eos_token": "<|end|>", "max_tokens": 128', []),
        ('"total_output_tokens": 123456789, "--max-tokens 123456"', []),
    ],
)
def test_keys_and_passwords_are_found_and_nothing_else(text: str, found: list[str]) -> None:
    assert [s.value for s in secrets_in(text)] == found


def test_nothing_is_left_when_a_record_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    files = [read_file(CASES / "vllm-appended.json")]

    def full(self: object, run: object) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr("orchestrator.records.store.RunWriter.write_run", full)
    with pytest.raises(StoreError):
        write_foreign(store, files)

    assert list(tmp_path.iterdir()) == []


def test_a_value_too_big_for_the_record_leaves_its_size(tmp_path: Path) -> None:
    value = json.loads((CASES / "vllm-appended.json").read_text().splitlines()[0])
    file = tmp_path / "big.json"
    file.write_text(json.dumps({**value, "timeline": list(range(5000)), "limit": float("inf")}))

    extra: Any = read_file(file).content.points[0].cell.source["extra"]

    assert (extra["timeline"], extra["limit"]) == ({"left_out_bytes": 23891}, "inf")


def plain(value: object) -> Any:
    """As JSON has it: tuples are lists."""
    return json.loads(json.dumps(value))


def at(value: Any, path: list[Any]) -> Any:
    for key in path:
        value = value[key]
    return value
