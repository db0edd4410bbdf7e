# Two commands: `make book` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq
# What is installed is what was pinned: each file has the sum that make pins saw,
# and nothing comes that is not on the list.
PINNED := $(PIP) install --require-hashes --no-deps
# PyTorch's builds for a CPU lie on an index of its own, which is asked for torch
# and for nothing else. Empty: torch as PyPI has it, on Linux with CUDA.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# A worker that has nothing left takes tests of one that is slow.
TEST := $(BIN)/python -m pytest --quiet --numprocesses auto --dist worksteal
BROKE := { echo "A test names what broke; 'make help' lists what to run."; exit 1; }
# Each test runs once: these without the hook that checks shapes. It raises
# before our own messages do, and is twice as slow where nothing new is to see.
PLAIN := bad_input or browser or once
# Where only PyPI can be reached, torch comes from there. What it needs for CUDA
# is written in it, and not in a build for a CPU.
GET_TORCH = { { test -n "$(TORCH_INDEX)" && $(PINNED) --retries 1 \
	  --index-url $(TORCH_INDEX) --requirement requirements/torch.txt; } || { \
	  echo "Taking torch from PyPI"; \
	  $(PINNED) --requirement requirements/torch.txt; }; } && \
	{ ! grep -q '^Requires-Dist: nvidia-' \
	  $(VENV)/lib/python*/site-packages/torch-*.dist-info/METADATA || \
	  $(PINNED) --requirement requirements/cuda.txt; }
PAGE := _build/html/index.html
# Tiny trainings are several times faster on one thread.
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book serve install notebook test lint style lessons notebooks bench mutants bundle release colab journey offline pins clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | \
	  awk -F':.*## ' '{ printf "make %-10s %s\n", $$1, $$2 }'

book: $(VENV)/book ## build the book from the stored outputs, in both languages
	@$(BIN)/python tools/translations.py build & chinese=$$!; \
	  $(BIN)/jupyter-book build . -W -n --keep-going --quiet; english=$$?; \
	  wait $$chinese && [ $$english = 0 ] || { \
	  echo "The book has warnings, and a warning is an error here: mend"; \
	  echo "the lines that name a file above, then run make book again."; \
	  exit 1; }
	@echo "Open file://$(CURDIR)/$(PAGE)"
	@echo "中文版: file://$(CURDIR)/_build/html/zh/index.html"

serve: book ## build the book and serve it on a free port (or PORT=8000)
	@$(BIN)/python -m http.server --bind 127.0.0.1 \
	  --directory _build/html $(or $(PORT),0)

install: $(VENV)/test ## install what runs: training, check, questions, notebooks
	@echo "Ready: $(BIN)/python -m companion"

notebook: install ## open the chapters in JupyterLab, on a free port
	@$(BIN)/python tools/open_jupyter.py

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

lint: style lessons ## check all that needs no test to run

style: install ## check style, layers and types, and the numbers in prose
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . || { \
	  echo "Style: '$(BIN)/ruff check --fix . && $(BIN)/ruff format .'"; \
	  echo "mends most of it."; exit 1; }
	@layers=$$($(BIN)/lint-imports --no-cache --no-logo) || { \
	  echo "$$layers"; exit 1; }
	@$(BIN)/pyrefly check --summary=none
	@$(BIN)/python tools/lint_numbers.py

lessons: install book ## measure the lessons, and hold the Chinese beside them
	@$(BIN)/python tools/lint_lessons.py
	@$(BIN)/python tools/translations.py lint

notebooks: install ## run the notebooks and store their outputs (DEVICE=cuda: not)
	@$(BIN)/python tools/$(if $(DEVICE),device_notebooks.py $(DEVICE),notebooks.py) $(ONLY)

bench: install ## race the package against its peers, and note the results
	@$(BIN)/python -m benchmarks $(ONLY)

bundle: install book ## pack the book: a zip of its pages, and three PDFs
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
	@$(BIN)/python tools/mutants.py $(ONLY)

pins: install ## write requirements/ again from pyproject.toml
	@KEEP=$(KEEP) $(BIN)/python tools/pins.py

# What a reader wrote is not ours to remove.
clean: ## remove what was built, but not your notebooks
	rm -rf $(filter-out _build/notebooks,$(wildcard _build/* _build/.[!.]*)) \
	  api $(VENV)
	@[ ! -d _build/notebooks ] || echo "Your notebooks stay in _build/notebooks"

# The book needs no torch. A stamp is older than its requirements when they
# change, and then the environment is made anew.
$(VENV)/book: requirements/book.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; \
	  exit 1; }
	@[ ! -L $(VENV) ] || { \
	  echo "$(VENV) is a link, and what it leads to would be emptied and made"; \
	  echo "anew: remove the link first."; exit 1; }
	@echo "Making $(VENV) (once)"
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "Python has no venv: on Debian, apt install python3-venv."; exit 1; }
	@$(PINNED) --requirement requirements/book.txt || { \
	  echo "The packages did not install: is there a network? Then again."; \
	  exit 1; }
	@touch $@

$(VENV)/test: $(VENV)/book requirements/test.txt requirements/torch.txt \
  requirements/cuda.txt pyproject.toml
	@echo "Installing torch and the test tools (once)"
	@$(PINNED) --requirement requirements/test.txt && $(GET_TORCH) && \
	 $(PIP) install --no-build-isolation --no-deps --editable . && \
	 { said=$$($(BIN)/python -m pip check) || { echo "$$said"; false; }; } || { \
	  echo "The packages did not install. Is there a network, and is Python"; \
	  echo "3.14 or older? This torch has no build for a newer one."; \
	  exit 1; }
	@touch $@
