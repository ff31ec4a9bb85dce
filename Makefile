# Two commands for a new user: `make overlay` and `make test`. Variables: RECIPE=, PYTHON= (the interpreter that the
# virtual environment is made from), VENV=, TOOLKIT_ARGS= (more options for toolkit), WORKERS= (how many processes run
# the tests; 0: none but pytest itself).

PYTHON ?= python3
RECIPE ?= dsv4-dvm-release
VENV ?= .venv
TOOLKIT_ARGS ?=
WORKERS ?= 2

bin := $(VENV)/bin
python := $(bin)/python
toolkit := $(bin)/toolkit
# These end up in `rm -rf` and before a command: one word each.
ifneq ($(words $(VENV)),1)
$(error VENV is '$(VENV)', expected one path without spaces)
endif
ifeq ($(strip $(PYTHON)),)
$(error PYTHON is empty, expected an interpreter)
endif
# Never let the caller's own Python settings reach what is set up here.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP

.PHONY: setup same-python overlay env verify test check bench docs clean help

help:
	@echo "make setup    a virtual environment in $(VENV) with toolkit and what the overlay's proof needs"
	@echo "make overlay  build and prove RECIPE=$(RECIPE), print its env file"
	@echo "make env      print the commands that activate the overlay"
	@echo "make verify   prove the overlay again"
	@echo "make test     run all tests"
	@echo "make check    formatting, lint, types, the patches, generated docs"
	@echo "make bench    measure, and write bench/results.md"
	@echo "make clean    remove $(VENV) and the built overlays"

setup: same-python $(VENV)/.ready-target

# A PYTHON= that the virtual environment was not made from would be ignored in silence.
same-python:
ifneq ($(filter command line environment,$(origin PYTHON)),)
	@test ! -x $(python) || { $(PYTHON) -c 'import sys; print(sys.version_info[:2])'; $(python) -c 'import sys; print(sys.version_info[:2])'; } \
	  | uniq | { read -r asked; ! read -r has || { echo "$(VENV) is made of Python $$has, PYTHON=$(PYTHON) is $$asked: make clean, or name another VENV=" >&2; exit 2; }; }
endif

# A venv without ensurepip (Debian splits it off) gets pip from the pip that is there.
$(python):
	@[ ! -e $(VENV) ] || [ -e $(VENV)/pyvenv.cfg ] || { \
	  echo "VENV=$(VENV) is there already and no virtual environment: name another" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "toolkit needs Python 3.10 or later: make PYTHON=...")'
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); \
	  $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip; }

# A CUDA build of torch brings the package triton, which writes into triton-ascend's folder: whichever comes last is
# not whole. Nothing here needs triton itself.
$(VENV)/.ready-target: pyproject.toml | $(python)
	@echo "setting up $(VENV): torch and toolkit, 1.2 GB (with a CUDA build of torch 4.8 GB), a minute or more"
	@$(python) -m pip install --quiet --disable-pip-version-check --editable '.[target]'
	@! $(python) -m pip show --quiet triton 2>/dev/null || { $(python) -m pip uninstall --quiet --yes triton && \
	  { ! $(python) -m pip show --quiet triton-ascend 2>/dev/null || \
	  $(python) -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps triton-ascend==3.2.0; }; }
	@touch $@

$(VENV)/.ready-test: pyproject.toml $(VENV)/.ready-target
	@$(python) -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

$(VENV)/.ready-bench: pyproject.toml $(VENV)/.ready-target
	@$(python) -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

overlay: setup
	@$(toolkit) build --recipe $(RECIPE) $(TOOLKIT_ARGS)

env: setup
	@$(toolkit) env --recipe $(RECIPE) $(TOOLKIT_ARGS)

verify: setup
	@$(toolkit) verify --recipe $(RECIPE) $(TOOLKIT_ARGS)

test: $(VENV)/.ready-test
	$(python) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: $(VENV)/.ready-test
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(toolkit) patch lint
	$(python) -m pytest -q tests/unit/test_layers.py tests/unit/test_docs.py

docs: $(VENV)/.ready-test
	$(python) -m tests.generate_docs

bench: $(VENV)/.ready-bench
	$(python) -m bench

clean:
	[ ! -e $(VENV)/pyvenv.cfg ] || rm -rf $(VENV)
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find overlays -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
