# A way in for a machine that has git, make and Python alone. It makes .venv, puts nox in it, and calls nox:
# what a task does is written in noxfile.py.

PYTHON ?= python3
ARGS ?=

NOX := .venv/bin/python -m nox
READY := .venv/nox-is-installed

.DEFAULT_GOAL := help
.PHONY: help measure test gate clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s  %s\n", $$1, $$2}' Makefile

measure: $(READY) ## measure every arm and print the table (ARGS="ARM …" for some)
	@LADDER_QUIET=1 $(NOX) -s measure -- $(ARGS)

test: $(READY) ## lint, check types and schemas, run the tests
	@$(NOX)

gate: $(READY) ## measure, grade against policy/, check judged paths and the sets' pages
	@LADDER_QUIET=1 $(NOX) -s gate -- $(ARGS)

clean: ## remove environments, caches and measured output (.venv .nox .eval)
	rm -rf .venv .nox .eval __pycache__ .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find packages tests tools benchmarks -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): constraints.txt Makefile
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "make: no '$(PYTHON)' here; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $$("$(PYTHON)" -V 2>&1) is too old, 3.11 or newer is needed; name one: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $$("$(PYTHON)" -V 2>&1) comes without venv or pip; install its venv package (Debian: python3-venv)" >&2; exit 1; }
	@echo "making .venv, once (under a minute)" >&2
	@"$(PYTHON)" -m venv .venv
	@.venv/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt 'nox[uv]'
	@touch $@
