# `make run` and `make test` do everything on a machine that has only python3 and make.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run check test coverage test-long test-matrix wheel-test review fuzz lint docs benchmark speed benchmark-quality reproduction clean

run: $(INSTALLED)
	$(BIN)/nearfield reproduce table2 --quick

test: lint
	$(BIN)/python -m pytest -n 2

# For daily work: lint and the quick tests, in under two minutes on two cores.
QUICK := checks cli cli_tables distances enumeration families field interface intercepts \
	neighbor_family neighbors neighbors_cv package posterior priors pseudolikelihood quadrature runs \
	tables weights

check: lint
	$(BIN)/python -m pytest -q -n 2 $(QUICK:%=tests/test_%.py)

# The same tests with coverage, which takes half as long again.
coverage: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term --cov-fail-under=95

test-long: $(INSTALLED)
	$(BIN)/python -m pytest -m long

# The wheel in clean environments, with the core alone and with all extras: the README, all examples.
wheel-test: $(INSTALLED)
	$(BIN)/python tests/environments.py wheel

# Oldest dependencies; newest ones on every supported Python found. TESTS=tests runs everything.
test-matrix: $(INSTALLED)
	$(BIN)/python tests/environments.py matrix $(TESTS)

# The guidelines for packages of scientific Python; pyproject.toml says which are ignored, and why.
review: $(INSTALLED)
	$(BIN)/python -m pip install --quiet "sp-repo-review[cli]"
	$(BIN)/sp-repo-review .

# Mutated model files and checkpoints, as they are and with the bounds of arrays checked.
fuzz: $(INSTALLED)
	$(BIN)/python tests/fuzz_files.py 100000
	NUMBA_BOUNDSCHECK=1 $(BIN)/python tests/fuzz_files.py 10000 7

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The manual, in docs/_build/html; a warning, such as a dead link within it, is an error.
docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable ".[dev,docs]"
	$(BIN)/sphinx-build -W --keep-going docs docs/_build/html

benchmark: $(INSTALLED)
	$(BIN)/python benchmarks/run.py

# The same with the large sizes, and LightGBM beside them, kept as a document of the manual.
speed: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable ".[dev,benchmark]"
	$(BIN)/python benchmarks/run.py --large --document docs/speed.md

# How good the recommended classifier is beside its peers; goes on where it was stopped.
benchmark-quality: $(INSTALLED)
	$(BIN)/nearfield benchmark --document docs/benchmark.md

# The document of the reproduction; the spectra are read from NEARFIELD_DATA where there are any.
reproduction: $(INSTALLED)
	$(BIN)/nearfield reproduce all --document docs/reproduction.md

clean:
	rm -rf $(VENV) docs/_build docs/tutorials docs/reference/generated .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist

$(INSTALLED): pyproject.toml
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@
