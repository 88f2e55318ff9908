# Two commands do everything: `make demo` and `make test`. Python 3.11 or 3.12, a C++ compiler and cmake, a package index.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo

.PHONY: demo test install install-all lint types check bench clean

# pip's quiet mode still prints errors; the stamp makes a second run quick, and changes when the pins do.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-all: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,llama,workstation,eval,nlp,ocr,ray,train]"
	touch $@

install: $(VENV)/.installed
install-all: $(VENV)/.installed-all

demo: install
	$(BIN)/python -m corpora.demo $(DEMO)

lint: install-all
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install-all
	$(BIN)/mypy

# A worker that is killed ends the run: with one in its place the scheduler waits for ever (seen with pytest-xdist 3.8).
check: install-all
	$(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0

test: lint types check

# Real data for the benchmarks: make bench DATA=/path/to/data
bench: install-all
	$(BIN)/python -m tests.benchmarks.run --data "$(DATA)"

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
