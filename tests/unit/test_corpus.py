"""`make corpus`: other people's recipes, each held against its source; and that the comparison can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import corpus

RECIPE = """recipe_version: "2"
model: org/M
container: team/image:v1
defaults: {{seqs: 4, spec: '{{"method":"mtp","num_speculative_tokens":2}}'}}
command: |
  vllm serve {{model}} --max-num-seqs {{seqs}} -tp {tp} {backend}--speculative-config '{{spec}}'
"""


def test_a_folder_of_recipes_is_counted(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(RECIPE.format(tp=1, backend=""))
    (tmp_path / "ray.yaml").write_text(RECIPE.format(tp=2, backend="--distributed-executor-backend ray "))
    (tmp_path / "other.yaml").write_text("framework: x\nargs: {}\n")

    table = corpus.measure(tmp_path)

    line = table["sparkrun"]
    assert (line.files, line.imported, line.whole, line.valid) == (2, 2, 2, 2)
    assert (table["other"].files, table["other"].imported) == (1, 0)


def test_a_flag_or_a_value_that_is_lost_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.yaml").write_text(RECIPE.format(tp=1, backend=""))
    monkeypatch.setattr(corpus, "words_of", lambda text: ["org/M", "--max-num-seqs", "5", "--dtype", "auto"])

    line = corpus.measure(tmp_path)["sparkrun"]

    assert line.whole == 0
    assert line.rest == [
        'one.yaml: not in the argv: "auto", 5, mean:--dtype, mean:--dtype "auto", mean:--max-num-seqs 5'
    ]


def test_an_absent_folder_is_skipped_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert corpus.main(["/nowhere/at/all"]) == 0
    assert capsys.readouterr().out == "skipped: there is no folder /nowhere/at/all\n"


def test_too_few_whole_ones_are_a_failure(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text('recipe_version: "2"\nmodel: m\ncontainer: a/b\ncommand: make coffee\n')

    assert corpus.main([str(tmp_path)]) == 1


@pytest.mark.skipif(not corpus.DEFAULT.is_dir(), reason=f"there is no folder {corpus.DEFAULT}")
def test_the_corpus_comes_out_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert corpus.main([]) == 0, capsys.readouterr().out
