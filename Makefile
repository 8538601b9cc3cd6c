# reftest: `make` builds, `make verify` and `make test` set the machine up first, `make help` lists the targets.
#
# Objects have the same paths below $(BUILD)/obj as their sources in the tree. They are collected in three archives:
# base, kernels (the op families and the code that they share) and program (all other code). The program, the two
# libraries and every unit test link with these archives. Nothing is configured. Sources are found by wildcard, so a new
# file or op family needs no line here.
SANITIZE ?=
BUILD ?= build$(if $(SANITIZE),-asan)
PREFIX ?= /usr/local
# With a sanitizer, -O1 (and -O3 for kernels) would more than double the compile time, and tests would save less than
# that.
CFLAGS ?= $(if $(SANITIZE),-Og -g1,-O2 -g)
WERROR ?= -Werror
PYTHON ?= python3
DIST ?= dist
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC := $(if $(SANITIZE),,$(NVCC))

checks := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
flags := -I. -I$(BUILD) -D_GNU_SOURCE -MMD -MP -fPIC -fvisibility=hidden $(checks)
strict := -std=c11 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes $(WERROR)
# libgomp is loaded with the kernels library and not with the program, because kernels_open first sets how its threads
# wait. Sanitized programs link with libgomp themselves. If only a loaded library used libgomp, unloading would turn its
# memory into a reported leak.
link = $(CFLAGS) $(LDFLAGS) -fopenmp $(if $(SANITIZE),$(checks),-Wl,--as-needed,-z,defs)
libs := $(or $(shell pkg-config --libs libcjson libxxhash lmdb libzstd 2>/dev/null),-lcjson -lxxhash -llmdb -lzstd) -ldl -lm -pthread
# The C++ library is linked into the program itself: loading it would take longer than many commands.
cxx_libs := -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -static-libgcc
# The GPU architectures to compile for: those of 80, 90 and 100 that this nvcc supports. PTX of the newest serves later
# GPUs.
archs = $(filter 80 90 100,$(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)))
gencode = $(foreach a,$(archs),-gencode arch=compute_$a,code=sm_$a) \
	-gencode arch=compute_$(lastword $(archs)),code=compute_$(lastword $(archs))

object = $(patsubst %,$(BUILD)/obj/%.o,$(basename $1))
base := $(call object,$(wildcard base/*.c base/*.cpp))
kernels := $(call object,$(filter-out kernels/core/kernels_library.c,$(wildcard kernels/*/*.c kernels/common/*/*.c)))
modules := base cache check dataset engine extract git kernels models remote report repos serve testgen web watcher watcher/fs fleet workers/pool workers/judge workers/protocol workers/sandbox cli
program := $(call object,$(wildcard $(addsuffix /*.c,$(filter-out base kernels,$(modules)))) kernels/core/kernels_library.c)
remote_helper := $(call object,$(wildcard remote/helper/*.c))
sodium := $(call object,$(wildcard remote/sodium/*.c))
cuda := $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(wildcard kernels/*/*.cu kernels/common/*/*.cu))
units := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
# Optional features are libraries of their own, which the program loads when it needs them. If a package that such a
# library requires is missing, the library is left out.
sign_libs := $(shell pkg-config --libs libsodium 2>/dev/null)
remote_libs := $(shell pkg-config --libs hiredis libcurl libsodium 2>/dev/null)
fuzz := $(BUILD)/tests/fuzz/fuzz
fuzz_engine := $(BUILD)/tests/fuzz/libfuzzer
fuzz_parts := $(call object,$(addprefix tests/fuzz/,stored.c sent.c storable.c $(if $(remote_libs),replies.c)))
benches := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))
oracles := $(BUILD)/tests/coverage/oracles
gpu_tests := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/gpu/*.c))
gpu_benches := $(patsubst %.cu,$(BUILD)/%,$(wildcard bench/*.cu))
# Two helpers of unit tests: a library that replaces calls of the C library with failing ones, and a fast fake
# interpreter.
faults := $(BUILD)/tests/faults/shim.so $(BUILD)/tests/faults/interpreter
archives := $(foreach a,program kernels base,$(BUILD)/obj/$a.a)
products := $(BUILD)/reftest $(BUILD)/libreftest_kernels.so $(BUILD)/libreftest_sandbox.so $(if $(NVCC),$(BUILD)/libreftest_kernels_cuda.so) \
	$(if $(sign_libs),$(BUILD)/libreftest_sign.so) $(if $(remote_libs),$(BUILD)/libreftest_remote.so)
# Files that the program itself writes: shell completions and the manual page.
completions := $(addprefix $(BUILD)/completions/,reftest.bash _reftest reftest.fish)
documents := $(BUILD)/reftest.1 $(completions)
# The paths at which these files are installed, in the same order.
shared := $(addprefix share/,man/man1/reftest.1 bash-completion/completions/reftest zsh/site-functions/_reftest \
	fish/vendor_completions.d/reftest.fish)

# `make test` gets two jobs more, because pip waits for the network.
ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell expr $$(nproc) + $(if $(filter test,$(MAKECMDGOALS)),2,0))
endif
$(if $(V),,$(eval .SILENT:))

all: $(products) $(documents) ## build the program and the kernels libraries (needs no network); SANITIZE=address,undefined, V=1
	echo "$(BUILD)/reftest is built, with $(if $(NVCC),the CPU and the CUDA kernels.,the CPU kernels: the CPU build\
	is whole. The CUDA library was left out$(if $(SANITIZE),., because there is no nvcc here.))$(if $(remote_libs),, \
	Shared caches (REFTEST_REMOTE) were left out because hiredis or libcurl or libsodium are not here.)"

verify: ## set the machine up, build, and verify the starter dataset
	tools/setup.sh
	$(MAKE) --no-print-directory all
	$(BUILD)/reftest --root . verify --all

test: ## set the machine up, build, and run every test (also with the address and undefined-behaviour sanitizers)
	tools/setup.sh --tests debian
	$(MAKE) --no-print-directory torch test-tools all unit-tests
	$(MAKE) --no-print-directory SANITIZE=address,undefined all unit-tests
	tests/run

# What pip installs is not needed before the tests run.
torch:
	tools/setup.sh --tests torch

test-tools:
	tools/setup.sh --tests tools

references: $(BUILD)/reftest ## make tests/references, the pytest files of the starter dataset, as they should be
	$(BUILD)/reftest --root . generate

check: unit-tests all ## the quick tests alone: unit tests of this build and the include arrows
	tests/run --quick $(BUILD)

mutants: all ## mistakes planted into correct references, on the CPU and on a GPU if there is one: caught/planted by family
	tests/mutants/run.py $(BUILD)
	tests/mutants/from_schema.py $(BUILD)
	tests/mutants/dimensions.py $(BUILD)

diagnoses: all ## do the diagnoses of planted mistakes name them? right and wrong ones by family, on the CPU (half an hour or more)
	tests/mutants/diagnoses.py $(BUILD)

history: all ## bugs that really shipped elsewhere, replayed, on the CPU and on a GPU if there is one (docs/history.md)
	tests/shipped_bugs/replay.py $(BUILD)

hostile: all ## references that attack, in five set-ups (docs/containment.md)
	tests/hostile/run.py $(BUILD)

# These options keep the compiler from turning a branch into arithmetic before it is counted. -O0 would take three times
# as long.
coverage: ## which lines and branches of the families' oracles the default cases reach (docs/coverage.md; a quarter of an hour)
	$(MAKE) --no-print-directory NVCC= BUILD=$(BUILD)-coverage optimise='-fopenmp -ffp-contract=off' \
	CFLAGS='-O1 -g --coverage -fno-ssa-phiopt -fno-early-inlining' $(BUILD)-coverage/tests/coverage/oracles
	tools/coverage.py $(BUILD)-coverage

# An input that finds a fault is printed, or written to a file fuzz-TARGET-…; keep it in tests/fuzz/corpus/TARGET/. The
# engine driver changes the seeds at random. libFuzzer needs clang, its compiler-rt (libclang-rt-dev)
# and libomp-dev; it measures which code an input reaches.
FUZZ_SECONDS ?= 600
FUZZ_JOBS ?= $(shell nproc)
ENGINE ?= driver
libfuzzer := build-libfuzzer/tests/fuzz/libfuzzer
fuzz: ## every parser of strangers' bytes, with sanitizers, for FUZZ_SECONDS=600 of processor time each, FUZZ_JOBS at once; FUZZ=TARGET, ENGINE=libfuzzer
	$(if $(filter libfuzzer,$(ENGINE)),$(MAKE) --no-print-directory NVCC= CC=clang CXX=clang++ WERROR= BUILD=build-libfuzzer \
		SANITIZE=address,undefined,fuzzer-no-link $(libfuzzer),$(MAKE) --no-print-directory NVCC= SANITIZE=address,undefined \
		build-asan/tests/fuzz/fuzz)
	tools/fuzz.sh $(ENGINE) $(if $(filter libfuzzer,$(ENGINE)),$(libfuzzer),build-asan/tests/fuzz/fuzz) $(or $(FUZZ),all) \
		$(FUZZ_SECONDS) $(FUZZ_JOBS)

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
	$(BUILD)/bench/export_import
	python3 bench/watch.py $(BUILD)

bench-gpu: all $(gpu_benches) ## the same on a CUDA GPU
	$(BUILD)/bench/gpu_metrics

install: $(products) $(documents) ## install below PREFIX=/usr/local (and DESTDIR)
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/reftest/libraries share/reftest $(dir $(shared)))
	install $(BUILD)/reftest $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(filter %.so,$(products)) python/*.py $(DESTDIR)$(PREFIX)/lib/reftest/
	install -m 644 python/libraries/*.py $(DESTDIR)$(PREFIX)/lib/reftest/libraries/
	install tools/slurm_array.sh $(DESTDIR)$(PREFIX)/share/reftest/
	set -- $(addprefix $(DESTDIR)$(PREFIX)/,$(shared)); \
	for file in $(documents); do install -m 644 "$$file" "$$1" && shift || exit; done

# pip fetches the backend that makes the wheel, hatchling, from PyPI.
wheel: $(products) $(documents) $(BUILD)/wheel/reftest ## make a wheel in DIST=dist, which pip installs as install does
	REFTEST_BUILD=$(BUILD) $(PYTHON) -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir $(DIST) .
	ls -t $(DIST)/reftest-*.whl | head -n 1

uninstall: ## remove what install put there
	rm -rf $(addprefix $(DESTDIR)$(PREFIX)/,bin/reftest lib/reftest share/reftest $(shared))

clean: ## remove every build
	rm -rf build build-asan build-coverage build-libfuzzer dist

help: ## list the targets
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

unit-tests: $(units) $(faults)

$(BUILD)/reftest: $(call object,reftest.c) $(archives)
	echo "  link $@"
	$(CC) $(link) -o $@ $^ $(cxx_libs) $(libs)

# The program of the wheel first looks for other libraries in the wheel, where the program's own libraries lie. This also
# holds for the libraries that it loads from copies in memory (base/sealed_library.h), which only this kind of path reaches.
$(BUILD)/wheel/reftest: $(BUILD)/reftest
	echo "  link $@"; mkdir -p $(@D)
	$(CC) $(link) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/reftest' -o $@ $(call object,reftest.c) $(archives) \
		$(cxx_libs) $(libs)

$(BUILD)/reftest.1: kind := man
$(BUILD)/completions/reftest.bash: kind := bash
$(BUILD)/completions/_reftest: kind := zsh
$(BUILD)/completions/reftest.fish: kind := fish
$(documents): $(BUILD)/reftest
	mkdir -p $(@D)
	$< document $(kind) >$@

$(BUILD)/libreftest_kernels.so: $(BUILD)/obj/kernels.a $(BUILD)/obj/base.a
	echo "  link $@"
	$(CC) $(link) -shared -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(BUILD)/obj/base.a $(libs)

$(BUILD)/libreftest_kernels_cuda.so: $(cuda) $(BUILD)/obj/kernels.a $(BUILD)/obj/base.a
	echo "  link $@"
	$(NVCC) -shared --cudart static -Xcompiler -fopenmp -Xlinker --as-needed,-z,defs -o $@ $^ $(filter -l% -L%,$(libs))

# The interpreter loads this library, so it is built without sanitizers.
$(BUILD)/libreftest_sandbox.so: $(wildcard workers/sandbox/*.c workers/sandbox/*.h) $(BUILD)/obj/settings
	echo "  link $@"; mkdir -p $(@D)
	$(CC) $(strict) $(CPPFLAGS) -I. -D_GNU_SOURCE $(CFLAGS) -fPIC -fvisibility=hidden -shared $(LDFLAGS) -Wl,-z,defs -o $@ $(filter %.c,$^)

$(BUILD)/libreftest_remote.so: $(remote_helper) $(BUILD)/obj/remote/message.o $(BUILD)/obj/remote/action_result.o $(BUILD)/obj/base.a
	echo "  link $@"
	$(CC) $(link) -shared -o $@ $^ $(remote_libs) $(libs)

# The program loads only the libraries whose digests are compiled into it.
$(call object,kernels/core/kernels_library.c remote/signing_key.c remote/remote_library.c workers/pool/zygote.c \
	tests/unit/test_sealed_library.c): $(BUILD)/library_digests.h
$(BUILD)/library_digests.h: $(filter %.so,$(products)) tools/library_digests.sh
	tools/library_digests.sh $(BUILD) >$@.new
	mv $@.new $@

$(BUILD)/libreftest_sign.so: $(sodium)
	echo "  link $@"
	$(CC) $(link) -shared -o $@ $^ $(sign_libs)

$(BUILD)/tests/unit/test_fuzz: $(fuzz_parts)
$(fuzz) $(fuzz_engine): $(fuzz_parts) $(BUILD)/obj/tests/fuzz/targets.o
$(fuzz_engine): private LDFLAGS += -fsanitize=fuzzer
$(call object,tests/fuzz/targets.c tests/unit/test_fuzz.c): private CPPFLAGS += $(if $(remote_libs),-DREMOTE_LIBRARIES)
$(units) $(fuzz) $(fuzz_engine) $(benches) $(gpu_tests) $(oracles): $(BUILD)/%: $(BUILD)/obj/%.o $(archives)
	echo "  link $@"; mkdir -p $(@D)
	$(CC) $(link) -o $@ $(filter %.o,$^) -Wl,--start-group $(archives) -Wl,--end-group \
		$(cxx_libs) $(libs) $(if $(filter %/fuzz/replies.o,$^),$(remote_libs)) $(if $(filter $(units),$@),-lcmocka)

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
$(foreach a,program kernels base,$(eval $(BUILD)/obj/$a.a: $($a)))

$(BUILD)/obj/kernels/%.o $(BUILD)/obj/bench/%.o: private optimise := $(if $(SANITIZE),-O2,-O3) -fopenmp -ffp-contract=off
$(BUILD)/obj/%.o: %.c $(BUILD)/obj/settings | $(BUILD)/ops.inc
	echo "  cc $<"; mkdir -p $(@D)
	$(CC) $(strict) $(CPPFLAGS) $(flags) $(CFLAGS) $(optimise) -c -o $@ $<

# No exception leaves a C++ source, so that C code can call it. Headers of libraries are not checked for warnings.
$(BUILD)/obj/%.o: %.cpp $(BUILD)/obj/settings
	echo "  c++ $<"; mkdir -p $(@D)
	$(CXX) -std=c++17 -Wall -Wextra -Wshadow -Wconversion $(WERROR) $(CPPFLAGS) $(flags) $(CFLAGS) -c -o $@ $<

$(BUILD)/obj/%.cu.o: %.cu $(BUILD)/obj/settings_cuda | $(BUILD)/ops.inc
	echo "  nvcc $<"; mkdir -p $(@D)
	$(NVCC) -O3 -std=c++17 -I. -I$(BUILD) -D_GNU_SOURCE -MMD -MP -MF $(@:.o=.d) $(gencode) --threads 0 \
		-Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra -c -o $@ $<

# A source that includes a file as bytes depends on it, but the compiler does not report this dependency.
$(BUILD)/obj/kernels/core/published_models.o: models/models.json
$(BUILD)/obj/models/architecture.o: models/architectures.json
$(BUILD)/obj/report/html_page.o: report/page.html
$(BUILD)/obj/report/reproduce_script.o: report/reproduce.py
$(BUILD)/obj/extract/templates.o: $(wildcard kernels/*/templates/*)

# Files that every make writes anew, but replaces only if they differ: the op families with the digests of their
# sources, the tables of libraries, the list of objects in each archive (so that a deleted source is removed from its
# archive), and the compilers with their flags.
written := ops.inc kernels_digest.h scripts.inc packages.inc libraries.inc templates.inc shipped_digest.h summary_digest.h obj/sources obj/settings obj/settings_cuda
$(addprefix $(BUILD)/,$(written)): derived ;
derived:
	tools/generate.sh $(BUILD) '$(program) $(kernels) $(base) $(cuda)' '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(flags)' '$(NVCC)'

.PHONY: all verify test torch test-tools references check fuzz mutants diagnoses history hostile coverage check-gpu check-races check-memory soak bench bench-gpu install uninstall wheel clean help \
	unit-tests derived
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
