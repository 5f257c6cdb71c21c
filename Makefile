# Hotline: everything that a user or a developer runs. Needs Python 3.11, g++, make and perl; all
# else comes from PyPI into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= 2
DATA ?= ml-100k
PRESET ?= ecp5
BENCH ?=
TRAIN ?=
BOARD ?= ulx3s-85f
SEEDS ?=
# More arguments for pip where PyTorch is installed, such as the index of another build of it.
TORCH_PIP ?=

VENV := .venv
BIN := $(VENV)/bin
SOURCES := gen rtl golden host fpga tb
# What the TorchRec adapter needs, and what `import torchrec` needs of all that it would pull in.
TORCHREC := torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0 'tensordict>=0.15,<0.16' pyre-extensions \
	typing-inspect mypy-extensions cloudpickle pyvers tqdm
TORCH := $(shell sed -n 's/^train = \["\(.*\)"\]$$/\1/p' pyproject.toml)

.DEFAULT_GOAL := help
.PHONY: help setup run train torchrec bitstream test lint format regress netlist bench results docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/test.stamp ## make the virtual environment in .venv

run: $(VENV)/run.stamp ## run a real click log through the simulated RTL (DATA=..., PRESET=...)
	$(BIN)/hotline run --data $(DATA) --preset $(PRESET) --output build/run

train: $(VENV)/torch.stamp ## train a DLRM with the RTL in the loop (DATA=..., PRESET=..., TRAIN="--check")
	$(BIN)/hotline train --data $(DATA) --preset $(PRESET) --json build/train/result.json \
		--plots build/train $(TRAIN)

torchrec: $(VENV)/test.stamp $(VENV)/torch.stamp ## install TorchRec, without CUDA, and test its adapter
	$(BIN)/python -m pip install --quiet --no-deps $(TORCH_PIP) $(TORCHREC)
	$(BIN)/python -m pytest -rs tb/test_train_torchrec.py

bitstream: $(VENV)/fpga.stamp ## build for a board (BOARD=ulx3s-85f, ecpix5-85f, ..., PRESET=..., SEEDS=...)
	$(BIN)/hotline synth --board $(BOARD) --preset $(PRESET) $(addprefix --seeds ,$(SEEDS)) \
		--output build/bitstream --json build/bitstream/$(PRESET)-$(BOARD).json

test: $(VENV)/test.stamp $(VENV)/torch.stamp ## all tests but the long ones (JOBS=2)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(VENV)/test.stamp ## ruff and mypy
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	@rm -rf build/typing && mkdir -p build/typing/hotline
	@for part in gen rtl golden host fpga; do ln -s ../../../$$part build/typing/hotline/$$part; done
	cd build/typing && MYPYPATH=. ../../$(BIN)/mypy --config-file ../../pyproject.toml \
		--cache-dir ../mypy-cache -p hotline.gen -p hotline.rtl -p hotline.golden -p hotline.host -p hotline.fpga

format: $(VENV)/test.stamp ## bring the sources into shape
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

regress: $(VENV)/test.stamp $(VENV)/torch.stamp ## all tests, the long campaigns too
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "slow or not slow" --timeout 7200

netlist: $(VENV)/test.stamp ## simulate the netlists of ECP5 and iCE40 against the golden model
	$(BIN)/python -m pytest -rs -n $(JOBS) --dist worksteal -m "slow or not slow" --timeout 3600 \
		tb/test_fpga_cells.py tb/test_netlist.py tb/test_rows_only.py

bench: $(VENV)/run.stamp ## measure the performance contract (PRESET=..., BENCH="--quick", ...)
	$(BIN)/hotline bench --preset $(PRESET) --json build/bench/$(PRESET).json \
		--plots build/bench $(BENCH)

results: $(VENV)/run.stamp ## write docs/results.md from the figures in docs/bench
	$(BIN)/hotline results docs/bench --output docs/results.md

docs: $(VENV)/docs.stamp ## the documents as HTML in build/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

clean: ## remove all that was built, but not .venv
	rm -rf build .pytest_cache .ruff_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The stamps are newer than pyproject.toml once the installation agrees with it.
$(VENV)/run.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@ $(VENV)/run.stamp

# Without its dependencies: they would be gigabytes of CUDA libraries, and a simulated device has no
# use for them. Where there is no wheel of it, its tests say so and are skipped.
$(VENV)/torch.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[torch-needs]'
	$(BIN)/python -m pip install --quiet --no-deps $(TORCH_PIP) $(TORCH) \
		|| echo "$(TORCH) could not be installed: what needs it will not run"
	@touch $@ $(VENV)/run.stamp

$(VENV)/fpga.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[fpga]'
	@touch $@ $(VENV)/run.stamp

$(VENV)/docs.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@
