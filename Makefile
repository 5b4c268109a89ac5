# The commands that a newcomer needs. `make` alone lists them.

VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.built
TRACE  := out/traces/cloudPhysicsIO.vscsi
SOURCES := $(shell find crates devices python -name '*.rs' -o -name '*.toml' -o -name '*.pyi' 2>/dev/null) Cargo.toml Cargo.lock pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo build test test-rust test-python lint bench theory fuzz docs clean tools

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tools:
	@command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup (https://rustup.rs), 1.85 or later, then run this again."; exit 1; }
	@command -v python3 >/dev/null || { echo "Python is missing: install Python 3.10 or later with venv and pip, then run this again."; exit 1; }
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed; this is $$(python3 --version)."; exit 1; }
	@python3 -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing (Debian and Ubuntu: apt install python3-venv)."; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing (Debian and Ubuntu: apt install build-essential)."; exit 1; }

$(VENV)/.tools: | tools
	python3 -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	@touch $@

$(STAMP): $(VENV)/.tools $(SOURCES)
	PIP_QUIET=1 $(VENV)/bin/maturin develop --release --quiet --extras test
	@touch $@

build: $(STAMP) ## build everything into .venv

$(TRACE): | $(STAMP)
	$(VENV)/bin/flashatlas trace fetch cloudphysics --to $(dir $@)

demo: $(STAMP) $(TRACE) ## the main job on a real trace, with a report in out/demo/report.html
	$(VENV)/bin/flashatlas compare --drive tlc-small --trace $(TRACE) --shift -7 --fit compact --precondition fill --mode open \
	  --case "greedy:" \
	  --case "fifo:ftl.victim=fifo" \
	  --case "cost-benefit:ftl.victim=cost-benefit" \
	  --case "4 streams:ftl.classifier=dac ftl.streams=4 ftl.low_water=4" \
	  --case "eager idle:ftl.idle_free=8 ftl.idle_valid=0.8" \
	  --title "Collection on a small TLC drive, CloudPhysics trace" --out out/demo

test: test-rust test-python ## all tests, and the README's commands with their output

test-rust: tools
	cargo test --workspace --exclude flashatlas-python --quiet

test-python: $(STAMP)
	$(PY) -m pytest

lint: $(STAMP) ## formatting and lints of both languages
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(VENV)/bin/ruff check python tests
	$(VENV)/bin/ruff format --check python tests

bench: tools ## throughput, as ratios to a floor program measured in the same run
	cargo run --release --quiet -p flashatlas-benches

theory: $(STAMP) ## write amplification: every model beside its simulation (minutes)
	$(VENV)/bin/flashatlas reproduce theory

fuzz: tools ## fuzz every parser, a minute each (needs cargo-fuzz and a nightly toolchain)
	cd fuzz && for target in $$(cargo +nightly fuzz list); do cargo +nightly fuzz run $$target -- -max_total_time=60 || exit 1; done

docs: tools ## the API documentation of the Rust crates
	cargo doc --workspace --exclude flashatlas-python --no-deps

clean: ## remove everything that was built
	rm -rf target $(VENV) out
