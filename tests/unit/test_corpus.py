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


SCRIPT = """#!/bin/bash
MODEL="org/M"
ARGS="--max-num-seqs 4 --dtype auto"
echo "vllm serve is started"
docker run -e A=1 -e HF_TOKEN=$HF_TOKEN --name x vllm/vllm-openai:v0.31.0 "$MODEL" $ARGS --seed $SEED
ssh box "docker run me/own-vllm:1 bash -lc 'vllm serve $MODEL --port 8001 --dtype auto'"
"""
UNIT = """[Service]
ExecStart=/usr/bin/docker run \\
  # a remark
  --name y me/own:1 llama-server -m /m.gguf \\
  -c 4096
"""


def test_scripts_and_units_are_counted_and_what_serves_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "bare.sh").write_text("vllm serve <your-model> --port 1 ...\n")
    (tmp_path / "idle.sh").write_text("pgrep -f 'vllm serve --x'\ndocker run redis\n")
    (tmp_path / "broken.sh").write_text("vllm serve org/M --x 1\necho 'open\n")
    (tmp_path / "run.service").write_text(UNIT)

    table = corpus.measure(tmp_path)

    scripts, units = table["scripts"], table["units"]
    assert (scripts.files, scripts.imported, scripts.whole, scripts.idle) == (3, 2, 2, 1)
    assert (units.files, units.imported, units.whole, units.idle) == (1, 1, 1, 0)
    assert scripts.rest[0] == "broken.sh: not imported: :2: `'` is opened and never closed"


def test_what_a_script_says_and_the_profile_does_not_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.sh").write_text("docker run -e B=2 vllm/vllm-openai:v0.31.0 vllm serve org/M --max-num-seqs 4\n")
    real = corpus.import_text
    other = SCRIPT.replace("4 --dtype auto", "8")
    monkeypatch.setattr(corpus, "import_text", lambda text, **kept: real(other, **kept))

    assert corpus.main([str(tmp_path)]) == 1
    assert "run.sh: not in the profile: 4, mean:--max-num-seqs 4, env B" in capsys.readouterr().out


def test_an_absent_folder_is_skipped_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert corpus.main(["/nowhere/at/all"]) == 0
    assert capsys.readouterr().out == "skipped: there is no folder /nowhere/at/all\n"


def test_too_few_whole_ones_are_a_failure(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text('recipe_version: "2"\nmodel: m\ncontainer: a/b\ncommand: make coffee\n')

    assert corpus.main([str(tmp_path)]) == 1


@pytest.mark.skipif(not corpus.DEFAULT.is_dir(), reason=f"there is no folder {corpus.DEFAULT}")
def test_the_corpus_comes_out_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert corpus.main([]) == 0, capsys.readouterr().out
