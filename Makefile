# The commands that a newcomer needs. `make` alone lists them.

VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.built
TESTS  := $(VENV)/.test-tools
TRACE  := out/traces/postgres.fatr
# As it is shipped, beside the quick build of .venv.
SHIPPED := out/shipped
# What is shipped and measured is compiled with the profile of a build that counts what it does most, for a target if one is to be
# named; PROFILE=off leaves the profile out.
PROFILE ?= on
BUILT := $(or $(CARGO_TARGET_DIR),target)
profile = $(if $(filter off,$(PROFILE)),,$(BUILT)/profile$(addprefix -,$(1)))
profiled = $(if $(call profile,$(1)),RUSTFLAGS="$$(cat $(call profile,$(1)))")
HOST := $(shell uname -m)-unknown-linux-gnu
SOURCES := $(shell find crates devices papers python \( -name '*.rs' -o -name '*.toml' -o -name '*.pyi' \) \
  -not -path '*/tests/*' 2>/dev/null) Cargo.toml Cargo.lock pyproject.toml

# How much the tests prove: one in so many random cases and power failures. `make test-full` takes
# them all.
FLASHATLAS_PROOFS ?= 20
export FLASHATLAS_PROOFS

# What has tests: the bindings have none of their own, and are built by other commands already. The plugin of nbdkit is left in,
# which is built too: it asks for what the macros of the Python module do, so that nothing is compiled twice.
TESTED := --workspace --exclude flashatlas-python --exclude flashatlas-module

.DEFAULT_GOAL := help
.PHONY: help demo build package swarm test test-interleavings test-templates test-headers test-full test-slurm test-rust test-seeded-bugs test-python test-checked test-guides \
  system-tests crash crash-long fingerprints lint lint-rust lint-python bench bench-peers bench-served theory claims fuzz miri memcheck docs \
  clean tools shipped rustdoc header capi wheel test-wheel test-wheel-root pull-plug

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tools:
	@command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup (https://rustup.rs), 1.89 or later, then run this again."; exit 1; }
	@command -v python3 >/dev/null || { echo "Python is missing: install Python 3.10 or later with venv and pip, then run this again."; exit 1; }
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed; this is $$(python3 --version)."; exit 1; }
	@python3 -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing (Debian and Ubuntu: apt install python3-venv)."; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing (Debian and Ubuntu: apt install build-essential)."; exit 1; }

$(VENV)/.tools: | tools
	python3 -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" "maturin>=1.9,<2"
	@touch $@

$(STAMP): $(VENV)/.tools $(SOURCES)
	PIP_QUIET=1 $(VENV)/bin/maturin develop --release --quiet --extras report,study
	cargo build --release --quiet -p flashatlas-nbdkit
	install -m 755 $${CARGO_TARGET_DIR:-target}/release/libflashatlas_nbdkit.so python/flashatlas/
	@touch $@

$(TESTS): $(VENV)/.tools pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check --group test
	@touch $@

build: $(STAMP) ## build everything into .venv

$(BUILT)/profile $(BUILT)/profile-$(HOST): packaging/profile.sh packaging/train.py tests/fingerprints.py $(SOURCES) | $(STAMP)
	packaging/profile.sh $(filter $(HOST),$(subst profile-,,$(notdir $@))) > $@.new
	mv $@.new $@

$(TRACE): | $(STAMP)
	$(VENV)/bin/flashatlas trace fetch postgres --to $(dir $@)

demo: $(STAMP) $(TRACE) ## the main job on a real trace and on a fio job, and a study of every map, with reports in out/
	$(VENV)/bin/flashatlas compare --job examples/mixed.fio --drive tlc-small --precondition steady --vary ftl.victim=greedy,fifo \
	  --title "Two fio jobs on an aged drive" --force --out out/demo-fio > out/demo-fio.txt
	@echo "Report: out/demo-fio/report.html"
	@$(if $(wildcard $(FLASHATLAS_TRACES)/blkreplay_natural/linux-mysql.load.gz),$(MAKE) --no-print-directory demo-traces)
	$(VENV)/bin/flashatlas compare --drive tlc-small --trace $(TRACE) --fit compact --precondition steady --mode open \
	  --case "greedy:" \
	  --case "fifo:ftl.victim=fifo" \
	  --case "d-choices:ftl.victim=d-choices" \
	  --case "even pace:ftl.gc_pace=even" \
	  --case "28 % spare:drive.over_provisioning=0.28" \
	  --title "PostgreSQL on an aged TLC drive" --force --out out/demo
	$(VENV)/bin/flashatlas trace fetch demo --to $(dir $(TRACE))
	$(VENV)/bin/flashatlas trace slice $(TRACE) $(dir $(TRACE))pgbench.fatr --skip 40000 --count 5000
	$(VENV)/bin/flashatlas sweep examples/field.toml --keep record --report out/field.html > out/field.txt
	@echo "Study of 75 runs: out/field.html"

.PHONY: demo-traces
demo-traces: $(STAMP) # a database and a phone, where FLASHATLAS_TRACES names a folder with their traces
	$(VENV)/bin/flashatlas compare --drive mast-4gb --trace $(FLASHATLAS_TRACES)/blkreplay_natural/linux-mysql.load.gz --fit compact \
	  --precondition steady --mode open --vary ftl.victim=greedy,d-choices,fifo --title "A database" --force --out out/demo-mysql > out/demo-mysql.txt
	@echo "Report: out/demo-mysql/report.html"
	$(VENV)/bin/flashatlas compare --drive ufs-128gb --trace $(FLASHATLAS_TRACES)/mobile_pixel6a/pubg_exec.csv.gz --drop-duplicates 5ms \
	  --time-gap-max 1s --precondition trace:$(FLASHATLAS_TRACES)/mobile_pixel6a/pubg_precond.csv.gz --mode open \
	  --case "as it is:" --case "suspend:timing.suspend=both timing.t_suspend=20us" --title "A phone" --force --out out/demo-phone > out/demo-phone.txt
	@echo "Report: out/demo-phone/report.html"

# each half leaves the cores idle now and then: linking one crate, starting a process, waiting for a clock. Compiling does not:
# it comes first, and no test waits for it
test: $(STAMP) $(TESTS) ## the tests, one in FLASHATLAS_PROOFS (20) of the random cases and power failures, one of the thirteen longest proofs
	cargo test --release --quiet $(TESTED) --no-run
	@$(MAKE) --no-print-directory test-python & python=$$!; \
	$(MAKE) --no-print-directory test-rust $(addprefix test-,$(filter seeded-bugs interleavings templates,$(shell FLASHATLAS_PROOFS=$(FLASHATLAS_PROOFS) python3 tests/drawn.py))) crash; rust=$$?; \
	wait $$python && exit $$rust

test-full: ## all tests with every random case and power failure, checked arithmetic, an hour of swarm (two hours)
	$(MAKE) --no-print-directory test test-headers test-checked test-guides package swarm FLASHATLAS_PROOFS=1

# other cases each day; SWARM_FROM takes those of another one
SWARM_SECONDS ?= 3600
SWARM_FROM ?= $(shell date +%Y%m%d)000000
swarm: $(STAMP) ## parts together, with faults, drawn at random, for SWARM_SECONDS (3600)
	$(VENV)/bin/flashatlas check --for $(SWARM_SECONDS) --seed $(SWARM_FROM) --json out/swarm.json

test-rust: tools
	cargo test --release --quiet $(TESTED)

test-headers: header # the headers are what their interfaces make
	git diff --exit-code -- python/flashatlas/include crates/capi/include

package: tools ## every crate that can be published, packed and built from what was packed (minutes)
	cargo package --workspace --quiet --exclude flashatlas-benches --exclude flashatlas-module --exclude flashatlas-nbdkit

test-seeded-bugs: tools # bugs on purpose, which `crash` and the swarm must find; a build of their own
	cargo test --release --quiet -p flashatlas-crash -p flashatlas-conformance --features flashatlas-crash/seeded-bugs,flashatlas-conformance/seeded-bugs --test suite seeded_bugs

test-interleavings: tools # threads of clients on a server, in orders that shuttle draws; a build of its own
	cargo test --release --quiet -p flashatlas-serve --features interleavings --test interleavings

test-checked: tools # the Rust tests with debug assertions and overflow checks
	cargo test --profile checked --quiet $(TESTED)

test-templates: $(STAMP) $(TESTS) # a part of each kind in Rust, made, built and checked (a minute)
	FLASHATLAS_TEMPLATES=1 $(PY) -m pytest -q tests/test_scaffold.py -k rust

test-slurm: $(STAMP) $(TESTS) ## studies on a real Slurm of this machine (Debian, as root; installs it)
	@command -v slurmctld >/dev/null && command -v munged >/dev/null \
	  || { apt-get update -q && apt-get install -qy --no-install-recommends slurm-wlm munge; }
	$(PY) -m pip install --quiet --disable-pip-version-check dask-jobqueue
	FLASHATLAS_SLURM=1 $(PY) -m pytest -q tests/test_slurm.py

test-guides: $(STAMP) # the code of the guides compiles and passes the tests
	$(PY) tests/guides.py

# one process more than cores, as many tests wait for clocks and disks; bytecode first: they start hundreds of processes, a quarter of a second each to compile anew where none may be written
test-python: $(STAMP) $(TESTS)
	$(PY) -m compileall -q python/flashatlas
	$(PY) -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadscope

system-tests: ## what some tests use beside the rest (Debian, as root): Chromium, fio, nbdkit, valgrind; QEMU where its proof is drawn
	@guest=$$(FLASHATLAS_PROOFS=$(FLASHATLAS_PROOFS) python3 tests/drawn.py | grep -ow guest); PATH="$$PATH:/usr/sbin:/sbin"; \
	for program in fio chromium nbdkit nbdcopy valgrind mkfs.ext4 $${guest:+qemu-system-x86_64 qemu-img mmdebstrap bsdtar}; do \
	  command -v $$program >/dev/null || { apt-get update -q \
	    && exec apt-get install -qy --no-install-recommends fio chromium nbdkit libnbd-bin e2fsprogs valgrind $${guest:+qemu-system-x86 qemu-utils mmdebstrap libarchive-tools}; }; done

crash: $(STAMP) ## power failures of every scheme, map store and layer, one in FLASHATLAS_PROOFS (20)
	$(VENV)/bin/flashatlas crash --one-in $(FLASHATLAS_PROOFS) --json out/crash-1.json
	$(VENV)/bin/flashatlas crash --one-in $(FLASHATLAS_PROOFS) --depth 2 --geometry square --steps 60 --json out/crash-2.json
	$(VENV)/bin/flashatlas crash --one-in $(FLASHATLAS_PROOFS)0 --depth 2 --geometry lanes --scheme page --steps 60 --json out/crash-3.json

# PLUG="--kernel guest --times 2", "--shard 1/4", "--help"; what was tried is kept in out/ and not tried again
pull-plug: $(STAMP) ## the power fails under a real ext4, for every scheme, store and layer (root, Linux; minutes)
	$(PY) tests/pulled_plugs.py $(PLUG)

crash-long: $(STAMP) ## as crash, with more seeds, mounts cut on every geometry, and cuts of those mounts (hours)
	$(VENV)/bin/flashatlas crash --seeds 50
	$(VENV)/bin/flashatlas crash --depth 2 --seeds 10
	$(VENV)/bin/flashatlas crash --depth 3 --steps 40 --workload sequential,random,hot-cold,trim,collect,map-pages

wheel: $(STAMP) $(call profile,$(HOST)) ## a source distribution, and a wheel with the plugin of nbdkit, in dist/ (any Linux, any Python from 3.10 on)
	$(PY) -m pip install --quiet --disable-pip-version-check --group package
	$(PY) packaging/licences.py
	$(PY) packaging/sources.py
	rm -rf dist
	$(VENV)/bin/maturin sdist --out dist
	export PATH="$(CURDIR)/$(VENV)/bin:$$PATH" FLASHATLAS_COMMIT="$$(packaging/commit.sh)" $(call profiled,$(HOST)); \
	  cargo zigbuild --quiet --profile dist --config 'profile.dist.strip="symbols"' -p flashatlas-nbdkit --target $(HOST).2.17 \
	  && install -m 755 "$${CARGO_TARGET_DIR:-target}/$(HOST)/dist/libflashatlas_nbdkit.so" python/flashatlas/ \
	  && $(VENV)/bin/maturin build --profile dist --zig --compatibility manylinux2014 --out dist

test-wheel: $(VENV)/.tools # the wheel and the source distribution, installed where there is neither Rust nor this tree
	$(PY) packaging/check.py --sdist dist

test-wheel-root: # the wheel in a new Debian root (as root, with mmdebstrap)
	packaging/clean_root.sh

header: tools ## the C headers of plug-ins and of libflashatlas anew, of the src/abi.rs of their crates
	cargo run --release --quiet --manifest-path headers/Cargo.toml

# libflashatlas for programs in C; another profile (dist) takes longer and makes it faster
PREFIX ?= out/capi
CAPI_PROFILE ?= release

capi: tools ## libflashatlas, shared and static, with headers and pkg-config, in PREFIX (out/capi)
	cargo build --profile $(CAPI_PROFILE) --quiet -p flashatlas-capi
	crates/capi/install.sh $${CARGO_TARGET_DIR:-target}/$(CAPI_PROFILE) $(PREFIX)

fingerprints: $(STAMP) ## which results moved since tests/fingerprints.csv; WRITE=1 writes it anew
	$(PY) tests/fingerprints.py $(if $(WRITE),--write)

lint: lint-rust lint-python ## formatting and lints of both languages, and the links of the API documentation

lint-rust: rustdoc
	cargo fmt --check
	cargo fmt --check --manifest-path headers/Cargo.toml
	cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny --log-level warn check; else echo "cargo-deny is not installed: deny.toml was not checked"; fi

lint-python: $(STAMP) $(TESTS)
	$(VENV)/bin/ruff check python tests packaging docs/site examples benches fuzz
	$(VENV)/bin/ruff format --check python tests packaging docs/site examples benches fuzz
	$(VENV)/bin/mypy

bench: $(STAMP) $(TESTS) $(call profile) ## throughput beside a floor program; PARTS="engine setup", ROUNDS=5 (least/median of each number), TIMES=2 (longer)
	$(call profiled) cargo build --profile dist --quiet -p flashatlas-benches
	$(PY) benches/rounds.py --rounds $(or $(ROUNDS),1) -- $${CARGO_TARGET_DIR:-target}/dist/bench $(if $(TIMES),--times $(TIMES)) $(PARTS)
	$(if $(PARTS),,$(PY) benches/python_parts.py)

bench-peers: $(STAMP) ## the same drive and loads through MQSim (FLASHATLAS_MQSIM names its binary) and ours, in turns
	@$(if $(FLASHATLAS_MQSIM),$(MAKE) --no-print-directory shipped)
	PYTHONPATH=$(CURDIR)/$(SHIPPED)/python $(PY) benches/peers.py

# An optimised build, beside an optimised build of another simulator.
shipped: $(STAMP) $(call profile)
	rm -rf $(SHIPPED)
	$(call profiled) $(VENV)/bin/maturin build --quiet --profile dist --out $(SHIPPED)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --target $(SHIPPED)/python $(SHIPPED)/*.whl

bench-served: $(STAMP) ## fio on a served drive and on nbdkit's memory plugin, in turns (two minutes)
	$(PY) benches/served.py

theory: $(STAMP) ## write amplification: every model beside its simulation (minutes)
	$(VENV)/bin/flashatlas reproduce theory

claims: $(STAMP) ## what the five papers published beside ours: all experiments, docs/CLAIMS.md (half an hour)
	$(PY) tests/claims.py

# what cargo-fuzz sets, but for the sanitizer, which needs a nightly compiler and finds nothing in safe code
FUZZ_SECONDS := 60
FUZZ_FLAGS := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=8
FUZZ_HOST = $(shell rustc -vV 2>/dev/null | sed -n 's/host: //p')

fuzz: $(STAMP) ## fuzz every parser and every reader in Python, FUZZ_SECONDS (60) each; what is found lies in out/fuzz
	$(PY) fuzz/readers.py --seconds $(FUZZ_SECONDS) --seed $$(date +%Y%m%d)
	cd fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --quiet --target $(FUZZ_HOST)
	@for target in $$(ls fuzz/fuzz_targets | sed 's/[.]rs$$//'); do \
	  mkdir -p out/fuzz/$$target && echo "$$target" && \
	  fuzz/target/$(FUZZ_HOST)/release/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=20 -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=out/fuzz/$$target- out/fuzz/$$target fuzz/corpus/$$target > out/fuzz/$$target.log 2>&1 \
	    || { tail -40 out/fuzz/$$target.log; exit 1; }; \
	done

miri: tools ## undefined behaviour in types, nand and ftl, by the interpreter (minutes; needs a nightly toolchain with miri)
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --quiet -p flashatlas-types -p flashatlas-nand --lib
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --quiet -p flashatlas-ftl --lib -- --skip steady

memcheck: tools ## the tests of types, nand and ftl under Valgrind (a minute)
	CARGO_TARGET_$(shell echo $(FUZZ_HOST) | tr 'a-z-' 'A-Z_')_RUNNER="valgrind -q --error-exitcode=9" \
	  cargo test --quiet -p flashatlas-types -p flashatlas-nand -p flashatlas-ftl

# the profile of clippy, so that dependencies are checked once
rustdoc: tools ## the API documentation of the Rust crates
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --exclude flashatlas-python --exclude flashatlas-module --no-deps --quiet

$(VENV)/.docs-tools: $(VENV)/.tools pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@

docs: $(STAMP) $(VENV)/.docs-tools ## the documentation site in out/site, with man pages; broken links are errors
	$(PY) docs/site/gallery.py
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs/site . out/site
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning -b man -c docs/site . out/man
	@echo "Site: out/site/docs/index.html, man page: out/man/flashatlas.1"

clean: ## remove everything that was built
	rm -rf target $(VENV) out
