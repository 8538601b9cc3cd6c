# reftest: `make` builds, `make verify` and `make test` set the machine up first, `make help` lists the targets.
#
# Objects lie below $(BUILD)/obj as their sources lie in the tree, gathered in three archives: base, kernels (the op
# families and what they share) and rooms (the rest). The program, the two libraries and every unit test take from these
# what they need. Nothing is configured; sources are found by wildcard, so a new file or op family needs no line here.
SANITIZE ?=
BUILD ?= build$(if $(SANITIZE),-asan)
PREFIX ?= /usr/local
# With a sanitizer -O1, and -O3 of kernels, take more than twice as long to compile, which running faster does not bring back.
CFLAGS ?= $(if $(SANITIZE),-Og -g1,-O2 -g)
WERROR ?= -Werror
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC := $(if $(SANITIZE),,$(NVCC))

checks := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
flags := -I. -I$(BUILD) -D_GNU_SOURCE -MMD -MP -fPIC -fvisibility=hidden $(checks)
strict := -std=c11 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes $(WERROR)
# Sanitized programs keep libgomp loaded: what it allocates when a library brings it along, unloading makes a leak.
link = $(CFLAGS) $(LDFLAGS) -fopenmp $(if $(SANITIZE),$(checks),-Wl,--as-needed,-z,defs)
libs := $(or $(shell pkg-config --libs libcjson libxxhash lmdb libzstd 2>/dev/null),-lcjson -lxxhash -llmdb -lzstd) -ldl -lm -pthread
# Code for the GPUs this nvcc knows of these, and PTX of the newest for those to come.
archs = $(filter 80 90 100,$(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)))
gencode = $(foreach a,$(archs),-gencode arch=compute_$a,code=sm_$a) \
	-gencode arch=compute_$(lastword $(archs)),code=compute_$(lastword $(archs))

object = $(patsubst %,$(BUILD)/obj/%.o,$(basename $1))
base := $(call object,$(wildcard base/*.c))
kernels := $(call object,$(filter-out kernels/library.c,$(wildcard kernels/*.c kernels/*/*.c)))
rooms := $(call object,$(wildcard $(addsuffix /*.c,dataset cache plan workers watcher git artifacts commands remote seal)) $(wildcard kernels/library.c))
courier := $(call object,$(wildcard remote/courier/*.c))
sodium := $(call object,$(wildcard seal/sodium/*.c))
cuda := $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(wildcard kernels/*.cu kernels/*/*.cu))
units := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
benches := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))
oracles := $(BUILD)/tests/coverage/oracles
gpu_tests := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/gpu/*.c))
gpu_benches := $(patsubst %.cu,$(BUILD)/%,$(wildcard bench/*.cu))
# What unit tests put under and beside the program: faults in the place of the C library's calls, a quick interpreter.
faults := $(BUILD)/tests/faults/shim.so $(BUILD)/tests/faults/interpreter
archives := $(foreach a,rooms kernels base,$(BUILD)/obj/$a.a)
# What only some ask for is a library of its own, loaded by those; without what it needs it is left out.
seal_libs := $(shell pkg-config --libs libsodium 2>/dev/null)
remote_libs := $(shell pkg-config --libs hiredis libcurl libsodium 2>/dev/null)
products := $(BUILD)/reftest $(BUILD)/libreftest_kernels.so $(if $(NVCC),$(BUILD)/libreftest_kernels_cuda.so) \
	$(if $(seal_libs),$(BUILD)/libreftest_seal.so) $(if $(remote_libs),$(BUILD)/libreftest_remote.so)

ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
$(if $(V),,$(eval .SILENT:))

all: $(products) ## build the program and the kernels libraries (needs no network); SANITIZE=address,undefined, V=1
	echo "$(BUILD)/reftest is built, with $(if $(NVCC),the CPU and the CUDA kernels.,the CPU kernels: the CPU build\
	is whole. The CUDA library was left out$(if $(SANITIZE),., because there is no nvcc here.))$(if $(remote_libs),, \
	Shared caches (REFTEST_REMOTE) were left out because hiredis or libcurl or libsodium are not here.)"

verify: ## set the machine up, build, and verify the starter dataset
	tools/setup.sh
	$(MAKE) --no-print-directory all
	$(BUILD)/reftest --root . verify --all

test: ## set the machine up, build, and run every test (also with the address and undefined-behaviour sanitizers)
	tools/setup.sh --tests
	$(MAKE) --no-print-directory all unit-tests
	$(MAKE) --no-print-directory SANITIZE=address,undefined all unit-tests
	tests/run

references: $(BUILD)/reftest ## make tests/references, the pytest files of the starter dataset, as they should be
	$(BUILD)/reftest --root . generate

check: unit-tests all ## the quick tests alone: unit tests of this build and the include arrows
	tests/run --quick $(BUILD)

mutants: all ## mistakes planted into correct references, on the CPU and on a GPU if there is one: caught/planted by family
	tests/mutants/run.py $(BUILD)
	tests/mutants/from_schema.py $(BUILD)

history: all ## bugs that really shipped elsewhere, replayed, on the CPU and on a GPU if there is one (docs/history.md)
	tests/history/run.py $(BUILD)

# Nothing that would turn a branch into arithmetic before it is counted, and a third of the time that -O0 takes.
coverage: ## which lines and branches of the families' oracles the default cases reach (docs/coverage.md; a quarter of an hour)
	$(MAKE) --no-print-directory NVCC= BUILD=$(BUILD)-coverage optimise='-fopenmp -ffp-contract=off' \
	CFLAGS='-O1 -g --coverage -fno-ssa-phiopt -fno-early-inlining' $(BUILD)-coverage/tests/coverage/oracles
	tools/coverage.py $(BUILD)-coverage

check-gpu: all $(gpu_tests) ## the tests that need a CUDA GPU
	tests/run --gpu $(BUILD)

check-races: all $(gpu_tests) ## the same kernels under compute-sanitizer's racecheck, at small shapes
	tests/run --races $(BUILD)

check-memory: all $(gpu_tests) ## the same under its memcheck
	tests/run --memory $(BUILD)

soak: all ## random edits under a running watcher for MINUTES=10; at the end it must agree with a cold verify
	python3 tests/soak.py $(BUILD) $(or $(MINUTES),10) $(SEED)

bench: all $(benches) ## ratios against peers and limits, on this machine's CPU
	bench/changed.sh $(BUILD)
	bench/generate.sh $(BUILD)
	$(BUILD)/bench/compare
	$(BUILD)/bench/fingerprint
	$(BUILD)/bench/travel
	python3 bench/watch.py $(BUILD)

bench-gpu: all $(gpu_benches) ## the same on a CUDA GPU
	$(BUILD)/bench/gpu_metrics

install: $(products) ## install below PREFIX=/usr/local (and DESTDIR)
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/reftest/providers share/reftest)
	install $(BUILD)/reftest $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(filter %.so,$(products)) workers/*.py $(DESTDIR)$(PREFIX)/lib/reftest/
	install -m 644 workers/providers/*.py $(DESTDIR)$(PREFIX)/lib/reftest/providers/
	install tools/slurm_array.sh $(DESTDIR)$(PREFIX)/share/reftest/

uninstall: ## remove what install put there
	rm -rf $(addprefix $(DESTDIR)$(PREFIX)/,bin/reftest lib/reftest share/reftest)

clean: ## remove every build
	rm -rf build build-asan build-coverage

help: ## list the targets
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

unit-tests: $(units) $(faults)

$(BUILD)/reftest: $(call object,reftest.c) $(archives)
	echo "  link $@"
	$(CC) $(link) -o $@ $^ $(libs)

$(BUILD)/libreftest_kernels.so: $(BUILD)/obj/kernels.a $(BUILD)/obj/base.a
	echo "  link $@"
	$(CC) $(link) -shared -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(BUILD)/obj/base.a $(libs)

$(BUILD)/libreftest_kernels_cuda.so: $(cuda) $(BUILD)/obj/kernels.a $(BUILD)/obj/base.a
	echo "  link $@"
	$(NVCC) -shared --cudart static -Xcompiler -fopenmp -Xlinker --as-needed,-z,defs -o $@ $^ $(filter -l% -L%,$(libs))

$(BUILD)/libreftest_remote.so: $(courier) $(BUILD)/obj/remote/frame.o $(BUILD)/obj/remote/action_result.o $(BUILD)/obj/base.a
	echo "  link $@"
	$(CC) $(link) -shared -o $@ $^ $(remote_libs) $(libs)

$(BUILD)/libreftest_seal.so: $(sodium)
	echo "  link $@"
	$(CC) $(link) -shared -o $@ $^ $(seal_libs)

$(units) $(benches) $(gpu_tests) $(oracles): $(BUILD)/%: $(BUILD)/obj/%.o $(archives)
	echo "  link $@"; mkdir -p $(@D)
	$(CC) $(link) -o $@ $< -Wl,--start-group $(archives) -Wl,--end-group \
		$(libs) $(if $(filter $(units),$@),-lcmocka)

$(BUILD)/tests/faults/shim.so: tests/faults/shim.c tests/faults/faults.h $(BUILD)/obj/settings
	echo "  link $@"; mkdir -p $(@D)
	$(CC) $(strict) -I. -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -shared -o $@ $<

$(BUILD)/tests/faults/interpreter: tests/faults/interpreter.c $(BUILD)/obj/settings
	echo "  link $@"; mkdir -p $(@D)
	$(CC) $(strict) -D_GNU_SOURCE -O2 -g -o $@ $< $(libs)

$(gpu_benches): $(BUILD)/%: $(BUILD)/obj/%.cu.o $(cuda) $(BUILD)/obj/kernels.a $(BUILD)/obj/base.a
	echo "  link $@"; mkdir -p $(@D)
	$(NVCC) --cudart static -Xcompiler -fopenmp -o $@ $^ $(filter -l% -L%,$(libs))

$(archives): $(BUILD)/obj/%.a: $(BUILD)/obj/sources
	rm -f $@
	ar rcs $@ $($*)
$(foreach a,rooms kernels base,$(eval $(BUILD)/obj/$a.a: $($a)))

$(BUILD)/obj/kernels/%.o $(BUILD)/obj/bench/%.o: private optimise := $(if $(SANITIZE),-O2,-O3) -fopenmp -ffp-contract=off
$(BUILD)/obj/%.o: %.c $(BUILD)/obj/settings | $(BUILD)/ops.inc
	echo "  cc $<"; mkdir -p $(@D)
	$(CC) $(strict) $(CPPFLAGS) $(flags) $(CFLAGS) $(optimise) -c -o $@ $<

$(BUILD)/obj/%.cu.o: %.cu $(BUILD)/obj/settings_cuda | $(BUILD)/ops.inc
	echo "  nvcc $<"; mkdir -p $(@D)
	$(NVCC) -O3 -std=c++17 -I. -I$(BUILD) -D_GNU_SOURCE -MMD -MP -MF $(@:.o=.d) $(gencode) --threads 0 \
		-Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra -c -o $@ $<

# A table that a source includes as bytes is no dependency that the compiler tells of.
$(foreach j,$(wildcard kernels/*.json kernels/*/*.json),$(eval $(BUILD)/obj/$(j:.json=.o): $j))

# Written anew at every make, replaced only when they differ: the op families with the digests of their sources, what they
# bring to generated tests, what the archives hold (a deleted source must leave them), and what the objects were compiled
# with.
written := ops.inc kernels_digest.h templates.inc templates_digest.h obj/sources obj/settings obj/settings_cuda
$(addprefix $(BUILD)/,$(written)): derived ;
derived:
	tools/generate.sh $(BUILD) '$(rooms) $(kernels) $(base) $(cuda)' '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(flags)' '$(NVCC)'

.PHONY: all verify test references check mutants history coverage check-gpu check-races check-memory soak bench bench-gpu install uninstall clean help \
	unit-tests derived
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
