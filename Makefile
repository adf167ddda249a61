# Development tasks. `make` without a target lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(PYTHON) tools/setup.py
# Tests mostly wait for other programs, so run more of them than there are cores.
WORKERS ?= 3
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help setup ready demo demo-once demo-night test check coverage bench soak busy house clean lock format

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ready ## install everything floe needs: Python packages, Java, node, Spark's jars
	@echo "floe is set up in $(VENV). Next: make demo, which runs the demo, or: source $(BIN)/activate && floe --help"

ready:
	@$(SETUP)

demo: ready ## start everything, run one day of the demo shop through Dagster, and stay up
	@$(BIN)/python -m tools.demo

demo-once: ready ## the same, but stop everything at the end
	@$(BIN)/python -m tools.demo --once

demo-night: ready ## run the credit risk demo: one nightly batch, without Dagster
	@$(BIN)/python -m tools.demo.night

test: ready ## run all checks: format, lint, types, import contracts, all tests
	@$(BIN)/python -m tools.check
	@$(PYTEST)

coverage: ready ## run all tests and report the lines they do not cover
	@$(PYTEST) --cov --cov-report=term:skip-covered

check: ready ## run the quick checks: format, lint, types, import contracts, unit tests
	@$(BIN)/python -m tools.check
	@$(PYTEST) -m "not slow and not postgresql and not java"

bench: ready ## measure speed against the targets; exit 1 if one is missed
	@$(BIN)/python -m benchmarks

soak: ready ## run the long tests (many rounds each); writes docs/soak.md
	@$(BIN)/python -m tools.soak

busy: ready ## run the tests that start servers three times under CPU load
	@$(BIN)/python -m tools.busy

house: ready ## measure how easy the source is to navigate
	@$(BIN)/python -m tools.house $(SINCE)

format: ready ## fix lint findings and format the code
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format --quiet

lock: ready ## pin every requirement again, with hashes
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/python tools/lock.py

clean: ## remove everything that setup and runs created
	@rm -rf $(VENV) .cache .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache benchmarks/.work demo/*/.floe demo/*/data \
		demo/*/dbt/target demo/*/dbt/logs
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
