# floe: everything from nothing. `make` alone lists what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(PYTHON) tools/setup.py
# Tests wait for other programs most of the time: more of them at once than there are cores.
WORKERS ?= 3
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help setup ready demo demo-once demo-night test check coverage bench soak busy house clean lock format

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ready ## install all that floe needs: Python packages, Java, node, Spark's jars
	@echo "floe is set up in $(VENV). Next: make demo, which runs the demo, or: source $(BIN)/activate && floe --help"

ready:
	@$(SETUP)

demo: ready ## bring everything up, run a day of the demo shop through Dagster, and stay up
	@$(BIN)/python -m tools.demo

demo-once: ready ## the same, and stop it all at the end
	@$(BIN)/python -m tools.demo --once

demo-night: ready ## the other demo: a night of credit risk on embedded Spark, without Dagster
	@$(BIN)/python -m tools.demo.night

test: ready ## one pass of everything: format, lint, types, import contracts, all tests
	@$(BIN)/python -m tools.check
	@$(PYTEST)

coverage: ready ## all tests once more, and the lines that they never reach
	@$(PYTEST) --cov --cov-report=term:skip-covered

check: ready ## the quick half of test: format, lint, types, import contracts, unit tests
	@$(BIN)/python -m tools.check
	@$(PYTEST) -m "not slow and not postgresql and not java"

bench: ready ## measure speed against its targets; exits 1 on a miss
	@$(BIN)/python -m benchmarks

soak: ready ## the long repetitions; writes docs/soak.md
	@$(BIN)/python -m tools.soak

busy: ready ## the tests that start servers, three times beside two busy loops
	@$(BIN)/python -m tools.busy

house: ready ## measure how easy the source is to find one's way in
	@$(BIN)/python -m tools.house $(SINCE)

format: ready ## rewrite the code in the house's format
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format --quiet

lock: ready ## pin every requirement anew, with hashes
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/python tools/lock.py

clean: ## remove what set-up and runs have made
	@rm -rf $(VENV) .cache .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache benchmarks/.work demo/*/.floe demo/*/data \
		demo/*/dbt/target demo/*/dbt/logs
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
