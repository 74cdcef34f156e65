# make study   set up what is needed and run the main study on the reference store
# make test    pass the tests (real stores' tests run where the stores are installed)
# make help    all targets

VENV    := .venv
BIN     := $(VENV)/bin
# Tests that only compute run on all cores; those that ask what happened, and not how long it took,
# two at a time; those that measure, one at a time
COMPUTING := tests/analysis $(filter-out %/test_places.py,$(wildcard tests/topologies/test_*.py))
ASKING := $(filter-out %/test_kill.py,$(wildcard $(addsuffix /test_*.py,\
    tests/experiments tests/experiments/drill tests/systems tests/wanlat)))
# Where AGAIN is set, as CI does, what failed in Rust is tried once more (of pytest: PYTEST_ADDOPTS)
ONCE_MORE := { echo "Failed. Once more; what is broken fails twice."; cargo test --release --locked --quiet; }
# The first of these that is recent enough; override with make PYTHON=/path/to/python3
PYTHON  ?= $(shell tools/prerequisites python 2>/dev/null)
CRATES  := target/release/.built
RUST    := $(shell find emulator/wire probes/oneshot proto systems/quorum -name '*.rs' -o -name '*.proto' -o -name Cargo.toml 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help study test test-sound test-stores test-kernel lint format build setup bench clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

study: build  ## Set up and run the endpoint-latency study on the reference store
	@$(BIN)/wanlat run endpoint-latency --systems quorum

build: $(VENV)/.run $(CRATES)  ## Make the environment and build the Rust programs

setup: build $(VENV)/.dev  ## The same, with what the tests need

$(VENV)/.run: requirements.txt pyproject.toml
	@tools/prerequisites check
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the Python packages (pinned, hashed) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.txt
	@echo "Installing what the tests need ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

$(CRATES): Cargo.toml Cargo.lock $(RUST)
	@tools/prerequisites check
	@echo "Building the Rust programs (two to three minutes the first time) ..."
	@cargo build --release --locked
	@touch $@

test: setup  ## Pass the tests
	@cargo test --release --locked --quiet $(if $(AGAIN),|| $(ONCE_MORE))
	@$(BIN)/python -m pytest -n $$(nproc) $(COMPUTING)
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not stores" $(ASKING)
	@$(BIN)/python -m pytest -m "not stores" $(addprefix --ignore=,$(COMPUTING) $(ASKING))

test-sound: setup  ## Play the shipped drills 50 times without a defect: none may report a loss
	@WANLAT_SOUND_RUNS=50 $(BIN)/python -m pytest tests/drills/test_sound.py

test-stores: setup  ## Pass the tests on real stores (wanlat systems install garage minio)
	@$(BIN)/python -m pytest -m stores

test-kernel: setup  ## Pass the netem backend's tests inside User-Mode Linux
	@$(BIN)/python -m tests.kernel.boot

lint: setup  ## Check format, lints and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@cargo fmt --check
	@cargo clippy --release --locked --quiet --all-targets -- -D warnings

format: setup  ## Format everything
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .
	@cargo fmt

bench: setup  ## What the probe costs, beside its peers, what verifying costs, what the generator reaches
	@$(BIN)/python -m benchmarks.probe
	@$(BIN)/python -m benchmarks.verify
	@$(BIN)/python -m benchmarks.generator

clean:  ## Remove what was built here (not the stores in the user's cache)
	@rm -rf $(VENV) target
