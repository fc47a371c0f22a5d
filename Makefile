# The project's commands. `make compare` is the main job; `make test` is what CI runs.

PYTHON ?= python3
SCENARIO ?= scenarios/eevdf-vs-cfs.toml
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
RUST := $(shell find crates -name '*.rs' -o -name '*.toml') $(wildcard machines/*.toml studies/*) Cargo.toml Cargo.lock
PAGE := out/$(basename $(notdir $(SCENARIO))).html

AGENT := python/schedlab/schedlab-agent
HOST = $(shell rustc -vV | sed -n 's/^host: //p')

export VIRTUAL_ENV := $(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: help compare build optimised agent wheels test new-cases lint bench agreement validate-host schedulers docs shell-files clean prerequisites

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make compare   build, compare CFS and EEVDF on the simulator, print the table; SCENARIO=... ARGS=... for others
compare: optimised
	@$(BIN)/schedlab compare $(SCENARIO) --html $(PAGE) $(ARGS)
	@echo
	@echo "report: $(PAGE)"

## make build     the schedlab command in .venv/bin for the inner loop: quick to build, its runs take several times as long
build: $(VENV)/built

## make optimised  the schedlab command in .venv/bin with an engine optimised as a whole, for comparisons and measurements
optimised: $(VENV)/optimised

## make agent     the program that runs tasks on real kernels: for --arm host, --arm vm, record and calibrate
agent: $(AGENT)

## make wheels    wheels for x86_64 and aarch64 in dist, each with engine and agent, tried in a fresh environment
wheels: $(VENV)/bin/maturin
	@PATH="$(BIN):$$PATH" $(BIN)/python tools/wheels.py

## make test      install what the tests need and run all of them; SUITES="rust python" for some
test: $(VENV)/built-for-tests $(AGENT)
	@$(BIN)/python tools/needs.py
	@$(BIN)/python tools/suites.py $(SUITES)

## make new-cases  the property tests with newly drawn cases; ROUNDS=5 for more, SEED=N to repeat the round of a seed
new-cases: $(VENV)/built-for-tests $(AGENT)
	@$(BIN)/python tools/new_cases.py $(or $(ROUNDS),1) $(SEED)

## make schedulers  the objects of the sched_ext schedulers that the tests use; needs clang-19 and llvm-19
schedulers:
	@$(MAKE) --no-print-directory -C crates/schedlab-bpf/schedulers

## make lint      formatters and linters only
lint: $(VENV)/built-for-tests
	@$(BIN)/python tools/suites.py lint

## make bench     speed as ratios: event queue, perf pipe, 480 CPUs, fair class; instructions per switch
bench: optimised
	@$(BIN)/python tools/needs.py bench
	@$(BIN)/python tools/bench.py

## make agreement  how often the rows decide the recorded corpus as its kernels did, as docs/models/replay.md shows it
agreement: optimised
	@$(BIN)/python tools/agreement.py

## make validate-host  the simulator against the running kernel, on a quiet machine; as root
validate-host: optimised agent
	@mkdir -p out/validation-host
	@$(BIN)/schedlab validate scenarios/validation-host/*.toml --arm host --runs out/validation-host \
	    --store out/validation-host.json --out out/validation-host.md

## make docs      the documentation site in out/docs
docs: $(VENV)/built-for-tests
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs out/docs
	@echo "site: out/docs/index.html"

## make shell-files  completion for bash, zsh and tcsh, and manual pages, in out/share, which is laid out as /usr/share
shell-files: $(VENV)/built-for-tests
	@$(BIN)/python tools/shell_files.py out/share

## make clean     remove everything that was built
clean:
	rm -rf target .venv out build dist python/schedlab/_engine*.so $(AGENT)

prerequisites:
	@sh tools/prerequisites.sh $(PYTHON)

$(VENV)/bin/maturin: | prerequisites
	@echo "preparing .venv" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet 'maturin==1.16.0'

# .venv holds one engine. `built` is newer than the sources with either; `optimised` exists only with that one.
$(VENV)/built: $(VENV)/bin/maturin pyproject.toml $(RUST)
	@echo "building the engine (quick to build; make optimised builds the fast one)" >&2
	@rm -f $(VENV)/optimised
	@PATH="$(BIN):$$PATH" $(BIN)/maturin develop --quiet >&2
	@touch $@

$(VENV)/optimised: $(VENV)/bin/maturin pyproject.toml $(RUST)
	@echo "building the engine (optimised)" >&2
	@PATH="$(BIN):$$PATH" $(BIN)/maturin develop --release --quiet >&2
	@touch $(VENV)/built $@

# Static, so that it also runs in an initramfs that holds nothing else.
$(AGENT): $(RUST) | prerequisites
	@echo "building the agent (static)" >&2
	@RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet -p schedlab-agent --profile agent --target $(HOST)
	@install -m 755 "$${CARGO_TARGET_DIR:-target}/$(HOST)/agent/schedlab-agent" $@

$(VENV)/built-for-tests: $(VENV)/optimised
	@echo "installing what the tests need into .venv" >&2
	@PATH="$(BIN):$$PATH" $(BIN)/maturin develop --release --quiet --extras dev >&2
	@touch $@
