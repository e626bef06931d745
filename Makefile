# `make run` and `make test` do everything on a machine that has only python3 and make.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# A compiled kernel is cached by the time stamp of its own file; one folder a state of all the
# sources, so that a change in a helper never meets an old kernel.
export NUMBA_CACHE_DIR := $(CURDIR)/.numba_cache/$(shell find src -name '*.py' | sort | xargs cat | cksum | cut -d' ' -f1)

.PHONY: run test test-long lint benchmark benchmark-quality reproduction clean

run: $(INSTALLED)
	$(BIN)/nearfield reproduce table2 --quick

test: lint
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term --cov-fail-under=95

test-long: $(INSTALLED)
	$(BIN)/python -m pytest -m long

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

benchmark: $(INSTALLED)
	$(BIN)/python benchmarks/run.py

# How good the recommended classifier is beside its peers; goes on where it was stopped.
benchmark-quality: $(INSTALLED)
	$(BIN)/nearfield benchmark --document docs/benchmark.md

# The document of the reproduction; the spectra are read from NEARFIELD_DATA where there are any.
reproduction: $(INSTALLED)
	$(BIN)/nearfield reproduce all --document docs/reproduction.md

clean:
	rm -rf $(VENV) .numba_cache .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist

$(INSTALLED): pyproject.toml
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@
