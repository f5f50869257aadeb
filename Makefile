# gate0: the two commands are `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup check unit test cover demo lab lab-down bench samples corpus screenshots readme build test-vllm clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gate0 needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[dev]'
	touch $@

setup: $(BIN)/.installed  ## make .venv with gate0 and what its tests need

check: setup  ## ruff, mypy --strict, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/readme.py --check
	$(BIN)/pytest -q tests/unit/test_layers.py

test: check  ## everything: unit, contract, the page in Chromium, the lab where root allows
	$(BIN)/pytest

unit: setup  ## the fast tests only
	$(BIN)/pytest -q tests/unit

cover: setup  ## line coverage of the unit and contract tests
	$(BIN)/pytest -q --cov=orchestrator --cov=gates --cov-report=term-missing:skip-covered tests/unit tests/contract

demo: setup  ## serve a real small model here, gate it, sweep it, write the page
	$(BIN)/python tools/demo.py

lab: setup  ## start two hosts on this machine: sshd, Docker Engine, llama-server image
	$(BIN)/python tools/lab.py up

lab-down:  ## stop the lab, leave nothing behind
	$(PYTHON) tools/lab.py down

bench: setup  ## error and cost beside vLLM bench, llama-benchy, GuideLLM, AIPerf (10 min; BENCH="--quick")
	$(BIN)/python tools/bench.py $(BENCH)

samples: setup  ## a record of the lab, and the figures of four field reports as foreign ones, in results/samples
	rm -rf results/samples/*-transcript-*
	mkdir -p results/samples && cp -r samples/lab/* results/samples/
	$(BIN)/gate0 import samples/reports/*.yaml --results results/samples

corpus: setup  ## import other people's recipes and compare each command line with its source (CORPUS=folder)
	$(BIN)/python tools/corpus.py $(CORPUS)

screenshots: setup  ## pictures of the page from sample records, desktop and phone, light and dark, in screenshots/
	$(BIN)/python tools/screenshots.py

readme: setup  ## write the README's generated tables
	$(BIN)/python tools/readme.py

build: setup  ## wheel and sdist into dist/
	$(BIN)/python -m hatchling build

test-vllm: setup  ## the real vLLM on the CPU: gates and sweep (installs 3.5 GB into .venv-vllm)
	$(BIN)/python tools/vllm_parts.py
	GATE0_TEST_VLLM=1 $(BIN)/pytest tests/vllm

clean:  ## remove what setup, lab parts and tests made here
	rm -rf $(VENV) .venv-vllm .parts .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov dist screenshots
