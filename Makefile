# `make` alone lists what there is. Everything is installed on first use, into .venv, again only when
# pyproject.toml or constraints.txt changes.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp
EXTRAS ?= dev,metrics,report
# Another interpreter: make install PYTHON=python3.13
PYTHON ?=
# Another source of torch, say PyTorch's index of CPU builds: make install TORCH_PIP='--index-url URL'
TORCH_PIP ?=
# One test file, one process: make test ARGS=tests/test_packets.py
ARGS   ?= -n auto --maxprocesses 4 --dist worksteal --durations=8 --durations-min=5

.PHONY: help install demo test check bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## set up .venv with feddg and the tools (done for you by the others)

demo: $(STAMP) ## train three methods on the embedded digits, an unseen rotation held out
	@$(BIN)/feddg demo

test: $(STAMP) ## run the tests
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(ARGS)

check: $(STAMP) ## lint, formatting, strict types
	@status=0; \
	for tool in 'ruff check' 'ruff format --check' mypy; do $(BIN)/$$tool || status=1; done; \
	exit $$status

bench: $(STAMP) ## speed beside plain PyTorch, Flower, NVFlare and pfl, then benchmarks/
	@$(BIN)/feddg bench-speed
	@for file in benchmarks/*.py; do echo "== $$file"; \
	  case $$file in *gpu*) nvidia-smi >/dev/null 2>&1 || { echo "left out: no GPU here"; continue; };; esac; \
	  $(BIN)/python "$$file"; \
	done

clean: ## remove .venv and every cache (data/ and runs/ stay)
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@python=$(PYTHON); \
	for it in python3.11 python3 python3.12 python3.13; do \
	  test -n "$$python" && break; \
	  "$$it" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && python=$$it; \
	done; \
	test -n "$$python" || { echo "feddg needs Python 3.11 or newer, with venv: install it, or name it with make PYTHON=..."; exit 2; }; \
	echo "Setting up $(VENV) with $$("$$python" --version): a minute or two, once."; \
	$(BIN)/python -m pip --version >/dev/null 2>&1 || "$$python" -m venv $(VENV)
	@# torch first and alone; constraints.txt says why. torchvision without its dependencies: torch,
	@# numpy and pillow are there, and it must not choose a torch.
	@$(BIN)/python -m pip install --constraint constraints.txt $(TORCH_PIP) torch
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --no-deps torchvision
	@touch $@; echo "Ready: $(BIN)/feddg --help"
