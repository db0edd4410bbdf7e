# Two commands: `make book` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq
# A worker that has nothing left takes tests of one that is slow.
TEST := $(BIN)/python -m pytest --quiet --numprocesses auto --dist worksteal
BROKE := { echo "A test names what broke; 'make help' lists what to run."; exit 1; }
# Each test runs once: these without the hook that checks shapes. It raises
# before our own messages do, and is twice as slow where nothing new is to see.
PLAIN := bad_input or browser or once
PAGE := _build/html/index.html
# Tiny trainings are several times faster on one thread.
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book serve install test lint notebooks bench mutants bundle release colab journey offline pins clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | \
	  awk -F':.*## ' '{ printf "make %-10s %s\n", $$1, $$2 }'

book: $(VENV)/book ## build the book from the stored outputs
	@$(BIN)/jupyter-book build . -W -n --keep-going --quiet || { \
	  echo "The book has warnings, and a warning is an error here: mend"; \
	  echo "the lines that name a file above, then run make book again."; \
	  exit 1; }
	@echo "Open file://$(CURDIR)/$(PAGE)"

serve: book ## build the book and serve it on a free port (or PORT=8000)
	@$(BIN)/python -m http.server --bind 127.0.0.1 \
	  --directory _build/html $(or $(PORT),0)

install: $(VENV)/test ## install what runs: training, check, questions, notebooks
	@echo "Ready: $(BIN)/python -m companion"

test: install lint book ## run everything: units, notebooks, pages
	@echo "With every shape and type in a signature checked"
	@$(TEST) -rs -m "not ($(PLAIN))" \
	  --jaxtyping-packages=companion,beartype.beartype || $(BROKE)
	@echo "As a user has it: our own messages, other processes, the pages"
	@$(TEST) -rs -m "$(PLAIN)" || $(BROKE)
	@! [ -d _build/weight ] || { echo "Pages, kB at a first visit and after" \
	  "another page:"; cat _build/weight/*; }
	@echo "Every notebook, its stored outputs against a fresh run"
	@$(TEST) --nbval --nbval-current-env --nbval-cell-timeout=120 \
	  --dist loadfile -p no:cacheprovider book || { \
	  echo "If the new output is right, 'make notebooks' stores it."; exit 1; }

lint: install ## check style, layers and types
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . || { \
	  echo "Style: '$(BIN)/ruff check --fix . && $(BIN)/ruff format .'"; \
	  echo "mends most of it."; exit 1; }
	@layers=$$($(BIN)/lint-imports --no-cache --no-logo) || { \
	  echo "$$layers"; exit 1; }
	@$(BIN)/pyrefly check --summary=none

notebooks: install ## run the notebooks again and store their outputs
	@$(BIN)/python tools/notebooks.py $(ONLY)

bench: install ## race the package against its peers, and note the results
	@$(BIN)/python -m benchmarks $(ONLY)

bundle: install book ## pack the book: a zip of its pages, and a PDF
	@$(BIN)/python tools/bundle.py
	@REQUIRE_BUNDLE=1 $(BIN)/python -m pytest --quiet tests/tools/test_bundle.py

release: install ## test, build and try the working commit
	@$(BIN)/python tools/release.py

colab: $(VENV)/book ## write the notebooks that Colab opens (REPO=owner/name)
	@$(BIN)/python tools/colab.py

journey: install ## run those in bare runtimes (TORCH=2.11, see tools/journey.py)
	@$(BIN)/python tools/journey.py $(ONLY)

offline: install ## make test with the network cut off (Linux)
	@unshare --map-root-user --net \
	  sh -c 'ip link set lo up && exec $(MAKE) --no-print-directory test'

mutants: install ## break the package a little, and see if a test notices
	@$(PIP) install --constraint requirements.txt --group mutants
	@$(BIN)/python tools/mutants.py $(ONLY)

# torch brings the CUDA packages it needs, of the version it needs; a pin of
# theirs, or of a CPU build, could not be installed everywhere.
pins: install ## write requirements.txt again from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group test --group mutants \
	  --quiet --no-annotate --no-header --python-version 3.11 --upgrade \
	  --output-file requirements.txt
	@sed -i.old -e 's/+cpu$$//' -e '/^nvidia-/d; /^cuda-/d; /^triton/d' \
	  requirements.txt && rm requirements.txt.old

clean: ## remove what was built
	rm -rf _build api $(VENV)

# The book needs no torch. Both stamps are older than requirements.txt when it
# changes, and then the environment is made anew.
$(VENV)/book: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; \
	  exit 1; }
	@echo "Making $(VENV) (once)"
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "Python has no venv: on Debian, apt install python3-venv."; exit 1; }
	@$(PIP) install --constraint requirements.txt pip && \
	 $(PIP) install --constraint requirements.txt --group book || { \
	  echo "The packages did not install: is there a network? Then again."; \
	  exit 1; }
	@touch $@

$(VENV)/test: $(VENV)/book pyproject.toml
	@echo "Installing torch and the test tools (once)"
	@$(PIP) install --requirement requirements.txt && \
	 $(PIP) install --no-build-isolation --no-deps --editable . || { \
	  echo "The packages did not install. Is there a network, and is Python"; \
	  echo "3.14 or older? This torch has no build for a newer one."; \
	  exit 1; }
	@touch $@
