# Everything runs from a virtual environment made here: nothing but make and a Python is needed beforehand.
#   make demo    plan a generated cluster, print the plan, write demo.html
#   make test    the test suite, on all cores; with EXTRAS=test,all all of it, on every solver that pip can install
#   make test-distributed   searches on local clusters of ray and dask, which it installs
#   make lint types docs bench
#   make verify-full   the long form of the tests that count: all solvers on 500 random programs of each kind and on
#                      2,000 markets of each family, every certificate, every proof, the placement engine against
#                      exact fractions and the fluid engine's compiled loops against its reference on 2,000 cases of
#                      each policy; pairs of jobs that share GPUs on every backend, and groups of them;
#                      small clusters by every backend against all schedules, and two heuristics against the optimum

VENV := .venv
EXTRAS ?= test
BIN := $(VENV)/bin
PROGRAMS := planted LP,planted MILP,enumerated MILP,window time_indexed,window counts,planted LOG,planted MILOG,enumerated MILOG
MARKETS := fisher,volatile-linear,volatile-leontief,volatile-ces,volatile-cobb-douglas
INTERFERENCE := ../shared/data/gavel/interference_1gpu.csv
LINK := $(VENV)/types/equipoise
STAMP := $(VENV)/.installed

# The first interpreter that really runs (a version manager's stand-in may exist and fail), is new enough, and can make
# virtual environments with pip. Override with make PYTHON=/path/to/python.
SUITABLE := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON = $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	"$$python" -c '$(SUITABLE)' >/dev/null 2>&1 && { command -v "$$python"; break; }; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-distributed lint types docs bench verify-full clean

help:
	@sed -n 's/^#   //p' Makefile

# Read when the recipe runs, not when the file is parsed, so that finished environments never look for an interpreter.
$(BIN)/python:
	@set -e; python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  echo "equipoise needs Python 3.11, 3.12 or 3.13 with the venv module, and none was found." >&2; \
	  echo "Install one (on Debian: apt-get install python3 python3-venv), or say where it is: make PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	echo "Making $(VENV) with $$python"; \
	"$$python" -m venv --clear $(VENV)

# One stamp per extra: nothing is installed again until pyproject.toml changes.
$(STAMP)-core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e .
	@touch $@

$(STAMP)-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e ".[$*]"
	@touch $@

# mypy takes a package by its folder's name, which here is the clone's: give it one that is right.
$(LINK): | $(BIN)/python
	@mkdir -p $(@D) && ln -sfn "$(CURDIR)" $@

demo: $(STAMP)-core
	$(BIN)/equipoise demo --html demo.html

# Tests start hundreds of processes: without bytecode on the disk each would compile every module it imports.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP)-$(EXTRAS)
	$(BIN)/python -m pytest -q -n auto $(if $(findstring all,$(EXTRAS)),,-m "not thorough") $(PYTEST_ARGS)

# Local clusters take seconds to start and the packages a minute and 400 MB: they are part of no other target.
test-distributed: $(STAMP)-test,ray,dask
	$(BIN)/python -m pytest -q tests/solvers/test_clusters.py $(PYTEST_ARGS)

lint: $(STAMP)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff check --select C901 --config "lint.mccabe.max-complexity=10" solvers/verification
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(STAMP)-dev $(STAMP)-test $(LINK)
	MYPYPATH=$(VENV)/types $(BIN)/mypy --strict -p equipoise

docs: $(STAMP)-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The pages are in docs/_build/html/index.html"

bench: $(STAMP)-bench $(STAMP)-all
	$(BIN)/python -m equipoise bench market
	$(BIN)/python -m equipoise bench window --jobs 2000 --gpus 256 --seed 0
	$(BIN)/python -m equipoise bench handoff
	$(BIN)/python -m equipoise bench prediction

verify-full: $(STAMP)-all
	$(BIN)/python -m equipoise bench agreement --count 500 --kinds "$(PROGRAMS)"
	$(BIN)/python -m equipoise bench agreement --count 2000 --kinds "$(MARKETS)"
	$(BIN)/python -m equipoise verify theorems market stochastic window --examples 2000 --html verify.html
	$(BIN)/python -m equipoise verify gpu-sharing --examples 5000 --html verify-sharing.html \
	  $(if $(wildcard $(INTERFERENCE)),--interference $(INTERFERENCE))
	$(BIN)/python -m equipoise bench sharing-optimum
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -q -n auto tests/formulations/gpu_sharing \
	  tests/validation/benchmarks/test_optimality.py tests/simulation/placement/test_reference.py \
	  tests/simulation/fluid/test_compiled.py tests/simulation/fluid/test_predictions.py
	$(BIN)/python -m equipoise backends --check all

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
