# Two commands: `make demo` and `make test`. They need Python 3.11 or 3.12 and a package index.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
DEMO := demo
# llama.cpp for any processor with AVX2: compiled for the very one it can crash where a virtual machine hides a part of it.
export CMAKE_ARGS ?= -DGGML_NATIVE=OFF

.PHONY: demo demo-model test install install-dev install-all lint types check slow bench clean

# The stamps make a second run quick, and change when the pins do.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[dev]"
	touch $@ $(VENV)/.installed

# llama-cpp-python is compiled: a C++ compiler and cmake, some five minutes.
$(VENV)/.installed-all: $(VENV)/.installed-dev
	$(PIP) --editable ".[dev,llama,workstation,eval,nlp,ocr,ray,train]"
	touch $@

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev
install-all: $(VENV)/.installed-all

demo: install
	$(BIN)/python -m corpora.demo $(DEMO)

$(VENV)/.installed-llama: $(VENV)/.installed
	$(PIP) --editable ".[llama]"
	touch $@

# A real model of 1.5 billion parameters, 1.1 GB: small, for demonstration.
demo-model: $(VENV)/.installed-llama
	$(BIN)/python -m corpora.demo_model $(DEMO)/model

lint: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python -m tests.lint

types: install-dev
	$(BIN)/mypy

# A worker that is killed ends the run: with one in its place the scheduler waits for ever (seen with pytest-xdist 3.8).
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0

check: install-dev
	$(PYTEST) -m "not slow"

test: lint types check

# What `make test` leaves out: processes, browsers, extras, long imports. Run by .ci/run.
slow: install-all
	$(PYTEST) -m slow

# Real data for the benchmarks: make bench DATA=/path/to/data
bench: install-all
	$(BIN)/python -m tests.benchmarks.run --data "$(DATA)"

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
