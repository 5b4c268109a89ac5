# The commands that a newcomer needs. `make` alone lists them.

VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.built
TESTS  := $(VENV)/.test-tools
TRACE  := out/traces/postgres.fatr
# The build as it is shipped; .venv has a quick build.
SHIPPED := out/shipped
# Benchmarks are compiled with a profile of the code that runs most (docs/adr/0030). PROFILE=off
# leaves the profile out; without llvm-profdata it is left out, too.
PROFILE ?= on
BUILT := $(or $(CARGO_TARGET_DIR),target)
profile := $(if $(filter off,$(PROFILE)),,$(BUILT)/profile)
profiled := $(if $(profile),RUSTFLAGS="$$(cat $(profile))")
HOST := $(shell uname -m)-unknown-linux-gnu
SOURCES := $(shell find crates devices papers python -not -path '*/tests/*' \
  \( -name '*.rs' -o -name '*.toml' -o -name '*.pyi' \) 2>/dev/null) \
  Cargo.toml Cargo.lock pyproject.toml

# The tests try one in this number of random cases and power failures. `make test-full` tries all.
FLASHATLAS_PROOFS ?= 20
export FLASHATLAS_PROOFS

# The packages with tests. The bindings have no tests of their own, and other commands build them.
# The plugin of nbdkit stays in the list: it needs the same features of its dependencies as the
# Python module, so no dependency is compiled twice.
TESTED := --workspace --exclude flashatlas-python --exclude flashatlas-module

.DEFAULT_GOAL := help
.PHONY: help tools build demo demo-traces clean \
  test test-full test-rust test-python test-headers test-checked test-guides test-seeded-bugs \
  test-interleavings test-templates test-slurm system-tests lint lint-rust lint-python \
  fingerprints crash crash-long swarm pull-plug fuzz miri memcheck \
  bench bench-peers bench-served bench-doors theory claims docs rustdoc \
  wheel test-wheel test-wheel-root shipped package header capi

##@ Begin

help: ## list the commands
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tools:
	@command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup" \
	  "(https://rustup.rs), 1.89 or later, then run this again."; exit 1; }
	@command -v python3 >/dev/null || { echo "Python is missing: install Python 3.10 or later" \
	  "with venv and pip, then run this again."; exit 1; }
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "Python 3.10 or later is needed; this is $$(python3 --version)."; exit 1; }
	@python3 -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing" \
	  "(Debian and Ubuntu: apt install python3-venv)."; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing" \
	  "(Debian and Ubuntu: apt install build-essential)."; exit 1; }

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

$(BUILT)/profile: packaging/profile.sh packaging/train.py tests/fingerprints.py \
  $(SOURCES) | $(STAMP)
	packaging/profile.sh > $@.new
	mv $@.new $@

$(TRACE): | $(STAMP)
	$(VENV)/bin/flashatlas trace fetch postgres --to $(dir $@)

demo: $(STAMP) $(TRACE) ## the main job on a real trace, a fio job, a study of every map, in out/
	$(VENV)/bin/flashatlas compare --job examples/mixed.fio --drive tlc-small \
	  --precondition steady --vary ftl.victim=greedy,fifo \
	  --title "Two fio jobs on an aged drive" --force --out out/demo-fio > out/demo-fio.txt
	@echo "Report: out/demo-fio/report.html"
	@$(if $(wildcard $(DATABASE)),$(MAKE) --no-print-directory demo-traces)
	@echo "What does PostgreSQL pay when 128 KiB of its drive's map (2.75 MiB) are in memory?"
	$(VENV)/bin/flashatlas compare --drive tlc-small --trace $(TRACE) --fit compact \
	  --precondition steady --until steady --mode closed --depth 4 \
	  --case "in DRAM:" \
	  --case "DFTL:map.store=dftl map.cache_bytes=128KiB" \
	  --case "S-FTL:map.store=sftl map.cache_bytes=128KiB" \
	  --case "TPFTL:map.store=tpftl map.cache_bytes=128KiB" \
	  --case "LeaFTL:map.store=leaftl map.cache_bytes=128KiB" \
	  --title "PostgreSQL and the maps of an aged TLC drive" --force --out out/demo
	$(VENV)/bin/flashatlas trace fetch demo --to $(dir $(TRACE))
	$(VENV)/bin/flashatlas trace slice $(TRACE) $(dir $(TRACE))pgbench.fatr --skip 40000 --count 5000
	$(VENV)/bin/flashatlas sweep examples/field.toml --keep record --report out/field.html \
	  > out/field.txt
	@echo "Study of 75 runs: out/field.html"

# A database and a phone, if FLASHATLAS_TRACES names a folder with their traces.
DATABASE := $(FLASHATLAS_TRACES)/blkreplay_natural/linux-mysql.load.gz
PHONE := $(FLASHATLAS_TRACES)/mobile_pixel6a

demo-traces: $(STAMP)
	$(VENV)/bin/flashatlas compare --drive mast-4gb --trace $(DATABASE) --fit compact \
	  --precondition steady --mode open --vary ftl.victim=greedy,d-choices,fifo \
	  --title "A database" --force --out out/demo-mysql > out/demo-mysql.txt
	@echo "Report: out/demo-mysql/report.html"
	$(VENV)/bin/flashatlas compare --drive ufs-128gb --trace $(PHONE)/pubg_exec.csv.gz \
	  --drop-duplicates 5ms --time-gap-max 1s --mode open \
	  --precondition trace:$(PHONE)/pubg_precond.csv.gz \
	  --case "as it is:" --case "suspend:timing.suspend=both timing.t_suspend=20us" \
	  --title "A phone" --force --out out/demo-phone > out/demo-phone.txt
	@echo "Report: out/demo-phone/report.html"

##@ Test

# the drawn proofs (tests/drawn.py) that have a target of their own
DRAWN = $(filter seeded-bugs interleavings templates,\
  $(shell FLASHATLAS_PROOFS=$(FLASHATLAS_PROOFS) python3 tests/drawn.py))

# The two halves run side by side, because each leaves cores idle when it links a crate, starts a
# process or waits for a clock. Compiling keeps all cores busy, so it comes first.
test: $(STAMP) $(TESTS) ## all tests; one in FLASHATLAS_PROOFS (20) of the random cases
	cargo test --release --quiet $(TESTED) --no-run
	@$(MAKE) --no-print-directory test-python & python=$$!; \
	$(MAKE) --no-print-directory test-rust $(addprefix test-,$(DRAWN)) crash; rust=$$?; \
	wait $$python && exit $$rust

test-full: ## every random case and power failure, and an hour of swarm (two hours)
	$(MAKE) --no-print-directory FLASHATLAS_PROOFS=1 \
	  test test-headers test-fuzz test-checked test-guides package swarm

# each day has its own cases; SWARM_FROM=YYYYMMDD000000 repeats the cases of another day
SWARM_SECONDS ?= 3600
SWARM_FROM ?= $(shell date +%Y%m%d)000000
swarm: $(STAMP) ## random combinations of parts, with faults, for SWARM_SECONDS (3600)
	$(VENV)/bin/flashatlas check --for $(SWARM_SECONDS) --seed $(SWARM_FROM) --json out/swarm.json

test-rust: tools
	cargo test --release --quiet $(TESTED)

test-headers: header # the headers equal those that the interfaces generate
	git diff --exit-code -- python/flashatlas/include crates/capi/include

test-fuzz: tools # the fuzz targets compile; only a run of fuzzing builds them otherwise
	cd fuzz && cargo check --quiet --locked

package: tools ## pack each crate that can be published, and build it from the package (minutes)
	cargo package --workspace --quiet \
	  --exclude flashatlas-benches --exclude flashatlas-module --exclude flashatlas-nbdkit

test-seeded-bugs: tools # bugs on purpose, which crash and swarm must find; a build of their own
	cargo test --release --quiet -p flashatlas-crash -p flashatlas-conformance \
	  --features flashatlas-crash/seeded-bugs,flashatlas-conformance/seeded-bugs \
	  --test suite seeded_bugs

test-interleavings: tools # clients of a server, in orders that shuttle draws; a build of its own
	cargo test --release --quiet -p flashatlas-serve --features interleavings --test interleavings

test-checked: tools # the Rust tests with debug assertions and overflow checks
	cargo test --profile checked --quiet $(TESTED)

test-templates: $(STAMP) $(TESTS) # a part of each kind in Rust, made, built and checked (a minute)
	FLASHATLAS_TEMPLATES=1 $(PY) -m pytest -q tests/test_scaffold.py -k rust

test-slurm: $(STAMP) $(TESTS) ## studies on a real Slurm (Debian, as root; installs it)
	@command -v slurmctld >/dev/null && command -v munged >/dev/null \
	  || { apt-get update -q && apt-get install -qy --no-install-recommends slurm-wlm munge; }
	$(PY) -m pip install --quiet --disable-pip-version-check dask-jobqueue
	FLASHATLAS_SLURM=1 $(PY) -m pytest -q tests/test_slurm.py

test-guides: $(STAMP) # the code of the guides compiles and passes the tests
	$(PY) tests/guides.py

# One process more than cores, because many tests wait for clocks and disks. Bytecode comes first:
# tests start hundreds of processes, and each takes a quarter of a second longer without bytecode.
test-python: $(STAMP) $(TESTS)
	$(PY) -m compileall -q python/flashatlas
	$(PY) -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadscope

# the programs that tests use, and their packages; QEMU if its proof is drawn
PROGRAMS := fio chromium nbdkit nbdcopy valgrind mkfs.ext4
PACKAGES := fio chromium nbdkit libnbd-bin e2fsprogs valgrind
GUEST_PROGRAMS := qemu-system-x86_64 qemu-img mmdebstrap bsdtar
GUEST_PACKAGES := qemu-system-x86 qemu-utils mmdebstrap libarchive-tools

system-tests: ## install what some tests use: Chromium, fio, nbdkit, valgrind, QEMU (Debian, root)
	@guest=$$(FLASHATLAS_PROOFS=$(FLASHATLAS_PROOFS) python3 tests/drawn.py | grep -ow guest); \
	PATH="$$PATH:/usr/sbin:/sbin"; \
	for program in $(PROGRAMS) $${guest:+$(GUEST_PROGRAMS)}; do \
	  command -v $$program >/dev/null || { apt-get update -q && exec apt-get install -qy \
	    --no-install-recommends $(PACKAGES) $${guest:+$(GUEST_PACKAGES)}; }; done

crash: $(STAMP) ## power failures of every part, one in FLASHATLAS_PROOFS (20)
	$(VENV)/bin/flashatlas crash --one-in $(FLASHATLAS_PROOFS) --json out/crash-1.json
	$(VENV)/bin/flashatlas crash --one-in $(FLASHATLAS_PROOFS) --json out/crash-2.json \
	  --depth 2 --geometry square --steps 60
	$(VENV)/bin/flashatlas crash --one-in $(FLASHATLAS_PROOFS)0 --json out/crash-3.json \
	  --depth 2 --geometry lanes --steps 60 --scheme page
	$(VENV)/bin/flashatlas crash --one-in $(FLASHATLAS_PROOFS) --json out/crash-4.json \
	  --interface nvme

# PLUG="--kernel guest --times 2", "--shard 1/4", "--help"; results are kept in out/, and a cell
# with a result is not tried again
pull-plug: $(STAMP) ## the power fails under a real ext4, for every part (root, Linux; minutes)
	$(PY) tests/pulled_plugs.py $(PLUG)

crash-long: $(STAMP) ## like crash, with more seeds, and with cut mounts on every geometry (hours)
	$(VENV)/bin/flashatlas crash --seeds 50
	$(VENV)/bin/flashatlas crash --depth 2 --seeds 10
	$(VENV)/bin/flashatlas crash --depth 3 --steps 40 \
	  --workload sequential,random,hot-cold,trim,collect,map-pages

##@ Package

wheel: $(STAMP) ## a source distribution and a wheel (any Linux, Python from 3.10 on) in dist/
	$(PY) -m pip install --quiet --disable-pip-version-check --group package
	$(PY) packaging/licences.py
	$(PY) packaging/sources.py
	rm -rf dist
	$(VENV)/bin/maturin sdist --out dist
	export PATH="$(CURDIR)/$(VENV)/bin:$$PATH" FLASHATLAS_COMMIT="$$(packaging/commit.sh)"; \
	  cargo zigbuild --quiet --profile dist --config 'profile.dist.strip="symbols"' \
	    -p flashatlas-nbdkit --target $(HOST).2.17 \
	  && install -m 755 $(BUILT)/$(HOST)/dist/libflashatlas_nbdkit.so python/flashatlas/ \
	  && $(VENV)/bin/maturin build --profile dist --zig --compatibility manylinux2014 --out dist

test-wheel: $(VENV)/.tools # install the packages without Rust and without this tree
	$(PY) packaging/check.py --sdist dist

test-wheel-root: # the wheel in a new Debian root (as root, with mmdebstrap)
	packaging/clean_root.sh

header: tools ## generate the C headers from the C ABIs of the crates plugin and capi
	cargo run --release --quiet --manifest-path headers/Cargo.toml

# CAPI_PROFILE=dist takes longer to build, and makes libflashatlas faster
PREFIX ?= out/capi
CAPI_PROFILE ?= release

capi: tools ## libflashatlas, shared and static, with headers and pkg-config, in PREFIX (out/capi)
	cargo build --profile $(CAPI_PROFILE) --quiet -p flashatlas-capi
	crates/capi/install.sh $${CARGO_TARGET_DIR:-target}/$(CAPI_PROFILE) $(PREFIX)

##@ Check

fingerprints: $(STAMP) ## which results moved since tests/fingerprints.csv; WRITE=1 writes it anew
	$(PY) tests/fingerprints.py $(if $(WRITE),--write)

lint: lint-rust lint-python ## formatting, lints, links of the API documentation, titles of commits
	python3 tests/commit_titles.py

lint-rust: rustdoc
	cargo fmt --check
	cargo fmt --check --manifest-path headers/Cargo.toml
	cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny --log-level warn check; \
	  else echo "cargo-deny is not installed: deny.toml was not checked"; fi

lint-python: $(STAMP) $(TESTS)
	$(VENV)/bin/ruff check python tests packaging docs/site examples benches fuzz
	$(VENV)/bin/ruff format --check python tests packaging docs/site examples benches fuzz
	$(VENV)/bin/mypy

##@ Measure

# ROUNDS=5 prints least and median of each number, TIMES=2 makes each part twice as long
bench: $(STAMP) $(TESTS) $(profile) ## throughput beside a floor program; PARTS="engine setup"
	$(profiled) cargo build --profile dist --quiet -p flashatlas-benches
	$(PY) benches/rounds.py --rounds $(or $(ROUNDS),1) -- \
	  $(BUILT)/dist/bench $(if $(TIMES),--times $(TIMES)) $(PARTS)
	$(if $(PARTS),,$(PY) benches/python_parts.py)

bench-peers: $(STAMP) ## the same loads on MQSim (its binary in FLASHATLAS_MQSIM) and FlashAtlas
	@$(if $(FLASHATLAS_MQSIM),$(MAKE) --no-print-directory shipped)
	PYTHONPATH=$(CURDIR)/$(SHIPPED)/python $(PY) benches/peers.py

# An optimised build, beside an optimised build of another simulator.
shipped: $(STAMP) $(profile)
	rm -rf $(SHIPPED)
	$(profiled) $(VENV)/bin/maturin build --quiet --profile dist --out $(SHIPPED)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps \
	  --target $(SHIPPED)/python $(SHIPPED)/*.whl

bench-served: $(STAMP) ## fio on a served drive and on nbdkit's memory plugin (two minutes)
	$(PY) benches/served.py

# DOORS="--seconds 4" doubles the time of each load
bench-doors: $(STAMP) ## reads through NVMe/TCP, NBD and an NVMe door over memory (three minutes)
	$(PY) benches/doors.py $(DOORS)

theory: $(STAMP) ## write amplification: every model beside its simulation (minutes)
	$(VENV)/bin/flashatlas reproduce theory

claims: $(STAMP) ## all experiments of the papers, and docs/CLAIMS.md (half an hour)
	$(PY) tests/claims.py

##@ Search for faults

# the flags of cargo-fuzz without the sanitizer, which needs a nightly compiler and finds nothing in
# safe code
FUZZ_SECONDS := 60
FUZZ_FLAGS := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=8
FUZZ_HOST = $(shell rustc -vV 2>/dev/null | sed -n 's/host: //p')

fuzz: $(STAMP) ## fuzz every parser and reader, FUZZ_SECONDS (60) each; findings in out/fuzz
	$(PY) fuzz/readers.py --seconds $(FUZZ_SECONDS) --seed $$(date +%Y%m%d)
	cd fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --quiet --target $(FUZZ_HOST)
	@for target in $$(ls fuzz/fuzz_targets | sed 's/[.]rs$$//'); do \
	  mkdir -p out/fuzz/$$target && echo "$$target" && \
	  fuzz/target/$(FUZZ_HOST)/release/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=20 \
	    -verbosity=0 -print_final_stats=1 -artifact_prefix=out/fuzz/$$target- \
	    out/fuzz/$$target fuzz/corpus/$$target > out/fuzz/$$target.log 2>&1 \
	    || { tail -40 out/fuzz/$$target.log; exit 1; }; \
	done

miri: export MIRIFLAGS := -Zmiri-disable-isolation
miri: tools ## undefined behaviour in types, nand and ftl (minutes; nightly toolchain with miri)
	cargo +nightly miri test --quiet -p flashatlas-types -p flashatlas-nand --lib
	cargo +nightly miri test --quiet -p flashatlas-ftl --lib -- --skip steady

VALGRIND := valgrind -q --error-exitcode=9
memcheck: tools ## the tests of types, nand and ftl under Valgrind (a minute)
	env CARGO_TARGET_$(shell echo $(FUZZ_HOST) | tr 'a-z-' 'A-Z_')_RUNNER="$(VALGRIND)" \
	  cargo test --quiet --lib -p flashatlas-types -p flashatlas-nand -p flashatlas-ftl

# the profile of clippy, so that dependencies are checked once
rustdoc: tools ## the API documentation of the Rust crates
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --quiet \
	  --exclude flashatlas-python --exclude flashatlas-module

$(VENV)/.docs-tools: $(VENV)/.tools pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@

##@ Document

docs: $(STAMP) $(VENV)/.docs-tools ## the site in out/site, with man pages; broken links are errors
	$(PY) docs/site/gallery.py
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs/site . out/site
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning -b man -c docs/site . out/man
	@echo "Site: out/site/docs/index.html, man page: out/man/flashatlas.1"

clean: ## remove everything that was built
	rm -rf target $(VENV) out
