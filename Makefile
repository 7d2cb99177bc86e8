# Everything happens in .venv, which the first target makes by itself: `ready` marks the package and what it needs at run time,
# `ready-dev` marks the tools of the tests on top of it, and `ready-docs` those of the site.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# The other libraries live apart: their torch is the build with CUDA. PEERS=folder puts or finds them elsewhere.
PEERS ?= .venv-peers
PEER_VERSIONS := torch-uncertainty==0.13.0 torch==2.15.0 torchvision==0.29.2 lightning==2.6.6 timm==1.0.30 rich==15.0.0 \
	seaborn==0.13.2 scikit-learn==1.9.1 tabm==0.0.3
# Named after the versions, so that it is made anew when they change and never else.
PEERS_READY := $(PEERS)/ready-$(firstword $(shell echo '$(PEER_VERSIONS)' | cksum))
# How long `make fuzz` takes.
MINUTES ?= 30
# The small tensors of the tests and the demo are slower, not faster, on more threads than cores.
export OMP_NUM_THREADS ?= 2

.PHONY: help demo test test-all fuzz lint format results papers bench bench-peers docs docs-serve clean

help:
	@echo "make demo      compare tuned methods on a few of the digits: a table, and a page to decide by (about four minutes)"
	@echo "make test      lint, types, docstring examples and tests"
	@echo "make test-all  the slow tests, too"
	@echo "make fuzz      new mutations of run folders and new tables for $(MINUTES) minutes (MINUTES=5 for five), and what they found"
	@echo "make results   run the recorded comparisons on real data (hours) and show them in docs/results.md"
	@echo "make papers    run the papers' tables and figures at the cpu scale on real data (hours); what is recorded is not run again"
	@echo "make bench     what methods and the training loop cost, as ratios to the base network"
	@echo "make bench-peers  the same methods in torch-uncertainty and TabM against ours (6 GB in $(PEERS), never part of the tests)"
	@echo "make docs      the documentation as a site in build/site; make docs-serve shows it at http://localhost:8000"
	@echo "make lint      lint and types alone;  make format  rewrites the layout"

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "pluribus needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/ready-docs: $(VENV)/ready
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

demo: $(VENV)/ready
	OMP_NUM_THREADS=1 $(VENV)/bin/pluribus compare --data digits --rows 400 --validation 0.3 --seeds 8 --tune 3 \
		--methods single,mimo,batch-ensemble,deep-ensemble --distil single \
		--batch-size 32 --lr 0.005 --max-epochs 46 --corruptions standard --shift-rows 50 --ood noise

lint: $(VENV)/ready-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/ready-dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Two processes run tests at once, each on one thread.
test test-all: export OMP_NUM_THREADS := 1
# Bytecode is kept, whatever the shell says: else every process that a test starts compiles all modules again.
test test-all: export PYTHONDONTWRITEBYTECODE :=

# A file of tests stays in one process: what its tests share (trained runs, pages, started processes) is made once.
test: lint
	$(RUN) -m pytest -n auto --dist loadfile -m "not slow"

test-all: lint
	$(RUN) -m pytest

fuzz: $(VENV)/ready-dev
	$(RUN) -m tests.sweeps.fuzz --minutes $(MINUTES)

results: $(VENV)/ready-dev
	$(RUN) results/record.py

papers: $(VENV)/ready-dev
	$(VENV)/bin/pluribus reproduce ALL --scale cpu --workers 2

bench: $(VENV)/ready-dev
	$(VENV)/bin/pluribus bench --out benchmarks/results --docs docs/performance.md
	$(RUN) benchmarks/throughput.py

# Any warning is an error: a link that leads nowhere, an anchor that is not there, a page that asks for what does not exist.
# The variable silences a notice of the theme about other software.
docs: $(VENV)/ready-docs
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

docs-serve: docs
	$(RUN) -m http.server --directory build/site --bind 127.0.0.1 8000

$(PEERS_READY):
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "pluribus needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check $(PEER_VERSIONS) --editable .
	@touch $@

bench-peers: $(PEERS_READY)
	$(PEERS)/bin/python benchmarks/peers.py

clean:
	rm -rf $(VENV) .venv-peers dist build
