# Every target sets up what it needs on first use: on a fresh clone `make demo` is enough.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(VENV)/.installed-bench
CANDIDATES := $(or $(PYTHON),python3.12 python3.11 python3)

# A shim may be on the path and still not run, so each candidate is tried by running it.
USABLE := import sys, ensurepip; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow bench lint format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  PYTHON=/path/to/python picks the Python (3.11 or newer) that $(VENV) is made with."

demo: $(INSTALLED)  ## record, train, evaluate and report in minutes; the result is demo/report.html
	$(BIN)/optimist demo --out demo

test: lint  ## format, lint, types and the quick tests
	$(BIN)/pytest -m "not slow"

test-slow: $(INSTALLED)  ## the tests that take minutes
	$(BIN)/pytest -m slow --timeout 3600

bench: $(BENCH_INSTALLED)  ## this machine's figures, beside PyTorch's (a large download the first time)
	$(BIN)/python -m benchmarks

lint: $(INSTALLED)  ## check format, lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(INSTALLED)  ## rewrite the code in the project's format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:  ## remove what make made: the environment, the caches and the demo
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist demo
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@for candidate in $(CANDIDATES); do \
	  "$$candidate" -c '$(USABLE)' 2>/dev/null || continue; \
	  echo "$$candidate -m venv $(VENV)"; exec "$$candidate" -m venv --clear $(VENV); \
	done; \
	echo "error: none of [$(CANDIDATES)] is a working Python 3.11 or newer; try make PYTHON=/path/to/python" >&2; \
	exit 1

# Order-only: a venv's python is a link to an old file, whose date says nothing.
$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[minatar,atari,gym,mujoco,remote,ray,dev]' -c constraints.txt
	@touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]' -c constraints.txt
	@touch $@
