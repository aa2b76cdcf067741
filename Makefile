# SPDX-License-Identifier: Apache-2.0
# A menu over meson. `make help` lists it; CI calls only what stands here.

PREFIX  ?= /usr/local
DESTDIR ?=
V       ?=

# whether a warning fails the build of the tests: true or false; without a word, as that build was
# configured last, so that a checker does not build everything anew
WERROR ?= $(or $(shell sed -n 's/.*-Dwerror=\([a-z]*\).*/\1/p' build/test/configured-with 2>/dev/null),false)

# a suite that test leaves out
WITHOUT        ?=
# how long the stress tests soak, each of REPEAT times
STRESS_SECONDS ?= 30
REPEAT         ?= 1
# how long fuzzers search, all together
FUZZ_SECONDS   ?= 60

# what test-under-load runs, and beside how many busy loops
LOAD_TESTS     ?= busy pacing turn_stress turn_cost gate sim-cuda-turns sim-cuda-waits life pressure processes exports \
	shares signals neighbours compute_terms compute_turns
LOAD_LOOPS     ?= 3

# how many random operations on the simulated driver (`make test` does 100,000)
LOAD_OPERATIONS ?= 1000000

# how long each kind of random program is hunted with, and how often each family takes and gives back
HUNT_SECONDS ?= 600
ROUNDS       ?= 1000000
FAMILY       ?=

# which sections of gpu-test; all without
SECTIONS ?=

# make's own default (cc) says nothing; without a word from the user meson chooses.
ifeq ($(origin CC),default)
CC :=
endif
export CC PREFIX DESTDIR V
ifeq ($(CC),)
unexport CC
endif
# A container's own root drops the locks of mapped files, which the simulated machine needs: tests go where they last.
ifeq ($(shell stat -f -c %T $${TMPDIR:-/tmp} 2>/dev/null),overlayfs)
export TMPDIR := /dev/shm
endif
# As many tests at once as there are processors.
export MESON_TESTTHREADS ?= $(shell nproc)

Q         := $(if $(V),,@)
COMPILE   := meson compile $(if $(V),-v) -C
TEST      := meson test --print-errorlogs -C
CONFIGURE := tools/configure.sh
PYTHON    ?= python3
# for users: what to install stays in one folder, whatever the distribution's habit
INSTALLED := --prefix $(PREFIX) --libdir lib --sysconfdir /etc

.DEFAULT_GOAL := all
.NOTPARALLEL:
.SUFFIXES:
.PHONY: help all demo test suites clock build-test unit stress load hunt rounds \
	test-under-load clients roots aarch64 fuzz differential faults models check check-layers \
	check-links check-files check-docs check-coverage check-format check-exports check-glibc check-imports \
	check-tools check-install asan tsan format docs build-bench bench gpu-test gpu-bench install \
	uninstall install-kube uninstall-kube kube setup-kube setup-build setup-test setup-aarch64 setup-e2e setup-ci e2e e2e-day e2e-long soak ci dist clean

## Everyday
all: setup-build ## build everything that is installed, in build/release
	$(Q)$(CONFIGURE) build/release --buildtype debugoptimized -Db_ndebug=true -Dtests=disabled \
		-Ddaemons=disabled $(INSTALLED)
	$(Q)$(COMPILE) build/release

kube: setup-kube ## build that and the programs for Kubernetes, in build/kube
	$(Q)$(CONFIGURE) build/kube --buildtype debugoptimized -Db_ndebug=true -Dtests=disabled \
		-Ddaemons=enabled $(INSTALLED)
	$(Q)$(COMPILE) build/kube

demo: all ## show a slice, on a real GPU or on the simulated node
	$(Q)tools/demo.sh build/release

test: suites check ## every test that needs no GPU, and the checkers

suites: build-test ## every test that needs no GPU
	$(Q)$(TEST) build/test --no-suite long $(WITHOUT:%=--no-suite %) --timeout-multiplier 3

clock: build-test ## those of them alone that measure on the machine's clock
	$(Q)$(TEST) build/test --suite clock --timeout-multiplier 3

build-test: setup-test ## build everything in build/test; WERROR=true: warnings are errors
	$(Q)$(CONFIGURE) build/test --buildtype debugoptimized -Dtests=enabled -Dwerror=$(WERROR)
	$(Q)$(COMPILE) build/test

unit: setup-test ## the fast tests alone
	$(Q)$(CONFIGURE) build/test --buildtype debugoptimized -Dtests=enabled -Dwerror=$(WERROR)
	$(Q)$(TEST) build/test --suite unit

stress: build-test ## the stress tests: STRESS_SECONDS=n long, REPEAT=n times
	$(Q)STRESS_SECONDS=$(STRESS_SECONDS) $(TEST) build/test --suite stress --repeat $(REPEAT) \
		--timeout-multiplier 0

load: build-test ## a random load of LOAD_OPERATIONS=n, from LOAD_SEED=n on
	$(Q)LOAD_OPERATIONS=$(LOAD_OPERATIONS) $(TEST) build/test --suite soak --suite long --verbose \
		--timeout-multiplier 0

hunt: build-test ## random programs against the limits, HUNT_SECONDS=n of each kind, from HUNT_SEED on
	$(Q)HUNT_SECONDS=$(HUNT_SECONDS) $(TEST) build/test --verbose --timeout-multiplier 0 \
		$(if $(HUNT_LIE),hunt-lies,$(if $(HUNT_PROGRAM),hunt-compute,$(if $(HUNT_REPLAY),hunt-honest,\
		hunt-honest hunt-hostile hunt-failing hunt-compute hunt-lies)))

rounds: build-test ## ROUNDS=n times each family of calls, or FAMILY alone, takes and gives back
	$(Q)ROUNDS=$(ROUNDS) FAMILY=$(FAMILY) $(TEST) build/test --verbose --timeout-multiplier 0 hunt-rounds

test-under-load: build-test ## LOAD_TESTS="NAME..." beside LOAD_LOOPS=3 busy loops, which change no result
	$(Q)tools/under_load.sh $(LOAD_LOOPS) $(TEST) build/test --no-rebuild --timeout-multiplier 5 \
		$(LOAD_TESTS)

clients: build-test ## real clients in a slice on the simulated node: CLIENTS="nvitop torch ..."
	$(Q)$(PYTHON) tests/clients/run.py build/test $(if $(CLIENTS),--clients "$(CLIENTS)")

roots: build-test ## the library in roots of other distributions, as root: ROOTS="xenial trixie musl"
	$(Q)$(PYTHON) tests/roots/run.py build/test $(ROOTS)

aarch64: setup-aarch64 ## everything built for aarch64, and tests of it under qemu: TESTS="ledger quota"
	$(Q)$(PYTHON) tests/aarch64/run.py build/aarch64 $(TESTS)

fuzz: setup-test ## search for inputs that break a parser or a region: FUZZ_SECONDS=n long in all
	$(Q)tests/fuzz/search.sh build/fuzz $(FUZZ_SECONDS)

differential: build-test ## a slow model and the scheduler decide about 100,000 random cases: SEED=n CASES=n
	$(Q)tests/scheduler/differential.py build/test/tests/scheduler/scheduler_decide $(or $(CASES),100000) $(SEED)

faults: build-test ## FAULT_SECONDS=600 pods come and go beside calls that fail, kills and broken watches: SEED=n
	$(Q)tests/scheduler/faults.py build/test/src/scheduler/vgpu-scheduler $(or $(FAULT_SECONDS),600) $(SEED)

models: ## search the models of tests/model with spin: MODELS="turn ledger"
	$(Q)tools/check_models.sh $(MODELS)

e2e: setup-e2e build-test ## a real Kubernetes on this machine, in namespaces of its own; as root; its build takes minutes, once
	$(Q)tests/cluster/cluster.sh run --node tests/cluster/e2e.sh build/test
	$(Q)tests/cluster/cluster.sh run --node tests/cluster/e2e.sh build/test chart
	$(Q)tests/cluster/ends.sh

e2e-long: e2e ## the same, and with containerd 2 what takes CDI; its build takes minutes, once
	$(Q)CLUSTER_CONTAINERD=2 tests/cluster/cluster.sh run --node tests/cluster/e2e.sh build/test slices cdi
	$(Q)tests/cluster/cluster.sh run --node tests/cluster/e2e.sh build/test card minutes

e2e-day: setup-e2e build-test ## a day in the life of three nodes with GPUs of different kinds, all accounts compared after each step
	$(Q)tests/cluster/cluster.sh run --node tests/cluster/e2e.sh build/test day

soak: setup-e2e build-test ## MINUTES=30 of random pods and faults on those nodes, from SEED=n on; into bench/results/soak.md
	$(Q)MINUTES=$(or $(MINUTES),30) SEED=$(SEED) SOAK_REPORT=$(CURDIR)/bench/results/soak.md \
		tests/cluster/cluster.sh run --node tests/cluster/e2e.sh build/test soak

playground: kube setup-e2e ## a Kubernetes with simulated GPUs that stays: KIND=h200x2, or any of `vgpu-sim boards`; as root
	$(Q)tests/cluster/playground.sh up build/kube $(KIND)

check-playground: kube setup-e2e ## bring one up, try slices in it, take it down
	$(Q)tests/cluster/playground.sh try build/kube l4x4

playground-down: ## take it down
	$(Q)tests/cluster/playground.sh down

## Checkers
check: ## all checkers; goes on after a finding
	$(Q)$(MAKE) -k --no-print-directory check-files check-layers check-hooks check-format \
		check-docs check-coverage check-links check-exports check-glibc check-imports

check-files: ## licence lines, titles, length, comments, white space
	$(Q)$(PYTHON) tools/check_files.py

check-layers: ## which module may include which, and what each must never do
	$(Q)$(PYTHON) tools/check_layers.py

check-hooks: ## no hook reads the program's memory after the driver, or twice
	$(Q)$(PYTHON) tools/check_hooks.py

check-links: build-test ## no call upwards between layers, no circle of calls, nothing global without need
	$(Q)$(PYTHON) tools/check_links.py build/test

check-format: ## layout, by clang-format 14 where it is installed
	$(Q)tools/check_format.sh

check-docs: ## generated pages are current, links lead somewhere
	$(Q)$(PYTHON) tools/check_docs.py

check-coverage: ## every driver function is classified, every hook in its class
	$(Q)$(PYTHON) tools/check_coverage.py $(LIBRARIES)

check-exports: build-test ## exported names are the hook tables' and no other
	$(Q)$(PYTHON) tools/check_exports.py build/test

check-glibc: build-test ## the tenant library needs no symbol newer than glibc 2.17
	$(Q)$(PYTHON) tools/check_glibc_floor.py build/test

check-imports: build-test ## the tenant library imports functions of the C library alone
	$(Q)$(PYTHON) tools/check_imports.py build/test/src/tenant/libvgpu.so

check-tools: ## the checkers find what they are for
	$(Q)$(PYTHON) tools/test_checkers.py

check-install: ## install into an empty folder, look, uninstall, look again
	$(Q)tools/check_install.sh

## Sanitizers
asan: setup-test ## build everything with clang and sanitizers of addresses; unit, sim, stress tests
	$(Q)tools/sanitize.sh address build/asan $(WERROR)

tsan: setup-test ## unit and stress tests under the thread sanitizer
	$(Q)tools/sanitize.sh thread build/tsan $(WERROR)

## Source
format: ## lay out every C file with clang-format 14
	$(Q)tools/check_format.sh --fix

docs: ## make docs/generated and docs/coverage.md anew from the tables
	$(Q)$(PYTHON) tools/gen_docs.py

## Measuring, and real GPUs
build-bench: all
	$(Q)$(COMPILE) build/release bench-programs

bench: build-bench build-test ## measure on the simulated node; BENCH="filter size plugin monitor pods" those of Kubernetes alone
	$(Q)$(if $(BENCH),,bench/run.sh build/release)
	$(Q)bench/kube.sh build/test $(BENCH)

gpu-bench: build-bench ## measure on this machine's GPU
	$(Q)bench/run.sh --gpu build/release
	$(Q)bench/models.py build/release
	$(Q)bench/compute.py --quick build/release

gpu-test: setup-build ## the tests that need a real GPU; SECTIONS="doors quota"
	$(Q)$(CONFIGURE) build/gpu --buildtype debugoptimized -Dtests=disabled \
		-Ddaemons=disabled
	$(Q)$(COMPILE) build/gpu
	$(Q)$(COMPILE) build/gpu gpu-programs bench-programs
	$(Q)tests/gpu/run.sh build/gpu $(SECTIONS)

## Installing
install: ## install under PREFIX (/usr/local) and DESTDIR; with sudo after `make all` too
	$(Q)MAKE="$(MAKE)" tools/install.sh build/release all

install-kube: ## the same with what Kubernetes needs, and `vgpu plan`
	$(Q)MAKE="$(MAKE)" tools/install.sh build/kube kube

.PHONY: playground playground-down check-playground image manifests deb build-deb check-deb
image: kube ## the image of all programs for Kubernetes, build/cantaloupe-image.tar, and what is in it
	$(Q)$(PYTHON) tools/image.py build/kube build/cantaloupe-image.tar $(IMAGE)

# What is handed out does not say where it was built.
build-deb: setup-kube
	$(Q)CFLAGS="$$CFLAGS -ffile-prefix-map=$(CURDIR)=." $(CONFIGURE) build/deb --buildtype debugoptimized -Db_ndebug=true -Dtests=disabled \
		-Ddaemons=enabled --prefix /usr --libdir lib --sysconfdir /etc
	$(Q)$(COMPILE) build/deb

deb: build-deb ## Debian packages, in build/deb/packages
	$(Q)tools/deb.sh build/deb build/deb/packages

check-deb: build-deb ## the packages are the same each time, and lintian finds nothing, where it is installed
	$(Q)$(PYTHON) tests/delivery/test_deb.py build/deb

manifests: ## render the chart into deploy/, for clusters without Helm; builds Helm once
	$(Q)$(PYTHON) tools/manifests.py $$(tests/cluster/build.sh helm)

uninstall: ## remove what install put there
	$(Q)$(PYTHON) tools/uninstall.py build/release

uninstall-kube: ## remove what install-kube put there
	$(Q)$(PYTHON) tools/uninstall.py build/kube

## House keeping
setup-build: ## install what building needs and is missing
	$(Q)tools/setup.sh build

setup-kube: ## install what the programs for Kubernetes need and is missing
	$(Q)tools/setup.sh kube

setup-test: ## install what testing needs and is missing
	$(Q)tools/setup.sh test

setup-aarch64: ## install what a build for aarch64 needs and is missing
	$(Q)tools/setup.sh aarch64

setup-e2e: ## install what a test cluster needs and is missing
	$(Q)tools/setup.sh e2e

setup-ci: ## install what CI needs and is missing
	$(Q)tools/setup.sh ci

ci: ## everything that CI does, in its order
	$(Q).ci/run

dist: ## the last commit as build/cantaloupe-VERSION.tar.gz
	$(Q)version=$$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build) && mkdir -p build && \
		git archive --prefix "cantaloupe-$$version/" -o "build/cantaloupe-$$version.tar.gz" HEAD \
		&& echo "build/cantaloupe-$$version.tar.gz"

clean: ## remove every build folder
	$(Q)rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } \
		/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables: CC, PREFIX, DESTDIR, V=1 (show commands), WERROR=true (of tests), WITHOUT=SUITE (of test),"
	@echo "LOAD_TESTS, LOAD_LOOPS (of test-under-load),"
	@echo "STRESS_SECONDS, REPEAT, LOAD_OPERATIONS, LOAD_SEED (of load), MINUTES, SEED (of soak),"
	@echo "HUNT_SECONDS, HUNT_SEED, HUNT_REPLAY=FILE, HUNT_PROGRAM=TEXT, HUNT_LIE=TEXT (of hunt), ROUNDS, FAMILY (of rounds),"
	@echo "MODELS (of models), IMAGE=NAME:TAG (of image), KIND (of playground), TESTS (of aarch64), BENCH (of bench),"
	@echo "CLIENTS (of clients; torch takes 3 GB), LIBRARIES (of a driver, for check-coverage)"
