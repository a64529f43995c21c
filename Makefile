# All commands use the environment .venv, which make creates. Only a Python must be installed.
# Arguments of a program:  make train ARGS="--seed 1"
# Arguments of pytest:     make test TESTS="tests/eager/test_games.py -x"

ARGS =
# The files that take longest come first, so that no worker waits at the end.
WORKERS = -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
TESTS = $(WORKERS) tests/compiled tests/eager
VENV = .venv
RUN = $(VENV)/bin/python

# The first Python of a supported version that can create environments. To choose another one:
#   make clean train PYTHON=/path/to/python
USABLE = 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c $(USABLE) 2>/dev/null && echo $$python && break; done)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

train: $(VENV)/runtime ## Train tic-tac-toe until the player is proved perfect
	$(RUN) -m experiments.train $(ARGS)

test: check ## Check the code and run the quick tests
	$(RUN) -m pytest $(TESTS)

test-all: check ## Check the code and run all tests
	$(RUN) -m pytest $(WORKERS) tests/system tests/compiled tests/eager

check: $(VENV)/dev ## Check lint, formatting and types
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m pyright

play: $(VENV)/runtime ## Play against the newest trained player, or a perfect one if there is none
	$(RUN) -m azjax play $(ARGS)

explain: $(VENV)/runtime ## Write a page that explains the newest trained player
	$(RUN) -m azjax explain $(ARGS)

lecture: $(VENV)/runtime ## Repeat the experiments of a lecture, as a page in lecture/
	$(RUN) -m experiments.lecture $(or $(ARGS),--out lecture)

pictures: $(VENV)/dev ## Draw the pictures of the README and the guide from the newest run
	$(RUN) -m experiments.pictures $(ARGS)

playground: $(VENV)/runtime ## Write the page on which visitors play, docs/playground/index.html
	$(RUN) docs/playground/playground.py

lab: $(VENV)/notebook ## Open the notebooks in JupyterLab
	$(RUN) -m jupyterlab experiments/notebooks $(ARGS)

docs: $(VENV)/docs ## Build the guide in site/ and check its links
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict
	@echo "The guide: site/index.html"

bench: $(VENV)/benchmark ## Measure the time to perfect, and the speed against a textbook implementation
	$(RUN) -m experiments.benchmark $(or $(ARGS),--speed --time-to-perfect --verification)

GPU = $(RUN) -m experiments.benchmark --repeats 3
gpu: $(VENV)/cuda ## Measure speed and training on a GPU, and write gpu_*.json
	for games in 1024 8192 16384 65536; do $(GPU) --games $$games --out gpu_$$games.json $(ARGS) || exit; done
	for game in othello go_9x9; do \
	  $(GPU) --game pgx:$$game --channels 128 --blocks 6 --out gpu_$$game.json $(ARGS) || exit; done
	$(GPU) --first-iteration --time-to-perfect --seeds 3 --out gpu_training.json $(ARGS)

clean: ## Remove the environment and the caches, but keep the trained players in runs/
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache
	find azjax experiments tests -name __pycache__ -prune -exec rm -rf {} +

# The times of these files are those of the last installation with their extras. ALSO lists the files
# whose extras are included.
$(VENV)/runtime: EXTRAS =
$(VENV)/benchmark: EXTRAS = [benchmark]
$(VENV)/benchmark: ALSO = runtime
$(VENV)/cuda: EXTRAS = [benchmark,cuda]
$(VENV)/cuda: ALSO = runtime benchmark
$(VENV)/notebook: EXTRAS = [notebook]
$(VENV)/notebook: ALSO = runtime
$(VENV)/docs: EXTRAS = [docs]
$(VENV)/docs: ALSO = runtime
$(VENV)/dev: EXTRAS = [dev]
$(VENV)/dev: ALSO = runtime benchmark docs notebook

ENVIRONMENTS = $(addprefix $(VENV)/,runtime benchmark cuda docs notebook dev)
$(ENVIRONMENTS): pyproject.toml constraints.txt | $(VENV)/bin/pip
	@echo "Installing azjax$(EXTRAS) into $(VENV): a minute or two the first time ..."
	$(RUN) -m pip install --quiet --constraint constraints.txt --editable '.$(EXTRAS)'
	@touch $@ $(addprefix $(VENV)/,$(ALSO))

$(VENV)/bin/pip:
	@"$(PYTHON)" -c $(USABLE) 2>/dev/null || { echo "error: azjax needs Python 3.11, 3.12 or 3.13" \
	  "with its venv module: install both (Debian: apt-get install python3 python3-venv)," \
	  "or set PYTHON=/path/to/python" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

.PHONY: help train test test-all check play explain lecture pictures playground lab docs bench gpu clean
