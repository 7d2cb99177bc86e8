# Everything happens in .venv, which the first target makes by itself.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# The small tensors of the tests and the demo are slower, not faster, on more threads than cores.
export OMP_NUM_THREADS ?= 2

.PHONY: help demo test test-all lint format results bench clean

help:
	@echo "make demo      compare every method on the digits: a table, and a page to decide by (a few minutes)"
	@echo "make test      lint, types, docstring examples and tests"
	@echo "make test-all  the slow tests, too"
	@echo "make results   run the recorded comparisons on real data (hours) and show them in the README"
	@echo "make bench     what the methods and the training loop cost, as ratios to the base network"
	@echo "make lint      lint and types alone;  make format  rewrites the layout"

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "pluribus needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/ready
	$(VENV)/bin/pluribus compare --data digits --seeds 2 --epochs 30 --batch-size 64 \
		--corruptions standard --shift-rows 100 --ood noise,shuffled --attack linf --attack-rows 50

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/ready
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

test: lint
	$(RUN) -m pytest -n auto -m "not slow"

test-all: lint
	$(RUN) -m pytest

results: $(VENV)/ready
	$(RUN) results/record.py

bench: $(VENV)/ready
	$(RUN) benchmarks/cost.py
	$(RUN) benchmarks/throughput.py

clean:
	rm -rf $(VENV) build dist *.egg-info
