# Two commands: `make quickstart` and `make test`. The rest is for contributors.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Two processes that each take all cores are many times slower than one thread each.
WORKERS ?= 2
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM = false
export HF_HUB_OFFLINE = 1
unexport PYTHONDONTWRITEBYTECODE
# Files are compiled on first import, only those in use: compiling all of them takes minutes.
INSTALL := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

.PHONY: quickstart test lint unit test-real test-gpu test-slow clean

quickstart: $(VENV)/installed-run
	$(BIN)/corl quickstart --seeds 0 1 2 --out quickstart

test: lint unit

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

PURE := */corl/answers/*,*/corl/supervision/*,*/corl/grpo/*,*/corl/exchange/*

unit: $(VENV)/installed-dev
	$(BIN)/pytest -n $(WORKERS) -m "not gpu and not real_model and not slow" --cov=corl --cov-report=
	$(BIN)/coverage report --include="$(PURE)" --fail-under=95

# A pretrained checkpoint on disk: docs/contributing.md says how to make one.
test-real: $(VENV)/installed-dev
	$(BIN)/pytest -m real_model tests

test-slow: $(VENV)/installed-dev
	$(BIN)/pytest -m slow tests

test-gpu: $(VENV)/installed-dev
	$(BIN)/pytest -m gpu tests/gpu

$(VENV)/installed-run: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[dev]"
	touch $@ $(VENV)/installed-run

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .coverage
