# make study   set up what is needed and run the main study on the reference store
# make test    pass the tests that need nothing but what README names; make test-all: all of them
# make help    all targets

VENV    := .venv
BIN     := $(VENV)/bin
# Tests mostly wait for emulated distance, so that two processors carry four at a time.
WORKERS ?= 4
PYTEST  := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
ALONE   := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m alone
# All but what compilers of .proto files are needed for, which take as long to build as all the rest.
TESTED  := --workspace --exclude generate
LONG    := WANLAT_LONG=1 RUST_TEST_THREADS=8 cargo test --release --locked --quiet -p wire --test all
KERNEL   = WANLAT_LONG=1 $(BIN)/python -m tests.kernel.boot
# The first of these that is recent enough; override with make PYTHON=/path/to/python3
PYTHON  ?= $(shell tools/prerequisites python 2>/dev/null)
CRATES  := target/release/.built
RUST    := $(shell find emulator/wire probes/oneshot proto systems/quorum -name '*.rs' -o -name '*.proto' -o -name Cargo.toml 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: .ready .distribution .rest .rust-tests .lint-python .lint-rust help study test test-all test-minutes test-programs test-registry test-stores test-kernel wheel share sdist release docs lint format build setup bench results findings clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

study: build  ## Set up and run the endpoint-latency study on the reference store
	@echo "Measuring the reference store on five emulated sites: about a minute and a half ..."
	@$(BIN)/wanlat run endpoint-latency --systems quorum

# Side by side: one waits for the package index, the other for the processors.
build:  ## Make the environment and build the Rust programs
	@$(MAKE) -sq --no-print-directory $(VENV)/.run $(CRATES) || { tools/prerequisites check && \
	    $(MAKE) --no-print-directory -j2 $(VENV)/.run $(CRATES); }

.ready:
	@tools/prerequisites tests

setup: build $(VENV)/.dev  ## The same, with what the tests need
	@cargo build --release --locked --quiet --workspace

$(VENV)/.run: requirements.txt pyproject.toml setup.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@tools/calmly target/pip.log "Installing the Python packages (pinned, hashed): about a minute" packages \
	    sh -ec '"$$@" --require-hashes -r requirements.txt; "$$@" --no-deps --no-build-isolation --editable .' \
	    pip $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.txt
	@tools/calmly target/pip-dev.log "Installing what the tests need (pinned, hashed): about a minute" packages \
	    $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.run requirements-docs.txt
	@tools/calmly target/pip-docs.log "Installing what the documentation needs (pinned, hashed)" packages \
	    $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes -r requirements-docs.txt
	@touch $@

$(CRATES): Cargo.toml Cargo.lock $(RUST)
	@CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=80 tools/calmly target/build.log \
	    "Building the Rust programs: two to three minutes the first time" crates cargo build --release --locked
	@touch $@

# Side by side, as in build.
test: .ready build  ## Pass the tests that need nothing but what README names (6 minutes)
	@$(MAKE) --no-print-directory -j2 $(VENV)/.dev .rust-tests
	@RUST_TEST_THREADS=8 cargo test --release --locked --quiet $(TESTED)
	@$(PYTEST) -m "not minutes and not alone and not programs and not registry and not stores" --ignore tests/kernel

.rust-tests:
	@cargo build --release --locked --quiet --workspace
	@tools/calmly target/tests.log "Building the Rust tests: about two minutes the first time" crates \
	    cargo test --release --locked $(TESTED) --no-run

# What test-all adds in Python; stores among it where they are there.
REST ?= minutes or programs or registry or stores

test-all: test  ## Pass all tests; what needs something absent is skipped, and says how to get it (half an hour)
	@$(PYTEST) -m "$(REST)"
	@$(LONG)
	@$(ALONE)
	@$(KERNEL)

.rest: .ready setup
	@$(PYTEST) -m "$(REST)"

test-minutes: .ready setup  ## Pass the tests that need nothing but time (8 minutes)
	@$(LONG)
	@$(PYTEST) -m "minutes and not stores and not programs"
	@$(ALONE)

test-programs: .ready setup  ## Pass those that need tshark, nginx, zsh, fish, Mininet, grpcurl, Go, chromium, sshd or Slurm (several minutes)
	@$(PYTEST) -m programs

test-registry: .ready setup  ## Pass those that install packages: wheels, in empty environments (three minutes)
	@$(PYTEST) -m registry

.distribution: .ready setup
	@$(BIN)/python -m pytest tests/wanlat/test_wheel_for_distribution.py

test-stores: .ready setup  ## Pass those that need a real store: wanlat system install garage minio (4 minutes)
	@$(PYTEST) -m stores

test-kernel: .ready setup  ## Pass those of netem, inside User-Mode Linux (5 minutes)
	@$(KERNEL)

wheel: share  ## Build a wheel of everything for this machine, the Rust programs included, into dist/
	@rm -rf build
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	@ls dist/wanlat-*.whl

docs: $(VENV)/.docs  ## Build the documentation into target/site; a broken link or an orphan page fails (10 seconds)
	@PYTHONPATH=. NO_MKDOCS_2_WARNING=1 tools/calmly target/docs.log "Building the documentation" pages \
	    $(BIN)/mkdocs build --strict
	@echo "target/site/index.html; with its search: $(BIN)/python -m http.server -d target/site"

# The man page and the completion scripts, which packages hold.
share: setup
	@rm -rf share
	@PYTHONPATH=. $(BIN)/python tools/share.py share

sdist: share  ## Build a source distribution into dist/
	@$(BIN)/python -c 'from setuptools import build_meta; print(build_meta.build_sdist("dist"))' | tail -n 1

release: setup  ## Carry out the checklist of a release, up to the upload (more than an hour)
	@tools/release

lint: setup  ## Check format, lints, types, words and the rooms' lines
	@$(MAKE) --no-print-directory -j2 --output-sync=target .lint-python .lint-rust

.lint-python:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m tools.words
	@$(BIN)/python -m tools.sizes

.lint-rust:
	@cargo fmt --check
	@cargo clippy --release --locked --quiet --workspace --all-targets -- -D warnings

format: setup  ## Format everything
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .
	@cargo fmt

bench: setup  ## What the probe costs, beside its peers, what verifying costs, what the generator reaches, what a point costs
	@$(BIN)/python -m benchmarks.probe
	@$(BIN)/python -m benchmarks.verify
	@$(BIN)/python -m benchmarks.generator
	@$(BIN)/python -m benchmarks.points

# Of these alone: make results ONLY="envelope/redis drills/nodes"
results: setup  ## Measure what docs/results/results.yaml lists, and pack all bundles into one archive below dist/ (days; it resumes)
	@$(BIN)/python -m tools.results $(ONLY)

findings:  ## Run findings/*.sh: surprises of other people's software, beside wanlat (a minute each; installs public packages)
	@for finding in findings/*.sh; do echo "== $$finding"; "$$finding" || exit 1; done

clean:  ## Remove what was built here (not the stores in the user's cache)
	@rm -rf .venv target build dist share *.egg-info
