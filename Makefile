# Every target installs what it needs on first use: on a fresh clone `make demo` is enough.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(VENV)/.installed-bench
SITE := .venv-site
SITE_INSTALLED := $(SITE)/.installed
CANDIDATES := $(or $(PYTHON),python3.12 python3.11 python3)

# A shim on the path may not work, so each candidate is tried.
USABLE := import sys, ensurepip; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.PHONY: help demo check unit test test-slow torture bench bench-guard browser site release-check lint format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  PYTHON=/path/to/python chooses the Python (3.11 or newer) of $(VENV)."

demo: $(INSTALLED)  ## record, train, evaluate and report in minutes; the result is demo/report.html
	$(BIN)/optimist demo --out demo

check: $(INSTALLED)  ## check format, lint and types; run the unit tests, which start no process and compile nothing
	@$(MAKE) --no-print-directory -j 2 lint unit

unit: $(INSTALLED)
	$(BIN)/pytest -n 2 tests/unit

test: lint browser  ## check format, lint and types; run all tests that are not slow
	$(BIN)/pytest -m "not slow" --durations 40

test-slow: $(INSTALLED)  ## run the tests that take minutes
	$(BIN)/pytest -m slow --timeout 3600

# The campaign and the mutants continue where they were stopped; make torture PARTS="campaign soak" does some.
PARTS := campaign mutations kills fuzz soak
IN_TREE := PYTHONPATH=src:tests:tests/support JAX_PLATFORMS=cpu $(BIN)/python -m
torture: $(INSTALLED) $(PARTS:%=torture-%)  ## attack the promises of docs/reliability.md: hours, in parts of at most 80 minutes

torture-campaign: $(INSTALLED)
	MINUTES=80 $(IN_TREE) torture

torture-mutations: $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check cosmic-ray
	$(IN_TREE) torture.mutations

torture-kills: $(INSTALLED)
	OPTIMIST_MOMENTS=200 OPTIMIST_KILLS=12 $(BIN)/pytest --timeout 3600 tests/system/studies/engines/test_processes.py \
	  tests/system/studies/engines/test_lost_cluster.py tests/system/training/test_kept_recordings.py tests/system/training/test_killed_alarms.py

# Coverage-guided, for an hour; it ends before that only with a failure.
torture-fuzz: $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check hypofuzz
	PYTHONPATH=src:tests:tests/support JAX_PLATFORMS=cpu timeout 3600 $(BIN)/hypothesis fuzz --no-dashboard -n 1 -- -o addopts= tests/torture/test_parsers.py \
	  || [ $$? = 124 ]

torture-soak: $(INSTALLED)
	MINUTES=60 $(IN_TREE) torture.soak training
	MINUTES=60 $(IN_TREE) torture.soak study

# Pages are tested in a real browser: if there is none, Chromium is installed, with sudo if needed.
browser:
	@[ -z "$$OPTIMIST_CHROMIUM" ] || exit 0; \
	for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
	  ! command -v $$name > /dev/null || exit 0; \
	done; \
	echo "installing Chromium for the tests of pages"; \
	[ "$$(id -u)" = 0 ] || as_root="sudo -n"; \
	{ $$as_root apt-get -qq update && $$as_root apt-get -qq install -y --no-install-recommends chromium; } > /dev/null 2>&1 \
	|| { echo "error: no browser to test pages in: install Chromium or Chrome, or set OPTIMIST_CHROMIUM" >&2; exit 1; }

bench: $(BENCH_INSTALLED)  ## measure the speed and memory of this machine, beside PyTorch's (a large download the first time)
	$(BIN)/python -m benchmarks

bench-guard: $(INSTALLED)  ## compare the learner's speed with the recorded one, on a quiet machine
	$(BIN)/python -m benchmarks.guard

site: $(INSTALLED) $(SITE_INSTALLED)  ## build the documentation site; it begins at .site/html/index.html
	PYTHONPATH=docs $(BIN)/python -m publishing.pages .site
	$(SITE)/bin/zensical build --config-file .site/zensical.toml --clean --strict

release-check: $(INSTALLED) $(SITE_INSTALLED) site  ## build the package, try it as its users will, guard its speed (up to 80 minutes)
	$(BIN)/python tests/release/check.py --tools $(SITE)

lint: $(INSTALLED)  ## check format, lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --num-workers 2

format: $(INSTALLED)  ## rewrite the code in the project's format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:  ## remove the environment, the caches and the demo
	rm -rf $(VENV) $(SITE) .site .pytest_cache .mypy_cache .ruff_cache .hypothesis dist demo
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@for candidate in $(CANDIDATES); do \
	  "$$candidate" -c '$(USABLE)' 2>/dev/null || continue; \
	  echo "$$candidate -m venv $(VENV)"; exec "$$candidate" -m venv --clear $(VENV); \
	done; \
	echo "error: none of [$(CANDIDATES)] is a working Python 3.11 or newer; try make PYTHON=/path/to/python" >&2; \
	exit 1

# Order-only: a venv's python is a link to an old file, whose date is irrelevant. --no-compile halves the time:
# most installed modules are never imported.
$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e '.[minatar,atari,gym,mujoco,remote,hdf5,minari,ray,slurm,hub,onnx,video,dev]' -c constraints.txt
	@touch $@

$(SITE_INSTALLED): docs/publishing/requirements.txt | $(BIN)/python
	$(BIN)/python -m venv --clear $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]' -c constraints.txt
	@touch $@
