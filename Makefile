# From a fresh clone each of these works at once; run again, each starts right away: the stamps in .venv
# depend on pyproject.toml only.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test spark lint docs epub links instructor clean

help:
	@echo "make demo   a broker, real data through it, its log shown"
	@echo "make test   the tests (ARGS='-k produce' passes options to pytest)"
	@echo "make spark  what the tests on Spark and the notebooks need, some 500 MB; without it they are left out"
	@echo "make lint   ruff and mypy --strict"
	@echo "make docs   the documentation, in docs/_build/html; what it shows is run"
	@echo "make epub   the documentation as one file for a reader of books, docs/_build/epub/HMB.epub"
	@echo "make instructor  for teachers: the solutions of both exercises of each lab, and notes, in build/instructor"
	@echo "make links  the links of the documentation to other sites, tried through the network; their dates in docs/links.txt"
	@echo "make clean  remove $(VENV) and caches"

demo: $(VENV)/core.stamp
	@$(BIN)/hmb demo

test: $(VENV)/test.stamp
	@$(BIN)/python -m pytest $(ARGS)

spark: $(VENV)/spark.stamp

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/mypy

docs: $(VENV)/docs.stamp
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto docs docs/_build/html
	@echo "docs/_build/html/index.html"

epub: $(VENV)/docs.stamp
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto -b epub -d docs/_build/epub-doctrees docs docs/_build/epub
	@echo "docs/_build/epub/HMB.epub"

instructor: $(VENV)/core.stamp
	@$(BIN)/python tools/instructor.py

links: $(VENV)/docs.stamp
	-@$(BIN)/python -m sphinx -q -j auto -b linkcheck docs docs/_build/links
	@echo "docs/links.txt"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "HMB needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Building $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/core.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing HMB ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing HMB and what its tests need (pytest, hypothesis, Kafka clients) ..."
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/spark.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing HMB and Spark ..."
	@$(PIP) --editable '.[spark]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing HMB, ruff and mypy ..."
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing HMB and Sphinx ..."
	@$(PIP) --editable '.[docs]'
	@touch $@

clean:
	rm -rf docs/_build docs/protocol/api build/instructor $(VENV) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
